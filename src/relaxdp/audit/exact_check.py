"""The exact check of a mechanism: the probabilities of all transcripts of a small instance, in fractions.

A mechanism maps a true value to symbols and an epsilon to a threshold. Nothing else stands between a true value and its
report. So a small instance can be enumerated: every permanent word of an individual, and every report at three levels.
The largest ratio of the probabilities under two true values is then known exactly, and compared with e^epsilon.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isnan, prod
from typing import Any

import numpy as np

from relaxdp.errors import MechanismError
from relaxdp.mechanisms.base import PUBLIC, Mechanism, draw_seeds
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.report_arrays import get_code_dtype
from relaxdp.sampling.keyed_stream import Purpose, Words
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import NOISE, compute_log_rounded_up, compute_next_report_distribution

Transcript = tuple[int, ...]
Distribution = dict[Any, Fraction]

EPSILONS = ("0.5", "1", "3")
_CHECKED_BITS = 3
"""Permanent words are enumerated in as many of their first and last bits: mechanisms read these."""
_MAX_TRANSCRIPTS = 200_000
_MAX_WORDS = 1 << 16
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class ExactCheckResult:
    """The result of an exact check that passed."""

    epsilon: Decimal
    """The last level that was checked."""
    privacy_loss: Decimal
    """The exact privacy loss at the last level, rounded up: never above epsilon."""
    transcripts: int
    """The number of enumerated transcripts."""


def check_exactly(
    mechanism: Mechanism, values: Sequence[Any], *, epsilons: Sequence[Epsilon] = EPSILONS
) -> ExactCheckResult:
    """Check exactly that a small instance of a mechanism keeps its epsilon and that its estimates are unbiased.

    All transcripts at growing levels are enumerated. The permanent choices of an individual (a coin, a rounding, an
    offset) are made with every pattern of the first and last bits of a word. They must not depend on other bits: use
    multiples of 1/8 of a range. A public seed is drawn from some words, and epsilon must hold for each.

    Args:
        mechanism: The mechanism, with few values.
        values: The true values that must be hidden from each other.
        epsilons: Growing levels.

    Returns:
        The exact privacy loss at the last level, and the number of transcripts.

    Raises:
        MechanismError: The reports reveal more than epsilon, estimates are biased, or the instance is too large.

    Example:
        >>> from relaxdp.mechanisms.categorical import Categorical
        >>> result = check_exactly(Categorical(["a", "b", "c"]), ["a", "b", "c"])
        >>> result.transcripts, round(result.privacy_loss, 6)
        (27, Decimal('3.000000'))
    """
    exact = [as_epsilon(each) for each in epsilons]
    levels = [mechanism.level(each) for each in exact]
    size = mechanism.alphabet ** (mechanism.symbols * len(levels))
    if size > _MAX_TRANSCRIPTS:
        raise MechanismError(
            "The mechanism {mechanism!r} has {size:,} possible sequences of reports at these epsilons. The exact check "
            "covers at most {maximum:,}.",
            hint="Check fewer values or fewer epsilons, such as 3 values at 2 epsilons.",
            size=size,
            maximum=_MAX_TRANSCRIPTS,
            mechanism=mechanism.name,
        )
    if any(old >= new for old, new in itertools.pairwise(levels)):
        raise MechanismError(
            "The epsilons do not ascend, or the method `threshold` of {mechanism!r} does not grow with epsilon.",
            hint="Pass ascending epsilons, such as epsilons=[0.5, 1]. If they ascend, correct the method `threshold`.",
            mechanism=mechanism.name,
        )
    retentions = [level.retention for level in levels]
    noiseless = [_compute_noiseless_distribution(mechanism, true_value) for true_value in values]
    privacy_loss = Decimal(0)
    for last, epsilon in enumerate(exact):
        by_symbol = _compute_symbol_distributions(mechanism, retentions[: last + 1])
        ratio = _compute_largest_ratio([_compute_noisy_distribution(each, by_symbol) for each in noiseless])
        privacy_loss = Decimal("Infinity") if ratio is None else compute_log_rounded_up(ratio, digits=60)
        if privacy_loss > epsilon:
            raise MechanismError(
                "The mechanism {mechanism!r} reveals more than it claims. At epsilon {epsilon}, the "
                "privacy loss of its reports is {privacy_loss}.",
                hint="Correct the method `threshold` of the mechanism: it must return less at this epsilon.",
                mechanism=mechanism.name,
                epsilon=format_epsilon(epsilon),
                privacy_loss="everything" if ratio is None else f"{privacy_loss:.6f}",
            )
        if not mechanism.seeded:  # With seeds, only all seeds together are unbiased.
            by_symbol = _compute_symbol_distributions(mechanism, retentions[last : last + 1])
            for true_value, each in zip(values, noiseless, strict=True):
                _require_unbiased(mechanism, true_value, _compute_noisy_distribution(each, by_symbol), retentions[last])
    return ExactCheckResult(exact[-1], privacy_loss, size)


def compute_transcript_distribution(
    n_values: int, retentions: Sequence[Fraction], truth: int, compute_next: Any = compute_next_report_distribution
) -> Distribution:
    """Return the distribution of all reports of one symbol, by Algorithm 1, at these retentions."""
    distributions: Distribution = {(): Fraction(1)}
    old = NOISE
    for new in retentions:
        following: defaultdict[Transcript, Fraction] = defaultdict(Fraction)
        for reports, probability in distributions.items():
            last = reports[-1] if reports else 0
            for report, chance in enumerate(compute_next(n_values, old, new, truth=truth, last_report=last)):
                following[*reports, report] += probability * chance
        distributions, old = {key: chance for key, chance in following.items() if chance}, new
    return distributions


class _FixedRandomness:
    """Kept randomness with fixed values: an array of words for each purpose and symbol that is requested."""

    def __init__(self, n_individuals: int, words: dict[tuple[Purpose, bytes], Words] | None = None) -> None:
        self._n, self._words = n_individuals, words or {}
        self.requested: list[tuple[Purpose, bytes]] = []

    def draw_words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        symbols = np.unique(np.asarray(symbol, dtype=np.uint64))
        if len(symbols) > 1:
            raise _make_dependent_words_error()
        slot = (purpose, b"" if purpose in PUBLIC else symbols.tobytes())
        if slot not in self.requested:
            self.requested.append(slot)
        return self._words.get(slot, np.zeros(self._n, np.uint64))


def _make_dependent_words_error() -> MechanismError:
    return MechanismError(
        "The exact check does not cover this mechanism: the random numbers it draws decide what it draws next.",
        hint="In `compute_true_symbols`, call `draw_words` with arguments that do not depend on earlier results of it.",
    )


def _make_word_patterns(middle_bit: int) -> Words:
    """Return words with every pattern in their first and last bits, and ones or zeros between them."""
    patterns = range(1 << _CHECKED_BITS)
    between = ((1 << (64 - 2 * _CHECKED_BITS)) - 1) * middle_bit << _CHECKED_BITS
    words = [high << (64 - _CHECKED_BITS) | between | low for high in patterns for low in patterns]
    return np.array(words, dtype=np.uint64)


def _compute_noiseless_distribution(mechanism: Mechanism, true_value: Any) -> Distribution:
    """Return the distribution of (seed, symbols before noise) of a true value, over all kept randomness."""
    words = _FixedRandomness(1)
    mechanism.compute_true_symbols(mechanism.read_true_values([true_value]), words)
    draw_seeds(mechanism, words)
    slots = words.requested
    if (1 << 2 * _CHECKED_BITS) ** len(slots) > _MAX_WORDS:
        raise MechanismError(
            "The mechanism draws {words} permanent random numbers per individual. The exact check covers at most 2.",
            hint="Check the mechanism with fewer values, or with fewer symbols in each report.",
            words=len(slots),
        )
    found = [_enumerate_noiseless_symbols(mechanism, true_value, slots, middle_bit) for middle_bit in (0, 1)]
    if found[0] != found[1]:
        raise MechanismError(
            "The exact check does not cover these true values: their reports depend on more than the first and last "
            "{bits} bits of a random number.",
            hint="Choose true values that are multiples of 1/8 of the range, such as 0, 15 and 120 of 0 to 120.",
            bits=_CHECKED_BITS,
        )
    distribution: defaultdict[Any, Fraction] = defaultdict(Fraction)
    for each in found[0]:
        distribution[each] += Fraction(1, len(found[0]))
    return dict(distribution)


def _enumerate_noiseless_symbols(
    mechanism: Mechanism, true_value: Any, slots: list[tuple[Purpose, bytes]], middle_bit: int
) -> list[Any]:
    # Public words are the same in both runs. A mechanism may read any of their bits: epsilon holds for each word.
    patterns = [_make_word_patterns(0 if purpose in PUBLIC else middle_bit) for purpose, _ in slots]
    grid = np.meshgrid(*patterns, indexing="ij")
    n = grid[0].size if slots else 1
    permanent = _FixedRandomness(n, {slot: words.reshape(-1) for slot, words in zip(slots, grid, strict=True)})
    symbols = mechanism.compute_true_symbols(mechanism.read_true_values([true_value] * n), permanent)
    if symbols.shape != (n, mechanism.symbols) or int(symbols.max()) >= mechanism.alphabet:
        raise MechanismError(
            "`compute_true_symbols` must return {symbols} columns of numbers below {alphabet}. It returned {given}.",
            hint="Correct `compute_true_symbols`, or the attributes `symbols` and `alphabet` of the mechanism.",
            symbols=mechanism.symbols,
            alphabet=mechanism.alphabet,
            given=f"shape {symbols.shape} and numbers up to {symbols.max(initial=0)}",
        )
    seeds = draw_seeds(mechanism, permanent)
    if set(permanent.requested) != set(slots):
        raise _make_dependent_words_error()
    public = [None] * n if seeds is None else seeds.tolist()
    return [(seed, tuple(row)) for seed, row in zip(public, symbols.tolist(), strict=True)]


def _compute_symbol_distributions(mechanism: Mechanism, retentions: Sequence[Fraction]) -> list[Distribution]:
    """Return for each symbol before noise the distribution of all its reports."""
    alphabet = mechanism.alphabet
    return [compute_transcript_distribution(alphabet, retentions, symbol) for symbol in range(alphabet)]


def _compute_noisy_distribution(noiseless: Distribution, by_symbol: Sequence[Distribution]) -> Distribution:
    """Return the distribution of (seed, all reports): noise is added to each symbol independently."""
    distribution: defaultdict[Any, Fraction] = defaultdict(Fraction)
    for (seed, truths), chance in noiseless.items():
        for parts in itertools.product(*(by_symbol[symbol].items() for symbol in truths)):
            reports = tuple(part for part, _ in parts)
            distribution[seed, reports] += chance * prod((each for _, each in parts), start=Fraction(1))
    return dict(distribution)


def _compute_largest_ratio(distributions: Sequence[Distribution]) -> Fraction | None:
    """Return the largest ratio of the probabilities of a transcript under two true values; None if one of them is 0."""
    largest = Fraction(1)
    for transcript in {transcript for distribution in distributions for transcript in distribution}:
        chances = [distribution.get(transcript, Fraction(0)) for distribution in distributions]
        if not min(chances):
            return None
        largest = max(largest, max(chances) / min(chances))
    return largest


def _require_unbiased(mechanism: Mechanism, true_value: Any, distribution: Distribution, retention: Fraction) -> None:
    """Reject a mechanism whose estimate from reports of one true value is not this value, on average."""
    rows = [[code for (code,) in reports] for _, reports in distribution]
    codes = np.array(rows, dtype=get_code_dtype(mechanism.alphabet))
    support, chances = mechanism.compute_noise_and_gain(retention), list(distribution.values())
    shares = [
        support.debias(sum(itertools.compress(chances, is_supported), Fraction(0)))
        for is_supported in mechanism.find_supported_labels(codes).T.tolist()
    ]
    weights = mechanism.mean_weights
    if weights is None:
        own = int(mechanism.read_true_values([true_value]).index[0])
        is_unbiased = isinstance(mechanism, Bloom) or shares == [Fraction(place == own) for place in range(len(shares))]
    elif weights.absent is not None and (true_value is None or isnan(float(true_value))):
        is_unbiased = shares[weights.absent] == 1
    else:
        mean = float(sum(Fraction(weight) * share for weight, share in zip(weights.weights, shares, strict=True)))
        clipped = min(max(float(true_value), weights.minimum), weights.maximum)
        is_unbiased = abs(mean - clipped) <= _TOLERANCE * (weights.maximum - weights.minimum)
        is_unbiased &= weights.absent is None or shares[weights.absent] == 0
    if not is_unbiased:
        raise MechanismError(
            "Estimates of the mechanism {mechanism!r} would be biased: their mean is not the true value.",
            hint="Correct `compute_noise_and_gain` or `mean_weights` of the mechanism.",
            mechanism=mechanism.name,
        )
