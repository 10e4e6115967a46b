"""What all buyers together learn, in exact rationals: as much as the best level that one of them holds, and no more.

A published row is read from the seller's key: `path_law` feeds all words of a small generator to the sampler's own
rule, at the thresholds of the file's rows, in the order in which the files are made. (That rows carry the reports of
the vault at min(level, own limit) is tested by value in tests/unit/market/test_publish.py.) Proved for 2 and 3 values:

- whatever the order of levels, later ones included, and for any buyers, whichever files an individual is missing from,
  and whatever its limit: the reports of an individual that buyers hold have the joint distribution of one path
  (Algorithm 1), so that all posteriors, for every prior on a grid, are those of the highest report alone;
- the largest likelihood ratio of everything that buyers hold is e^epsilon of the highest report's threshold, exactly;
- a buyer who chooses the next level after a look at the reports learns no more: the history of such a plan, given the
  true value, has the probability of its reports at its levels, which is covered above.

Absence from a file must not depend on the true value, and levels must not be drawn twice: the last tests show both.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as F
from functools import cache
from typing import NamedTuple

import pytest
from tests.exact.checks import check_all
from tests.exact.enumeration import Law, compute_transcript_distribution, path_law

import relaxdp as rx
from relaxdp.theory.randomized_response import compute_odds, compute_report_distribution

LEVELS = {2: ((2, 4, 5, 7), 8), 3: ((1, 3, 4, 6), 8)}
"""For 2 and 3 values: thresholds of the listed levels, and how many values a word has."""


class Row(NamedTuple):
    """One row that a buyer holds: the report of an individual at a threshold, and the key that it was read from."""

    threshold: int
    key: int = 0


class History(NamedTuple):
    """What the market did: levels with whether the individual was in the table, its limit, and who holds what."""

    published: tuple[tuple[int, bool], ...]
    limit: int
    held: tuple[int, ...]
    """Orders: levels in the order of delivery; several buyers may order the same one."""


def list_histories(levels: Sequence[int], one: int) -> Iterator[History]:
    """All orders of some of the levels, in and out of each table, every limit, and what a coalition may hold of it.

    The coalition holds any of the levels, and one of them twice, as two of its buyers do who ordered the same.
    """
    for size in range(1, len(levels) + 1):
        for order, presence in itertools.product(
            itertools.permutations(levels, size), itertools.product([True, False], repeat=size)
        ):
            some = itertools.chain.from_iterable(itertools.combinations(order, n) for n in range(1, size + 1))
            for limit, held in itertools.product((*levels, one), some):
                published = tuple(zip(order, presence, strict=True))
                yield History(published, limit, held)
                yield History(published, limit, (*held, held[0]))


Rule = Callable[[History], tuple[Row, ...]]


def sell(history: History) -> tuple[Row, ...]:
    """Return the rows of the individual that the coalition holds: from one key, at min(level, own limit)."""
    present = {level for level, is_present in history.published if is_present}
    return tuple(Row(min(level, history.limit)) for level in history.held if level in present)


@cache
def read_key(values: int, thresholds: tuple[int, ...], true_value: int, one: int) -> Law:
    """Return the joint distribution of the reports that are read from one key, at these thresholds, in this order."""
    return path_law(values, thresholds, true_value, one=one)


@cache
def compute_held_distribution(values: int, rows: tuple[Row, ...], true_value: int, one: int) -> Law:
    """Return the joint distribution of rows, in ascending order of thresholds. Different keys are independent."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].threshold)
    laws = {
        key: read_key(values, tuple(row.threshold for row in rows if row.key == key), true_value, one)
        for key in sorted({row.key for row in rows})
    }
    places = [place for key in laws for place, row in enumerate(rows) if row.key == key]
    found: defaultdict[tuple[int, ...], F] = defaultdict(F)
    for parts in itertools.product(*(law.items() for law in laws.values())):
        reports = dict(zip(places, itertools.chain.from_iterable(each for each, _ in parts), strict=True))
        chance = F(1)
        for _, each in parts:
            chance *= each
        found[tuple(reports[place] for place in order)] += chance
    return dict(found)


@cache
def check_rows(values: int, rows: tuple[Row, ...], one: int) -> None:
    """The rows are one path: Algorithm 1's distribution, all posteriors, and the largest likelihood ratio."""
    thresholds = sorted(row.threshold for row in rows)
    levels = [F(threshold, one) for threshold in thresholds]
    laws = [compute_held_distribution(values, rows, true_value, one) for true_value in range(values)]
    different = sorted(set(levels))
    for true_value, law in enumerate(laws):
        chain = compute_transcript_distribution(values, different, true_value)
        assert law == {
            tuple(reports[different.index(level)] for level in levels): chance for reports, chance in chain.items()
        }
    check_all(laws, values, levels)
    for prior in list_priors(values):
        for reports in laws[0]:
            alone = compute_posterior(
                prior, [compute_chance(values, levels[-1], t, reports[-1]) for t in range(values)]
            )
            assert compute_posterior(prior, [law[reports] for law in laws]) == alone


def list_priors(values: int) -> Iterator[list[F]]:
    """All priors in steps of a quarter, also those that rule out a value."""
    for parts in itertools.product(range(5), repeat=values):
        if sum(parts) == 4:
            yield [F(part, 4) for part in parts]


def compute_chance(values: int, level: F, true_value: int, report: int) -> F:
    return compute_report_distribution(values, level, truth=true_value)[report]


def compute_posterior(prior: Sequence[F], likelihoods: Sequence[F]) -> list[F]:
    joint = [before * likelihood for before, likelihood in zip(prior, likelihoods, strict=True)]
    return [each / sum(joint) for each in joint]


@pytest.mark.parametrize("values", [2, 3])
def test_every_history_of_a_listing_is_one_path(values: int) -> None:
    levels, one = LEVELS[values]
    histories = list(list_histories(levels, one))
    found = {sell(history) for history in histories}
    assert (len(histories), len(found)) == (72_560, 178)
    for rows in found:
        if rows:
            check_rows(values, rows, one)


@pytest.mark.parametrize("values", [2, 3])
def test_the_scenario_of_the_paper(values: int) -> None:
    """0.3, later 0.7 for the same buyer, 0.5 for another one; both pool. Nothing is left to learn beyond 0.7.

    On the grid of small words through the sampler's rule, and at the real thresholds by Algorithm 1.
    """
    one, answers = 16, rx.Categorical(list(range(values)))
    real = [answers.level(epsilon) for epsilon in ("0.3", "0.7", "0.5")]
    coarse = [round(one * level.retention) for level in real]
    assert coarse[0] < coarse[2] < coarse[1]
    for order in itertools.permutations(coarse):
        check_rows(values, tuple(map(Row, order)), one)
    levels = sorted(level.retention for level in real)
    laws = [compute_transcript_distribution(values, levels, true_value) for true_value in range(values)]
    check_all(laws, values, levels)
    assert compute_largest_ratio(laws) == compute_odds(answers.level("0.7").retention, values)


def compute_largest_ratio(laws: Sequence[Law]) -> F:
    return max(max(chances) / min(chances) for reports in laws[0] if (chances := [law[reports] for law in laws]))


# Markets that make a mistake. Each gives the first buyer of a level a perfect report, and fails only together.


def draw_for_each_level(history: History) -> tuple[Row, ...]:
    """Draw each level independently."""
    order = [level for level, _ in history.published]
    return tuple(row._replace(key=order.index(level)) for row, level in _pair(history))


def draw_for_each_order(history: History) -> tuple[Row, ...]:
    """Draw a level again for its next buyer."""
    seen: list[int] = []
    rows = []
    for row, level in _pair(history):
        rows.append(row._replace(key=seen.count(level)))
        seen.append(level)
    return tuple(rows)


def change_the_key(history: History) -> tuple[Row, ...]:
    """Publish all levels but the first from a second key, as after the loss of the first one."""
    first = history.published[0][0]
    return tuple(row._replace(key=int(level != first)) for row, level in _pair(history))


def _pair(history: History) -> list[tuple[Row, int]]:
    """Return the rows with the listed levels of the files that they are in."""
    present = {level for level, is_present in history.published if is_present}
    return list(zip(sell(history), [level for level in history.held if level in present], strict=True))


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("rule", [draw_for_each_level, draw_for_each_order, change_the_key])
def test_markets_that_draw_twice_are_found(rule: Rule, values: int) -> None:
    """The same check fails wherever two rows come from two keys, and for nothing else; they reveal more together."""
    levels, one = LEVELS[values]
    wrong = 0
    found = {rows for history in list_histories(levels[:3], one) if (rows := rule(history))}
    for rows in found:
        if len({row.key for row in rows}) == 1:
            check_rows(values, rows, one)
            continue
        wrong += 1
        with pytest.raises(AssertionError):
            check_rows(values, rows, one)
        laws = [compute_held_distribution(values, rows, true_value, one) for true_value in range(values)]
        best = max(row.threshold for row in rows)
        assert compute_largest_ratio(laws) > compute_odds(F(best, one), values)
    assert wrong >= 10


def test_absence_that_depends_on_the_true_value_is_found() -> None:
    """An individual who leaves the table because of the answer reveals it, though every report is right."""
    threshold, one = 4, 8
    laws = []
    for true_value in range(2):
        leaves = F(3, 4) if true_value else F(1, 4)
        present = read_key(2, (threshold,), true_value, one)
        laws.append({(): leaves, **{report: chance * (1 - leaves) for report, chance in present.items()}})
    assert all(sum(law.values()) == 1 for law in laws)
    assert compute_largest_ratio(laws) > compute_odds(F(threshold, one), 2)
