"""Every order in which a market can deliver and sell some levels, and the exact law of all that is then out.

Levels are thresholds on a small grid. An order is a list of draws, each with the earlier draws that it came from, and
of which draw every sale handed out. The law follows from the draws alone, so one law serves all orders that share them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from tests.exact.enumeration import Law, Transcript

from relaxdp.market.levels import check_delivery, neighbours
from relaxdp.server_errors import DeliveryError, NotAuthorisedError
from relaxdp.theory.randomized_response import NOISE, TRUTH, Level, compute_bridge_distribution


class Draw(NamedTuple):
    """One report at a level, and the places of the earlier draws between which it was drawn."""

    level: int
    lower: int | None = None
    """None: noise. The draw is a blur, or the first report."""
    upper: int | None = None
    """None: the truth, which only the seller has."""


class State(NamedTuple):
    """What has happened so far: places are places among the draws."""

    draws: tuple[Draw, ...] = ()
    delivered: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    """One place for each level that is out, delivered or sold."""
    sold: tuple[int, ...] = ()
    """What was handed out, sale by sale; a level that is sold again is handed out again."""


def by_level(state: State, places: Sequence[int]) -> dict[int, int]:
    """The place of each level, of those at `places`."""
    return {state.draws[place].level: place for place in places}


@cache
def at(threshold: int) -> Level:
    """A level of the grid, as the rule takes it; of which encoding does not matter here."""
    return Level(Decimal(threshold), threshold, ("a grid", b""))


class Market:
    """The rule under test: `check_delivery` and `neighbours`. Mutants replace one of the two answers."""

    def delivery(self, state: State, level: int) -> Draw:
        """The seller's path: the next report comes from the truth and the last delivery, whatever was sold."""
        check_delivery(at(level), map(at, by_level(state, state.delivered)))
        return Draw(level, lower=state.delivered[-1] if state.delivered else None)

    def sale(self, state: State, level: int) -> Draw | None:
        """What is drawn for a buyer; None where the kept report is handed out."""
        kept = by_level(state, state.kept)
        found = neighbours(at(level), map(at, kept))
        if found is None:
            return None
        lower = None if found.lower is None else kept[found.lower.threshold]
        return Draw(level, lower, kept[found.upper.threshold])


class Afresh(Market):
    """A level that was sold is drawn once more for its next buyer."""

    def sale(self, state: State, level: int) -> Draw | None:
        others = tuple(place for place in state.kept if place in state.delivered or state.draws[place].level != level)
        return super().sale(state._replace(kept=others), level)


class FromTheTop(Market):
    """A new level is a blur of the last delivery, past whatever was sold."""

    def sale(self, state: State, level: int) -> Draw | None:
        draw = super().sale(state, level)
        return draw and Draw(level, upper=state.delivered[-1])


class NoLower(Market):
    """A new level is a blur of its upper neighbour."""

    def sale(self, state: State, level: int) -> Draw | None:
        draw = super().sale(state, level)
        return draw and draw._replace(lower=None)


class AmongDeliveries(Market):
    """A new level is drawn between its nearest delivered levels."""

    def sale(self, state: State, level: int) -> Draw | None:
        draw = super().sale(state, level)
        return draw and super().sale(state._replace(kept=state.delivered), level)


class LateDelivery(Market):
    """A delivery may lie below another; the seller reads it from the path, which does not know what was sold."""

    def delivery(self, state: State, level: int) -> Draw:
        if level in by_level(state, state.kept):
            raise DeliveryError("even this market takes no second report at one level.")
        delivered = by_level(state, state.delivered)
        if level < max(delivered, default=0):
            draw = super().sale(state._replace(kept=state.delivered), level)
            assert draw is not None
            return draw
        ascending = tuple(place for _, place in sorted(delivered.items()))
        return super().delivery(state._replace(delivered=ascending), level)


class IndependentDelivery(Market):
    """The seller's deliveries are drawn independently of each other."""

    def delivery(self, state: State, level: int) -> Draw:
        return super().delivery(state, level)._replace(lower=None)


def deliver(market: Market, state: State, level: int) -> State:
    """What there is after a delivery."""
    place = len(state.draws)
    return state._replace(
        draws=(*state.draws, market.delivery(state, level)),
        delivered=(*state.delivered, place),
        kept=(*state.kept, place),
    )


def sell(market: Market, state: State, level: int) -> State:
    """What there is after a sale."""
    draw, place = market.sale(state, level), by_level(state, state.kept).get(level)
    if draw is not None:
        place = len(state.draws)
        state = state._replace(draws=(*state.draws, draw), kept=(*state.kept, place))
    assert place is not None, "a report that is handed out is out"
    return state._replace(sold=(*state.sold, place))


def orders(levels: Sequence[int], market: Market, *, sales: int = 2) -> Iterator[State]:
    """Where every order of events leads to, those that stop early included; each level is sold up to `sales` times.

    Any delivery and any sale is tried at any time: what must not happen is for the market to refuse.
    """

    def extend(state: State) -> Iterator[State]:
        yield state
        times = Counter(state.draws[place].level for place in state.sold)
        for level in levels:
            for act in (deliver, sell) if times[level] < sales else (deliver,):
                try:
                    following = act(market, state, level)
                except (DeliveryError, NotAuthorisedError):
                    continue
                yield from extend(following)

    return extend(State())


def next_law(values: int, one: int, draws: Sequence[Draw], reports: Transcript, truth: int) -> list[Fraction]:
    """The law of the last draw, given the reports of those before: a bridge, of which a blur and a step are kinds."""
    level, lower, upper = draws[-1]
    return _bridge(
        values,
        NOISE if lower is None else Fraction(draws[lower].level, one),
        Fraction(level, one),
        TRUTH if upper is None else Fraction(draws[upper].level, one),
        0 if lower is None else reports[lower],
        truth if upper is None else reports[upper],
    )


@cache
def _bridge(values: int, low: Fraction, middle: Fraction, high: Fraction, below: int, above: int) -> list[Fraction]:
    return compute_bridge_distribution(values, low, middle, high, lower_report=below, upper_report=above)


@cache
def draws_law(values: int, one: int, draws: tuple[Draw, ...], truth: int) -> Law:
    """The joint law of all draws."""
    if not draws:
        return {(): Fraction(1)}
    law: Law = {}
    for reports, probability in draws_law(values, one, draws[:-1], truth).items():
        for report, chance in enumerate(next_law(values, one, draws, reports, truth)):
            if chance:
                law[*reports, report] = probability * chance
    return law


@cache
def pooled(values: int, one: int, draws: tuple[Draw, ...], places: tuple[int, ...]) -> list[Law]:
    """The joint law of some of the draws in ascending order of levels, for each truth."""
    ascending = sorted(places, key=lambda place: draws[place].level)
    laws = []
    for truth in range(values):
        law: defaultdict[Transcript, Fraction] = defaultdict(Fraction)
        for reports, chance in draws_law(values, one, draws, truth).items():
            law[tuple(reports[place] for place in ascending)] += chance
        laws.append(dict(law))
    return laws
