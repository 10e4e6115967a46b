"""Pairs of reports of the same individuals at two levels: their counts, and a test that the reports are honest.

The older report of an honest individual is its newer one, blurred: kept with a probability that follows from the two
levels, and drawn again otherwise. The blur never sees the true value, so its distribution is known. The counts of a
table of pairs are its margins and its diagonal: how often each value is the newer report, the older one, and both.

The test for a single look uses the known covariance of the diagonal and the margins: their squared distance from the
expected counts has a chi-squared distribution. The test for any number of looks uses bets. A bet claims that a pair is
equal more, or less, often than it should be. Against honest individuals no capital is expected to grow, so it ever
reaches 1 / a with a probability of at most a (Ville's inequality), whenever and however often you look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ColumnError, EstimationError
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.report_arrays import (
    BATCH,
    Packed,
    count_packed_reports,
    get_code_dtype,
    get_packed_width,
    pack_reports,
    read_report_column,
)
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level, compute_blur_retention

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_TRACKED_LABELS = 2_048
"""For more values only equal pairs are counted, not the values of each, so that a table stays small."""
_MAX_CODES = 1 << 24
_TINY = 2.0**-52


def count_tracked_labels(mechanism: Mechanism) -> int:
    """Return the number of labels for which pairs are counted one by one; 0 if only equal symbols are counted.

    Each value must be supported by one code of one symbol. Otherwise it is not known how often the older report
    supports it.
    """
    labels = len(mechanism.labels)
    if isinstance(mechanism, Bloom) or labels > MAX_TRACKED_LABELS:  # a bit means something else in every cohort
        return 0
    if mechanism.symbols > 1 or mechanism.joint == "exclusive":
        return labels
    if labels * mechanism.alphabet > _MAX_CODES:
        return 0
    codes = np.arange(mechanism.alphabet, dtype=get_code_dtype(mechanism.alphabet))[:, None]
    seeds = np.zeros(len(codes), np.uint64) if mechanism.seeded else None
    return labels if bool(np.all(np.count_nonzero(mechanism.find_supported_labels(codes, seeds), axis=0) == 1)) else 0


def count_packed_report_pairs(
    mechanism: Mechanism, older: Packed, newer: Packed, n_labels: int | None = None
) -> Integers:
    """Count pairs of packed reports of the same individuals. Counts of different individuals can be added.

    Returns:
        The numbers of individuals and of equal symbols, and for each value the numbers of newer, older and both reports
        that support it.
    """
    n_labels = count_tracked_labels(mechanism) if n_labels is None else n_labels
    parts = [np.array([len(newer), count_equal_symbols_in_pairs(mechanism, older, newer)], dtype=np.int64)]
    if n_labels:
        parts += [count_packed_reports(mechanism, each) for each in (newer, older)]
        parts.append(count_labels_in_both(mechanism, older, newer))
    return np.concatenate(parts)


def count_equal_symbols_in_pairs(mechanism: Mechanism, older: Packed, newer: Packed) -> int:
    """Return the number of symbols that are the same in both reports of an individual."""
    if mechanism.symbols == 1:
        return int(np.count_nonzero(np.all(older == newer, axis=1)))
    return len(newer) * mechanism.symbols - int(np.bitwise_count(older ^ newer).sum(dtype=np.int64))


def count_labels_in_both(mechanism: Mechanism, older: Packed, newer: Packed) -> Integers:
    """Return for each value the number of individuals that support it with both reports."""
    if mechanism.symbols > 1:
        return count_packed_reports(mechanism, older & newer)
    return count_packed_reports(mechanism, np.ascontiguousarray(newer[np.all(older == newer, axis=1)]))


@dataclass(frozen=True, eq=False)
class ReportPairCounts:
    """The counts of all pairs of reports at two levels."""

    mechanism: Mechanism
    older: Level
    newer: Level
    counts: Integers
    """As `count_packed_report_pairs` returns them."""

    @property
    def n(self) -> int:
        return int(self.counts[0])

    @property
    def n_equal_symbols(self) -> int:
        return int(self.counts[1])

    @property
    def label_counts(self) -> Integers:
        """For each value the number of newer, of older and of both reports that support it; one row for each."""
        return self.counts[2:].reshape(3, -1)

    @property
    def n_labels(self) -> int:
        """The number of values that are counted one by one, 0 if none."""
        return len(self.counts[2:]) // 3

    @cached_property
    def stay_probability(self) -> float:
        """The probability that a symbol stays the same, from the newer to the older report."""
        return min(self._blur_retention + self.switch_probability, 1 - _TINY)

    @cached_property
    def switch_probability(self) -> float:
        """The probability that a symbol switches to one certain other symbol, from the newer to the older report.

        If levels are too close for a float, it is still not 0: unlikely reports must not count as impossible.
        """
        return max((1 - self._blur_retention) / self.mechanism.alphabet, _TINY)

    @property
    def _blur_retention(self) -> float:
        return float(compute_blur_retention(self.older.retention, self.newer.retention))


class ReportPairs:
    """Pairs of reports of the same individuals at two levels each, to test with `check_pairs`.

    An individual with three reports has two pairs, each report with the next lower one.

    Args:
        mechanism: The mechanism that released the reports.

    Example:
        >>> from relaxdp import Categorical
        >>> pairs = ReportPairs(Categorical(["no", "yes"]))
        >>> pairs.add([["no", "yes"], ["no", "no"]], epsilons=[1, 2])
        >>> pairs.n
        2
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._n_labels = count_tracked_labels(self.mechanism)
        self._tables: dict[tuple[Level, Level], Integers] = {}
        self._superseded: dict[tuple[Level, Level], Integers] = {}

    @property
    def n(self) -> int:
        """The number of individuals with a pair."""
        return sum(table.n for table in self.newest_tables)

    @property
    def tables(self) -> list[ReportPairCounts]:
        """The counts of all pairs, by the levels of both reports, ascending."""
        return [ReportPairCounts(self.mechanism, *levels, self._tables[levels]) for levels in sorted(self._tables)]

    @property
    def newest_tables(self) -> list[ReportPairCounts]:
        """The counts of the newest pair of each individual, the one with its newest report."""
        return [
            replace(table, counts=table.counts - self._superseded.get((table.older, table.newer), np.int64(0)))
            for table in self.tables
        ]

    def add(self, reports: Sequence[Any], *, epsilons: Sequence[Epsilon]) -> None:
        """Add the reports of individuals at two or more levels.

        Args:
            reports: A column of reports for each level, the lowest first, in the same order of the individuals.
            epsilons: The levels, ascending. The individuals have no report at another level.

        Raises:
            ColumnError: The columns do not have the same length, or are not reports of the mechanism.
            EstimationError: The levels do not ascend.
        """
        packed = [pack_reports(self.mechanism, *read_report_column(self.mechanism, column)) for column in reports]
        if len(packed) != len(epsilons):
            raise ColumnError(
                "There are {columns} columns of reports, and {epsilons} epsilons. Each column needs its own epsilon.",
                hint="Pass one column for each epsilon, the smallest epsilon first.",
                columns=len(packed),
                epsilons=len(epsilons),
            )
        if len({len(each) for each in packed}) > 1:
            raise ColumnError(
                "The columns of reports have different lengths: {lengths}.",
                hint="Pass the same individuals in the same order in each column.",
                lengths=", ".join(f"{len(each):,}" for each in packed),
            )
        levels = list(map(self.mechanism.level, epsilons))
        for older, newer in pairwise(levels):
            if not older < newer:
                raise EstimationError(
                    "The epsilon of older reports must be below that of newer ones: {older} is not below {newer}.",
                    hint="Pass each epsilon once, the smallest first, and the columns in the same order.",
                    older=str(older),
                    newer=str(newer),
                )
        step = max(1, BATCH // get_packed_width(self.mechanism))
        for place, pair in enumerate(pairwise(levels)):
            for start in range(0, len(packed[0]), step):
                older_part, newer_part = (each[start : start + step] for each in packed[place : place + 2])
                counts = count_packed_report_pairs(self.mechanism, older_part, newer_part, self._n_labels)
                self.add_counts(counts, pair)
                if place + 2 < len(levels):
                    self.add_counts(counts, pair, superseded=True)

    def add_counts(self, counts: Integers, levels: tuple[Level, Level], *, superseded: bool = False) -> None:
        """Add counts from `count_packed_report_pairs` at an older and a newer level.

        `superseded` marks counts that were added already and whose individuals now have a newer report. The test uses
        all pairs, but an estimate only the newest pair of each individual.
        """
        tables = self._superseded if superseded else self._tables
        tables[levels] = tables.get(levels, np.int64(0)) + counts.astype(np.int64)


_MIN_EXPECTED = 5.0
"""The smallest expected number in a cell of a chi-squared sum. Rarer values share one cell."""
# The assumed shares of fabricated reports: halved from bet to bet, so that one of them is close.
_BETS = np.array([0.5**power for power in range(1, 17)])
_OVER_ALL, _SINGLE = 0.25, 0.75
"""The stakes on all values together, and on single values."""
REPEATED, CHANGED, OLDER = "repeated", "changed", "older"
KINDS = (REPEATED, CHANGED, OLDER)
"""A suspicious value is repeated too often, or too seldom, or reported too often before another one."""


def compute_single_look_p_value(tables: Sequence[ReportPairCounts]) -> float:
    """Return the p-value for a single planned look. If all are honest and reports are many, it is uniform."""
    tables = [table for table in tables if table.n]
    if not tables:
        return 1.0
    mechanism = tables[0].mechanism
    if all(table.n_labels for table in tables) and (mechanism.joint == "exclusive" or mechanism.symbols > 1):
        distances, terms = zip(*(each for table in tables for each in _compute_chi_squared_terms(table)), strict=True)
        return float(scipy.special.chdtrc(sum(terms), sum(distances))) if sum(terms) else 1.0
    # Hashed values share their reports in unknown ways. So the smallest p-value counts, times the number of tables.
    return min(1.0, len(tables) * min(map(_compute_smallest_p_value, tables)))


def _compute_chi_squared_terms(table: ReportPairCounts) -> list[tuple[float, int]]:
    """Return chi-squared distances and their degrees of freedom; each is independent of the next, given that one."""
    newer, older, both = table.label_counts
    first = _compute_binomial_chi_squared(newer, both, table.stay_probability)
    if table.mechanism.symbols > 1:
        return [first, _compute_binomial_chi_squared(table.n - newer, older - both, table.switch_probability)]
    return [first, _compute_arrival_chi_squared(newer - both, older - both)]


def _compute_binomial_chi_squared(
    trials: NDArray[np.int64], hits: NDArray[np.int64], probability: float
) -> tuple[float, int]:
    """Return the chi-squared distance of independent binomials and its degrees of freedom; rare ones are added up."""
    enough = trials * min(probability, 1 - probability) >= _MIN_EXPECTED
    cells = [(float(n), float(k)) for n, k in zip(trials[enough], hits[enough], strict=True)]
    rest = float(trials[~enough].sum()), float(hits[~enough].sum())
    if rest[0] * min(probability, 1 - probability) >= _MIN_EXPECTED:
        cells.append(rest)
    if not cells:
        return 0.0, 0
    n, k = np.array(cells).T
    return float(np.sum((k - n * probability) ** 2 / (n * probability * (1 - probability)))), len(cells)


def _compute_arrival_chi_squared(departures: NDArray[np.int64], arrivals: NDArray[np.int64]) -> tuple[float, int]:
    """Return the chi-squared distance of arrivals from departures that spread evenly over all other values.

    The covariance is a diagonal minus a matrix of rank two, so its inverse has a closed form. Rare values share groups,
    and one group is left out because all groups have a known sum.
    """
    values, total = len(departures), float(departures.sum())
    size = max(1, int(np.ceil(_MIN_EXPECTED * values / max(total, 1.0))))
    starts = np.arange(0, values, size)
    if len(starts) > 1 and values % size:
        starts = starts[:-1]  # the last group takes what is left over
    if values < 3 or len(starts) < 3:
        return 0.0, 0
    sizes = np.diff(np.append(starts, values)).astype(float)
    gone = np.add.reduceat(departures, starts).astype(float)
    came = np.add.reduceat(arrivals, starts).astype(float)
    each = 1 / (values - 1)
    away = (came - each * (total * sizes - gone))[:-1]
    diagonal = (each * (total * sizes - gone) - each**2 * gone)[:-1]
    if np.any(diagonal <= 0):
        return 0.0, 0
    sides = np.stack([sizes, gone], axis=1)[:-1]
    inner = np.linalg.inv(each**2 * np.array([[total, -1.0], [-1.0, 0.0]])) - sides.T @ (sides / diagonal[:, None])
    reach = sides.T @ (away / diagonal)
    return float(away @ (away / diagonal) + reach @ np.linalg.solve(inner, reach)), len(away)


def _compute_smallest_p_value(table: ReportPairCounts) -> float:
    """Return the smallest p-value of equal reports and of all values, by exact binomial distributions."""
    symbols, equal = np.array([table.n * table.mechanism.symbols]), np.array([table.n_equal_symbols])
    over_all = float(_compute_binomial_p_values(symbols, equal, table.stay_probability)[0])
    if not table.n_labels:
        return over_all
    newer, older, both = table.label_counts
    single = min(
        _compute_binomial_p_values(newer, both, table.stay_probability).min(),
        _compute_binomial_p_values(table.n - newer, older - both, table.switch_probability).min(),
    )
    return 2 * min(over_all, 2 * table.n_labels * float(single))


def _compute_binomial_p_values(trials: NDArray[np.int64], hits: NDArray[np.int64], probability: float) -> Floats:
    lower = np.where(hits < trials, scipy.special.bdtr(hits, np.maximum(trials, 1), probability), 1.0)
    upper = np.where(hits > 0, scipy.special.bdtrc(hits - 1, np.maximum(trials, 1), probability), 1.0)
    return np.where(trials > 0, np.minimum(1.0, 2 * np.minimum(lower, upper)), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class BettingEvidence:
    """The evidence of bets against honesty: the logarithms of their capital, which include the stakes."""

    log_capitals: tuple[float, ...]
    """For each table the capital of all bets on it."""
    label_log_capitals: Floats
    """For each kind of bet (see `KINDS`) and each value the largest capital in any table."""
    repeat_bets: tuple[tuple[ReportPairCounts, float], ...]
    """Each table, and the logarithm of the stake on more equal reports over all values together."""

    @property
    def p_value(self) -> float:
        """The largest probability that honest individuals ever give this evidence, however often you look."""
        return float(np.exp(-max([0.0, *self.log_capitals])))


def compute_betting_evidence(tables: Sequence[ReportPairCounts], levels: Sequence[Level] = ()) -> BettingEvidence:
    """Return the evidence of bets against honesty. Of the `levels` of a schedule, pairs of neighbours have most stakes.

    If you look more than once, pass all levels of the schedule each time, because stakes must not depend on reports.
    Each pair is bet on once, when it is complete, so that the capital of each table is a martingale. Tables share
    individuals, so they divide the stake.
    """
    width = max([table.n_labels for table in tables], default=0)
    capitals, repeat_bets, best = [], [], np.full((len(KINDS), width), -np.inf)
    known_levels = {each for table in tables for each in (table.older, table.newer)}
    places = {level: place for place, level in enumerate(sorted(known_levels.union(levels)))}
    for table in tables:
        stake = np.log(_compute_stake(places[table.newer] - places[table.older], len(places)))
        symbols, equal = np.array([table.n * table.mechanism.symbols]), np.array([table.n_equal_symbols])
        stay = table.stay_probability
        bets = [_compute_log_capital(symbols, equal, stay, bet_on_more=more) for more in (True, False)]
        side_stake = np.log((_OVER_ALL if table.n_labels else 1.0) / 2)
        repeat_bets.append((table, float(stake + side_stake)))
        sides = np.concatenate(bets) + side_stake
        rows = np.empty((len(KINDS), 0))
        if table.n_labels:
            newer, older, both = table.label_counts
            bets = [_compute_log_capital(newer, both, stay, bet_on_more=more) for more in (True, False)]
            bets.append(_compute_log_capital(table.n - newer, older - both, table.switch_probability, bet_on_more=True))
            rows = np.stack(bets) + np.log(_SINGLE / (len(KINDS) * table.n_labels))
            best = np.maximum(best, rows + stake)
        capitals.append(stake + float(scipy.special.logsumexp([*sides, *rows.reshape(-1)])))
    return BettingEvidence(tuple(capitals), best, tuple(repeat_bets))


def compute_unnoticed_share(evidence: BettingEvidence, false_alarm_rate: float) -> float:
    """Return about which share of individuals can repeat every report before a bet on all values notices them."""
    bets = [(table, stake) for table, stake in evidence.repeat_bets if table.n]
    return min((_count_unnoticed_repeaters(*bet, false_alarm_rate) / bet[0].n for bet in bets), default=1.0)


def _count_unnoticed_repeaters(table: ReportPairCounts, log_stake: float, false_alarm_rate: float) -> int:
    trials, stay = table.n * table.mechanism.symbols, table.stay_probability
    unnoticed, noticed = 0, table.n + 1
    while noticed - unnoticed > 1:
        repeaters = (unnoticed + noticed) // 2
        equal = np.array([trials * stay + repeaters * table.mechanism.symbols * (1 - stay)])
        capital = float(_compute_log_capital(np.array([trials]), equal, stay, bet_on_more=True)[0])
        if capital + log_stake < -np.log(false_alarm_rate):
            unnoticed = repeaters
        else:
            noticed = repeaters
    return unnoticed


def _compute_stake(level_distance: int, n_levels: int) -> float:
    """Return the stake of a table: neighbouring levels share one half, or everything if there are no other pairs."""
    others = (n_levels - 1) * (n_levels - 2) // 2
    if level_distance == 1:
        return (0.5 if others else 1.0) / max(1, n_levels - 1)
    return 0.5 / others


def _compute_log_capital(
    trials: NDArray[np.int64], hits: NDArray[Any], probability: float, *, bet_on_more: bool
) -> Floats:
    """Return the logarithm of the capital of bets on more (or fewer) hits: a mixture of likelihood ratios."""
    if bet_on_more:
        win, lose = np.log1p(_BETS * (1 / probability - 1)), np.log1p(-_BETS)
    else:
        win, lose = np.log1p(-_BETS), np.log1p(_BETS * (1 / (1 - probability) - 1))
    gains = hits[:, None] * win + (trials - hits)[:, None] * lose
    return np.asarray(scipy.special.logsumexp(gains, axis=1) - np.log(len(_BETS)))
