"""What `relaxdp audit` looks at: every mechanism and encoding of this package, mistakes on purpose, and peers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import Law, NoisySamples, Relaxed
from relaxdp.audit.case_sources import (
    FIVE_BUYERS,
    BlurredSource,
    ChangedTruthSource,
    DrawnAgainSource,
    IndependentSource,
    NoisySampleSource,
    OneAtATime,
    PooledSource,
    RaisedThreshold,
    RedrawnSource,
    SaleSource,
    SecondKeySource,
    list_pooled_levels,
)
from relaxdp.audit.transcript_sources import AlgorithmSource, Function, PathSource, Source
from relaxdp.estimation.schedules import noisy_sampling_epsilon
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.local_hash import LocalHash, best_buckets
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.mechanisms.unary import Unary
from relaxdp.theory.epsilon import Epsilon

Group = Literal["relaxation", "encoding", "other", "planted", "peer"]
SAMPLERS: tuple[tuple[str, type[AlgorithmSource] | type[PathSource]], ...] = (
    ("path", PathSource),
    ("Algorithm 1", AlgorithmSource),
)
STEPS = 10
LEVELS = ("0.5", "1", "2")
RELAXED_TO = ("0.2", "0.5", "1", "2", "4")


@dataclass(frozen=True)
class Case:
    """One thing to audit."""

    group: Group
    name: str
    claimed: Epsilon
    source: Source | Function | None
    """None for a peer that is not installed."""
    truths: Sequence[Any] = (0, 1)
    law: Law | None = None
    most: int | None = None
    """As many trials as are bearable where a trial is slow."""
    least: int = 0
    """As many trials as it takes to see a small mistake."""

    def trials(self, asked: int) -> int:
        """Return how many trials are made when `asked` are asked for."""
        return max(self.least, asked if self.most is None else min(asked, self.most))


def all_cases() -> Iterator[Case]:
    """Return everything."""
    yield from relaxations()
    yield from list_mechanism_cases()
    yield from others()
    yield from planted()
    yield from peer_cases()


def make_steps(epsilon: str) -> list[Decimal]:
    """Return ten levels of equal steps."""
    return [Decimal(epsilon) * step / STEPS for step in range(1, STEPS + 1)]


def relaxations() -> Iterator[Case]:
    """Return two values relaxed in ten steps: the distribution is known, so the best rule is too."""
    encoding = Categorical(range(2))
    for epsilon in RELAXED_TO:
        levels = make_steps(epsilon)
        for sampler, kind in SAMPLERS:
            name = f"two values, ten levels up to {epsilon}, {sampler}"
            yield Case("relaxation", name, epsilon, kind(encoding, levels), law=Relaxed.at(levels, values=2))


def list_mechanism_cases() -> Iterator[Case]:
    """Return every mechanism at three levels, with both samplers."""
    for encoding, truths, law in list_mechanisms():
        most = 1_000_000 if encoding.name == "bloom" else None  # words are hashed one at a time
        for sampler, kind in SAMPLERS:
            name = f"{encoding.name}, levels 0.5, 1, 2, {sampler}"
            yield Case("encoding", name, "2", kind(encoding, LEVELS), truths, law, most)


def list_mechanisms() -> Iterator[tuple[Mechanism, Sequence[Any], Law | None]]:
    """Return one of each mechanism, with true values that must be hard to tell apart."""
    yield Categorical(range(5)), range(5), Relaxed.at(LEVELS, values=5)
    yield Numeric(0, 1), (0.0, 1.0), Relaxed.at(LEVELS, values=2)
    yield Numeric(0, 1, missing=True), (None, 0.0, 1.0), Relaxed.at(LEVELS, values=3)
    yield SquareWave(0, 1, bins=3, window=2), (0.0, 1.0), None
    yield Unary(range(4), optimised=False), range(4), None
    yield Unary(range(4)), range(4), None
    yield LocalHash(range(4), buckets=best_buckets(2)), range(4), None
    shape = BloomShape(bits=8, hashes=2, cohorts=1)
    yield Bloom(shape, 0), make_words_apart(shape), None


def make_words_apart(shape: BloomShape) -> tuple[str, str]:
    """Return two words that set no bit in common, so that they are as different as words can be."""
    words = [f"word-{number}" for number in range(10, 99)]
    bits = {word: set(shape.compute_bits(word, 0)) for word in words}
    full = [word for word in words if len(bits[word]) == shape.hashes]
    return next((full[0], word) for word in full if not bits[word] & bits[full[0]])


def others() -> Iterator[Case]:
    """Return what else lets reports out."""
    for how, keyed in (("keyed", True), ("fresh", False)):
        name = f"a sale at 1 between deliveries at 0.5 and 2, {how}"
        source = SaleSource(Categorical(range(3)), LEVELS, keyed=keyed)
        yield Case("other", name, "2", source, range(3), Relaxed.at(LEVELS, values=3))
    pooled, law = PooledSource(Categorical(range(3))), Relaxed.at(list_pooled_levels(FIVE_BUYERS), values=3)
    yield Case("other", "market, five buyers pool what they bought", "0.7", pooled, range(3), law)
    for name, keyed, most in (("Path", True, 20_000), ("Relaxation", False, 10_000)):
        one = OneAtATime(2, list(LEVELS), keyed=keyed)
        law = Relaxed.at(LEVELS, values=2)
        yield Case("other", f"{name}, one object at a time, levels 0.5, 1, 2", "2", one, law=law, most=most)
    renamed = ChangedTruthSource(("0.5", "1"), new_name=True)
    yield Case("other", "a new name after the truth changed, 0.5 + 1", "1.5", renamed, range(4))
    samples = NoisySamples.at(epsilon_alpha=1, epsilon_beta="0.5", samples=STEPS)
    claimed = noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=STEPS)
    noisy = NoisySampleSource(samples.permanent, samples.sample, STEPS)
    yield Case("other", "noisy sampling, ten samples (the paper's baseline)", claimed, noisy, law=samples)


def planted() -> Iterator[Case]:
    """Return mistakes that have to be seen."""
    bit = Categorical(range(2))
    yield Case("planted", "independent reports at 0.5 and 0.5", "0.5", IndependentSource(bit, ["0.5", "0.5"]))
    yield Case("planted", "independent reports at 0.5, 1, 2", "2", IndependentSource(bit, LEVELS))
    yield Case("planted", "released again under a second key, 0.5", "0.5", SecondKeySource(bit, ["0.5", "0.5"]))
    wave = SquareWave(0, 1, bins=3, window=2)
    yield Case("planted", "wave, offset drawn again at each level", "2", RedrawnSource(wave, LEVELS), (0.0, 1.0))
    forgets = ChangedTruthSource(("0.5", "1"), new_name=False, forgets_truth=True)
    yield Case("planted", "truth changed, stream without the truth, 0.5 + 1", "1.5", forgets, range(4))
    goes_on = ChangedTruthSource(("0.5", "0.5"), new_name=False)
    yield Case("planted", "truth changed, release went on, 0.5 + 0.5", "1", goes_on, range(4))
    yield from planted_markets()
    for epsilon in RELAXED_TO[1:]:
        raised = RaisedThreshold(range(2), Fraction(1, 100))
        # At 0.5 one percent is 8 standard errors of 10 million trials, and more at larger levels.
        name = f"threshold 1 % too high at {epsilon}"
        law = Relaxed.at([epsilon], values=2)
        yield Case("planted", name, epsilon, AlgorithmSource(raised, [epsilon]), law=law, least=20_000_000)


def planted_markets() -> Iterator[Case]:
    """Return markets that give buyers who pool what they bought more than the best of them has."""
    bit, sold = Categorical(range(2)), list_pooled_levels(FIVE_BUYERS)
    naive, again, blurred = IndependentSource(bit, sold), DrawnAgainSource(bit), BlurredSource(bit)
    yield Case("planted", "market, an independent report for each buyer", "0.7", naive)
    # The transcripts that tell most are rare, so this takes some learning.
    yield Case("planted", "market, a level drawn again for a buyer", "0.7", again, least=1_000_000)
    yield Case("planted", "market, levels blurred from the last delivery", "0.7", blurred)


def peer_cases() -> Iterator[Case]:
    """Return others' randomized response of two values, released once: none of them relaxes."""
    for name, most, make in peers(1.0):
        try:
            function = make()
        except ImportError:
            yield Case("peer", name, 1, None)
            continue
        yield Case("peer", name, 1, function, law=Relaxed.at([1], values=2), most=most)


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
