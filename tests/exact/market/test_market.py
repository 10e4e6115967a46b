"""The market, in exact rationals: in every order of deliveries and sales, all that is out is one path.

All buyers together then learn exactly what the largest level sold tells. Mistakes that a market could make must fail.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as F
from functools import cache

import pytest
from tests.exact.checks import check_all, check_guarantee, check_marginals, check_sums
from tests.exact.enumeration import Transcript, compute_transcript_distribution
from tests.exact.market.orders import (
    Afresh,
    AmongDeliveries,
    Draw,
    FromTheTop,
    IndependentDelivery,
    LateDelivery,
    Market,
    NoLower,
    State,
    by_level,
    deliver,
    next_law,
    orders,
    pooled,
    sell,
)

from relaxdp.theory.randomized_response import compute_odds

# Levels and their grid: equal steps, other steps, near both ends, and fractions without a small common grid.
GRIDS = [((4, 7, 10, 13), 16), ((2, 5, 9, 14), 16), ((1, 2, 14, 15), 16), ((110, 308, 385, 630), 770)]
LEVELS, ONE = GRIDS[1]
# How many orders there are of one, two, three and four levels, each sold up to twice. With one level it is: nothing,
# a delivery, and after it one sale or two.
ORDERS = [4, 54, 2_178, 181_160]

RIGHT = Market()
chain = cache(compute_transcript_distribution)
Pool = tuple[tuple[Draw, ...], tuple[int, ...]]
"""All draws, and the places of those that are sold."""


@cache
def pools(levels: tuple[int, ...], market: Market) -> Counter[Pool]:
    """What is out and what of it is sold, with the number of orders that lead there."""
    return Counter((state.draws, tuple(sorted(set(state.sold)))) for state in orders(levels, market))


def check_path(values: int, one: int, draws: tuple[Draw, ...], places: tuple[int, ...]) -> None:
    """Some of the draws have the law of one path, read at their levels."""
    levels = tuple(sorted(F(draws[place].level, one) for place in places))
    assert pooled(values, one, draws, places) == [chain(values, levels, truth) for truth in range(values)]


def pooled_odds(values: int, one: int, pool: Pool) -> F:
    """The guarantee of all that is sold, pooled: the greatest ratio of a transcript's chances under two truths."""
    laws = pooled(values, one, *pool)
    transcripts = {reports for law in laws for reports in law}
    return max(max(law[reports] for law in laws) / min(law[reports] for law in laws) for reports in transcripts)


@pytest.mark.long
@pytest.mark.parametrize(
    ("levels", "one", "sizes"),
    [(LEVELS, ONE, [2, 3, 4]), *[(levels, one, [2, 3]) for levels, one in GRIDS if levels != LEVELS]],
)
def test_every_order_is_one_path(levels: tuple[int, ...], one: int, sizes: list[int]) -> None:
    """All that is out has the law of one path, and so has every part of what is sold, that is for any coalition."""
    found = pools(levels, RIGHT)
    assert [pools(levels[:count], RIGHT).total() for count in (1, 2, 3)] + [found.total()] == ORDERS
    for values, (draws, places) in itertools.product(sizes, found):
        check_path(values, one, draws, tuple(range(len(draws))))
        for size in range(1, len(places) + 1):
            for part in itertools.combinations(places, size):
                check_path(values, one, draws, part)
                part_levels = sorted(F(draws[place].level, one) for place in part)
                check_all(pooled(values, one, draws, part), values, part_levels)


@pytest.mark.long
def test_the_orders_are_of_all_kinds() -> None:
    """What the enumeration must not lose: one to four deliveries, all kinds of draws, sales at delivered levels."""
    found = pools(LEVELS, RIGHT)
    lists = {draws for draws, _ in found}
    assert (len(found), len(lists)) == (261, 65)
    assert Counter(sum(draw.upper is None for draw in draws) for draws in lists) == {0: 1, 1: 24, 2: 29, 3: 10, 4: 1}
    # First and later deliveries, blurs, and bridges: between two sold levels, two delivered ones, and one of each.
    ends = {
        tuple(None if end is None else draws[end].upper is None for end in (draw.lower, draw.upper))
        for draws in lists
        for draw in draws
    }
    assert ends == set(itertools.product([None, True, False], repeat=2)) - {(False, None)}
    at_delivered = [(draws, places) for draws, places in found if any(draws[place].upper is None for place in places)]
    assert len(at_delivered) == 196
    sold_twice = [state for state in orders(LEVELS[:3], RIGHT) if len(state.sold) > len(set(state.sold))]
    assert len(sold_twice) == 2_059


def hands(sales: Sequence[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way in which sales, in order, go to buyers: to a new one, or as an upgrade to one who has only less."""

    def extend(bought: tuple[tuple[int, ...], ...], left: Sequence[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
        if not left:
            yield bought
            return
        level = left[0]
        for place, levels in enumerate(bought):
            if levels[-1] < level:
                yield from extend((*bought[:place], (*levels, level), *bought[place + 1 :]), left[1:])
        yield from extend((*bought, (level,)), left[1:])

    return extend((), sales)


def test_every_coalition_of_named_buyers() -> None:
    """Three levels, sold and upgraded to any buyers: a coalition knows exactly what its best member alone knows."""
    alone = {level: compute_odds(F(level, ONE), 2) for level in LEVELS}
    known: dict[Pool, F] = {}
    checked = upgrades = 0
    for state in orders(LEVELS[:3], RIGHT):
        kept = by_level(state, state.kept)
        for buyers in hands([state.draws[place].level for place in state.sold]):
            upgrades += any(len(bought) > 1 for bought in buyers)
            for coalition in itertools.chain.from_iterable(
                itertools.combinations(buyers, size) for size in range(1, len(buyers) + 1)
            ):
                together = set().union(*coalition)
                pool = state.draws, tuple(kept[level] for level in sorted(together))
                if pool not in known:
                    known[pool] = pooled_odds(2, ONE, pool)
                assert known[pool] == alone[max(bought[-1] for bought in coalition)]
                checked += 1
    assert (checked, upgrades) == (469_183, 26_421)


# Of all orders of three levels: in how many the joint law is wrong, and in how many the buyers exceed their best level.
# (Where the last delivery itself is sold, nothing that is drawn from it adds to it.)
MUTANTS: list[tuple[type[Market], int, int, int]] = [
    (Afresh, 2_178, 943, 31),
    (FromTheTop, 2_178, 934, 60),
    (NoLower, 2_178, 467, 30),
    (AmongDeliveries, 2_178, 236, 14),
    (LateDelivery, 7_681, 502, 18),
    (IndependentDelivery, 2_178, 1_884, 1_776),
]


@pytest.mark.parametrize("values", [2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize(("market", "all_orders", "wrong", "exceeded"), MUTANTS)
def test_mutants_are_caught(market: type[Market], all_orders: int, wrong: int, exceeded: int, values: int) -> None:
    """Only together are these reports wrong: nearly all of these mistakes leave every single one as it should be."""
    found = pools(LEVELS[:3], market())
    fails: Counter[str] = Counter()
    for (draws, places), number in found.items():
        laws = pooled(values, ONE, draws, places)
        levels = sorted(F(draws[place].level, ONE) for place in places)
        check_sums(laws)
        if market is not IndependentDelivery:
            check_marginals(laws, values, levels)
        try:
            check_path(values, ONE, draws, tuple(range(len(draws))))
        except AssertionError:
            fails["path"] += number
        best = levels[-1] if levels else F(0)
        if pooled_odds(values, ONE, (draws, places)) > compute_odds(best, values):
            fails["guarantee"] += number
            with pytest.raises(AssertionError):
                check_guarantee(laws, values, best)
    assert (found.total(), fails["path"], fails["guarantee"]) == (all_orders, wrong, exceeded)


def test_blurs_of_one_delivery_pool_to_more() -> None:
    """Sold at odds 1.5 and 2, from a delivery at odds 4: pooled 29/11, where the best buyer has 2."""
    low, high, top, one = 3, 5, 9, 15
    assert [compute_odds(F(level, one), 2) for level in (low, high, top)] == [F(3, 2), 2, 4]

    def odds_after(market: Market, first: int, second: int) -> F:
        state = sell(market, sell(market, deliver(market, State(), top), first), second)
        return pooled_odds(2, one, (state.draws, state.sold))

    for first, second in ((low, high), (high, low)):
        assert odds_after(RIGHT, first, second) == 2
        assert odds_after(FromTheTop(), first, second) == F(29, 11)
        assert odds_after(AmongDeliveries(), first, second) == F(29, 11)
    assert odds_after(NoLower(), low, high) == F(29, 11)
    assert odds_after(NoLower(), high, low) == 2  # downwards there is no lower neighbour to forget


Act = Callable[[Market, State, int], State]
Plan = tuple[Act, int, "tuple[Plan, ...]"] | None
"""What happens next: a delivery and what follows it, a sale and what follows each report, or nothing more."""
History = tuple[tuple[int, int], ...]
"""What buyers have seen: levels and reports, in the order of sales."""


def histories(market: Market, plan: Plan, values: int, truth: int) -> dict[History, F]:
    """The law of what buyers see who go by a plan; the seller's deliveries are part of it."""
    seen: defaultdict[History, F] = defaultdict(F)
    stack: list[tuple[Plan, State, Transcript, History, F]] = [(plan, State(), (), (), F(1))]
    while stack:
        now, state, reports, history, chance = stack.pop()
        if now is None:
            seen[history] += chance
            continue
        act, level, following = now
        after = act(market, state, level)
        drawn = len(after.draws) > len(state.draws)
        for report, step in enumerate(next_law(values, ONE, after.draws, reports, truth) if drawn else [F(1)]):
            known = (*reports, report) if drawn else reports
            if act is sell:
                bought = known[after.sold[-1]]
                stack.append((following[bought], after, known, (*history, (level, bought)), chance * step))
            else:
                stack.append((following[0], after, known, history, chance * step))
    return seen


def told(market: Market, plan: Plan, values: int) -> list[F]:
    """The odds of everything that buyers may see, as parts of the odds of the largest level that they then have."""
    laws = [histories(market, plan, values, truth) for truth in range(values)]
    assert [sum(law.values()) for law in laws] == [1] * values
    found = []
    for history in set().union(*laws):
        best = max((F(level, ONE) for level, _ in history), default=F(0))
        chances = [law[history] for law in laws]
        found.append(max(chances) / min(chances) / compute_odds(best, values))
    return found


def plans(left: frozenset[int], later: tuple[int, ...], top: int) -> Iterator[Plan]:
    """Every plan of buyers of two-valued reports: stop, wait for the next delivery, or buy a level and look at it."""
    yield None
    if later:
        for plan in plans(left, later[1:], later[0]):
            yield deliver, later[0], (plan,)
    for level in sorted(level for level in left if level <= top):
        for following in itertools.product(list(plans(left - {level}, later, top)), repeat=2):
            yield sell, level, following


def any_plan(left: frozenset[int], later: tuple[int, ...], top: int, values: int, chooser: random.Random) -> Plan:
    """A plan in which every choice is a random one, another after each report."""
    level = chooser.choice([*sorted(level for level in left if level <= top), *later[:1], None])
    if level is None and top:
        return None
    if level is None or level in later:
        return deliver, later[0], (any_plan(left, later[1:], later[0], values, chooser),)
    following = tuple(any_plan(left - {level}, later, top, values, chooser) for _ in range(values))
    return sell, level, following


def test_levels_chosen_from_reports_that_were_bought() -> None:
    """Fully adaptive: every plan for three levels and two values, and many for four levels and three values."""
    _, middle, high = LEVELS[:3]
    every: list[Plan] = [(deliver, middle, (plan,)) for plan in plans(frozenset(LEVELS[:3]), (high,), middle)]
    assert len(every) == 967
    some = [any_plan(frozenset(LEVELS), LEVELS[1:], 0, 3, random.Random(seed)) for seed in range(500)]
    bought = Counter(len(history) for plan in some for history in histories(RIGHT, plan, 3, 0))
    assert min(bought[number] for number in range(5)) > 100
    for tried, values in ((every, 2), (some, 3)):
        assert all(part == 1 for plan in tried for part in told(RIGHT, plan, values))
        assert max(part for plan in tried for part in told(FromTheTop(), plan, values)) > 1
