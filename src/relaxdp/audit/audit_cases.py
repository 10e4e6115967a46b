"""The cases of `relaxdp audit`: every mechanism of this package, deliberately faulty releases, and other libraries."""

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

from relaxdp.audit.attacks import NoisySamplesDistribution, RelaxedDistribution, TranscriptDistribution
from relaxdp.audit.case_sources import (
    FIVE_BUYERS,
    BlurredDeliverySource,
    ChangedValueSource,
    IndependentReportsSource,
    NoisySampleSource,
    PooledPurchasesSource,
    RaisedThresholdCategorical,
    RedrawnLevelSource,
    RedrawnPermanentSource,
    SaleSource,
    SecondKeySource,
    SingleIndividualSource,
    list_pooled_levels,
)
from relaxdp.audit.transcript_sources import KeyedPathSource, MechanismFunction, RelaxationSource, TranscriptSource
from relaxdp.estimation.schedules import compute_noisy_sampling_epsilon
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.local_hash import LocalHash, compute_best_buckets
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.mechanisms.unary import Unary
from relaxdp.theory.epsilon import Epsilon

Group = Literal["relaxation", "encoding", "other", "planted", "peer"]
SAMPLERS: tuple[tuple[str, type[RelaxationSource] | type[KeyedPathSource]], ...] = (
    ("path", KeyedPathSource),
    ("Algorithm 1", RelaxationSource),
)
STEPS = 10
LEVELS = ("0.5", "1", "2")
RELAXED_TO = ("0.2", "0.5", "1", "2", "4")


@dataclass(frozen=True)
class AuditCase:
    """A mechanism to audit, with the epsilon that it claims."""

    group: Group
    name: str
    claimed_epsilon: Epsilon
    source: TranscriptSource | MechanismFunction | None
    """None for a peer that is not installed."""
    true_values: Sequence[Any] = (0, 1)
    distribution: TranscriptDistribution | None = None
    maximum_trials: int | None = None
    """The limit of a mechanism whose trials are slow."""
    minimum_trials: int = 0
    """As many trials as it takes to detect a small mistake."""

    def choose_trials(self, requested: int) -> int:
        """Return the number of trials for a requested number."""
        limit = requested if self.maximum_trials is None else self.maximum_trials
        return max(self.minimum_trials, min(requested, limit))


def list_all_cases() -> Iterator[AuditCase]:
    """Yield the cases of all groups."""
    yield from list_relaxation_cases()
    yield from list_mechanism_cases()
    yield from list_other_cases()
    yield from list_faulty_cases()
    yield from list_peer_cases()


def make_equal_steps(epsilon: str) -> list[Decimal]:
    """Return ten levels of equal steps."""
    return [Decimal(epsilon) * step / STEPS for step in range(1, STEPS + 1)]


def list_relaxation_cases() -> Iterator[AuditCase]:
    """Yield two values that are relaxed in ten steps. The distribution is known, so the best rule is too."""
    mechanism = Categorical(range(2))
    for epsilon in RELAXED_TO:
        levels = make_equal_steps(epsilon)
        for sampler, kind in SAMPLERS:
            name = f"two values, ten levels up to {epsilon}, {sampler}"
            yield AuditCase(
                "relaxation",
                name,
                epsilon,
                kind(mechanism, levels),
                distribution=RelaxedDistribution.from_epsilons(levels, values=2),
            )


def list_mechanism_cases() -> Iterator[AuditCase]:
    """Return every mechanism at three levels, with both samplers."""
    for mechanism, true_values, distribution in list_mechanisms():
        maximum_trials = 1_000_000 if mechanism.name == "bloom" else None  # words are hashed one at a time
        for sampler, kind in SAMPLERS:
            name = f"{mechanism.name}, levels 0.5, 1, 2, {sampler}"
            yield AuditCase("encoding", name, "2", kind(mechanism, LEVELS), true_values, distribution, maximum_trials)


def list_mechanisms() -> Iterator[tuple[Mechanism, Sequence[Any], TranscriptDistribution | None]]:
    """Return one of each mechanism, with true values that must be hard to tell apart."""
    yield Categorical(range(5)), range(5), RelaxedDistribution.from_epsilons(LEVELS, values=5)
    yield Numeric(0, 1), (0.0, 1.0), RelaxedDistribution.from_epsilons(LEVELS, values=2)
    yield Numeric(0, 1, missing=True), (None, 0.0, 1.0), RelaxedDistribution.from_epsilons(LEVELS, values=3)
    yield SquareWave(0, 1, bins=3, window=2), (0.0, 1.0), None
    yield Unary(range(4), optimised=False), range(4), None
    yield Unary(range(4)), range(4), None
    yield LocalHash(range(4), buckets=compute_best_buckets(2)), range(4), None
    shape = BloomShape(bits=8, hashes=2, cohorts=1)
    yield Bloom(shape, 0), find_words_without_common_bits(shape), None


def find_words_without_common_bits(shape: BloomShape) -> tuple[str, str]:
    """Return two words that set no bit in common, so that they are as different as words can be."""
    words = [f"word-{number}" for number in range(10, 99)]
    bits = {word: set(shape.compute_bits(word, 0)) for word in words}
    full = [word for word in words if len(bits[word]) == shape.hashes]
    return next((full[0], word) for word in full if not bits[word] & bits[full[0]])


def list_other_cases() -> Iterator[AuditCase]:
    """Yield the other ways in which reports are released: markets, single individuals, noisy samples."""
    for how, keyed in (("keyed", True), ("fresh", False)):
        name = f"a sale at 1 between deliveries at 0.5 and 2, {how}"
        source = SaleSource(Categorical(range(3)), LEVELS, keyed=keyed)
        yield AuditCase("other", name, "2", source, range(3), RelaxedDistribution.from_epsilons(LEVELS, values=3))
    pooled, distribution = (
        PooledPurchasesSource(Categorical(range(3))),
        RelaxedDistribution.from_epsilons(list_pooled_levels(FIVE_BUYERS), values=3),
    )
    yield AuditCase("other", "market, five buyers pool what they bought", "0.7", pooled, range(3), distribution)
    for name, keyed, maximum_trials in (("Path", True, 20_000), ("Relaxation", False, 10_000)):
        one = SingleIndividualSource(2, list(LEVELS), keyed=keyed)
        distribution = RelaxedDistribution.from_epsilons(LEVELS, values=2)
        yield AuditCase(
            "other",
            f"{name}, one object at a time, levels 0.5, 1, 2",
            "2",
            one,
            distribution=distribution,
            maximum_trials=maximum_trials,
        )
    renamed = ChangedValueSource(("0.5", "1"), new_name=True)
    yield AuditCase("other", "a new name after the truth changed, 0.5 + 1", "1.5", renamed, range(4))
    samples = NoisySamplesDistribution.from_epsilons(epsilon_alpha=1, epsilon_beta="0.5", samples=STEPS)
    claimed = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=STEPS)
    noisy = NoisySampleSource(samples.permanent, samples.sample, STEPS)
    yield AuditCase("other", "noisy sampling, ten samples (the paper's baseline)", claimed, noisy, distribution=samples)


def list_faulty_cases() -> Iterator[AuditCase]:
    """Yield deliberately faulty releases, which the audit must flag."""
    bit = Categorical(range(2))
    yield AuditCase(
        "planted", "independent reports at 0.5 and 0.5", "0.5", IndependentReportsSource(bit, ["0.5", "0.5"])
    )
    yield AuditCase("planted", "independent reports at 0.5, 1, 2", "2", IndependentReportsSource(bit, LEVELS))
    yield AuditCase("planted", "released again under a second key, 0.5", "0.5", SecondKeySource(bit, ["0.5", "0.5"]))
    wave = SquareWave(0, 1, bins=3, window=2)
    yield AuditCase(
        "planted", "wave, offset drawn again at each level", "2", RedrawnPermanentSource(wave, LEVELS), (0.0, 1.0)
    )
    forgets = ChangedValueSource(("0.5", "1"), new_name=False, ignores_true_value=True)
    yield AuditCase("planted", "truth changed, stream without the truth, 0.5 + 1", "1.5", forgets, range(4))
    goes_on = ChangedValueSource(("0.5", "0.5"), new_name=False)
    yield AuditCase("planted", "truth changed, release went on, 0.5 + 0.5", "1", goes_on, range(4))
    yield from list_faulty_market_cases()
    for epsilon in RELAXED_TO[1:]:
        raised = RaisedThresholdCategorical(range(2), Fraction(1, 100))
        # At 0.5 one percent is 8 standard errors of 10 million trials, and more at larger levels.
        name = f"threshold 1 % too high at {epsilon}"
        distribution = RelaxedDistribution.from_epsilons([epsilon], values=2)
        yield AuditCase(
            "planted",
            name,
            epsilon,
            RelaxationSource(raised, [epsilon]),
            distribution=distribution,
            minimum_trials=20_000_000,
        )


def list_faulty_market_cases() -> Iterator[AuditCase]:
    """Yield markets whose buyers learn more together than the best of them bought."""
    bit, sold = Categorical(range(2)), list_pooled_levels(FIVE_BUYERS)
    naive, again, blurred = IndependentReportsSource(bit, sold), RedrawnLevelSource(bit), BlurredDeliverySource(bit)
    yield AuditCase("planted", "market, an independent report for each buyer", "0.7", naive)
    # The most revealing transcripts are rare, so this case needs more trials.
    yield AuditCase("planted", "market, a level drawn again for a buyer", "0.7", again, minimum_trials=1_000_000)
    yield AuditCase("planted", "market, levels blurred from the last delivery", "0.7", blurred)


def list_peer_cases() -> Iterator[AuditCase]:
    """Yield randomized response of two values by other libraries, released once: none of them relaxes."""
    for name, maximum_trials, make in list_peer_mechanisms(1.0):
        try:
            function = make()
        except ImportError:
            yield AuditCase("peer", name, 1, None)
            continue
        yield AuditCase(
            "peer",
            name,
            1,
            function,
            distribution=RelaxedDistribution.from_epsilons([1], values=2),
            maximum_trials=maximum_trials,
        )


TrueValues = NDArray[Any]
VALUES = 2

# Trials of mechanisms that loop in Python: each takes seconds.
FAST_TRIALS, SLOW_TRIALS = 1_000_000, 100_000


def list_peer_mechanisms(epsilon: float) -> Iterator[tuple[str, int, Callable[[], MechanismFunction]]]:
    """Yield names, maximum trials, and makers of the mechanism, which fail if its library is not installed."""
    yield "opendp randomized response", SLOW_TRIALS, lambda: _make_opendp_mechanism(epsilon)
    yield "pure-ldp direct encoding", FAST_TRIALS, lambda: _make_pure_ldp_mechanism(epsilon)
    yield "multi-freq-ldpy GRR", FAST_TRIALS, lambda: _make_multi_freq_ldpy_mechanism(epsilon)
    yield "diffprivlib Binary", SLOW_TRIALS, lambda: _make_diffprivlib_mechanism(epsilon)


def _make_opendp_mechanism(epsilon: float) -> MechanismFunction:
    import opendp.prelude as dp  # noqa: PLC0415 (a library may be missing)

    dp.enable_features("contrib")
    response = dp.m.make_randomized_response(list(range(VALUES)), math.exp(epsilon) / (math.exp(epsilon) + VALUES - 1))
    return lambda true_values: np.fromiter(map(response, true_values.tolist()), np.uint8, len(true_values))


def _make_pure_ldp_mechanism(epsilon: float) -> MechanismFunction:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient  # noqa: PLC0415

    client = DEClient(epsilon, VALUES, index_mapper=lambda item: item)  # By default items count from 1.
    return lambda true_values: np.fromiter(map(client.privatise, true_values.tolist()), np.uint8, len(true_values))


def _make_multi_freq_ldpy_mechanism(epsilon: float) -> MechanismFunction:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client  # noqa: PLC0415

    def respond(true_values: TrueValues) -> TrueValues:
        drawn = map(GRR_Client, true_values.tolist(), repeat(VALUES), repeat(epsilon))
        return np.fromiter(drawn, np.uint8, len(true_values))

    return respond


def _make_diffprivlib_mechanism(epsilon: float) -> MechanismFunction:
    from diffprivlib.mechanisms import Binary  # noqa: PLC0415

    response = Binary(epsilon=epsilon, value0="0", value1="1")
    return lambda true_values: np.fromiter(
        map(int, map(response.randomise, map(str, true_values.tolist()))), np.uint8, len(true_values)
    )
