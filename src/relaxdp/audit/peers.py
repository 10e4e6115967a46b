"""Randomized response by others, for comparison: whichever of them is installed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.sources import Function

Truths = NDArray[Any]
VALUES = 2

# Loops in Python: so many trials each that a peer takes seconds.
FAST, SLOW = 1_000_000, 100_000


def peers(epsilon: float) -> Iterator[tuple[str, int, Callable[[], Function]]]:
    """Return names, how many trials are bearable, and what makes the function (or fails where it is missing)."""
    yield "opendp randomized response", SLOW, lambda: _opendp(epsilon)
    yield "pure-ldp direct encoding", FAST, lambda: _pure_ldp(epsilon)
    yield "multi-freq-ldpy GRR", FAST, lambda: _multi_freq_ldpy(epsilon)
    yield "diffprivlib Binary", SLOW, lambda: _diffprivlib(epsilon)


def _opendp(epsilon: float) -> Function:
    import opendp.prelude as dp  # noqa: PLC0415 (a peer may be missing)

    dp.enable_features("contrib")
    response = dp.m.make_randomized_response(list(range(VALUES)), math.exp(epsilon) / (math.exp(epsilon) + VALUES - 1))
    return lambda truths: np.fromiter(map(response, truths.tolist()), np.uint8, len(truths))


def _pure_ldp(epsilon: float) -> Function:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient  # noqa: PLC0415

    client = DEClient(epsilon, VALUES, index_mapper=lambda item: item)  # items count from 1 unless told otherwise
    return lambda truths: np.fromiter(map(client.privatise, truths.tolist()), np.uint8, len(truths))


def _multi_freq_ldpy(epsilon: float) -> Function:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client  # noqa: PLC0415

    def respond(truths: Truths) -> Truths:
        drawn = map(GRR_Client, truths.tolist(), repeat(VALUES), repeat(epsilon))
        return np.fromiter(drawn, np.uint8, len(truths))

    return respond


def _diffprivlib(epsilon: float) -> Function:
    from diffprivlib.mechanisms import Binary  # noqa: PLC0415

    response = Binary(epsilon=epsilon, value0="0", value1="1")
    return lambda truths: np.fromiter(
        map(int, map(response.randomise, map(str, truths.tolist()))), np.uint8, len(truths)
    )
