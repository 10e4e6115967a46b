"""The auditor: measure a lower bound of a mechanism's epsilon from its reports, and compare it with the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from secrets import randbits
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import TranscriptDistribution
from relaxdp.audit.guessing_rules import (
    ColumnBinning,
    GuessingRule,
    ScoreBinning,
    TranscriptBinning,
    Transcripts,
    can_learn_linear_score,
    compute_epsilon_lower_bound,
    derive_optimal_rule,
    learn_linear_score,
    learn_rule,
    list_candidate_binnings,
    require_output_matrix,
)
from relaxdp.audit.transcript_sources import MechanismFunction, TranscriptSource
from relaxdp.errors import ArgumentError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon

BATCH_TRIALS = 1 << 19
_PROBE_TRIALS = 1 << 12  # Trials from which the width of a transcript follows.
MIN_TRIALS = 1000
_MAX_TRAINING_TRIALS = 1 << 20  # Trials; more would improve rules little.
_MAX_TRAINING_BYTES = 1 << 28  # Of transcripts from which rules are learned.
_BATCH_BYTES = 1 << 25
_MAX_SCORED_PAIRS = 10
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit. `print` shows it as a sentence."""

    claimed_epsilon: Decimal
    epsilon_lower_bound: float
    """Epsilon is at least this, with the stated confidence."""
    confidence_level: float
    trials: int
    guesses: int
    right_guesses: int
    pair: tuple[Any, Any]
    """The two true values that the guesses distinguish."""
    evidence: str
    """The columns or the score from which the guesses were made."""

    @property
    def is_violated(self) -> bool:
        """Whether the claim is refuted, with the stated confidence. If not, nothing is proven."""
        return self.epsilon_lower_bound > self.claimed_epsilon

    @property
    def share_of_claim(self) -> float:
        """The lower bound as a share of the claimed epsilon."""
        return self.epsilon_lower_bound / float(self.claimed_epsilon)

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.is_violated else "not refuted"
        return (
            f"claimed epsilon {format_epsilon(self.claimed_epsilon)}: {verdict}. Measured at least "
            f"{self.epsilon_lower_bound:.4f} ({self.share_of_claim:.1%} of it) at confidence "
            f"{self.confidence_level:.6g}: {self.right_guesses:,} of {self.guesses:,} guesses between two true values "
            f"were right, in {self.trials:,} trials, from {self.evidence}."
        )


def audit(
    mechanism: MechanismFunction | TranscriptSource,
    true_values: Sequence[Any],
    *,
    claimed_epsilon: Epsilon,
    trials: int = 1_000_000,
    confidence_level: float = 0.999,
    distribution: TranscriptDistribution | None = None,
    score: Callable[[Transcripts], Any] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Measure a lower bound of a mechanism's epsilon. It is too high with probability 1 - `confidence_level` at most.

    Rules of guessing are learned from up to half of the trials, and judged on the others.

    Claim: never too high beyond its confidence; tests/exact/audit/test_bound.py, tests/statistical/audit/test_audit.py.

    Args:
        mechanism: A function that takes an array of true values and returns one row of numbers for each: all that is
            released. Rows must not depend on each other, nor on earlier calls.
        true_values: The true values that must be hard to distinguish, two or more.
        claimed_epsilon: The epsilon that the mechanism claims.
        trials: The number of rows to draw.
        confidence_level: The probability with which the lower bound holds.
        distribution: The distribution of transcripts, if it is known. The best rule follows from it and is judged too.
        score: A number for each row, to learn from. A larger score supports one of the true values.
        seed: Fixes the order of the true values, and the randomness of this package's own mechanisms.
        progress: Called with the number of trials that were added.

    Returns:
        The largest lower bound that was found, and how.

    Raises:
        ArgumentError: There are too few true values or trials, or the mechanism does not return a table of numbers.

    Example:
        >>> generator = np.random.default_rng(1)
        >>> def answer_twice(true_values):  # two answers at epsilon 1 each, claimed as one
        ...     lies = generator.random((len(true_values), 2)) > 0.7310585786
        ...     return true_values[:, None] ^ lies
        >>> result = audit(answer_twice, [0, 1], claimed_epsilon=1, trials=100_000, seed=1)
        >>> result.is_violated, 1.8 < result.epsilon_lower_bound < 2
        (True, True)
    """
    if len(true_values) < 2:
        raise ArgumentError(
            "An audit needs at least two `true_values`, which it tries to tell apart by their reports, got {n}.",
            hint="Pass two or more values, such as true_values=['flu', 'covid'].",
            n=len(true_values),
        )
    if trials < MIN_TRIALS:
        raise ArgumentError(
            "An audit needs at least {minimum:,} trials, not {trials:,}.",
            hint="Pass trials={minimum}.",
            minimum=MIN_TRIALS,
            trials=trials,
        )
    if not 0.5 < confidence_level < 1:
        raise ArgumentError(
            "The confidence level must be above 0.5 and below 1, not {confidence_level:g}.",
            hint="Pass confidence_level=0.95.",
            confidence_level=confidence_level,
        )
    seed = randbits(64) if seed is None else seed
    # As many rules are judged, and each may be wrong.
    error_rate = (1 - confidence_level) / (1 if distribution is None else 2)
    run = _AuditRun(mechanism, np.asarray(true_values), seed, trials, error_rate, progress)
    right, guessed, bound, pair, evidence = run.run(distribution, score)
    return AuditResult(as_epsilon(claimed_epsilon), bound, confidence_level, trials, guessed, right, pair, evidence)


@dataclass
class _AuditRun:
    """One run of an audit: batches of trials, and the rules that are learned from them and judged on them."""

    mechanism: MechanismFunction | TranscriptSource
    true_values: NDArray[Any]
    seed: int
    trials: int
    error_rate: float
    progress: Progress | None
    batch_size: int = _PROBE_TRIALS
    n_batches: int = 0

    def run(
        self, distribution: TranscriptDistribution | None, score: Callable[..., Any] | None
    ) -> tuple[int, int, float, tuple[Any, Any], str]:
        """Learn and judge rules; return right guesses, all guesses, the bound, the true values and the evidence."""
        index, transcripts = self._draw_training_trials()
        rules = [self._learn_best_rule(index, transcripts, score)]
        pair = rules[0].pair
        optimal = None
        if distribution is not None:
            optimal = derive_optimal_rule(distribution, transcripts.shape[1], pair, self.trials, self.error_rate)
        rules += [optimal] if optimal else []
        counts = np.zeros((len(rules), 2), dtype=np.int64)
        if optimal and len(self.true_values) == 2:  # It learned nothing from these trials: they judge it as well.
            counts[1] = optimal.count_guesses(transcripts, index)
        del transcripts
        for is_second, judged in self._draw_batches(self.true_values[list(pair)], self.trials - len(index)):
            counts += [rule.count_guesses(judged, is_second) for rule in rules]
        bounds = compute_epsilon_lower_bound(counts[:, 0], counts[:, 1], self.error_rate)
        best = int(bounds.argmax())
        right, guessed = counts[best].tolist()
        first, second = self.true_values[list(pair)].tolist()
        return right, guessed, float(bounds[best]), (first, second), rules[best].binning.name

    def _draw_training_trials(self) -> tuple[NDArray[np.uint8], Transcripts]:
        """Return the trials from which rules are learned, with the index of the true value of each."""
        n_probe = min(_PROBE_TRIALS, self.trials // 2)
        parts = list(self._draw_batches(self.true_values, n_probe))
        row_bytes = parts[0][1].shape[1] * parts[0][1].itemsize
        self.batch_size = max(_PROBE_TRIALS, min(BATCH_TRIALS, _BATCH_BYTES // row_bytes))
        total = min(self.trials // 2, _MAX_TRAINING_TRIALS, max(n_probe, _MAX_TRAINING_BYTES // row_bytes))
        parts += self._draw_batches(self.true_values, total - n_probe)
        # Columns stay contiguous.
        transcripts = np.concatenate([transcripts.T for _, transcripts in parts], axis=1).T
        return np.concatenate([index for index, _ in parts]), transcripts

    def _learn_best_rule(
        self, value_indices: NDArray[np.uint8], transcripts: Transcripts, score: Callable[..., Any] | None
    ) -> GuessingRule:
        """Return the most promising rule for any pair of true values and any binning of transcripts."""
        half = len(value_indices) // 2
        columns = [ColumnBinning.from_data(place, transcripts[:half, place]) for place in range(transcripts.shape[1])]
        binnings: list[TranscriptBinning] = list(list_candidate_binnings(columns))
        pairs = list(combinations(range(len(self.true_values)), 2))
        if score is not None:
            binnings.append(ScoreBinning("the given score", score, transcripts[:half]))
        rules = []
        for binning in binnings:
            learned, checked = _count_trials_per_cell(binning, transcripts, value_indices, len(self.true_values), half)
            for pair in pairs:
                rules.append(learn_rule(binning, pair, learned[list(pair)], checked[list(pair)], self.error_rate))
        has_all_columns = len(columns) == 1 or any(binning.name == "all columns" for binning in binnings)
        n_cells = max((binning.cells for binning in binnings), default=0)
        if can_learn_linear_score(columns) and (n_cells * 50 > half or not has_all_columns):
            for pair in pairs[:_MAX_SCORED_PAIRS]:
                rows = np.flatnonzero((value_indices == pair[0]) | (value_indices == pair[1]))
                chosen, is_second, middle = transcripts[rows], value_indices[rows] == pair[1], len(rows) // 2
                score_binning = learn_linear_score(columns, chosen[:middle], is_second[:middle])
                learned, checked = _count_trials_per_cell(score_binning, chosen, is_second, 2, middle)
                rules.append(learn_rule(score_binning, pair, learned, checked, self.error_rate))
        return max(rules, key=lambda rule: rule.expected_bound)

    def _draw_batches(
        self, true_values: NDArray[Any], trials: int
    ) -> Iterator[tuple[NDArray[np.unsignedinteger], Transcripts]]:
        """Yield the indices of random true values and their transcripts. Every batch has another number."""
        dtype = np.min_scalar_type(len(true_values) - 1)
        for start in range(0, trials, self.batch_size):
            size = min(self.batch_size, trials - start)
            index = np.random.default_rng([self.seed, self.n_batches]).integers(0, len(true_values), size, dtype=dtype)
            drawn = true_values.take(index)
            if isinstance(self.mechanism, TranscriptSource):
                output = self.mechanism.draw(drawn, self.seed, self.n_batches)
            else:
                output = self.mechanism(drawn)
            self.n_batches += 1
            yield index, require_output_matrix(output, size)
            if self.progress:
                self.progress(size)


def _count_trials_per_cell(
    binning: TranscriptBinning, transcripts: Transcripts, value_indices: NDArray[Any], n_values: int, n_first_half: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return how many trials each true value has in each cell, in the first half of the trials and in the second."""
    cells = binning(transcripts).astype(np.intp) + binning.cells * value_indices.astype(np.intp)
    first, second = (
        np.bincount(part, minlength=binning.cells * n_values).reshape(-1, binning.cells)
        for part in (cells[:n_first_half], cells[n_first_half:])
    )
    return first, second
