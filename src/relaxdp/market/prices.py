"""What a level costs: a curve that never falls, in whole credits, computed with fractions and rounded up."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

from relaxdp.errors import EpsilonError
from relaxdp.server_errors import PriceError
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

MOST_PRICE = 10**15
MOST_POINT = 10**12
MOST_POINTS = 1000
MOST_LETTERS = 500
MOST_EPSILON_LETTERS = 80
HIGHEST_POWER = 9
# As many digits before a number's point, and as many after it. A sum of such numbers is held to the same bound, so the
# normal form of a formula can always be read back, and is never longer than what a person may write.
MAX_DIGITS = 15

_NUMBER = "([0-9]+)(?:[.]([0-9]+))?"
_TERM = re.compile(rf"{_NUMBER}(?: *[*] *(?:(precision)|(epsilon)(?: *\^ *([0-9]+))?))?")
_POWERS = [str(power) for power in range(2, HIGHEST_POWER + 1)]
_WORD = re.compile("[^0-9 .*^]+")


class PriceCurve(ABC):
    """The prices of all levels of one listing."""

    @abstractmethod
    def reaches(self, epsilon: Decimal) -> bool:
        """Say whether this level has a price."""

    @property
    def corners(self) -> tuple[Decimal, ...]:
        """The levels that these prices name, ascending; a formula names none."""
        return ()

    @abstractmethod
    def price(self, epsilon: Decimal, keep: Fraction) -> int:
        """Return what a level costs, rounded up to whole credits; `keep` is its realised retention."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the one way in which these prices are written; `prices_from_json` reads it back."""

    @abstractmethod
    def _agrees(self, newer: PriceCurve, upto: Decimal) -> bool:
        """Say whether every level up to `upto` that has a price here has the same one in `newer`."""

    def extended_by(self, newer: PriceCurve, upto: Decimal | None) -> PriceCurve:
        """Return `newer`, unless it changes the price of a level up to `upto`; None where nothing is on sale yet.

        A lower price would cheat those who have bought, a higher one those who count on an upgrade for the difference.
        """
        if upto is not None and not self._agrees(newer, _exact(upto)):
            shown = format_epsilon(upto)
            raise PriceError(
                "the price of levels on sale does not change: up to epsilon {upto} the new prices must be the "
                "old ones.",
                upto=shown,
            )
        return newer


@dataclass(frozen=True, slots=True)
class PricePoints(PriceCurve):
    """Straight lines between points; below the first point its price, above the last one none."""

    points: tuple[tuple[Decimal, int], ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.points) <= MOST_POINTS:
            raise PriceError("prices have 1 to {most} points.", most=MOST_POINTS)
        for _, price in self.points:
            if type(price) is not int or not 0 <= price <= MOST_POINT:
                raise PriceError("the price at a point is a whole number from 0 to {most}.", most=MOST_POINT)
        for (lower, cheap), (higher, dear) in pairwise(self.points):
            if lower < higher and cheap <= dear:
                continue
            at = {"lower": format_epsilon(lower), "higher": format_epsilon(higher)}
            if lower >= higher:
                raise PriceError(
                    "the epsilons of price points must ascend: {higher} follows {lower}.",
                    **at,
                )
            raise PriceError(
                "prices must not fall: epsilon {lower} costs {cheap} and epsilon {higher} costs {dear}, so "
                "nobody would buy the lower one.",
                cheap=cheap,
                dear=dear,
                **at,
            )

    def reaches(self, epsilon: Decimal) -> bool:
        """Say whether a level does not lie above the last point."""
        return _exact(epsilon) <= self._last

    @property
    def corners(self) -> tuple[Decimal, ...]:
        """The levels of the points."""
        return tuple(epsilon for epsilon, _ in self.points)

    def price(self, epsilon: Decimal, keep: Fraction) -> int:
        """Return what a level costs; its retention does not matter.

        >>> prices_of([("0.1", 10), ("1", 100)], None).price(Decimal("0.25"), Fraction(1, 9))
        25
        """
        _check_retention(keep)
        if not self.reaches(epsilon):
            last, asked = format_epsilon(self._last), format_epsilon(epsilon)
            raise PriceError("prices reach up to epsilon {last}, and {epsilon} has none.", epsilon=asked, last=last)
        return ceil(self._value(_exact(epsilon)))

    def to_json(self) -> dict[str, Any]:
        """Return the points, each epsilon in its one spelling."""
        return {"points": [[format_epsilon(epsilon), price] for epsilon, price in self.points]}

    @property
    def _last(self) -> Decimal:
        return self.points[-1][0]

    def _value(self, epsilon: Decimal) -> Fraction:
        """Return the price before it is rounded, of a level that has one."""
        place = bisect_left(self.points, epsilon, key=lambda point: point[0])
        upper, dear = self.points[place]
        if place == 0:
            return Fraction(dear)
        lower, cheap = self.points[place - 1]
        share = (Fraction(epsilon) - Fraction(lower)) / (Fraction(upper) - Fraction(lower))
        return cheap + (dear - cheap) * share

    def _agrees(self, newer: PriceCurve, upto: Decimal) -> bool:
        """Compare the curves where either has a corner, and at the end: between those places both are straight lines.

        Below the lowest place both are constant. Where these prices end before `upto`, nothing above was on sale.
        """
        end = min(upto, self._last)
        if not isinstance(newer, PricePoints) or not newer.reaches(end):
            return False
        places = {epsilon for epsilon, _ in self.points + newer.points if epsilon < end} | {end}
        return all(self._value(place) == newer._value(place) for place in places)


@dataclass(frozen=True, slots=True)
class PriceFormula(PriceCurve):
    """A sum of powers of epsilon, and of the precision (retention squared), each times a number that is 0 or more.

    Both grow with epsilon, so the price does not fall. A precision of 1 would be the truth itself; the width of an
    interval goes with its inverse square root.
    """

    powers: tuple[Fraction, ...]
    """The numbers before epsilon^0, epsilon^1, ... epsilon^9."""
    precision: Fraction

    def __post_init__(self) -> None:
        for number in (*self.powers, self.precision):
            if not 0 <= number < 10**MAX_DIGITS or (number * 10**MAX_DIGITS).denominator != 1:
                raise PriceError(
                    "a number of a price formula, or the sum of those before the same power, has at most "
                    "{most} digits before its point and {most} after it.",
                    most=MAX_DIGITS,
                )

    def reaches(self, epsilon: Decimal) -> bool:
        """Say whether a level costs no more than anything may, even if its retention were 1."""
        return self._value(_exact(epsilon), Fraction(1)) <= MOST_PRICE

    def price(self, epsilon: Decimal, keep: Fraction) -> int:
        """Return what a level costs.

        >>> prices_of(None, "10 + 90*epsilon + 8*precision").price(Decimal("0.1"), Fraction(1, 2))
        21
        """
        _check_retention(keep)
        if not self.reaches(epsilon):
            asked = format_epsilon(epsilon)
            raise PriceError(
                "a price is at most {most} credits, and the formula exceeds it at epsilon {epsilon}.",
                epsilon=asked,
                most=MOST_PRICE,
            )
        return ceil(self._value(_exact(epsilon), keep))

    def to_json(self) -> dict[str, Any]:
        """Return the formula in its normal form: each power once, ascending, nothing that is 0, then the precision."""
        names = ["", "*epsilon", *(f"*epsilon^{power}" for power in _POWERS), "*precision"]
        numbers = (*self.powers, self.precision)
        terms = [_decimal_text(number) + name for number, name in zip(numbers, names, strict=True) if number]
        return {"formula": " + ".join(terms) or "0"}

    def _value(self, epsilon: Decimal, keep: Fraction) -> Fraction:
        exact = Fraction(epsilon)
        return sum((number * exact**power for power, number in enumerate(self.powers)), self.precision * keep**2)

    def _agrees(self, newer: PriceCurve, upto: Decimal) -> bool:
        """Compare the formulas: one does not end at a level, so there is nothing to extend."""
        return self == newer


def prices_of(points: Sequence[tuple[str, int]] | None, formula: str | None) -> PriceCurve:
    """Return the prices that are written as points or as a formula: exactly one of the two."""
    if (points is None) == (formula is None):
        raise PriceError("prices are either points or a formula.")
    return _read_formula(formula) if points is None else PricePoints(tuple(_read_points(points)))


def prices_from_json(written: object) -> PriceCurve:
    """Return the prices that `to_json` wrote, or refuse whatever else this is.

    >>> prices_from_json({"formula": "2.50*epsilon+1 + 2*epsilon"}).to_json()
    {'formula': '1 + 4.5*epsilon'}
    """
    if not isinstance(written, dict) or set(written) not in ({"points"}, {"formula"}):
        raise PriceError("prices are either points or a formula.")
    return prices_of(written.get("points"), written.get("formula"))


def arbitrage(price: Callable[[Decimal], int], levels: Sequence[Decimal]) -> tuple[Decimal, Decimal] | None:
    """Return levels (lower, higher) where the lower one can be had for less than its price; None where no level can.

    What could undercut the price of a level: any number of people buy any levels, upgrade them in any steps, pool what
    they have and blur it down. All reports of a listing are one path, so a pool tells exactly as much as the highest
    level in it. A pool that tells as much as the target therefore has a member who owns a level that is not below the
    target. What this member paid telescopes: the first price and the differences of all upgrades add up to the price
    of the level owned, whatever the steps were; the others paid zero or more. So some combination undercuts a level
    exactly if a single purchase of a higher one does, which is to say if the price falls somewhere; and then it falls
    between two neighbours. (Epsilons with one threshold tell the same: name only one of them.)

    Claim: agrees with all combinations of up to 4 levels for all small price tables; tests/unit/market/test_prices.py.

    >>> arbitrage({Decimal(1): 5, Decimal(2): 4, Decimal(3): 6}.__getitem__, [Decimal(1), Decimal(2), Decimal(3)])
    (Decimal('1'), Decimal('2'))
    """
    table = [(level, price(level)) for level in sorted({_exact(level) for level in levels})]
    if any(cost < 0 for _, cost in table):
        raise PriceError("a price is zero or more credits.")
    return next(((lower, higher) for (lower, dear), (higher, cheap) in pairwise(table) if cheap < dear), None)


def _read_points(points: object) -> list[tuple[Decimal, int]]:
    if not isinstance(points, list | tuple):
        raise PriceError("price points are a list of pairs.")
    read = []
    # One more than may be there is enough to refuse all of them.
    for number, point in enumerate(points[: MOST_POINTS + 1], start=1):
        if not isinstance(point, list | tuple) or len(point) != 2 or not isinstance(point[0], str):
            raise PriceError('price point {point} is no pair such as ["0.5", 100].', point=number)
        read.append((_point_epsilon(point[0], number), point[1]))
    return read


def _point_epsilon(written: str, number: int) -> Decimal:
    try:
        epsilon = as_epsilon(written)
    except EpsilonError as problem:
        raise PriceError(problem.template, **problem.fields, point=number) from None
    if len(f"{epsilon:f}") > MOST_EPSILON_LETTERS:
        raise PriceError(
            "price point {point}: epsilon has at most {most} letters.", point=number, most=MOST_EPSILON_LETTERS
        )
    return epsilon


def _read_formula(formula: object) -> PriceFormula:
    """Return what a formula says; a refusal names the term by its place and never shows what was written."""
    if not isinstance(formula, str) or not formula.strip(" "):
        raise PriceError(
            "the price formula is empty; a formula is a sum such as 10 + 90*epsilon + 5*epsilon^2 + 100*precision."
        )
    if len(formula) > MOST_LETTERS:
        raise PriceError("a price formula has at most {most} characters.", most=MOST_LETTERS)
    numbers = [Fraction(0)] * (HIGHEST_POWER + 2)
    for place, term in enumerate(formula.split("+"), start=1):
        read = _read_term(term.strip(" "))
        if isinstance(read, str):
            raise PriceError(
                "term {term} of the price formula {why}; a formula is a sum such as 10 + 90*epsilon + 5*epsilon^2 + "
                "100*precision.",
                why=read,
                term=place,
            )
        index, number = read
        numbers[index] += number
    return PriceFormula(tuple(numbers[:-1]), numbers[-1])


def _read_term(term: str) -> tuple[int, Fraction] | str:
    """Return which number of the formula a term adds to (a power, or the last for precision) and how much.

    Where the term is none, return what is wrong with it.
    """
    match = _TERM.fullmatch(term)
    if match is None:
        return _problem(term)
    whole, part, precision, epsilon, power = match.groups(default="")
    if max(len(whole), len(part)) > MAX_DIGITS:
        return f"has more than {MAX_DIGITS} digits before or after its point"
    if power and power not in _POWERS:
        return f"has another exponent than 2 to {HIGHEST_POWER}"
    number = Fraction(int(whole + part), 10 ** len(part))
    if precision:
        return HIGHEST_POWER + 1, number
    return int(power or bool(epsilon)), number


def _problem(term: str) -> str:
    """Return what is wrong with a term that is none."""
    if not term:
        return "is empty"
    if "-" in term:
        return "has a minus sign, and prices must not fall"
    if any(word not in ("epsilon", "precision") for word in _WORD.findall(term)):
        return "has something else in it than numbers, epsilon and precision"
    return "is not a number, or a number times epsilon, a power of epsilon or precision"


def _decimal_text(number: Fraction) -> str:
    """Return the shortest decimal text of a number that has at most `MAX_DIGITS` digits after its point."""
    whole, part = divmod(int(number * 10**MAX_DIGITS), 10**MAX_DIGITS)
    return f"{whole}.{part:0{MAX_DIGITS}}".rstrip("0").rstrip(".")


def _exact(epsilon: Decimal) -> Decimal:
    """Refuse what is no exact positive number: a float has been rounded already."""
    if not isinstance(epsilon, Decimal):
        raise PriceError(
            "a price is asked for an exact decimal epsilon, not for a {type}.", type=type(epsilon).__name__
        )
    return as_epsilon(epsilon)


def _check_retention(keep: Fraction) -> None:
    if not isinstance(keep, Fraction) or not 0 <= keep < 1:
        raise ValueError("a retention is a fraction in [0, 1)")
