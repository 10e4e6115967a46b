"""How surprising pairs of reports are, if all objects are honest: at one look, and however often somebody looks.

At one look: the diagonal and the margins of every table have a known covariance, so that their squared distance from
what is expected has a chi-squared law. At any look: bets. Somebody who does not believe in honesty bets on every pair
that it is more, or less, often equal than it should be; against honest objects nobody's capital is ever expected to
grow, so it reaches 1 / a at any time with a chance of at most a (Ville's inequality), whenever and how often one looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation import special
from relaxdp.estimation.transitions import Pairs
from relaxdp.mechanisms.base import Mechanism
from relaxdp.theory.level import Level

Floats = NDArray[np.float64]

_LEAST = 5.0
"""The least expected number in a cell of a chi-squared sum; values that are rarer stand together in one."""
# Which share of those who could have been found out was made up: halved from bet to bet, so that one of them is near.
_BETS = np.array([0.5**power for power in range(1, 17)])
_TINY = 2.0**-52
_OVER_ALL, _SINGLE = 0.25, 0.75
"""What is put on all values together, and on single ones."""
REPEATED, CHANGED, OLDER = "repeated", "changed", "older"
KINDS = (REPEATED, CHANGED, OLDER)
"""What is wrong with a value: it is repeated too often, or too seldom, or reported too often before another one."""


def single_look(tables: Sequence[Pairs], mechanism: Mechanism) -> float:
    """Return the p-value of honest objects at one look that was planned before: uniform where reports are many."""
    tables = [table for table in tables if table.n]
    if not tables:
        return 1.0
    if all(table.labels for table in tables) and (mechanism.joint == "exclusive" or mechanism.symbols > 1):
        distance, freedom = 0.0, 0
        for table in tables:
            for more, terms in _squares(table, mechanism):
                distance, freedom = distance + more, freedom + terms
        return float(special.chdtrc(freedom, distance)) if freedom else 1.0
    # Hashed values share their reports in unknown ways: the rarest of all that was seen, times their number.
    least = min(_rarest(table, mechanism) for table in tables)
    return min(1.0, len(tables) * least)


def _squares(table: Pairs, mechanism: Mechanism) -> list[tuple[float, int]]:
    """Return squared distances and their degrees of freedom; each is independent of the next ones, given these."""
    stay, leave = chances(table, mechanism)
    first = _binomials(table.news, table.both, stay)
    away = table.olds - table.both
    if mechanism.symbols > 1:
        return [first, _binomials(table.n - table.news, away, leave)]
    return [first, _arrivals(table.news - table.both, away)]


def _binomials(trials: NDArray[np.int64], hits: NDArray[np.int64], chance: float) -> tuple[float, int]:
    """Return the squared distance of independent binomials, the rare ones added up; which are rare is no surprise."""
    enough = trials * min(chance, 1 - chance) >= _LEAST
    cells = [(float(n), float(k)) for n, k in zip(trials[enough], hits[enough], strict=True)]
    rest = float(trials[~enough].sum()), float(hits[~enough].sum())
    if rest[0] * min(chance, 1 - chance) >= _LEAST:
        cells.append(rest)
    if not cells:
        return 0.0, 0
    n, k = np.array(cells).T
    return float(np.sum((k - n * chance) ** 2 / (n * chance * (1 - chance)))), len(cells)


def _arrivals(left: NDArray[np.int64], arrived: NDArray[np.int64]) -> tuple[float, int]:
    """Return the squared distance of where the changed ones went: from each value evenly to all others.

    The covariance is a diagonal minus a matrix of rank two, so it is inverted in closed form; values stand together in
    groups where they are rare, and one group is left out, since all sum up to what is known.
    """
    values, total = len(left), float(left.sum())
    size = max(1, int(np.ceil(_LEAST * values / max(total, 1.0))))
    starts = np.arange(0, values, size)
    if len(starts) > 1 and values % size:
        starts = starts[:-1]  # the last group takes what is left over
    if values < 3 or len(starts) < 3:
        return 0.0, 0
    sizes = np.diff(np.append(starts, values)).astype(float)
    gone = np.add.reduceat(left, starts).astype(float)
    came = np.add.reduceat(arrived, starts).astype(float)
    each = 1 / (values - 1)
    away = (came - each * (total * sizes - gone))[:-1]
    diagonal = (each * (total * sizes - gone) - each**2 * gone)[:-1]
    if np.any(diagonal <= 0):
        return 0.0, 0
    sides = np.stack([sizes, gone], axis=1)[:-1]
    inner = np.linalg.inv(each**2 * np.array([[total, -1.0], [-1.0, 0.0]])) - sides.T @ (sides / diagonal[:, None])
    reach = sides.T @ (away / diagonal)
    return float(away @ (away / diagonal) + reach @ np.linalg.solve(inner, reach)), len(away)


def _rarest(table: Pairs, mechanism: Mechanism) -> float:
    """Return the p-value of equal reports and of all values, each with its exact binomial law."""
    stay, leave = chances(table, mechanism)
    over_all = _two_sided(np.array([table.n * mechanism.symbols]), np.array([table.equal]), stay).min()
    if not table.labels:
        return float(over_all)
    single = min(
        _two_sided(table.news, table.both, stay).min(),
        _two_sided(table.n - table.news, table.olds - table.both, leave).min(),
    )
    return 2 * min(float(over_all), 2 * table.labels * float(single))


def _two_sided(trials: NDArray[np.int64], hits: NDArray[np.int64], chance: float) -> Floats:
    lower = np.where(hits < trials, special.bdtr(hits, np.maximum(trials, 1), chance), 1.0)
    upper = np.where(hits > 0, special.bdtrc(hits - 1, np.maximum(trials, 1), chance), 1.0)
    return np.where(trials > 0, np.minimum(1.0, 2 * np.minimum(lower, upper)), 1.0)


def chances(table: Pairs, mechanism: Mechanism) -> tuple[float, float]:
    """Return with which probability an older symbol is the newer one, and is one certain other one.

    Of levels so close that a float does not tell them apart the second is not 0: what is unlikely is not impossible.
    """
    leave = max((1 - table.kept) / mechanism.alphabet, _TINY)
    return min(table.kept + leave, 1 - _TINY), leave


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The capital of all bets against honest objects, as logarithms that include how little was put on each."""

    stakes: tuple[float, ...]
    """What all bets on a table have made of its part of the stake, for each table."""
    values: Floats
    """Of each kind of bet (see `KINDS`) and each value: the most that it has made in any table."""

    @property
    def p_value(self) -> float:
        """At most this is the chance that honest objects ever show as much, however often somebody looks."""
        return float(np.exp(-max([0.0, *self.stakes])))


def every_look(tables: Sequence[Pairs], mechanism: Mechanism, levels: Sequence[Level] = ()) -> Evidence:
    """Return what bets against honest objects have made. Of the `levels` of a schedule neighbours are bet on most.

    Whoever looks more than once names all levels of the schedule each time: stakes must not depend on what came.

    In every table each pair is bet on once, when it is complete, so that each table's capital is a martingale; tables
    share objects, and therefore divide the stake and are not added.
    """
    width = max([table.labels for table in tables], default=0)
    stakes, best = [], np.full((len(KINDS), width), -np.inf)
    used = {each for table in tables for each in (table.older, table.newer)}
    places = {level: place for place, level in enumerate(sorted(used.union(levels)))}
    for table in tables:
        stake = np.log(_stake(places[table.newer] - places[table.older], len(places)))
        stay, leave = chances(table, mechanism)
        symbols = np.array([table.n * mechanism.symbols])
        equal = np.array([table.equal])
        sides = np.array([_capital(symbols, equal, stay, up=up)[0] for up in (True, False)]) - np.log(2)
        single = np.log(_SINGLE / (len(KINDS) * max(1, table.labels)))
        rows = single + (
            np.stack([
                _capital(table.news, table.both, stay, up=True),
                _capital(table.news, table.both, stay, up=False),
                _capital(table.n - table.news, table.olds - table.both, leave, up=True),
            ])
            if table.labels
            else np.empty((len(KINDS), 0))
        )  # fmt: skip
        shared = np.log(_OVER_ALL if table.labels else 1.0)
        stakes.append(stake + float(special.logsumexp([*(sides + shared), *rows.reshape(-1)])))
        if table.labels:
            best = np.maximum(best, rows + stake)
    return Evidence(tuple(stakes), best)


def _stake(distance: int, levels: int) -> float:
    """Return what is put on a table: on neighbouring levels one half, or all where there are no others."""
    others = (levels - 1) * (levels - 2) // 2
    if distance == 1:
        return (0.5 if others else 1.0) / max(1, levels - 1)
    return 0.5 / others


def _capital(trials: NDArray[np.int64], hits: NDArray[np.int64], chance: float, *, up: bool) -> Floats:
    """Return the logarithm of what bets on more (or fewer) hits made of 1: a mixture of likelihood ratios."""
    if up:
        win, lose = np.log1p(_BETS * (1 / chance - 1)), np.log1p(-_BETS)
    else:
        win, lose = np.log1p(-_BETS), np.log1p(_BETS * (1 / (1 - chance) - 1))
    gains = hits[:, None] * win + (trials - hits)[:, None] * lose
    return np.asarray(special.logsumexp(gains, axis=1) - np.log(len(_BETS)))
