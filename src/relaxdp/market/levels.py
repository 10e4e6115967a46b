"""The levels that a listing sells, and which of those that are out a new one is drawn from.

A listing sells at most a hundred levels, stated or round, and fixed from when they are on sale. Every level that is
sold is drawn and kept for good, and prices are whole credits. Were every epsilon a level, those between two credits
would cost nothing, and whoever has ten credits could have them drawn without end.

A level is out when it was delivered by the seller, or drawn and kept for a buyer. All reports of an object are one path
only if each new one is drawn between its nearest neighbours, one at a time, and kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from relaxdp.errors import EpsilonError
from relaxdp.market.prices import PriceCurve
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import DeliveryError, MarketError, NotAuthorisedError, PriceError, UnknownLevelError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

MOST_LEVELS = 100
MAX_DIGITS = 17
"""As many as a floating-point number is written with: people read levels and type them."""
_STEPS = 20
_ROUND = (Decimal(1), Decimal("2.5"), Decimal(5), Decimal(10))

Grid = tuple[Decimal, ...]


def stated(levels: Iterable[Epsilon], prices: PriceCurve) -> Grid:
    """Return the levels that somebody states, ascending; each of them has a price.

    >>> from relaxdp.market.prices import prices_of
    >>> stated(["1", "0.5"], prices_of(None, "10"))
    (Decimal('0.5'), Decimal('1'))
    """
    grid = tuple(sorted({as_epsilon(level) for level in levels}))
    if not 1 <= len(grid) <= MOST_LEVELS:
        raise MarketError("a listing has 1 to {most} levels.", most=MOST_LEVELS)
    for level in grid:
        check_digits(level)
    check_priced(grid, prices)
    return grid


def check_digits(level: Decimal) -> None:
    """Refuse a level that nobody would type."""
    if len(level.as_tuple().digits) > MAX_DIGITS:
        raise EpsilonError("an epsilon on the market has at most {most} digits.", most=MAX_DIGITS)


def check_priced(grid: Grid, prices: PriceCurve) -> None:
    """Refuse prices that do not reach every level."""
    last = grid[-1] if grid else None
    if last is not None and not prices.reaches(last):
        shown = format_epsilon(last)
        raise PriceError("the prices do not reach the level {epsilon}.", epsilon=shown)


def round_levels(top: Decimal, prices: PriceCurve) -> list[Decimal]:
    """Return at most twenty equal steps up to a level that nobody stated, and the points of its prices.

    Below the first point everything costs as much as that, and nobody would choose it.

    >>> from relaxdp.market.prices import prices_of
    >>> [str(level) for level in round_levels(Decimal("2.1"), prices_of([("0.4", 10), ("3", 90)], None))]
    ['0.4', '0.5', '0.75', '1', '1.25', '1.5', '1.75', '2', '2.1']
    """
    unit = Decimal(1).scaleb((top / _STEPS).adjusted())
    step = next(each * unit for each in _ROUND if each * unit * _STEPS >= top)
    least = prices.corners[0] if prices.corners else step
    steps = (as_epsilon(step * number) for number in range(1, _STEPS + 1))
    levels = {top, *(level for level in steps if least <= level < top)}
    points = {level for level in prices.corners if level < top and len(level.as_tuple().digits) <= MAX_DIGITS}
    return sorted(levels | points if len(levels | points) <= MOST_LEVELS else levels)


def of_pool(levels: Iterable[Epsilon] | None, prices: PriceCurve, encoding: Mechanism) -> Grid:
    """Return the levels of a pool: the stated ones, or round ones up to where its prices end."""
    if levels is not None:
        return _distinct(stated(levels, prices), encoding)
    if not prices.corners:
        raise MarketError("a price formula does not say which level is the last: state the levels.")
    return _distinct(round_levels(prices.corners[-1], prices), encoding)


def grown(grid: Grid, delivered: Level, prices: PriceCurve, encoding: Mechanism) -> Grid:
    """Return the levels of a release after a delivery above all others, which is always one of them.

    Where it lies above the last level, round ones come between. None is added below what was delivered before, and
    none goes away: whoever chose a level chose among all that there are.
    """
    last, top = grid[-1] if grid else Decimal(0), delivered.epsilon
    between = [level for level in round_levels(top, prices) if level > last] if top > last else []
    for new in (between, []):
        wider = _distinct([*grid, *new], encoding, delivered)
        if len(wider) <= MOST_LEVELS:
            return wider
    raise DeliveryError("a listing has at most {most} levels: deliver at one of them.", most=MOST_LEVELS)


def extended(
    grid: Grid, more: Iterable[Epsilon], prices: PriceCurve, delivered: Level | None, encoding: Mechanism | None
) -> Grid:
    """Return a listing's levels with some that lie above everything that was delivered."""
    new = set(stated(more, prices)) - set(grid)
    if delivered is not None and any(level <= delivered.epsilon for level in new):
        raise MarketError("new levels lie above everything delivered, which is {delivered}.", delivered=str(delivered))
    wider = stated([*grid, *new], prices)
    return wider if encoding is None else _distinct(wider, encoding)


def better_than(offers: Sequence[tuple[int, float] | None]) -> list[int | None]:
    """Return the place of the offer that each price and half-width falls behind: it costs no more and tells no less.

    None where there is no such offer, or where there is nothing to buy. From a pool fewer people sell at a higher
    level, so that a higher one may be the cheaper one, and the less precise one, too. The one that is named falls
    behind no other.

    >>> better_than([(10, 0.2), (10, 0.1), (30, 0.1), None, (40, 0.05)])
    [1, None, 1, None, None]
    """
    found: list[int | None] = []
    for offer in offers:
        best: tuple[float, int, int] | None = None
        for place, other in enumerate(offers):
            if offer is None or other is None or other == offer or other[0] > offer[0] or other[1] > offer[1]:
                continue
            best = min(best or (other[1], other[0], place), (other[1], other[0], place))
        found.append(None if best is None else best[2])
    return found


def level_on(grid: Grid, epsilon: Decimal, encoding: Mechanism, authorised: Level | None = None) -> Level:
    """Return the level that an epsilon means; refuse what is above the authorised one or none, and name the nearest.

    Epsilons with one threshold give the same reports: they are one level, under the name that it has here. So another
    name of the level that was delivered is no more than that.
    """
    asked, place = _level(encoding, epsilon), bisect_left(grid, epsilon)
    if asked is not None and authorised is not None and asked > authorised and epsilon > authorised.epsilon:
        raise NotAuthorisedError(
            "epsilon {epsilon} is more than the seller has authorised, which is {authorised}.",
            epsilon=format_epsilon(epsilon),
            authorised=str(authorised),
        )
    below, above = grid[:place][-1:], grid[place : place + 1]
    for near in (*below, *above):
        level = _level(encoding, near)
        if level is not None and level == asked:
            return level
    raise UnknownLevelError(
        "epsilon {epsilon} is none of the levels on sale: the nearest are {below} and {above}."
        if below and above
        else "epsilon {epsilon} is none of the levels on sale: the nearest is {below}."
        if below
        else "epsilon {epsilon} is none of the levels on sale: the nearest is {above}.",
        epsilon=format_epsilon(epsilon),
        below=format_epsilon(below[0]) if below else None,
        above=format_epsilon(above[0]) if above else None,
    )


def _distinct(levels: Sequence[Decimal], encoding: Mechanism, delivered: Level | None = None) -> Grid:
    """Return one epsilon for each threshold: the least, or the delivered one, whose file bears its name.

    What these values cannot tell from noise is no level. A delivery lies above all others, so a name that it replaces
    was not on sale.
    """
    found: dict[Level, Decimal] = {}
    for epsilon in sorted(levels):
        level = _level(encoding, epsilon)
        if level is not None:
            found.setdefault(level, epsilon)
    if delivered is not None:
        found[delivered] = delivered.epsilon
    if not found:
        raise MarketError("none of these levels can be told from noise.")
    return tuple(sorted(found.values()))


def _level(encoding: Mechanism, epsilon: Decimal) -> Level | None:
    """Return the level of an epsilon; None where it is too small to tell anything."""
    try:
        return encoding.level(epsilon)
    except EpsilonError:
        return None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The levels between which a new one is drawn: a bridge, or a blur of the upper one where there is no lower."""

    lower: Level | None
    upper: Level


def neighbours(wanted: Level, out: Iterable[Level]) -> Neighbours | None:
    """Return what a level is drawn from; None where it is out already, and is handed out as it is.

    Blurring from the last delivery past a level that was sold, or drawing a kept level again, would give buyers who
    pool what they have more than the best of them bought.

    Claim: in every order of deliveries and sales the joint law of all levels is that of one path;
    tests/exact/market/test_market.py.

    >>> from relaxdp.mechanisms.categorical import Categorical
    >>> two, five, seven, nine = map(Categorical(["no", "yes"]).level, ("0.2", "0.5", "0.7", "0.9"))
    >>> neighbours(five, [two, nine, seven]) == Neighbours(lower=two, upper=seven)
    True
    >>> neighbours(two, [nine, seven]) == Neighbours(lower=None, upper=seven)
    True
    """
    levels = sorted(out)
    place = bisect_left(levels, wanted)
    if place == len(levels):
        raise NotAuthorisedError("this level is above every level that was delivered.")
    if levels[place] == wanted:
        return None
    return Neighbours(levels[place - 1] if place else None, levels[place])


def check_delivery(level: Level, delivered: Iterable[Level]) -> None:
    """Refuse a delivery that does not lie above every delivered level.

    Below the last delivery everything is the market's to draw: a report that comes from the seller afterwards would be
    drawn without regard to what was sold in between.
    """
    if any(level <= other for other in delivered):
        raise DeliveryError("a delivery must lie above every delivered level: lower levels are drawn from those.")
