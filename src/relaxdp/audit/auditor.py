"""The auditor: a function of truths and the epsilon that it claims in, a measured lower bound of epsilon out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from itertools import combinations
from secrets import randbits
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.audit.attacks import Law
from relaxdp.audit.guessing_rules import (
    Column,
    LinearScore,
    Rule,
    Transcripts,
    View,
    candidate_views,
    check_mechanism,
    derive_rule,
    epsilon_low,
    learn_rule,
    log_odds,
)
from relaxdp.audit.transcript_sources import Function, FunctionSource, Source
from relaxdp.errors import ArgumentError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon

if TYPE_CHECKING:
    from relaxdp.audit.audit_cases import Case

BATCH = 1 << 19
_PROBE = 1 << 12  # trials that show how wide a transcript is
MIN_TRIALS = 1000
_MOST_LEARNING = 1 << 20  # trials; more would teach little and could not be judged
_MOST_BYTES = 1 << 28  # of transcripts that are kept to learn from
_BATCH_BYTES = 1 << 25
_MOST_SCORED_PAIRS = 10
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. `print` shows it in a sentence."""

    claimed: Decimal
    epsilon_low: float
    """Epsilon is at least this, with the stated confidence."""
    confidence: float
    trials: int
    guessed: int
    right: int
    pair: tuple[Any, Any]
    """The two truths that were told apart."""
    looked_at: str
    """What the guesses were made from."""

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, with the stated confidence. If not, nothing is proven."""
        return self.epsilon_low > self.claimed

    @property
    def share(self) -> float:
        """How much of the claimed epsilon was measured."""
        return self.epsilon_low / float(self.claimed)

    @property
    def estimate(self) -> float:
        """The log odds of the guesses, without a margin for chance."""
        return log_odds(self.right, self.guessed)

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted"
        return (
            f"claimed epsilon {format_epsilon(self.claimed)}: {verdict}. Measured at least {self.epsilon_low:.4f} "
            f"({self.share:.1%} of it) at confidence {self.confidence:.6g}: {self.right:,} of {self.guessed:,} guesses "
            f"between two true values were right, in {self.trials:,} trials, from {self.looked_at}."
        )


def audit(
    mechanism: Function | Source,
    truths: Sequence[Any],
    *,
    claimed: Epsilon,
    trials: int = 1_000_000,
    confidence: float = 0.999,
    law: Law | None = None,
    score: Callable[[Transcripts], Any] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Measure a lower bound of a mechanism's epsilon, which is too high with probability 1 - `confidence` at most.

    Rules of guessing are learned from up to half of the trials, and judged on the others.

    Claim: never too high beyond its confidence; tests/exact/audit/test_bound.py, tests/statistical/audit/test_audit.py.

    - `mechanism` takes an array of true values and returns one row of numbers for each: everything that is released.
      Rows must not depend on each other, nor on earlier calls.
    - `truths` are the true values to tell apart, two or more, and `claimed` is the epsilon that the mechanism claims.
    - `trials` is the number of rows to draw, and `progress` is called with the number of finished ones.
    - `law` is the distribution of transcripts, if it is known. The best rule follows from it and is judged as well.
    - `score` is a number for each row to learn from. A larger value supports one of the true values.
    - `seed` fixes the order of the true values, and the randomness of this package's own mechanisms.

    Returns:
        The largest lower bound that was found, and how.

    >>> generator = np.random.default_rng(1)
    >>> def careless(truths):  # two answers at epsilon 1 each, sold as one
    ...     lies = generator.random((len(truths), 2)) > 0.7310585786
    ...     return truths[:, None] ^ lies
    >>> found = audit(careless, [0, 1], claimed=1, trials=100_000, seed=1)
    >>> found.violated, 1.8 < found.epsilon_low < 2
    (True, True)
    """
    _check(truths, trials, confidence)
    source = mechanism if isinstance(mechanism, Source) else FunctionSource(mechanism)
    seed = randbits(64) if seed is None else seed
    error = (1 - confidence) / (1 if law is None else 2)  # as many rules are judged, and any may be wrong
    table = _Table(source, np.asarray(truths), seed, trials, progress)
    return table.run_audit(as_epsilon(claimed), confidence, error, law, score)


def _check(truths: Sequence[Any], trials: int, confidence: float) -> None:
    if len(truths) < 2:
        raise ArgumentError(
            "An audit needs at least two true values to tell apart, not {truths}.",
            hint="Pass two or more, such as ['flu', 'covid'].",
            truths=len(truths),
        )
    if trials < MIN_TRIALS:
        raise ArgumentError(
            "An audit needs at least {least:,} trials, not {trials:,}.",
            hint="Pass trials={least}.",
            least=MIN_TRIALS,
            trials=trials,
        )
    if not 0.5 < confidence < 1:
        raise ArgumentError(
            "The confidence must be above 0.5 and below 1, not {confidence:g}.",
            hint="Pass confidence=0.95.",
            confidence=confidence,
        )


class _Table:
    """One audit: a game of guessing, played in batches."""

    def __init__(self, source: Source, truths: NDArray[Any], seed: int, trials: int, progress: Progress | None) -> None:
        self._source, self._truths, self._seed, self._trials = source, truths, seed, trials
        self._progress = progress
        self._size, self._batches = _PROBE, 0

    def run_audit(
        self, claimed: Decimal, confidence: float, error: float, law: Law | None, score: Callable[..., Any] | None
    ) -> Audit:
        """Learn a rule, play, and return what came of it."""
        index, transcripts = self._draw_learning()
        rules = [self._learn_rule(index, transcripts, score, error)]
        pair = (rules[0].first, rules[0].second)
        known = None if law is None else derive_rule(law, transcripts.shape[1], pair, self._trials, error)
        rules += [known] if known else []
        scores = np.zeros((len(rules), 2), dtype=np.int64)
        if known and len(self._truths) == 2:  # it learned nothing from these trials, so it is judged on them as well
            scores[1] = known.score(transcripts, index)
        del transcripts
        for part in self._each(self._trials - len(index), lambda number, size: self._play(rules, pair, number, size)):
            scores += part
        bounds = epsilon_low(scores[:, 0], scores[:, 1], error)
        best = int(bounds.argmax())
        right, guessed = scores[best].tolist()
        told_apart = tuple(self._truths[list(pair)].tolist())
        return Audit(
            claimed, float(bounds[best]), confidence, self._trials, guessed, right,
            (told_apart[0], told_apart[1]), rules[best].view.name,
        )  # fmt: skip

    def _draw_learning(self) -> tuple[NDArray[np.uint8], Transcripts]:
        """Return trials to learn from, of all truths alike."""
        first = min(_PROBE, self._trials // 2)
        parts = list(self._each(first, self._draw_any))
        row = parts[0][1].shape[1] * parts[0][1].itemsize
        self._size = max(_PROBE, min(BATCH, _BATCH_BYTES // row))
        more = min(self._trials // 2, _MOST_LEARNING, max(first, _MOST_BYTES // row)) - first
        parts += list(self._each(more, self._draw_any))
        # Columns stay contiguous.
        transcripts = np.concatenate([transcripts.T for _, transcripts in parts], axis=1).T
        return np.concatenate([index for index, _ in parts]), transcripts

    def _learn_rule(
        self, index: NDArray[np.uint8], transcripts: Transcripts, score: Callable[..., Any] | None, error: float
    ) -> Rule:
        """Return the most promising rule, of all pairs of truths and all ways to look at transcripts."""
        half = len(index) // 2
        columns = [Column.fit(place, transcripts[:half, place]) for place in range(transcripts.shape[1])]
        views: list[View] = list(candidate_views(columns))
        pairs = list(combinations(range(len(self._truths)), 2))
        if score is not None:
            views.append(_Scored(score, transcripts[:half]))
        rules = []
        for view in views:
            cells = view(transcripts).astype(np.intp) + view.cells * index.astype(np.intp)
            learned, checked = (
                np.bincount(part, minlength=view.cells * len(self._truths)).reshape(-1, view.cells)
                for part in (cells[:half], cells[half:])
            )
            rules += [learn_rule(view, pair, learned[list(pair)], checked[list(pair)], error) for pair in pairs]
        counted = max((view.cells for view in views), default=0)
        if LinearScore.fits(columns) and (counted * 50 > half or not _all_together(views, columns)):
            for pair in pairs[:_MOST_SCORED_PAIRS]:
                rules.append(self._linear(columns, pair, index, transcripts, error))
        return max(rules, key=lambda rule: rule.worth)

    def _linear(
        self,
        columns: Sequence[Column],
        pair: tuple[int, int],
        index: NDArray[np.uint8],
        transcripts: Transcripts,
        error: float,
    ) -> Rule:
        rows = np.flatnonzero((index == pair[0]) | (index == pair[1]))
        chosen, is_second = transcripts[rows], index[rows] == pair[1]
        half = len(rows) // 2
        view = LinearScore(columns, chosen[:half], is_second[:half])
        cells = view(chosen).astype(np.intp) + view.cells * is_second.astype(np.intp)
        learned, checked = (
            np.bincount(part, minlength=2 * view.cells).reshape(2, -1) for part in (cells[:half], cells[half:])
        )
        return learn_rule(view, pair, learned, checked, error)

    def _play(self, rules: list[Rule], pair: tuple[int, int], number: int, size: int) -> NDArray[np.int64]:
        is_second = np.random.default_rng([self._seed, number]).integers(0, 2, size, dtype=np.uint8)
        transcripts = self._draw(self._truths[list(pair)].take(is_second), number)
        return np.array([rule.score(transcripts, is_second) for rule in rules], dtype=np.int64)

    def _draw_any(self, number: int, size: int) -> tuple[NDArray[np.uint8], Transcripts]:
        code = np.min_scalar_type(len(self._truths) - 1)
        index = np.random.default_rng([self._seed, number]).integers(0, len(self._truths), size, dtype=code)
        return index, self._draw(self._truths.take(index), number)

    def _draw(self, truths: NDArray[Any], number: int) -> Transcripts:
        return check_mechanism(self._source.draw(truths, self._seed, number), len(truths))

    def _each(self, trials: int, play: Callable[[int, int], Any]) -> Iterator[Any]:
        """Return the results of batches, each with a number of its own, in order."""
        sizes = [min(self._size, trials - start) for start in range(0, trials, self._size)]
        numbers = range(self._batches, self._batches + len(sizes))
        self._batches += len(sizes)
        for number, size in zip(numbers, sizes, strict=True):
            yield play(number, size)
            if self._progress:
                self._progress(size)


class _Scored:
    """A score that the caller knows, in bins."""

    name = "the given score"

    def __init__(self, score: Callable[[Transcripts], Any], transcripts: Transcripts) -> None:
        self._score = score
        self._edges = np.unique(np.quantile(np.asarray(score(transcripts), np.float64), np.linspace(0, 1, 513)[1:-1]))
        self.cells = len(self._edges) + 1

    def __call__(self, transcripts: Transcripts) -> NDArray[np.unsignedinteger]:
        scores = np.asarray(self._score(transcripts), dtype=np.float64)
        return np.searchsorted(self._edges, scores, side="right").astype(np.uint16)


def _all_together(views: Sequence[View], columns: Sequence[Column]) -> bool:
    return any(view.name == "all columns" for view in views) or len(columns) == 1


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one case; no audit where a peer is not installed."""

    case: Case
    audit: Audit | None

    @property
    def verdict(self) -> str:
        """Return what it means, in a few words."""
        if self.audit is None:
            return "not installed"
        if self.case.group == "planted":
            return "flagged, as it must be" if self.audit.violated else "MISSED"
        return "VIOLATED" if self.audit.violated else "not refuted"

    @property
    def as_expected(self) -> bool:
        """Whether this package's mechanisms kept their word, and its mistakes on purpose were seen."""
        if self.audit is None or self.case.group == "peer":
            return True
        return self.audit.violated == (self.case.group == "planted")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        found = self.audit
        numbers = {} if found is None else {
            "epsilon_low": found.epsilon_low, "share": found.share, "trials": found.trials, "guessed": found.guessed,
            "right": found.right, "confidence": found.confidence, "violated": found.violated,
            "looked_at": found.looked_at,
        }  # fmt: skip
        claimed = format_epsilon(as_epsilon(self.case.claimed))
        return {
            "group": self.case.group, "mechanism": self.case.name, "claimed": claimed, **numbers,
            "verdict": self.verdict, "as_expected": self.as_expected,
        }  # fmt: skip


def run(
    cases: Sequence[Case],
    *,
    trials: int,
    confidence: float,
    seed: int,
    progress: Callable[[Case, int], None] | None = None,
) -> Iterator[Finding]:
    """Return the findings one by one. With at most 1 - `confidence`, any of their bounds is too high.

    A case's randomness follows from the seed and its name, so it is the same whichever other cases are audited.
    """
    audited = [case for case in cases if case.source is not None]
    each = 1 - (1 - confidence) / max(len(audited), 1)
    for case in cases:
        if case.source is None:
            yield Finding(case, None)
            continue
        own = int.from_bytes(sha256(f"{seed} {case.name}".encode()).digest()[:8], "little")
        step = None if progress is None else _stepper(progress, case)
        found = audit(
            case.source, case.truths, claimed=case.claimed, trials=case.trials(trials), confidence=each, law=case.law,
            seed=own, progress=step,
        )  # fmt: skip
        yield Finding(case, found)


def _stepper(progress: Callable[[Case, int], None], case: Case) -> Callable[[int], None]:
    return lambda trials: progress(case, trials)
