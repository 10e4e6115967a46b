"""Whether reports were made up: a test over all, which values are pushed, how many did it, and shares without them.

What it cannot see is said wherever it is shown: see `Integrity.limits`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from relaxdp.errors import EstimationError
from relaxdp.estimation.counts import Counts, combine_levels
from relaxdp.estimation.frequency import Frequency, compute_report_variance
from relaxdp.estimation.intervals import compute_true_count_interval
from relaxdp.estimation.report_pairs import (
    CHANGED,
    KINDS,
    OLDER,
    REPEATED,
    Evidence,
    Pairs,
    chances,
    every_look,
    single_look,
)
from relaxdp.estimation.report_pairs import Transitions as Transitions  # noqa: PLC0414 (a public name)
from relaxdp.estimation.result import (
    UNKNOWN,
    About,
    Floats,
    Result,
    check_about,
    compute_tail_probability,
    count_comparisons,
)
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Joint, Measure, Mechanism
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.level import Level
from relaxdp.theory.randomized_response import SupportProbabilities

FALSE_ALARMS = 0.01
"""At most this share of honest campaigns ever raises an alarm, however often somebody looks."""


@dataclass(frozen=True, slots=True)
class MadeUp:
    """How many objects break the law of honest reports, at least; with a simultaneous interval where it was chosen."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Pushed:
    """A value that is not reported as honest objects report it, and how many objects it takes for that, at least."""

    label: Any
    kind: str
    """"repeated" too often, "changed" too often, or reported too often at the "older" level before another one."""
    devices: MadeUp


@dataclass(frozen=True, slots=True)
class Reach:
    """What one object that makes up its newest report, and blurs it honestly, can move, as a part of one object."""

    epsilon: str
    most: float
    """How many objects' worth: so far does it move a share, or the mean as a part of its range, times their number."""
    at_once: str
    """Which values it pushes together."""


@dataclass(frozen=True, eq=False, repr=False)
class Integrity:
    """What pairs of reports say of the objects that sent them."""

    mechanism: Mechanism
    last: Sequence[Pairs]
    """Of each object the pair with its newest report."""
    evidence: Evidence
    p_value: float
    """The chance of honest reports that look as little like honest ones, at a single look that was planned before."""
    false_alarms: float
    untested: int | None = None
    """How many objects have a single report, where that is known: nothing is known of these."""

    @property
    def tested(self) -> int:
        """How many objects have two reports or more."""
        return sum(table.n for table in self.last)

    @property
    def p_value_ever(self) -> float:
        """At most this is the chance that honest reports ever look like this, however often somebody looks."""
        return self.evidence.p_value

    @property
    def is_alarm(self) -> bool:
        """Whether made-up reports were noticed; see `FALSE_ALARMS`."""
        return self.p_value_ever <= self.false_alarms

    @cached_property
    def pushed(self) -> list[Pushed]:
        """The values that are pushed, the most certain ones first; wrongly named ones are as rare as false alarms."""
        values = self.evidence.values
        order = np.argsort(-values, axis=None, kind="stable")
        certain = [place for place in order.tolist() if values.reshape(-1)[place] >= -np.log(self.false_alarms)]
        named = [divmod(place, values.shape[1]) for place in certain]
        return [
            self._pushed(kind, place) for kind, place in named if not self._is_hash or self._stands_out(kind, place)
        ]

    @cached_property
    def made_up(self) -> MadeUp:
        """How many objects break the law, at least: exactly so many, if each of them sends the same twice.

        Of an object that makes up reports in another way less is seen, so that this is a lower bound whatever they do.
        """
        return max([self._over_all, *([] if self._named is None else [self._named])], key=lambda each: each.low)

    @cached_property
    def shares(self) -> Result | None:
        """What the tested objects say, made-up ones included; None where values are not told apart."""
        kept = Counts(self.mechanism)
        for table in self.last:
            if table.n and table.labels:
                kept.add_counts(table.news, epsilon=table.newer.epsilon, n=table.n)
        return kept.estimate() if kept.n else None

    @cached_property
    def without(self) -> Result | None:
        """What the tested objects say without the made-up reports; None where there is no alarm, or nothing to tell."""
        if not self.is_alarm:
            return None
        found = self.pushed
        labels = list(self.mechanism.labels)
        named = {kind: {labels.index(each.label) for each in found if each.kind == kind} for kind in KINDS}
        repeated, changed = named[REPEATED], named[CHANGED] - named[REPEATED]
        by_names = self._named is not None and self._over_all.low <= self._named.high  # else many have no name
        if self.mechanism.symbols == 1 and not (by_names and repeated | changed):
            return among(self.last, self.mechanism, stayed=self._excess() < 0)
        return cleaned(self.last, self.mechanism, repeated, changed) if repeated | changed else None

    @property
    def reach(self) -> Reach | None:
        """What a liar that is not seen can move, at the highest level of the tested; None without any of them."""
        levels = [table.newer for table in self.last if table.n]
        return reach(self.mechanism, max(levels)) if levels else None

    @property
    def limits(self) -> list[str]:
        """What must be said beside it."""
        bound = self.reach
        alone = "" if self.untested is None else f": {self.untested:,} of {self.tested + self.untested:,} here"
        moved = "" if bound is None else (
            f" In the reports at epsilon {bound.epsilon} one of them counts for at most {bound.most:.3g} honest ones, "
            f"and pushes {bound.at_once}."
        )  # fmt: skip
        return [
            f"A device with a single report cannot be tested{alone}.",
            f"Who lies about the truth, or makes up the newest report, and blurs it honestly is not seen.{moved}",
            "Who decides by an earlier report whether to go on looks like somebody who made it up.",
            "The rate of false alarms over all looks holds while few withdraw: their pairs are taken back.",
            "Against many made-up devices only invitations help.",
        ]

    def __repr__(self) -> str:
        verdict = "made-up reports were noticed" if self.is_alarm else "nothing was noticed"
        lines = [
            f"{verdict}: {self.tested:,} objects with two reports or more, p-value {self.p_value:.3g} at one look, "
            f"{self.p_value_ever:.3g} over all looks"
        ]
        lines += [f"{each.label}: {each.kind}, {_numbers(each.devices)}" for each in self.pushed]
        lines.append(
            f"{'made up, at least' if self.is_alarm else 'that repeat whatever they send'}: {_numbers(self.made_up)}"
        )
        return "\n".join([*lines, *self.limits])

    @property
    def _is_hash(self) -> bool:
        """Whether a report supports many values, so that a value is repeated because another one is wanted."""
        return self.mechanism.joint != "exclusive" and self.mechanism.symbols == 1

    def _stands_out(self, kind: int, place: int) -> bool:
        """Tell whether repeated reports support a value more often than all do, and changed ones less often."""
        news, both, equal, n = (
            float(sum(each))
            for each in zip(*((t.news[place], t.both[place], t.equal, t.n) for t in self.last), strict=True)
        )
        share = news / n
        away = (both - equal * share) * (1 if KINDS[kind] == REPEATED else -1)
        spread = equal * share * (1 - share) * (1 - equal / n)
        quantile = -float(scipy.special.ndtri(self.false_alarms / len(self.mechanism.labels)))
        return KINDS[kind] == OLDER or away > quantile * spread**0.5

    def _pushed(self, kind: int, place: int) -> Pushed:
        return Pushed(self.mechanism.labels[place], KINDS[kind], self._excess_of(KINDS[kind], place))

    def _excess_of(self, kind: str, place: int) -> MadeUp:
        tail = self._tail
        cells = []
        for table in self.last:
            stay, leave = chances(table, self.mechanism)
            news, both = int(table.news[place]), int(table.both[place])
            if kind == OLDER:
                cells.append((table.n - news, int(table.olds[place]) - both, leave))
            else:
                cells.append((news, both, stay) if kind == REPEATED else (news, news - both, 1 - stay))
        return _added([_fakes(*cell, tail) for cell in cells if cell[0]])

    @cached_property
    def _named(self) -> MadeUp | None:
        """How many push the named values; None where none is named, or a report supports many values."""
        found = self.pushed
        if self._is_hash or not found:
            return None
        parts = {kind: [each.devices for each in found if each.kind == kind] for kind in KINDS}
        if self.mechanism.symbols > 1:  # one row may push many bits
            return max((each.devices for each in found), key=lambda each: each.estimate)
        # Who sends one value and then another is seen at both.
        return _sum([*parts[REPEATED], max(map(_sum, (parts[CHANGED], parts[OLDER])), key=lambda each: each.estimate)])

    @property
    def _tail(self) -> float:
        """The error of each interval, where the values were chosen by what they say: over all, and of every value."""
        return compute_tail_probability(0.95, 1 + len(KINDS) * len(self.mechanism.labels))

    @cached_property
    def _over_all(self) -> MadeUp:
        """How many repeat whatever they send, or, where too many reports change, how many do not."""
        up = self._excess() >= 0 or not self.is_alarm
        symbols, tail = self.mechanism.symbols, self._tail if self._named else compute_tail_probability(0.95, 1)
        found = []
        for table in self.last:
            stay, _ = chances(table, self.mechanism)
            trials = table.n * symbols
            if trials:
                hits = table.equal if up else trials - table.equal
                found.append(_fakes(trials, hits, stay if up else 1 - stay, tail))
        total = _added(found)
        return MadeUp(total.estimate / symbols, total.low / symbols, total.high / symbols)

    def _excess(self) -> float:
        return sum(
            table.equal - table.n * self.mechanism.symbols * chances(table, self.mechanism)[0] for table in self.last
        )


def integrity(
    pairs: Transitions,
    *,
    n: int | None = None,
    levels: Sequence[Epsilon] = (),
    false_alarms: float = FALSE_ALARMS,
) -> Integrity:
    """Return whether `pairs` of reports were made up. Of `n` in all, those without a pair cannot be tested.

    Whoever looks more than once names all `levels` of the schedule each time. `false_alarms` is how often honest
    reports may be called made up, between 0 and 1.
    """
    if not isinstance(false_alarms, Real) or not 0 < false_alarms < 1:
        raise EstimationError("`false_alarms` must be a number between 0 and 1.", hint="Pass a rate such as 0.01.")
    mechanism = pairs.mechanism
    schedule: list[Level] = [mechanism.level(each) for each in levels]
    return Integrity(
        mechanism,
        pairs.last,
        every_look(pairs.tables, mechanism, schedule),
        single_look(pairs.tables, mechanism),
        false_alarms,
        None if n is None else n - pairs.n,
    )


def transitions(mechanism: Any, older: Any, newer: Any, *, older_epsilon: Epsilon, newer_epsilon: Epsilon) -> Integrity:
    """Return whether reports were made up: two columns of reports of the same objects, at a lower and a higher level.

    `older` (at `older_epsilon`) and `newer` (at `newer_epsilon`) are the columns, as the `mechanism` released them, and
    belong together row by row. An honest older report is the newer one after a blur that never sees the truth, so that
    its law is known. For more than two levels, tables of counts and daily looks there are `Transitions` and
    `integrity`.

    >>> from relaxdp import Categorical
    >>> found = transitions(
    ...     Categorical(["no", "yes"]), ["yes"] * 900, ["yes"] * 900, older_epsilon="0.5", newer_epsilon=2
    ... )
    >>> found.is_alarm, found.pushed[0].label, found.pushed[0].kind
    (True, 'yes', 'repeated')
    """
    pairs = Transitions(mechanism)
    pairs.add(older, newer, older_epsilon=older_epsilon, newer_epsilon=newer_epsilon)
    return integrity(pairs)


def reach(mechanism: Mechanism, level: Level) -> Reach:
    """Return what one object can move that makes up its report at this level."""
    support = mechanism.support(level.retention)
    noise, gain = float(support.noise), float(support.gain)
    measure = mechanism.measure
    if measure is not None:
        weights = np.array(measure.weights)
        counted = (weights - noise * weights.sum()) / gain
        most = max(counted.max() - measure.least, measure.most - counted.min()) / (measure.most - measure.least)
        return Reach(str(level), float(most), "the mean")
    if mechanism.joint == "exclusive":
        at_once = "one value"
    elif mechanism.symbols > 1:
        at_once = "all values at once: it may set every bit"
    else:
        at_once = "every value that a seed of its choice puts together"
    return Reach(str(level), (1 - noise) / gain, at_once)


def _fakes(trials: int, hits: int, chance: float, tail: float) -> MadeUp:
    """Return how many of the trials were hits for sure, if all others were with this chance."""
    low, high = compute_true_count_interval(np.array([hits]), trials, 1.0, chance, tail)
    return MadeUp(max(0.0, (hits - chance * trials) / (1 - chance)), float(low[0]), float(high[0]))


def _added(found: Sequence[MadeUp]) -> MadeUp:
    """Return the sum of independent numbers, whose distances to their ends add up as squares."""
    total = sum(each.estimate for each in found)
    below = sum((each.estimate - each.low) ** 2 for each in found) ** 0.5
    above = sum((each.high - each.estimate) ** 2 for each in found) ** 0.5
    return MadeUp(total, max(0.0, total - below), total + above)


def _sum(found: Sequence[MadeUp]) -> MadeUp:
    return MadeUp(*(sum(getattr(each, name) for each in found) for name in ("estimate", "low", "high")))


def _numbers(found: MadeUp) -> str:
    return f"{found.estimate:,.0f} objects [{found.low:,.0f}, {found.high:,.0f}]"


@dataclass(frozen=True, slots=True, eq=False)
class Honest:
    """How many honest reports of one level support each value, and the variances that come from leaving others out."""

    support: SupportProbabilities
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
    def comparison_count(self) -> int:
        """One for each value."""
        return 1 if self.measure else count_comparisons(len(self.names), exclusive=self.joint == "exclusive")

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

    def compute_unclipped_interval(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut at what is possible."""
        reach = -float(scipy.special.ndtri(tail)) * self.compute_std_error(about)
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
        own = part.individuals * compute_report_variance(pulled, float(support.hit), float(support.noise), about)
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
    if not parts:
        return None
    return combine_levels(mechanism.measure, parts, [part.individuals / individuals for part in parts])


def _debiased(part: Honest) -> Floats:
    return np.asarray(part.support.debias(part.counts / part.individuals))
