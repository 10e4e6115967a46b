"""Data poisoning: a test for fabricated reports, the values that they push, and estimates without them.

The test compares reports of the same individuals at two or more levels. `PoisoningTest.limitations` states what it
cannot detect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from relaxdp.errors import EstimationError
from relaxdp.estimation.counts import Counts, Integers
from relaxdp.estimation.frequency import compute_support_variance, compute_true_count_interval
from relaxdp.estimation.report_pairs import (
    CHANGED,
    KINDS,
    OLDER,
    REPEATED,
    BettingEvidence,
    ReportPairCounts,
    ReportPairs,
    compute_betting_evidence,
    compute_single_look_p_value,
    compute_unnoticed_share,
)
from relaxdp.estimation.result import (
    UNKNOWN,
    About,
    Floats,
    Result,
    check_about,
    check_between,
    compute_tail_probability,
    count_comparisons,
)
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import MeanWeights, Mechanism
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level, SupportProbabilities

__all__ = [
    "FALSE_ALARM_RATE",
    "FabricatorCount",
    "PoisoningTest",
    "ReportPairs",
    "SuspiciousValue",
    "UndetectedInfluence",
    "check_pairs",
    "check_reports",
]
FALSE_ALARM_RATE = 0.01
"""The largest share of honest campaigns that ever raise an alarm, however often you look."""


class FabricatorCount(NamedTuple):
    """A lower bound on the number of individuals that fabricate reports: an estimate with a confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:,.0f} individuals [{self.low:,.0f}, {self.high:,.0f}]"


@dataclass(frozen=True, slots=True)
class SuspiciousValue:
    """A value that is not reported as honest individuals report it."""

    label: Any
    kind: str
    """"repeated" too often, "changed" too often, or reported too often at the "older" level before another value."""
    individuals: FabricatorCount
    """The number of individuals that this takes at least."""


@dataclass(frozen=True, slots=True)
class UndetectedInfluence:
    """The largest influence of an individual that fabricates its newest report and blurs it like an honest one."""

    epsilon: str
    individuals: float
    """The number of honest individuals that it counts for, in a share or in the mean as a part of its range."""
    values: str
    """The values that it pushes together."""


@dataclass(frozen=True, eq=False, repr=False)
class PoisoningTest:
    """The result of a test of pairs of reports. It prints the verdict, suspicious values and limitations."""

    mechanism: Mechanism
    newest_tables: Sequence[ReportPairCounts]
    """For each individual only the pair with its newest report."""
    evidence: BettingEvidence
    p_value: float
    """The p-value for a single look that was planned before."""
    false_alarm_rate: float
    n_untested_individuals: int | None = None
    """The number of individuals with a single report, if it is known. They cannot be tested."""

    @property
    def n_tested_individuals(self) -> int:
        """The number of individuals with two or more reports."""
        return sum(table.n for table in self.newest_tables)

    @property
    def anytime_p_value(self) -> float:
        """The p-value that stays valid however often you look."""
        return self.evidence.p_value

    @property
    def is_alarm(self) -> bool:
        """Whether fabricated reports were detected: whether `anytime_p_value` is at most `false_alarm_rate`."""
        return self.anytime_p_value <= self.false_alarm_rate

    @cached_property
    def n_unnoticed_repeaters(self) -> int:
        """About how many individuals can repeat every report before half of such campaigns raise an alarm."""
        return round(self.n_tested_individuals * compute_unnoticed_share(self.evidence, self.false_alarm_rate))

    @cached_property
    def suspicious_values(self) -> list[SuspiciousValue]:
        """The values that fabricated reports push, the most certain first. A wrong one is as rare as a false alarm."""
        capitals = self.evidence.label_log_capitals
        order = np.argsort(-capitals, axis=None, kind="stable")
        certain = order[capitals.reshape(-1)[order] >= -np.log(self.false_alarm_rate)].tolist()
        named = [(KINDS[index // capitals.shape[1]], index % capitals.shape[1]) for index in certain]
        return [
            SuspiciousValue(self.mechanism.labels[label], kind, self._estimate_fabricators_of_value(kind, label))
            for kind, label in named
            if not self._has_hashed_values or self._deviates_like_poisoning(kind, label)
        ]

    @cached_property
    def fabricator_count(self) -> FabricatorCount:
        """The number of individuals that fabricate reports: exact if each of them repeats its report, else at least."""
        bounds = (self._fabricator_count_by_equal_symbols, self._fabricator_count_by_values)
        return max(filter(None, bounds), key=lambda each: each.low)

    @cached_property
    def uncleaned_shares(self) -> Result | None:
        """The estimate from all tested individuals; None if pairs are not counted for each value."""
        return self._estimate_newer_reports(lambda table: (table.label_counts[0], table.n))

    @cached_property
    def cleaned_shares(self) -> Result | None:
        """The estimate without fabricated reports; None without an alarm, or if they cannot be left out."""
        if not self.is_alarm:
            return None
        labels = list(self.mechanism.labels)
        suspicious = {
            kind: {labels.index(each.label) for each in self.suspicious_values if each.kind == kind} for kind in KINDS
        }
        repeated, changed = suspicious[REPEATED], suspicious[CHANGED] - suspicious[REPEATED]
        # If many fabricated reports push no suspicious value, leaving out these values is not enough.
        by_values = self._fabricator_count_by_values
        is_covered = by_values is not None and self._fabricator_count_by_equal_symbols.low <= by_values.high
        if self.mechanism.symbols > 1 or (is_covered and repeated | changed):
            return estimate_without_fabricated(self.newest_tables, repeated, changed) if repeated | changed else None
        # Whether a report stayed does not depend on an honest true value. So those that stayed, or that changed, are
        # enough: for fabricated hashes, which support many values, and for attacks without a suspicious value.
        if self._excess_of_equal_symbols < 0:
            return self._estimate_newer_reports(lambda table: (table.label_counts[2], table.n_equal_symbols))
        return self._estimate_newer_reports(
            lambda table: (table.label_counts[0] - table.label_counts[2], table.n - table.n_equal_symbols)
        )

    def _estimate_newer_reports(self, select: Callable[[ReportPairCounts], tuple[Integers, int]]) -> Result | None:
        """Return the estimate from some newer reports of each table, by their counts and their number."""
        counts = Counts(self.mechanism)
        for table in self.newest_tables:
            selected, n = select(table)
            if n and table.n_labels:
                counts.add_counts(selected, epsilon=table.newer.epsilon, n=n)
        return counts.estimate() if counts.n else None

    @property
    def undetected_influence(self) -> UndetectedInfluence | None:
        """The influence of an undetected attacker at the highest tested level; None without tested individuals."""
        levels = [table.newer for table in self.newest_tables if table.n]
        return compute_undetected_influence(self.mechanism, max(levels)) if levels else None

    @property
    def limitations(self) -> list[str]:
        """What the test cannot detect."""
        bound, untested, n_single = self.undetected_influence, "", self.n_untested_individuals
        if n_single is not None:
            untested = f": {n_single:,} of {self.n_tested_individuals + n_single:,} here"
        influence = "" if bound is None else (
            f" At epsilon {bound.epsilon} one of them counts for at most {bound.individuals:.3g} honest individuals, "
            f"and pushes {bound.values}."
        )  # fmt: skip
        return [
            *self._describe_unnoticed_repeaters(),
            f"An individual with a single report cannot be tested{untested}.",
            "The test does not detect individuals that lie about their true value, or that fabricate the newest report "
            f"and blur it as honest individuals do.{influence}",
            "Individuals that decide by an earlier report whether to go on look like individuals that fabricated it.",
            "The false alarm rate over all looks holds if few individuals withdraw, because their pairs are removed.",
            "Against many fabricating devices only invitations help.",
        ]

    def _describe_unnoticed_repeaters(self) -> list[str]:
        table = max(self.newest_tables, key=lambda each: each.n, default=None)
        if table is None or not table.n:
            return []
        n, tested, has_bits = self.n_unnoticed_repeaters, self.n_tested_individuals, self.mechanism.symbols > 1
        return [
            f"About {n:,} of {tested:,} individuals ({n / tested:.1%}) can repeat every report without being noticed"
            f"{'' if has_bits else ', or fewer if all send one value'}. By chance, {table.stay_probability:.0%} of the "
            f"{'bits' if has_bits else 'reports'} of honest individuals are the same at epsilons {table.older} and "
            f"{table.newer}."
        ]

    def __repr__(self) -> str:
        verdict = "fabricated reports were detected" if self.is_alarm else "no fabricated reports were detected"
        lines = [
            f"{verdict}: {self.n_tested_individuals:,} individuals with two or more reports, "
            f"p-value {self.p_value:.3g} for one look, {self.anytime_p_value:.3g} for all looks"
        ]
        lines += [f"{each.label}: {each.kind}, {each.individuals}" for each in self.suspicious_values]
        subject = "fabricate reports, at least" if self.is_alarm else "repeat every report"
        lines.append(f"{subject}: {self.fabricator_count}")
        return "\n".join([*lines, *self.limitations])

    @property
    def _has_hashed_values(self) -> bool:
        """Whether a report supports many values, so that pushing one value also repeats others."""
        return self.mechanism.joint != "exclusive" and self.mechanism.symbols == 1

    def _deviates_like_poisoning(self, kind: str, label: int) -> bool:
        """Return whether repeated reports support a value more often than all do, or changed ones less often."""
        if kind == OLDER:
            return True
        newer, _, both = np.sum([table.label_counts[:, label] for table in self.newest_tables], axis=0)
        equal, n = sum(table.n_equal_symbols for table in self.newest_tables), self.n_tested_individuals
        share = newer / n
        excess = (both - equal * share) * (1 if kind == REPEATED else -1)
        variance = equal * share * (1 - share) * (1 - equal / n)
        quantile = -float(scipy.special.ndtri(self.false_alarm_rate / len(self.mechanism.labels)))
        return bool(excess > quantile * variance**0.5)

    def _estimate_fabricators_of_value(self, kind: str, label: int) -> FabricatorCount:
        cells = []
        for table in self.newest_tables:
            newer, older, both = map(int, table.label_counts[:, label])
            stay = table.stay_probability
            if kind == OLDER:
                cells.append((table.n - newer, older - both, table.switch_probability))
            else:
                cells.append((newer, both, stay) if kind == REPEATED else (newer, newer - both, 1 - stay))
        found = [_estimate_certain_hits(*cell, self._tail_probability) for cell in cells if cell[0]]
        return _add_independent_counts(found)

    @cached_property
    def _fabricator_count_by_values(self) -> FabricatorCount | None:
        """The count by all suspicious values; None without any, or if a report supports many values."""
        found = self.suspicious_values
        if self._has_hashed_values or not found:
            return None
        bounds = {kind: [each.individuals for each in found if each.kind == kind] for kind in KINDS}
        if self.mechanism.symbols > 1:  # one individual may push many bits
            return max((each.individuals for each in found), key=lambda each: each.estimate)
        # An individual that sends one value and then another counts for both kinds.
        changes = max(map(_add_dependent_counts, (bounds[CHANGED], bounds[OLDER])), key=lambda each: each.estimate)
        return _add_dependent_counts([*bounds[REPEATED], changes])

    @property
    def _tail_probability(self) -> float:
        """The tail probability on each side of intervals that hold at once: over all, and for every value."""
        return compute_tail_probability(0.95, 1 + len(KINDS) * len(self.mechanism.labels))

    @cached_property
    def _fabricator_count_by_equal_symbols(self) -> FabricatorCount:
        """The count by all equal symbols: too many if reports are repeated, too few if they are changed."""
        too_many = self._excess_of_equal_symbols >= 0 or not self.is_alarm
        symbols = self.mechanism.symbols
        tail_probability = (
            self._tail_probability if self._fabricator_count_by_values else compute_tail_probability(0.95, 1)
        )
        bounds = []
        for table in self.newest_tables:
            trials, equal, stay = table.n * symbols, table.n_equal_symbols, table.stay_probability
            if trials:
                cell = (equal, stay) if too_many else (trials - equal, 1 - stay)
                bounds.append(_estimate_certain_hits(trials, *cell, tail_probability))
        total = _add_independent_counts(bounds)
        return FabricatorCount(total.estimate / symbols, total.low / symbols, total.high / symbols)

    @property
    def _excess_of_equal_symbols(self) -> float:
        symbols = self.mechanism.symbols
        return sum(table.n_equal_symbols - table.n * symbols * table.stay_probability for table in self.newest_tables)


def check_pairs(
    pairs: ReportPairs,
    *,
    n: int | None = None,
    levels: Sequence[Epsilon] = (),
    false_alarm_rate: float = FALSE_ALARM_RATE,
) -> PoisoningTest:
    """Test pairs of reports for fabricated ones.

    Args:
        pairs: The pairs of reports, of two or more levels.
        n: The number of all individuals. Those without a pair cannot be tested.
        levels: All levels of the schedule. If you test more than once, pass the same levels each time.
        false_alarm_rate: The largest probability of an alarm if all reports are honest.

    Returns:
        The result, which prints the verdict and the limitations of the test.

    Raises:
        EstimationError: `false_alarm_rate` is not between 0 and 1.

    Example:
        >>> from relaxdp import Categorical
        >>> pairs = ReportPairs(Categorical(["no", "yes"]))
        >>> pairs.add([["yes"] * 900, ["yes"] * 900], epsilons=["0.5", 2])
        >>> check_pairs(pairs, levels=["0.5", 2]).is_alarm
        True
    """
    check_between(EstimationError, "false_alarm_rate", false_alarm_rate, 0, 1, "a rate such as false_alarm_rate=0.01")
    mechanism = pairs.mechanism
    return PoisoningTest(
        mechanism,
        pairs.newest_tables,
        compute_betting_evidence(pairs.tables, [mechanism.level(each) for each in levels]),
        compute_single_look_p_value(pairs.tables),
        false_alarm_rate,
        None if n is None else n - pairs.n,
    )


def check_reports(
    mechanism: Mechanism, older: Any, newer: Any, *, older_epsilon: Epsilon, newer_epsilon: Epsilon
) -> PoisoningTest:
    """Test two columns of reports of the same individuals, at a lower and a higher level, for fabricated ones.

    An honest older report is the newer one after a blur that never sees the true value, so its distribution is known.
    For more than two levels, tables of counts and daily looks, use `ReportPairs` and `check_pairs`.

    Args:
        mechanism: The mechanism that released the reports.
        older: The reports at the lower level.
        newer: The reports at the higher level, in the order of the same individuals.
        older_epsilon: The lower level.
        newer_epsilon: The higher level.

    Returns:
        The result, which prints the verdict and the limitations of the test.

    Raises:
        ColumnError: The columns do not have the same length, or are not reports of this mechanism.
        EstimationError: The level of the older reports is not below that of the newer ones.

    Example:
        >>> from relaxdp import Categorical
        >>> result = check_reports(
        ...     Categorical(["no", "yes"]), ["yes"] * 900, ["yes"] * 900, older_epsilon="0.5", newer_epsilon=2
        ... )
        >>> result.is_alarm, result.suspicious_values[0].label, result.suspicious_values[0].kind
        (True, 'yes', 'repeated')
    """
    pairs = ReportPairs(mechanism)
    pairs.add([older, newer], epsilons=[older_epsilon, newer_epsilon])
    return check_pairs(pairs)


def compute_undetected_influence(mechanism: Mechanism, level: Level) -> UndetectedInfluence:
    """Return the influence of one individual that fabricates its report at this level."""
    support = mechanism.compute_noise_and_gain(level.retention)
    noise, gain = float(support.noise), float(support.gain)
    mean_weights = mechanism.mean_weights
    if mean_weights is not None:
        weights = np.array(mean_weights.weights)
        counted = (weights - noise * weights.sum()) / gain
        most = max(counted.max() - mean_weights.minimum, mean_weights.maximum - counted.min()) / (
            mean_weights.maximum - mean_weights.minimum
        )
        return UndetectedInfluence(str(level), float(most), "the mean")
    if mechanism.joint == "exclusive":
        values = "one value"
    elif mechanism.symbols > 1:
        values = "all values at once: it may set every bit"
    else:
        values = "every value that a seed of its choice puts together"
    return UndetectedInfluence(str(level), (1 - noise) / gain, values)


def _estimate_certain_hits(trials: int, hits: int, probability: float, tail_probability: float) -> FabricatorCount:
    """Estimate the number of trials that are hits for certain, if all others are hits with this probability."""
    low, high = compute_true_count_interval(np.array([hits]), trials, 1.0, probability, tail_probability)
    return FabricatorCount(max(0.0, (hits - probability * trials) / (1 - probability)), float(low[0]), float(high[0]))


def _add_independent_counts(counts: Sequence[FabricatorCount]) -> FabricatorCount:
    """Return the sum of independent bounds. The distances to the ends of the intervals add up as squares."""
    total = sum(each.estimate for each in counts)
    below = sum((each.estimate - each.low) ** 2 for each in counts) ** 0.5
    above = sum((each.high - each.estimate) ** 2 for each in counts) ** 0.5
    return FabricatorCount(total, max(0.0, total - below), total + above)


def _add_dependent_counts(counts: Sequence[FabricatorCount]) -> FabricatorCount:
    return FabricatorCount(*np.sum([(0.0, 0.0, 0.0), *counts], axis=0).tolist())


# Estimates without fabricated reports. Of the honest newer reports that are a value, a known share changes on the way
# down to the older level. So the changed reports show how many honest ones there are, even if attackers repeat the
# value. If the value is repeated too seldom, the unchanged reports do.


class HonestCounts(NamedTuple):
    """The estimated counts of honest reports of one level, with the variances that leaving out others adds."""

    support: SupportProbabilities
    counts: Floats
    individuals: float
    variances: Floats
    individuals_variance: float

    @classmethod
    def from_pairs(
        cls, table: ReportPairCounts, repeated_labels: Collection[int], changed_labels: Collection[int]
    ) -> HonestCounts:
        """Return the honest counts of pairs, without the reports that repeat or change these values too often."""
        newer, _, both = table.label_counts
        stay = table.stay_probability
        counts, variances = newer.astype(float), np.zeros(table.n_labels)
        for label in repeated_labels:
            counts[label] = (newer[label] - both[label]) / (1 - stay)
            variances[label] = counts[label] * stay / (1 - stay)
        for label in changed_labels:
            counts[label] = both[label] / stay
            variances[label] = counts[label] * (1 - stay) / stay
        support = table.mechanism.compute_noise_and_gain(table.newer.retention)
        if table.mechanism.joint == "exclusive":
            return cls(support, counts, float(counts.sum()), variances, 0.0)
        removed = newer - counts  # one fabricated report may push many bits
        largest = int(np.argmax(removed))
        return cls(support, counts, table.n - max(0.0, float(removed[largest])), variances, float(variances[largest]))

    def merge(self, other: HonestCounts) -> HonestCounts:
        pairs: Any = zip(self[1:], other[1:], strict=True)
        return HonestCounts(self.support, *(one + two for one, two in pairs))

    @property
    def debiased_shares(self) -> Floats:
        return np.asarray(self.support.debias(self.counts / self.individuals))


@dataclass(frozen=True, eq=False, repr=False)
class CleanedEstimate(Result):
    """Shares, or a mean, without fabricated reports. All intervals hold at once, because chance chose the values."""

    mechanism: Mechanism
    parts: Sequence[HonestCounts]
    is_chosen: bool = True

    @property
    def mean_weights(self) -> MeanWeights | None:
        return self.mechanism.mean_weights

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        return self.mechanism.labels if self.mean_weights is None else ("mean",)

    @property
    def minimum(self) -> float:  # type: ignore[override]
        return 0.0 if self.mean_weights is None else self.mean_weights.minimum

    @property
    def maximum(self) -> float:  # type: ignore[override]
        return 1.0 if self.mean_weights is None else self.mean_weights.maximum

    @property
    def comparison_count(self) -> int:
        return count_comparisons(len(self.labels), exclusive=self.mechanism.joint == "exclusive")

    @property
    def n_honest(self) -> float:
        """The estimated number of honest individuals."""
        return sum(part.individuals for part in self.parts)

    @property
    def levels(self) -> dict[str, int]:
        return {UNKNOWN: round(self.n_honest)}

    @cached_property
    def shares(self) -> Floats:
        return np.asarray(sum(part.individuals / self.n_honest * part.debiased_shares for part in self.parts))

    @property
    def value(self) -> Floats:
        if self.mean_weights is None:
            return self.shares
        return np.asarray(self.shares @ np.array(self.mean_weights.weights) / self._present_share)

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors, to first order."""
        check_about(about)
        variance: Any = 0.0
        for part in self.parts:
            weight = part.individuals / self.n_honest / (part.individuals * float(part.support.gain))
            variance = variance + weight**2 * self._compute_level_variance(part, about)
        return np.asarray(np.sqrt(variance))

    def compute_unclipped_interval(self, tail_probability: float, about: About) -> tuple[Floats, Floats]:
        half_width = -float(scipy.special.ndtri(tail_probability)) * self.compute_std_error(about)
        return np.asarray(self.value - half_width), np.asarray(self.value + half_width)

    def _compute_level_variance(self, part: HonestCounts, about: About) -> Any:
        """Return the variance at one level: of a count, or of the sum of the weights."""
        shares = part.counts / part.individuals
        if self.mean_weights is not None:  # the variance of the reports, which includes that of kept values
            weights = self._centered_weights
            middle = float(shares @ weights)
            return part.individuals * (shares @ weights**2 - middle**2) + part.variances @ (weights - middle) ** 2
        support = part.support
        clipped = np.clip(part.debiased_shares, 0, 1)
        own = part.individuals * compute_support_variance(clipped, float(support.hit), float(support.noise), about)
        if self.mechanism.joint == "exclusive":
            return own + part.variances * (1 - 2 * shares) + shares**2 * part.variances.sum()
        return own + part.variances + shares**2 * part.individuals_variance

    @property
    def _present_share(self) -> float:
        absent = None if self.mean_weights is None else self.mean_weights.absent
        return 1.0 if absent is None else max(1 - float(self.shares[absent]), np.finfo(float).tiny)

    @property
    def _centered_weights(self) -> Floats:
        """The weights of the labels in the mean, centered at it to first order."""
        assert self.mean_weights is not None  # noqa: S101 (only called for means)
        weights = np.array(self.mean_weights.weights)
        if self.mean_weights.absent is not None:
            weights = (weights - float(self.value)) / self._present_share
            weights[self.mean_weights.absent] = 0.0
        return weights


def estimate_without_fabricated(
    tables: Sequence[ReportPairCounts], repeated_labels: Collection[int], changed_labels: Collection[int]
) -> Result | None:
    """Estimate without the fabricated reports of these values; None if no individual would be left."""
    parts: dict[Level, HonestCounts] = {}
    for table in tables:
        if table.n and table.n_labels:
            honest = HonestCounts.from_pairs(table, repeated_labels, changed_labels)
            parts[table.newer] = parts[table.newer].merge(honest) if table.newer in parts else honest
    left = [part for _, part in sorted(parts.items()) if part.individuals >= 1]
    return CleanedEstimate(tables[0].mechanism, left) if left else None
