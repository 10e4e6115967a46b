"""One-shot randomized response by others, each called in the fastest way that it allows.

None of them relaxes, and only OpenDP's randomness is secure. A peer that is not installed is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import Settings
from benchmarks.timing import Contender

EPSILON = 1.0

GRR = "multi-freq-ldpy GRR"
GRR_COMPILED = "multi-freq-ldpy GRR, compiled loop"
DIRECT = "pure-ldp DE"
OPENDP = "opendp"
OPENDP_BITS = "opendp, bit vector"


def peers(values: int, settings: Settings, leave_out: Callable[[str], None]) -> list[Contender]:
    """Return the installed peers for one number of values."""
    found: list[Contender] = []
    for package, contenders in (
        ("multi-freq-ldpy", _multi_freq_ldpy),
        ("pure-ldp", _pure_ldp),
        ("opendp", _opendp),
    ):
        try:
            found += contenders(values, settings)
        except ModuleNotFoundError as problem:
            leave_out(f"{package} is left out: there is no module {problem.name}.")
    return found


def _truths(values: int, objects: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, values, objects)


@cache  # compiled once, not once per race
def _compiled_loop() -> Callable[[NDArray[np.int64], int, float], NDArray[np.int64]]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client  # noqa: PLC0415 (a peer may be missing)
    from numba import njit  # type: ignore[import-not-found]  # noqa: PLC0415

    def privatise(truths: NDArray[np.int64], values: int, epsilon: float) -> NDArray[np.int64]:
        reports = np.empty_like(truths)
        for row in range(len(truths)):
            reports[row] = GRR_Client(truths[row], values, epsilon)
        return reports

    compiled: Callable[[NDArray[np.int64], int, float], NDArray[np.int64]] = njit(privatise)
    return compiled


def _multi_freq_ldpy(values: int, settings: Settings) -> Sequence[Contender]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client  # noqa: PLC0415

    # The client is compiled, so most of a call from Python is the crossing. A caller who also compiles the loop around
    # it saves the crossing; that is this peer at its fastest, so it is measured too.
    loop, array = _compiled_loop(), _truths(values, settings.client_objects)
    truths = array.tolist()
    return [
        Contender(GRR, len(truths), lambda: list(map(GRR_Client, truths, repeat(values), repeat(EPSILON)))),
        Contender(GRR_COMPILED, len(truths), lambda: loop(array, values, EPSILON)),
    ]


def _pure_ldp(values: int, settings: Settings) -> Sequence[Contender]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient  # noqa: PLC0415

    # Its items count from 1 unless told otherwise.
    client = DEClient(EPSILON, values, index_mapper=lambda item: item)
    truths = _truths(values, settings.client_objects).tolist()
    return [Contender(DIRECT, len(truths), lambda: list(map(client.privatise, truths)))]


def _opendp(values: int, settings: Settings) -> Sequence[Contender]:
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")
    truth_probability = math.exp(EPSILON) / (math.exp(EPSILON) + values - 1)
    response = dp.m.make_randomized_response(list(range(values)), truth_probability)
    truths = _truths(values, settings.opendp_objects).tolist()
    contenders = [Contender(OPENDP, len(truths), lambda: list(map(response, truths)))]
    if values == 2:
        # Many answers in one call exist for bits alone. Each bit is redrawn with probability `f`; the map of the
        # measurement says 2 because it counts the two bits in which one-hot vectors differ.
        bits = dp.m.make_randomized_response_bitvec(
            dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=2 / (math.exp(EPSILON) + 1)
        )
        packed = np.packbits(_truths(values, settings.client_objects).astype(np.uint8)).tobytes()
        contenders.append(Contender(OPENDP_BITS, 8 * len(packed), lambda: bits(packed)))
    return contenders
