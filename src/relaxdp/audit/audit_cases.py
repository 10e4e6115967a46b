"""The cases of `relaxdp audit`: every mechanism of this package, deliberately faulty releases, and other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import NoisySamplesDistribution, RelaxedReportsDistribution, TranscriptDistribution
from relaxdp.audit.auditor import AuditResult, audit
from relaxdp.audit.case_sources import (
    FIVE_BUYERS,
    BridgedLevelSource,
    ChangedValueSource,
    IndependentReportsSource,
    NoisySampleSource,
    PooledLevelsSource,
    RaisedThresholdCategorical,
    RedrawnPermanentSource,
    SecondKeySource,
    make_individual_function,
)
from relaxdp.audit.transcript_sources import KeyedPathSource, MechanismFunction, RelaxationSource, TranscriptSource
from relaxdp.estimation.schedules import compute_noisy_sampling_epsilon
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.local_hash import LocalHash, choose_bucket_count
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon

Group = Literal["relaxation", "encoding", "other", "planted", "peer"]
SAMPLERS: tuple[tuple[str, type[RelaxationSource] | type[KeyedPathSource]], ...] = (
    ("path", KeyedPathSource),
    ("Algorithm 1", RelaxationSource),
)
STEPS = 10
LEVELS = ("0.5", "1", "2")
RELAXED_TO = ("0.2", "0.5", "1", "2", "4")
BIT = Categorical(range(2))
WAVE = SquareWave(0, 1, bins=3, window=2)


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


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A case with the result of its audit; without a result if a peer is not installed."""

    case: AuditCase
    result: AuditResult | None

    @property
    def verdict(self) -> str:
        """The result in a few words."""
        if self.result is None:
            return "not installed"
        if self.case.group == "planted":
            return "flagged, as it must be" if self.result.is_violated else "MISSED"
        return "VIOLATED" if self.result.is_violated else "not refuted"

    @property
    def is_expected(self) -> bool:
        """Whether the claim holds for this package's mechanisms, and is refuted for the deliberately faulty ones."""
        if self.result is None or self.case.group == "peer":
            return True
        return self.result.is_violated == (self.case.group == "planted")

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON."""
        found = self.result
        numbers = {} if found is None else {
            "epsilon_low": found.epsilon_lower_bound, "share": found.share_of_claim, "trials": found.trials,
            "guessed": found.guesses, "right": found.right_guesses, "confidence": found.confidence_level,
            "violated": found.is_violated, "looked_at": found.evidence,
        }  # fmt: skip
        claimed = format_epsilon(as_epsilon(self.case.claimed_epsilon))
        return {
            "group": self.case.group, "mechanism": self.case.name, "claimed": claimed, **numbers,
            "verdict": self.verdict, "as_expected": self.is_expected,
        }  # fmt: skip


def run_audits(
    cases: Sequence[AuditCase],
    *,
    trials: int,
    confidence_level: float,
    seed: int,
    progress: Callable[[AuditCase, int], None] | None = None,
) -> Iterator[AuditFinding]:
    """Yield the findings one by one. With at most 1 - `confidence_level`, any of their bounds is too high.

    The randomness of a case follows from the seed and its name, so it does not depend on the other cases.
    """
    n_audited = sum(case.source is not None for case in cases)
    each_level = 1 - (1 - confidence_level) / max(n_audited, 1)
    for case in cases:
        if case.source is None:
            yield AuditFinding(case, None)
            continue
        case_seed = int.from_bytes(sha256(f"{seed} {case.name}".encode()).digest()[:8], "little")
        result = audit(
            case.source, case.true_values, claimed_epsilon=case.claimed_epsilon, trials=case.choose_trials(trials),
            confidence_level=each_level, distribution=case.distribution, seed=case_seed,
            progress=None if progress is None else partial(progress, case),
        )  # fmt: skip
        yield AuditFinding(case, result)


def list_all_cases() -> Iterator[AuditCase]:
    """Yield the cases of all groups."""
    yield from list_relaxation_cases()
    yield from list_mechanism_cases()
    yield from list_other_cases()
    yield from list_faulty_cases()
    yield from list_peer_cases()


def list_relaxation_cases() -> Iterator[AuditCase]:
    """Yield two values that are relaxed in ten equal steps. The distribution is known, so the best rule is too."""
    for epsilon in RELAXED_TO:
        levels = [Decimal(epsilon) * step / STEPS for step in range(1, STEPS + 1)]
        distribution = RelaxedReportsDistribution.from_epsilons(levels, n_values=2)
        for sampler, kind in SAMPLERS:
            name = f"two values, ten levels up to {epsilon}, {sampler}"
            yield AuditCase("relaxation", name, epsilon, kind(BIT, levels), distribution=distribution)


def list_mechanism_cases() -> Iterator[AuditCase]:
    """Return every mechanism at three levels, with both samplers."""
    for mechanism, true_values, distribution in list_mechanisms():
        maximum_trials = 1_000_000 if mechanism.name == "bloom" else None  # words are hashed one at a time
        for sampler, kind in SAMPLERS:
            name = f"{mechanism.name}, levels 0.5, 1, 2, {sampler}"
            yield AuditCase("encoding", name, "2", kind(mechanism, LEVELS), true_values, distribution, maximum_trials)


def list_mechanisms() -> Iterator[tuple[Mechanism, Sequence[Any], TranscriptDistribution | None]]:
    """Return one of each mechanism, with true values that must be hard to tell apart."""
    yield Categorical(range(5)), range(5), RelaxedReportsDistribution.from_epsilons(LEVELS, n_values=5)
    yield Numeric(0, 1), (0.0, 1.0), RelaxedReportsDistribution.from_epsilons(LEVELS, n_values=2)
    yield Numeric(0, 1, missing=True), (None, 0.0, 1.0), RelaxedReportsDistribution.from_epsilons(LEVELS, n_values=3)
    yield WAVE, (0.0, 1.0), None
    yield Unary(range(4), optimised=False), range(4), None
    yield Unary(range(4)), range(4), None
    yield LocalHash(range(4), buckets=choose_bucket_count(2)), range(4), None
    shape = BloomShape(bits=8, hashes=2, cohorts=1)
    yield Bloom(shape, 0), find_words_without_common_bits(shape), None


def find_words_without_common_bits(shape: BloomShape) -> tuple[str, str]:
    """Return two words that set no bit in common, so that they are as different as words can be."""
    words = [f"word-{number}" for number in range(10, 99)]
    bits = {word: set(shape.compute_bits(word, 0)) for word in words}
    full = [word for word in words if len(bits[word]) == shape.hashes]
    return next((full[0], word) for word in full if not bits[word] & bits[full[0]])


def list_other_cases() -> Iterator[AuditCase]:
    """Yield the other ways in which reports are released: the bridge, markets, single individuals, noisy samples."""
    three = Categorical(range(3))
    distribution = RelaxedReportsDistribution.from_epsilons(LEVELS, n_values=3)
    name = "bridge, a level at 1 between releases at 0.5 and 2"
    yield AuditCase("other", name, "2", BridgedLevelSource(three, LEVELS), range(3), distribution)
    for name, limit in (
        ("market, five buyers pool their levels", "0.7"),
        ("market, the same for individuals with the limit 0.4", "0.4"),
    ):
        source = PooledLevelsSource(three, FIVE_BUYERS, limit)
        pooled = RelaxedReportsDistribution.from_epsilons(source.epsilons, n_values=3)
        yield AuditCase("other", name, limit, source, range(3), pooled)
    distribution = RelaxedReportsDistribution.from_epsilons(LEVELS, n_values=2)
    for sampler, keyed, maximum_trials in (("Path", True, 20_000), ("Relaxation", False, 10_000)):
        name = f"{sampler}, one object at a time, levels 0.5, 1, 2"
        function = make_individual_function(LEVELS, keyed=keyed)
        yield AuditCase("other", name, "2", function, (0, 1), distribution, maximum_trials)
    renamed = ChangedValueSource(("0.5", "1"), new_name=True)
    yield AuditCase("other", "a new name after the truth changed, 0.5 + 1", "1.5", renamed, range(4))
    samples = NoisySamplesDistribution.from_epsilons(epsilon_alpha=1, epsilon_beta="0.5", n_samples=STEPS)
    claimed = compute_noisy_sampling_epsilon(epsilon_alpha=1, epsilon_beta="0.5", samples=STEPS)
    noisy = NoisySampleSource(samples.permanent, samples.sample, STEPS)
    yield AuditCase("other", "noisy sampling, ten samples (the paper's baseline)", claimed, noisy, distribution=samples)


def list_faulty_cases() -> Iterator[AuditCase]:
    """Yield deliberately faulty releases, which the audit must flag."""
    case = partial(AuditCase, "planted")
    yield case("independent reports at 0.5 and 0.5", "0.5", IndependentReportsSource(BIT, ["0.5", "0.5"]))
    yield case("independent reports at 0.5, 1, 2", "2", IndependentReportsSource(BIT, LEVELS))
    yield case("released again under a second key, 0.5", "0.5", SecondKeySource(BIT, ["0.5", "0.5"]))
    yield case("wave, offset drawn again at each level", "2", RedrawnPermanentSource(WAVE, LEVELS), (0.0, 1.0))
    forgets = ChangedValueSource(("0.5", "1"), new_name=False, ignores_true_value=True)
    yield case("truth changed, stream without the truth, 0.5 + 1", "1.5", forgets, range(4))
    goes_on = ChangedValueSource(("0.5", "0.5"), new_name=False)
    yield case("truth changed, release went on, 0.5 + 0.5", "1", goes_on, range(4))
    # Buyers learn more together than the best of them ordered.
    yield case("market, another key for each buyer", "0.7", SecondKeySource(BIT, FIVE_BUYERS))
    raised = RaisedThresholdCategorical(range(2), Fraction(1, 100))
    for epsilon in RELAXED_TO[1:]:
        name, source = f"threshold 1 % too high at {epsilon}", RelaxationSource(raised, [epsilon])
        distribution = RelaxedReportsDistribution.from_epsilons([epsilon], n_values=2)
        # At 0.5 one percent is 8 standard errors of 10 million trials, and more at larger levels.
        yield case(name, epsilon, source, distribution=distribution, minimum_trials=20_000_000)


def list_peer_cases() -> Iterator[AuditCase]:
    """Yield randomized response of two values by other libraries, released once: none of them relaxes."""
    distribution = RelaxedReportsDistribution.from_epsilons([1], n_values=2)
    for name, (maximum_trials, make_response) in PEERS.items():
        try:
            function = partial(_respond_one_by_one, make_response(1.0))
        except ImportError:
            yield AuditCase("peer", name, 1, None)
        else:
            yield AuditCase("peer", name, 1, function, (0, 1), distribution, maximum_trials)


Response = Callable[[int], int]


def _respond_one_by_one(respond: Response, true_values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.fromiter(map(respond, true_values.tolist()), np.uint8, len(true_values))


def _make_opendp_response(epsilon: float) -> Response:
    import opendp.prelude as dp  # noqa: PLC0415 (a library may be missing)

    dp.enable_features("contrib")
    response: Response = dp.m.make_randomized_response([0, 1], math.exp(epsilon) / (math.exp(epsilon) + 1))
    return response


def _make_pure_ldp_response(epsilon: float) -> Response:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient  # noqa: PLC0415

    client = DEClient(epsilon, 2, index_mapper=lambda item: item)  # By default items count from 1.
    response: Response = client.privatise
    return response


def _make_multi_freq_ldpy_response(epsilon: float) -> Response:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client  # noqa: PLC0415

    return lambda true_value: GRR_Client(true_value, 2, epsilon)


def _make_diffprivlib_response(epsilon: float) -> Response:
    from diffprivlib.mechanisms import Binary  # noqa: PLC0415

    response = Binary(epsilon=epsilon, value0="0", value1="1")
    return lambda true_value: int(response.randomise(str(true_value)))


PEERS: dict[str, tuple[int, Callable[[float], Response]]] = {
    "opendp randomized response": (100_000, _make_opendp_response),
    "pure-ldp direct encoding": (1_000_000, _make_pure_ldp_response),
    "multi-freq-ldpy GRR": (1_000_000, _make_multi_freq_ldpy_response),
    "diffprivlib Binary": (100_000, _make_diffprivlib_response),
}
"""The maximum number of trials, as all of them loop in Python, and what makes the response at an epsilon."""
