"""Shares estimated without the reports that were made up, with intervals that include how little is known of these.

Of the newer reports that are a value, an honest share changes on the way down to the older level, and that share is
known. So those that changed tell how many honest ones there are, whoever repeats the value; where it is repeated too
seldom, those that stayed do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from relaxdp.estimation import special
from relaxdp.estimation.evidence import chances
from relaxdp.estimation.frequency import Frequency, report_variance
from relaxdp.estimation.mean import answer
from relaxdp.estimation.result import UNKNOWN, About, Floats, Result, check_about, questions_of
from relaxdp.estimation.transitions import Pairs
from relaxdp.mechanisms.base import Joint, Measure, Mechanism
from relaxdp.theory.response import Support


@dataclass(frozen=True, slots=True, eq=False)
class Honest:
    """How many honest reports of one level support each value, and the variances that come from leaving others out."""

    support: Support
    counts: Floats
    individuals: float
    spread: Floats
    spread_of_objects: float

    @classmethod
    def of(cls, table: Pairs, mechanism: Mechanism, repeated: Collection[int], changed: Collection[int]) -> Honest:
        """Leave out what was made up of the named values."""
        stay, _ = chances(table, mechanism)
        counts, spread = table.news.astype(float), np.zeros(table.labels)
        for place in repeated:
            counts[place] = (table.news[place] - table.both[place]) / (1 - stay)
            spread[place] = counts[place] * stay / (1 - stay)
        for place in changed:
            counts[place] = table.both[place] / stay
            spread[place] = counts[place] * (1 - stay) / stay
        support = mechanism.support(table.newer.retention)
        if mechanism.joint == "exclusive":
            return cls(support, counts, float(counts.sum()), spread, 0.0)
        gone = table.news - counts  # one made-up row may push many bits
        maximum = int(np.argmax(gone))
        return cls(support, counts, table.n - max(0.0, float(gone[maximum])), spread, float(spread[maximum]))

    def plus(self, other: Honest) -> Honest:
        """Return what two tables with the same newer level say."""
        return Honest(
            self.support,
            self.counts + other.counts,
            self.individuals + other.individuals,
            self.spread + other.spread,
            self.spread_of_objects + other.spread_of_objects,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Cleaned(Result):
    """Shares, or a mean, without made-up reports. Which values were named is chance too: intervals hold for all."""

    names: Sequence[Any]
    parts: Sequence[Honest]
    joint: Joint
    measure: Measure | None = None
    is_chosen: bool = True

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The values, or one row."""
        return self.names if self.measure is None else ("mean",)

    @property
    def minimum(self) -> float:  # type: ignore[override]
        """The least that it can be."""
        return 0.0 if self.measure is None else self.measure.least

    @property
    def maximum(self) -> float:  # type: ignore[override]
        """The most that it can be."""
        return 1.0 if self.measure is None else self.measure.most

    @property
    def questions(self) -> int:
        """One for each value."""
        return 1 if self.measure else questions_of(len(self.names), exclusive=self.joint == "exclusive")

    @property
    def individuals(self) -> float:
        """How many honest objects there are, as estimated."""
        return sum(part.individuals for part in self.parts)

    @property
    def levels(self) -> dict[str, int]:
        """The estimated number of honest individuals."""
        return {UNKNOWN: round(self.individuals)}

    @cached_property
    def shares(self) -> Floats:
        """The shares of the values."""
        return np.asarray(sum(part.individuals / self.individuals * _debiased(part) for part in self.parts))

    @property
    def value(self) -> Floats:
        """The estimates."""
        if self.measure is None:
            return self.shares
        return np.asarray(self.shares @ np.array(self.measure.weights) / self._present)

    def compute_std_error(self, about: About = "sample") -> Floats:
        """Return the standard errors, to first order."""
        check_about(about)
        variance: Any = 0.0
        for part in self.parts:
            weight = part.individuals / self.individuals / (part.individuals * float(part.support.gain))
            variance = variance + weight**2 * self._variance(part, about)
        return np.asarray(np.sqrt(variance))

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut at what is possible."""
        reach = -float(special.ndtri(tail)) * self.compute_std_error(about)
        return np.asarray(self.value - reach), np.asarray(self.value + reach)

    def _variance(self, part: Honest, about: About) -> Any:
        """Return the variance of a count, or of the sum of the weights, of one level."""
        shares = part.counts / part.individuals
        if self.measure is not None:  # of the reports' own spread, which covers what is kept, too
            weights = self._centred
            middle = float(shares @ weights)
            return part.individuals * (shares @ weights**2 - middle**2) + part.spread @ (weights - middle) ** 2
        support = part.support
        pulled = np.clip(_debiased(part), 0, 1)
        own = part.individuals * report_variance(pulled, float(support.hit), float(support.noise), about)
        if self.joint == "exclusive":
            return own + part.spread * (1 - 2 * shares) + shares**2 * part.spread.sum()
        return own + part.spread + shares**2 * part.spread_of_objects

    @property
    def _present(self) -> float:
        """The share of objects that have a number."""
        absent = None if self.measure is None else self.measure.absent
        return 1.0 if absent is None else max(1 - float(self.shares[absent]), np.finfo(float).tiny)

    @property
    def _centred(self) -> Floats:
        """What each label counts for, to first order."""
        assert self.measure is not None  # noqa: S101 (asked for means alone)
        weights = np.array(self.measure.weights)
        if self.measure.absent is not None:
            weights = (weights - float(self.value)) / self._present
            weights[self.measure.absent] = 0.0
        return weights


def cleaned(
    tables: Sequence[Pairs], mechanism: Mechanism, repeated: Collection[int], changed: Collection[int]
) -> Result | None:
    """Return shares without the made-up reports of the named values; None where nobody would be left."""
    tables = [table for table in tables if table.n and table.labels]
    parts: dict[Any, Honest] = {}
    for table in tables:
        found = Honest.of(table, mechanism, repeated, changed)
        parts[table.newer] = parts[table.newer].plus(found) if table.newer in parts else found
    left = [part for _, part in sorted(parts.items()) if part.individuals >= 1]
    return Cleaned(mechanism.labels, left, mechanism.joint, mechanism.measure) if left else None


def among(tables: Sequence[Pairs], mechanism: Mechanism, *, stayed: bool) -> Result | None:
    """Return the shares among objects whose report stayed, or changed, which an honest truth has no part in.

    For a made-up hash, which supports many values, and where no single value is named.
    """
    parts = []
    for table in (each for each in tables if each.labels):
        counts, individuals = table.both, table.equal
        if not stayed:
            counts, individuals = table.news - table.both, table.n - table.equal
        if individuals:
            support = mechanism.support(table.newer.retention)
            parts.append(
                Frequency(mechanism.labels, counts, individuals, support, table.newer.epsilon, mechanism.joint)
            )
    individuals = sum(part.individuals for part in parts)
    return answer(mechanism.measure, parts, [part.individuals / individuals for part in parts]) if parts else None


def _debiased(part: Honest) -> Floats:
    return np.asarray(part.support.debias(part.counts / part.individuals))
