"""How well reports hide among each other: the smallest epsilon that a publication of so many has at a delta.

Every bound comes from one picture. Two truths of one object are told apart by reports that speak for the one and by
reports that speak for the other. Other objects send both kinds too, whatever their truths are, and reports that speak
for neither. Say that the public is told who of the others sent one of these three kinds by chance alone; then all that
is left to see is how many there are of each. (The clones of Feldman et al. 2021 and 2023 and of Wang et al. 2023; the
blanket of Balle et al. 2019 where every report is a value itself.) That the object's own report may speak for neither
is hidden only where others' reports do so as well: to leave these out would be wrong by little for many objects and by
much for few, as the exact test shows.

Of two values more is known: the others' truths hide in the total as well, and all data sets can be gone through.

What is rounded is rounded so that the bound grows: fewer clones, larger odds, and of every tail the side that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import PlanError
from relaxdp.estimation.planning import MAX_N, Planned, Side, made_for
from relaxdp.lazy_imports import pandas as pd
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.local_hash import UNEVEN, LocalHash
from relaxdp.mechanisms.unary import Unary
from relaxdp.theory.epsilon import MAX_DIGITS, Epsilon, as_epsilon, compute_nonzero_threshold, format_epsilon
from relaxdp.theory.level import compute_retention
from relaxdp.theory.randomized_response import CloneProbabilities

Floats = NDArray[np.float64]

_SLACK = 1e-9
"""More than every sum, product and tail here is off by, as a part of itself; tests/exact/estimation/test_shuffling.py
compares them with fractions. It is added to what makes a bound larger, and taken off what makes it smaller."""
_ROUND = 1e-12
"""The same for a handful of operations."""
_CUT = 1e-6
"""The part of delta that is given to what lies outside of all windows."""
_POINTS, _ROWS, _COLUMNS = 4096, 32, 128
"""How many totals are looked at; more of them are put together to the worst of each block."""
_NEAR = 0.005
"""Two truths that are so nearly as far apart as epsilon allows are treated as if what speaks for neither were seen."""
_MOST_CLONES = 1e7
_MOST_VARIANCE = 4e6
"""More objects than give so much are not counted: a bound for fewer objects holds for more."""
_NOTHING_GAINED = 40
"""At this epsilon a clone is rarer than one in 10^17: a report costs what it costs."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a report."""

    epsilon: float
    distance: Fraction = Fraction(1)
    """How far the laws of two truths are apart at most."""
    cover: CloneProbabilities | None = None
    bit: Fraction | None = None
    """The retention of a report that is one of two values."""

    @property
    def is_covered(self) -> bool:
        """Whether the cover is as good as what follows from epsilon: it has nearly all of a report and no more odds."""
        if self.cover is None:
            return False
        most = self.cover.own + self.cover.clone + self.cover.neither
        return most > Fraction(99, 100) and self.cover.own <= self.cover.clone * Fraction(
            math.exp(self.epsilon) + _ROUND
        )


def smallest_epsilon(report: Report, n: int, delta: float) -> float:
    """Return the smallest epsilon that is known to hold for one publication of so many objects."""
    if n == 1 or report.epsilon > _NOTHING_GAINED:
        return report.epsilon
    found = report.epsilon
    if report.bit is not None and float((1 - report.bit**2) / 4) * n < 3 * _MOST_VARIANCE:
        found = min(found, _of_two_values(n, float(report.bit), delta))
    if report.cover is not None:
        found = _of_covers([Hidden.of(report.cover)], n, delta, found)
        if report.is_covered:
            return found
    return _of_covers(any_cover(report.epsilon, float(report.distance)), n, delta, found)


@dataclass(frozen=True, slots=True)
class Hidden:
    """A cover in floats, for one object's report that is not seen to be something else."""

    told: float
    """How often it speaks for one of both truths."""
    lean: float
    """By how much more than a half it then speaks for its own."""
    clone: float
    neither: float

    @classmethod
    def of(cls, cover: CloneProbabilities) -> Hidden:
        """Return a cover, rounded so that it hides less."""
        told = cover.own + cover.clone
        return cls(
            1.0 if not cover.neither else float(told / (told + cover.neither)),
            float((cover.own - cover.clone) / (2 * told)) * (1 + _ROUND),
            float(cover.clone) * (1 - _ROUND),
            float(cover.neither) * (1 - _ROUND),
        )


def any_cover(epsilon: float, distance: float) -> Iterator[Hidden]:
    """Return covers, one of which is worse than that of any two truths that are at most so far apart.

    Two laws P and Q within e^epsilon of each other and a distance d apart are mixtures, with c = d / (e^epsilon - 1):
    e^epsilon c and c of what is likelier with P and with Q, and one rest. A third law is everywhere at least e^-epsilon
    of the larger of P and Q, and that is c of both and e^-epsilon of the rest. The nearer two truths are, the less
    tells them apart, but the fewer clones there are: so there are blocks of distances. In a block the largest c stands
    for all, with parts of the rest put to both sides, which leaves less of it to hide in. In the first block there is
    too little of that, and the rest is taken as if it were seen.
    """
    more = math.expm1(epsilon) * (1 + _ROUND)  # the odds, less one
    lean, most = more / (2 * (2 + more)), 1 / (2 + more)
    clone = min(distance * (1 + _ROUND) / more, most)
    if clone > (1 - _NEAR) * most:
        clone = (1 - _NEAR) * most
        yield Hidden(1.0, lean, clone, 0.0)
    while clone > 0:
        told = clone * (2 + more)
        rest = (1 - told) / (1 + more)
        width = min(clone, rest * (1 + more) / (2 * more))
        yield Hidden(told, lean, clone * (1 - _ROUND), (rest - width * more / (1 + more)) * (1 - _ROUND))
        clone -= width


def _of_covers(covers: Iterable[Hidden], n: int, delta: float, most: float) -> float:
    """Return the smallest epsilon that holds for all covers, or `most` where it is not smaller."""
    found = 0.0
    for cover in covers:
        counted = min(n, math.ceil(_MOST_CLONES / cover.clone))
        delta_at = Totals.of(cover, counted, _CUT * delta).delta
        if delta_at(most) > delta:
            return most
        found = least_epsilon(delta_at, delta, found, most)
    return found


def least_epsilon(delta_at: Callable[[float], float], delta: float, low: float, high: float) -> float:
    """Return an epsilon between two, at which delta is small enough, next to the smallest one."""
    if low >= high or delta_at(low) <= delta:
        return low
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Totals:
    """How many reports speak for one of two truths, all together: blocks of totals, at the worst of each block."""

    chances: Floats
    clones: Floats
    """The fewest clones in a block."""
    over: Floats
    """By how much more than a half, given the total, one of them speaks for the object's own truth."""
    outside: float

    @classmethod
    def of(cls, cover: Hidden, n: int, outside: float) -> Totals:
        """Return the law of the total of the clones of all others, and of the object's own report.

        First how many of the others send a clone or a report that speaks for neither; the public may know that. Then
        how many of these are clones. Fewer of either kind hide less, so of each block the fewest count.
        """
        hidden = 2 * cover.clone + cover.neither
        low, high = _window(n - 1, hidden, outside)
        law = _binomial(n - 1, hidden, low, high)
        parts = []
        for first in range(0, len(law), step := _step(len(law), _POINTS if cover.told == 1 else _ROWS)):
            parts.append(cls._given(cover, low + first, float(law[first : first + step].sum()), outside))
        chances, clones, over = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(chances, clones, over, 2 * outside)

    @staticmethod
    def _given(cover: Hidden, others: int, chance: float, outside: float) -> tuple[Floats, Floats, Floats]:
        """Return the blocks of totals where so many of the others hide something."""
        if cover.told == 1:
            return np.array([chance]), np.array([float(others)]), np.array([cover.lean])
        share = 2 * cover.clone / (2 * cover.clone + cover.neither)
        low, high = _window(others, share, outside)
        law = np.zeros(high - low + 3)
        law[1:-1] = _binomial(others, share, low, high)
        total = np.arange(low, high + 2, dtype=np.float64)
        # Of two numbers of clones next to each other, the ratio of chances is known in closed form.
        ratio = (others + 1 - total) / np.maximum(total, 1) * (2 * cover.clone / cover.neither)
        own = np.where(total > 0, cover.told / (cover.told + (1 - cover.told) * ratio), 0.0)
        first = np.arange(0, len(total), step := _step(len(total), _COLUMNS))
        last = np.minimum(first + step, len(total)) - 1
        chances = np.add.reduceat(cover.told * law[:-1] + (1 - cover.told) * law[1:], first)
        return chance * chances, np.maximum(total[first] - 1, 0), cover.lean * own[last] * (1 + _ROUND)

    def delta(self, epsilon: float) -> float:
        """Return the largest delta at an epsilon, or more.

        Of a total of t, the public sees how many speak for the one truth: those of t - 1 clones, which are fair coins,
        and one more, which speaks for the object's own truth with a half and `over`.
        """
        more, over = math.expm1(epsilon), self.over
        gained = 2 * over - more * (0.5 - over)
        lost = 2 * over + more * (0.5 + over)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.ceil((self.clones + 1) * (lost / (2 * over * (2 + more))))
        least = np.where(gained > 0, least, np.inf)
        found = gained * _tail(self.clones, least - 1) * (1 + _SLACK) - lost * _tail(self.clones, least) * (1 - _SLACK)
        told = np.where(gained > 0, np.maximum(found, 0), 0)
        return float(np.dot(self.chances, told)) * (1 + 2 * _SLACK) + self.outside


def _step(points: int, most: int) -> int:
    return -(-points // most)


def _tail(trials: Floats, least: Floats) -> Floats:
    """Return the chances that so many fair coins show at least so many heads."""
    inside = (least >= 1) & (least <= trials)
    heads, tails = np.where(inside, least, 1), np.where(inside, trials - least + 1, 1)
    return np.where(inside, scipy.special.betainc(heads, tails, 0.5), least < 1)


def _of_two_values(n: int, keep: float, delta: float) -> float:
    """Return the epsilon of randomized response with two values: over all data sets, at every total.

    The public sees how many reported one. Given that `ones` of the others have the truth one, the odds of a total of
    at least j, less delta, are what the epsilon must reach. Others can only hide: a data set with fewer ones and fewer
    zeros is worse. So a block of data sets is as bad as the one with the fewest of both.
    """
    flip = (1 - keep) / 2 * (1 - _ROUND)
    others = min(n, math.ceil(_MOST_VARIANCE / (flip * (1 - flip)))) - 1
    outside = _CUT * delta
    wide = others * flip > _MOST_VARIANCE / 100
    step = max(1, others // (32 if wide else 400))
    odds = 1.0
    for ones in range(0, others + 1, step):
        zeros = max(0, others - ones - step + 1)
        odds = max(odds, _odds_of_totals(ones, zeros, flip, delta, outside))
    return math.log(odds) * (1 + _ROUND)


def _odds_of_totals(ones: int, zeros: int, flip: float, delta: float, outside: float) -> float:
    kept, turned = (_binomial(n, flip, *_window(n, flip, outside)) for n in (ones, zeros))
    law, error = _convolved(kept[::-1], turned)  # of the total of all others, but for the windows' ends
    above = np.cumsum(law[::-1])[::-1]
    above = np.append(above[1:], 0.0)  # a total above j, where the others' total is j
    spread = (len(law) + 1) * error
    hit = ((1 - flip) * law + above) * (1 + _SLACK) + 2 * outside + spread - delta
    miss = (flip * law + above) * (1 - _SLACK) - spread
    told = hit > 0
    if not told.any():
        return 1.0
    if (miss[told] <= 0).any():
        return math.inf
    return float(np.max(hit[told] / miss[told]))


def _convolved(first: Floats, second: Floats) -> tuple[Floats, float]:
    """Return the law of a sum, and how far off each of its chances may be beyond a part of itself."""
    if len(first) * len(second) <= 4_000_000:
        return np.convolve(first, second), 0.0
    size = len(first) + len(second) - 1
    fast = 1 << (size - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(first, fast) * np.fft.rfft(second, fast), fast)[:size]
    return np.maximum(law, 0), 1e-14 * float(np.linalg.norm(first) * np.linalg.norm(second))


def _window(trials: int, chance: float, outside: float) -> tuple[int, int]:
    """Return two ends between which a binomial count lies but for a small chance (Bernstein's inequality)."""
    bits = math.log(2 / outside)
    reach = bits / 3 + math.sqrt(bits**2 / 9 + 2 * trials * chance * (1 - chance) * bits)
    mean = trials * chance
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


def _binomial(trials: int, chance: float, low: int, high: int) -> Floats:
    """Return the chances of all counts in a window, as if no others could be: each is its true chance or a bit more.

    From the likeliest count outwards every chance is a product with the last one: no logarithm of a factorial, whose
    digits would not do for many trials.
    """
    top = min(max(int((trials + 1) * chance), low), high)
    odds = chance / (1 - chance)
    up = np.arange(top, high, dtype=np.float64)
    down = np.arange(top, low, -1, dtype=np.float64)
    rising = np.cumprod((trials - up) / (up + 1) * odds)
    falling = np.cumprod(down / ((trials - down + 1) * odds))
    chances = np.concatenate([falling[::-1], [1.0], rising])
    return np.asarray(chances / chances.sum())


DIGITS = 4
"""How many significant digits a bound has; it is rounded up."""


@dataclass(frozen=True, slots=True)
class Shuffled:
    """What one publication of a closed group costs an object towards the public, at most: (epsilon, delta)."""

    epsilon: Decimal
    """Rounded up. Never more than that of the reports."""
    delta: float
    """What may happen beside epsilon: keep it far below one in the number of objects."""
    n: int
    """How many objects are published together: the smallest group."""
    reports: Decimal
    """The epsilon of the reports: what is paid towards whoever receives them with ids."""
    law: str
    """What is used of the reports' law: an encoding, or that any report keeps its epsilon."""
    publications: int = 1
    """How many publications, each with noise of its own, are paid together."""

    assumes = (
        "The group is closed: nobody joins, leaves or is withdrawn between one publication and the next.",
        "Everybody in it reported at the same level, or each level is a group of its own.",
        "What is published is an estimate, or reports without ids in random order; nobody knows whose a seed or cohort "
        "is.",
        "Nobody is in two published groups of one question; where groups overlap, their smallest intersection or "
        "difference counts.",
        "What is published of other questions, or at other dates, about the same objects adds up.",
        "All other objects drew their reports as they should, and do not tell theirs.",
    )
    """What must be true of the publication, or epsilon is that of the reports."""

    @property
    def gain(self) -> float:
        """How many times less than the epsilon of the reports it is."""
        return float(self.reports * self.publications / self.epsilon) if self.epsilon else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON, with the assumptions."""
        return {
            "epsilon": format_epsilon(self.epsilon),
            "delta": self.delta,
            "n": self.n,
            "report_epsilon": format_epsilon(self.reports),
            "law": self.law,
            "publications": self.publications,
            "assumes": list(self.assumes),
        }

    def to_frame(self) -> Any:
        """Return it as a pandas data frame with one row, without the assumptions."""
        row = {name: each for name, each in self.to_dict().items() if name != "assumes"}
        return pd.DataFrame([row | {"epsilon": float(self.epsilon), "report_epsilon": float(self.reports)}])

    def __str__(self) -> str:
        several = self.publications > 1
        many = f"{self.publications:,} publications, each with noise of its own," if several else "one publication"
        verb, each = ("cost", " each time") if several else ("costs", "")
        return (
            f"Towards the public, {many} of a closed group of {self.n:,} {verb} each of them at most epsilon "
            f"{format_epsilon(self.epsilon)} at delta {self.delta:g}; the reports themselves cost epsilon "
            f"{format_epsilon(self.reports)}{each} ({self.law})."
        )


def shuffled(
    epsilon: Epsilon | Iterable[Epsilon],
    *,
    n: int | Iterable[int],
    delta: float | None = None,
    values: Planned | None = None,
    encoding: str | None = None,
    publications: int = 1,
) -> Shuffled:
    """Return what publishing the reports of a closed group costs each of its objects towards the public, at most.

    `epsilon` is that of the last level, or all levels, of which the largest counts: older reports are made from newer
    ones, so that all levels of a path together tell what the last one tells. Where a level was chosen after looking at
    reports, give the largest one that was planned. `n` is how many are published together, or the size of every
    published group, of which the smallest counts. `values` is how many values an answer can have, with the name of
    their `encoding` (as they are, where it is left out), or the mechanism; without it the bound holds for every report
    that keeps its epsilon. `delta` is by default 10^-6, or a tenth of one in so many objects where that is less.
    `publications` are such with noise of their own, like the dates of a series: they compose. Publishing one group on
    one path again and again costs no more than once.

    Files with ids, live results, and groups that overlap have no such bound: there it is the epsilon of the reports.

    Claim: never below the exact delta of any data set, for up to six objects with two values and four with three;
    tests/exact/estimation/test_shuffling.py.

    >>> print(shuffled(4, n=100_000, delta=1e-6, values=2).epsilon)
    0.08482
    """
    last = _last(epsilon)
    few = _smallest(n)
    share = default_delta(few) if delta is None else float(delta)
    if not 0 < share < 1:
        raise PlanError("`delta` must be between 0 and 1.", hint="Pass a small number such as delta=1e-6.")
    if type(publications) is not int or publications < 1:
        raise PlanError("`publications` must be a whole number, at least 1.", hint="Pass publications=1.")
    name, report = _report_of(values, encoding, last)
    found = _composed(partial(smallest_epsilon, report, few), share, publications)
    most = Context(prec=MAX_DIGITS, rounding=ROUND_CEILING).multiply(last, Decimal(publications))
    rounded = Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal_from_float(found * (1 + 1e-9))
    return Shuffled(as_epsilon(min(rounded, most), zero=True), share, few, last, name, publications)


def _last(epsilon: Epsilon | Iterable[Epsilon]) -> Decimal:
    levels = [epsilon] if isinstance(epsilon, str) or not isinstance(epsilon, Iterable) else list(epsilon)
    if not levels:
        raise PlanError("The list of levels is empty.", hint="Pass a level such as 1, or several such as [0.5, 1].")
    return max(as_epsilon(level) for level in levels)


def _smallest(n: int | Iterable[int]) -> int:
    sizes = list(n) if isinstance(n, Iterable) else [n]
    if not sizes or not all(type(size) is int and 1 <= size <= MAX_N for size in sizes):
        raise PlanError(
            "The size of every group must be a whole number from 1 to 10^15.", hint="Pass n=10_000, or a list."
        )
    return min(sizes)


def default_delta(n: int) -> float:
    """Return the largest power of ten that is at most a tenth of one in so many objects, and at most 10^-6."""
    return 10.0 ** -max(6, math.ceil(math.log10(n)) + 1)


def _report_of(values: Planned | None, encoding: str | None, last: Decimal) -> tuple[str, Report]:
    """Return the name and what is known of reports: of so many values, of a mechanism, or of all with this epsilon."""
    if values is None:
        if encoding is not None:
            raise PlanError("`encoding` needs the number of values.", hint="Pass values=, such as values=3.")
        return "whatever the reports are", Report(float(last))
    used = encoding_for(values, encoding, last)
    many = f"{values:,} values, " if isinstance(values, int) else ""
    if used is not None:
        return many + used.name, _describe_report(used, last)
    assert isinstance(values, int)  # noqa: S101
    keep = compute_retention(compute_nonzero_threshold(last, values))
    bit = keep if values == 2 else None
    return f"{many}categorical", Report(float(last), keep, CloneProbabilities.from_one_symbol(keep, values), bit)


def encoding_for(values: Planned, encoding: str | None, last: Decimal) -> Mechanism | None:
    """Return the encoding of a last epsilon; None where reports are values themselves, which needs no list of them."""
    side = Side(values, encoding)
    fixed, name = side.encoded(last), side.named_at(last) or side.name
    if fixed is not None or name == "categorical":
        return fixed
    return made_for(name, side.values, last)


def _describe_report(mechanism: Mechanism, last: Decimal) -> Report:
    keep = mechanism.level(last).retention
    is_bit = mechanism.alphabet == 2 and mechanism.symbols == 1 and not mechanism.seeded
    return Report(float(last), distance(mechanism, keep), cover(mechanism, keep), keep if is_bit else None)


def distance(mechanism: Mechanism, keep: Fraction) -> Fraction:
    """Return a bound on the total variation between the reports of two true values, at retention `keep`.

    A symbol that was not kept has the same distribution for all true values, and so has a seed. For several symbols
    1 is always safe.
    """
    if isinstance(mechanism, Unary):  # all of it is in one of the two bits being set alone
        return mechanism.support(keep).gain
    if isinstance(mechanism, Bloom):  # how many of the bits in which two words can differ agree with one of them
        bits, same = mechanism.shape.differing, (1 + keep) / 2
        law = [comb(bits, agree) * same**agree * (1 - same) ** (bits - agree) for agree in range(bits + 1)]
        return sum((max(one - other, Fraction(0)) for one, other in zip(law, law[::-1], strict=True)), Fraction(0))
    return keep if mechanism.symbols == 1 else Fraction(1)


def cover(mechanism: Mechanism, keep: Fraction) -> CloneProbabilities | None:
    """Return what hides a report among others, where that is known. A true value may be a mixture of symbols."""
    if isinstance(mechanism, Unary):  # one of two bits is set alone, or none is; both set reveal nothing
        bit = mechanism.support(keep)
        return CloneProbabilities(
            own=bit.hit * (1 - bit.noise), clone=(1 - bit.hit) * bit.noise, neither=(1 - bit.hit) * (1 - bit.noise)
        )
    if isinstance(mechanism, LocalHash):  # the seeds that tell two values apart: all but 1/g, and a little
        return CloneProbabilities.from_one_symbol(
            keep, mechanism.alphabet, 1 - Fraction(1, mechanism.alphabet) - UNEVEN
        )
    return (
        CloneProbabilities.from_one_symbol(keep, mechanism.alphabet)
        if mechanism.symbols == 1 and not mechanism.seeded
        else None
    )


def _composed(bound: Callable[[float], float], delta: float, times: int) -> float:
    """Return what so many publications with noise of their own cost: added up, or by advanced composition if less.

    Advanced: k (e, d) are (k e tanh(e/2) + e sqrt(2 k ln(1/d')), k d + d'), Kairouz, Oh and Viswanath 2015.
    """
    if times == 1:
        return bound(delta)
    one = bound(delta / (2 * times))
    advanced = times * one * math.tanh(one / 2) + one * math.sqrt(2 * times * math.log(2 / delta))
    return min(times * bound(delta / times), advanced)
