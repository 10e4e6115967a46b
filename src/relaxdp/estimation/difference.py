"""Changes between two dates: each date is a path of its own, so that given the truths the noises are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.encodings.protocol import Measure
from relaxdp.errors import CountsError
from relaxdp.estimation import special
from relaxdp.estimation.counts import Counts, Method
from relaxdp.estimation.frequency import Frequency
from relaxdp.estimation.mean import PresentMean
from relaxdp.estimation.result import About, Floats, Places, Result, check_about
from relaxdp.estimation.wave import Distribution


@dataclass(frozen=True, slots=True)
class Pairs:
    """How the reports of objects go together that stand at one level at the old date, and at one at the new date."""

    epsilons: tuple[Decimal, Decimal]
    objects: int
    old: NDArray[Any]
    """How many of them support each value at the old date, and at the new one."""
    new: NDArray[Any]
    both: NDArray[Any]
    """How many support a value at both dates, in the old order; of a mean, how many one label then and another now."""

    def products(self, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of what both reports of an object have above some shares of supporting reports, multiplied.

        With the shares of these objects its mean is one less than their number, times the covariance of the truths
        and both gains: noise that is independent adds nothing.

        Claim: exactly so; tests/exact/estimation/test_difference.py.
        """
        mine, other, olds, news = self.old, self.new, old, new
        if self.both.ndim == 2:
            mine, olds = mine[:, None], olds[:, None]
        return np.asarray(self.both - mine * news - olds * other + self.objects * olds * news)


@dataclass(frozen=True, eq=False, repr=False)
class Change(Result):
    """How estimates changed: the new one minus the old one, row by row.

    About these objects only the noise is random, and that of two dates is independent: squared distances to the ends
    are added. About a population, objects that were there at both dates also bring what their truths have in common,
    which `covariance` estimates from their reports; a change of people who hardly change is known better than
    either date. The errors of a mean of ends are those of the reports' own spread, and so are always taken with it.

    Claim: coverage of 94.5 % or more; tests/statistical/estimation/test_coverage.py.
    """

    old: Result
    new: Result
    covariance: Any = 0.0
    """Of the two estimates, about the population; 0 where no object was there at both dates."""
    one_report: float = 0.0
    """What one report more counts for in the covariance."""
    with_spread: bool = False
    """Whether the errors about these objects, too, are those of the reports' own spread, which the dates share."""
    is_chosen: bool = False
    missing: Change | None = None
    """Where numbers may be missing at both dates: how their share changed."""

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The labels, which both dates share."""
        return self.old.labels

    @property
    def is_share(self) -> bool:  # type: ignore[override]
        """As of one date."""
        return self.old.is_share

    @property
    def most_shown(self) -> int:  # type: ignore[override]
        """As many as of one date."""
        return self.old.most_shown

    @property
    def keys(self) -> dict[str, list[Any]]:
        """What tells the rows apart."""
        return self.old.keys

    @property
    def least(self) -> float:  # type: ignore[override]
        """The largest decrease that is possible."""
        return self.new.least - self.old.most

    @property
    def most(self) -> float:  # type: ignore[override]
        """The largest increase that is possible."""
        return self.new.most - self.old.least

    @property
    def questions(self) -> int:
        """As many as the date with the more of them has."""
        return max(self.old.questions, self.new.questions)

    @property
    def value(self) -> Floats:
        """The unbiased estimate of every change."""
        return np.asarray(self.new.value - self.old.value)

    @property
    def prominence(self) -> Floats:
        """A change is large whether it goes up or down."""
        return np.abs(np.atleast_1d(self.value))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors; about a population, those of the mean of every object's own change."""
        old, new = self.old.standard_error(about), self.new.standard_error(about)
        return np.sqrt(np.maximum(old**2 + new**2 - 2 * self._correlation(about) * old * new, 0))

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut, from the distances of both dates to their own ends."""
        old_low, old_high = self.old.ends(tail, about)
        new_low, new_high = self.new.ends(tail, about)
        # Where few objects changed, chance may have kept the others from it: as many reports less in common as a count
        # of those that did may lie too low.
        common = self._correlation(about, special.ndtri(tail) ** 2 / 2)
        below = _together(self.new.value - new_low, old_high - self.old.value, common)
        above = _together(new_high - self.new.value, self.old.value - old_low, common)
        return self.value - below, self.value + above

    def quantile(self, probabilities: float | Sequence[float]) -> Change:
        """Return how quantiles of numbers changed that were reported as places; 0.5 is the median."""
        old, new = self._distributions()
        return self._asked(old.quantile(probabilities), new.quantile(probabilities))

    @property
    def quartiles(self) -> Change | None:
        """How the quartiles changed, or None where the reports do not tell them."""
        return self.quantile(self.old.quartiles.probabilities) if isinstance(self.old, Distribution) else None

    def share(self, low: float, high: float) -> Change:
        """Return how the share of the numbers from `low` to `high` changed."""
        old, new = self._distributions()
        return self._asked(old.share(low, high), new.share(low, high))

    def _distributions(self) -> tuple[Distribution, Distribution]:
        if not isinstance(self.old, Distribution) or not isinstance(self.new, Distribution):
            raise CountsError("quantiles and shares of a range are told by numbers that were released as waves.")
        return self.old, self.new

    def _asked(self, old: Result, new: Result) -> Change:
        # What such answers of the same objects have in common is not estimated: in a population, the worst is assumed.
        return Change(old, new, covariance=-np.inf if self.one_report else 0.0)

    def consistent(self) -> Floats:
        """Refuse: there are none."""
        raise CountsError("a difference may be negative: there are no consistent shares of it.")

    def largest(self, number: int) -> Change:
        """Return the rows that changed most, up or down, with intervals that hold although they were chosen."""
        return cast(Change, super().largest(number))

    def choose(self, places: Any) -> Change:
        """Return some rows that were chosen by what they say, those of both dates with them."""
        return self._of(self.old.choose(places), self.new.choose(places), places, is_chosen=True)

    def only(self, places: Any) -> Change:
        """Return some rows that were chosen without a look at what they say."""
        return self._of(self.old.only(places), self.new.only(places), places, is_chosen=self.is_chosen)

    def _of(self, old: Result, new: Result, places: Any, *, is_chosen: bool) -> Change:
        every = np.broadcast_to(self.covariance, np.atleast_1d(self.value).shape)
        covariance = every[np.asarray(places, dtype=np.intp)]
        return replace(self, old=old, new=new, covariance=covariance, is_chosen=is_chosen)

    def is_implausible(self) -> bool:
        """Tell it of both dates."""
        return self.old.is_implausible() or self.new.is_implausible()

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return a pyarrow table: value, the estimates then and now, their difference, its error and interval."""
        table = super().to_arrow(confidence_level, simultaneous=simultaneous, about=about)
        names = ["change" if name == "estimate" else name for name in table.column_names]
        table, place = table.rename_columns(names), len(self.keys)
        for name, result in (("new", self.new), ("old", self.old)):
            table = table.add_column(place, name, pa.array(np.atleast_1d(result.value)))
        return table

    def __repr__(self) -> str:
        from relaxdp.estimation.dates import text_of  # noqa: PLC0415

        return text_of(self)

    def _repr_html_(self) -> str:
        from relaxdp.estimation.html import html_of_change  # noqa: PLC0415

        return html_of_change(self)

    def _correlation(self, about: About, reports: float = 0.0) -> Floats:
        """Return how the two estimates go together, with so many reports less in common than there seem to be."""
        check_about(about)
        if about == "objects" and not self.with_spread:
            return np.asarray(0.0)
        errors = self.old.standard_error("population") * self.new.standard_error("population")
        less = np.maximum(self.covariance - reports * self.one_report, np.minimum(self.covariance, 0))
        return np.asarray(np.clip(less / np.maximum(errors, np.finfo(float).tiny), -1, 1))


def _together(one: Floats, two: Floats, correlation: Floats) -> Floats:
    """Return the length of the difference of two distances, whose errors are correlated."""
    whole = np.isfinite(one) & np.isfinite(two)
    product = np.where(whole, one, 0.0) * np.where(whole, two, 0.0)
    return np.asarray(np.sqrt(np.maximum(one**2 + two**2 - 2 * correlation * product, 0)))


def change_between(old: Result, new: Result) -> Change:
    """Return the change between two groups that have no object in common."""
    if list(old.labels) != list(new.labels) or (old.least, old.most) != (new.least, new.most):
        raise CountsError("a difference needs two estimates of the same values, in the same order.")
    return Change(old, new)


def change_of(
    old: Counts, new: Counts, pairs: Sequence[Pairs] = (), *, method: Method = "average", order: Places | None = None
) -> Change:
    """Return the change from the counts of one date to those of another one.

    `pairs` are of the objects that were there at both dates. Where the new date declared its values in another order,
    `order` says where each of the old ones is found there.
    """
    then, now = old.estimate(method), new.estimate(method)
    slopes = None
    if old.measure is not None and new.measure is not None:
        slopes = _slopes(old.measure, then), _slopes(new.measure, now)
    elif order is not None:
        now = now.only(order)
    (old_parts, old_weights), (new_parts, new_weights) = old.weighted(method), new.weighted(method)
    if order is not None:
        new_parts = [replace(part, counts=part.counts[order]) for part in new_parts]
        pairs = [replace(each, new=each.new[order]) for each in pairs]
    sides = [*zip(old_parts, old_weights, strict=True)], [*zip(new_parts, new_weights, strict=True)]
    missing = None
    if isinstance(then, PresentMean) and isinstance(now, PresentMean):
        missing = _missing(then, now, pairs, sides)
    # The noise of a place is known, and is all that counts about these objects; that of an end is not told from them.
    with_spread = slopes is not None and not isinstance(then, Distribution) and not isinstance(now, Distribution)
    return Change(then, now, *covariance_of(pairs, *sides, slopes), with_spread=with_spread, missing=missing)


Side = Sequence[tuple[Frequency, float]]
"""The shares at each level, and what each level counts for."""


def covariance_of(
    pairs: Sequence[Pairs], old: Side, new: Side, slopes: tuple[Floats, Floats] | None = None
) -> tuple[Floats, float]:
    """Return the covariance of two estimates about the population, and what one report counts for in it.

    It comes from the objects that were there at both dates. With `slopes` it is that of two means: by how much they
    grow with the share of each label.
    """
    known = [{part.epsilon: (part, weight) for part, weight in side} for side in (old, new)]
    largest = 1.0 if slopes is None else float(np.ptp(slopes[0]) * np.ptp(slopes[1]))
    covariance, one_report = np.asarray(0.0), 0.0
    for each in pairs:
        (one, one_weight), (two, two_weight) = (side[level] for side, level in zip(known, each.epsilons, strict=True))
        products = each.products(one.counts / one.objects, two.counts / two.objects)
        if slopes is not None:
            products = slopes[0] @ products @ slopes[1]
        weights = one_weight * two_weight / (one.objects * two.objects) / float(one.support.gain * two.support.gain)
        covariance, one_report = covariance + weights * products, max(one_report, weights * largest)
    return covariance, one_report


def _missing(old: PresentMean, new: PresentMean, pairs: Sequence[Pairs], sides: tuple[Side, Side]) -> Change:
    """Return how the share of missing numbers changed: it is one of the labels, and one value like any other."""
    one, two = int(old.measure.absent or 0), int(new.measure.absent or 0)
    alone = [replace(each, old=each.old[[one]], new=each.new[[two]], both=each.both[[one], [two]]) for each in pairs]
    then, now = (
        [(replace(part, labels=[part.labels[place]], counts=part.counts[[place]]), weight) for part, weight in side]
        for side, place in zip(sides, (one, two), strict=True)
    )
    return Change(old.missing, new.missing, *covariance_of(alone, then, now))


def _slopes(measure: Measure, mean: Result) -> Floats:
    """Return by how much the mean grows with the share of each label."""
    weights = np.array(measure.weights)
    if not isinstance(mean, PresentMean):
        return weights
    there = 1 - float(mean.shares.value[measure.absent])
    slopes = np.where(np.arange(len(weights)) == measure.absent, 0.0, weights - float(mean.value))
    return slopes / there if there > 0 else np.zeros(len(weights))
