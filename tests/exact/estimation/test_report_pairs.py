"""The law of an older report given the newer ones, in rationals, for every encoding and all truths; and the bets on it.

Whoever is tested must be innocent until proven guilty: a wrong law here would accuse honest devices.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction as F
from math import prod
from typing import Any

import numpy as np
import pytest
from tests.exact.enumeration import compute_blur_distribution, compute_transcript_distribution, path_law

from relaxdp.audit.exact_check import _compute_noiseless_distribution
from relaxdp.estimation.report_pairs import (
    MAX_TRACKED_LABELS,
    ReportPairCounts,
    ReportPairs,
    _compute_arrival_chi_squared,
    _compute_log_capital,
    compute_betting_evidence,
    count_packed_report_pairs,
    count_tracked_labels,
)
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.local_hash import LocalHash
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.report_arrays import get_code_dtype, pack_reports
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.theory.randomized_response import compute_report_distribution

WORD = 8
LEVELS = [(F(1, 8), F(4, 8), F(7, 8)), (F(2, 8), F(3, 8), F(6, 8))]
BLOOM = Bloom(BloomShape(bits=3, hashes=1, cohorts=2), 1)
ENCODINGS: list[tuple[Mechanism, list[Any]]] = [
    (Categorical(["a", "b", "c"]), ["a", "b", "c"]),
    (Unary(["a", "b"], optimised=False), ["a", "b"]),
    (Unary(["a", "b"]), ["a", "b"]),
    (LocalHash(["a", "b", "c"], buckets=3), ["a", "b", "c"]),
    (Numeric(0.0, 1.0), [0.0, 0.25, 1.0]),
    (Numeric(0.0, 1.0, missing=True), [None, 0.0, 0.5]),
    (SquareWave(0.0, 1.0, bins=3, window=2), [0.0, 0.25, 0.5, 1.0]),
    (BLOOM, ["x", "y"]),
]
NAMES = [encoding.name for encoding, _ in ENCODINGS]
Law = dict[Any, F]


def by_path(alphabet: int, levels: Sequence[F], symbol: int) -> Law:
    return path_law(alphabet, [int(level * WORD) for level in levels], symbol, one=WORD)


def afresh(alphabet: int, levels: Sequence[F], symbol: int) -> Law:
    """A mutant: every level is drawn anew from the truth, as somebody does who never read the paper."""
    laws = [compute_report_distribution(alphabet, level, truth=symbol) for level in levels]
    return {
        reports: prod((law[report] for law, report in zip(laws, reports, strict=True)), start=F(1))
        for reports in itertools.product(range(alphabet), repeat=len(levels))
    }


def transcripts(encoding: Mechanism, truth: Any, levels: Sequence[F], symbol_law: Any) -> Law:
    """The law of (seed, one report per level), over all that an object keeps."""
    single = [symbol_law(encoding.alphabet, levels, symbol) for symbol in range(encoding.alphabet)]
    law: defaultdict[Any, F] = defaultdict(F)
    for (seed, symbols), chance in _compute_noiseless_distribution(encoding, truth).items():
        for parts in itertools.product(*(single[symbol].items() for symbol in symbols)):
            reports = tuple(zip(*(readings for readings, _ in parts), strict=True))
            law[seed, reports] += chance * prod((each for _, each in parts), start=F(1))
    return law


def check_law(
    encoding: Mechanism, truths: Sequence[Any], levels: Sequence[F], symbol_law: Any = compute_transcript_distribution
) -> None:
    """Given all newer reports, an older one depends on the next newer one alone, and is its blur, symbol by symbol.

    For three levels, for the first two, and for a device that left out the middle one.
    """
    for truth in truths:
        law = transcripts(encoding, truth, levels, symbol_law)
        assert sum(law.values()) == 1
        for places in ((0, 1, 2), (0, 1), (1, 2), (0, 2)):
            joint: defaultdict[Any, F] = defaultdict(F)
            newer: defaultdict[Any, F] = defaultdict(F)
            for (seed, reports), chance in law.items():
                joint[seed, tuple(reports[place] for place in places)] += chance
                newer[seed, tuple(reports[place] for place in places[1:])] += chance
            for (seed, reports), chance in joint.items():
                blurred = prod(
                    (
                        compute_blur_distribution(encoding.alphabet, levels[places[0]], levels[places[1]], report=new)[
                            old
                        ]
                        for old, new in zip(reports[0], reports[1], strict=True)
                    ),
                    start=F(1),
                )
                assert chance == newer[seed, reports[1:]] * blurred


@pytest.mark.parametrize(("encoding", "truths"), ENCODINGS, ids=NAMES)
def test_an_older_report_is_the_newer_one_blurred_whatever_the_truth(encoding: Mechanism, truths: list[Any]) -> None:
    check_law(encoding, truths, LEVELS[0])
    check_law(encoding, truths, LEVELS[1], by_path)


@pytest.mark.parametrize(("encoding", "truths"), ENCODINGS[:2], ids=NAMES[:2])
def test_reports_that_are_drawn_afresh_have_another_law(encoding: Mechanism, truths: list[Any]) -> None:
    with pytest.raises(AssertionError):
        check_law(encoding, truths, LEVELS[0], afresh)


@pytest.mark.parametrize(("encoding", "truths"), ENCODINGS, ids=NAMES)
def test_what_is_counted_of_pairs_has_the_law_that_is_tested(encoding: Mechanism, truths: list[Any]) -> None:
    """Of any newer report the older one supports the same value, and each other one, with the chances of the bets."""
    older, newer = encoding.level("0.5"), encoding.level(2)
    labels = len(encoding.labels) if encoding is BLOOM else count_tracked_labels(encoding)
    reports = list(itertools.product(range(encoding.alphabet), repeat=encoding.symbols))
    codes = np.array(reports, dtype=get_code_dtype(encoding.alphabet))
    for seed in (0, 5, 12345) if encoding.seeded else (0,):
        seeds = np.full(len(codes), seed, np.uint64) if encoding.seeded else None
        packed = pack_reports(encoding, codes, seeds)
        for place, report in enumerate(reports):
            rows = np.repeat(packed[place : place + 1], len(reports), axis=0)
            each = [
                count_packed_report_pairs(encoding, packed[k : k + 1], rows[k : k + 1], labels)
                for k in range(len(reports))
            ]
            assert np.array_equal(sum(each), count_packed_report_pairs(encoding, packed, rows, labels))
            law = [
                prod(
                    (
                        compute_blur_distribution(encoding.alphabet, older.retention, newer.retention, report=new)[old]
                        for old, new in zip(other, report, strict=True)
                    ),
                    start=F(1),
                )
                for other in reports
            ]
            mean = [
                sum((chance * int(n) for chance, n in zip(law, column, strict=True)), F(0))
                for column in zip(*each, strict=True)
            ]
            table = ReportPairCounts(encoding, older, newer, each[0])
            stay, leave = table.stay_probability, table.switch_probability
            assert float(mean[1]) == pytest.approx(encoding.symbols * stay, rel=1e-12)
            news = [int(n) for n in each[0][2 : 2 + labels]]
            assert [float(n) for n in mean[2 + 2 * labels :]] == pytest.approx([stay * n for n in news], rel=1e-12)
            olds = [float(n) for n in mean[2 + labels : 2 + 2 * labels]]
            assert olds == pytest.approx([stay * n + leave * (1 - n) for n in news], rel=1e-12)


def test_where_values_are_not_told_apart() -> None:
    assert count_tracked_labels(BLOOM) == 0
    assert count_tracked_labels(Categorical(range(MAX_TRACKED_LABELS + 1))) == 0
    assert all(
        count_tracked_labels(encoding) == len(encoding.labels) for encoding, _ in ENCODINGS if encoding is not BLOOM
    )


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("chance", [F(1, 5), F(3, 4)])
def test_nobody_wins_against_honest_devices(chance: F, up: bool) -> None:
    """The capital of a bet is a martingale: its mean over the next pair is what it was, whatever came before."""
    for trials, hits in itertools.product(range(5), repeat=2):
        if hits <= trials:
            now, won, lost = (
                float(np.exp(_compute_log_capital(np.array([t]), np.array([h]), float(chance), bet_on_more=up)[0]))
                for t, h in ((trials, hits), (trials + 1, hits + 1), (trials + 1, hits))
            )
            assert float(chance) * won + float(1 - chance) * lost == pytest.approx(now, rel=1e-12)
    start = _compute_log_capital(np.array([0]), np.array([0]), float(chance), bet_on_more=up)
    assert start == pytest.approx([0.0], abs=1e-12)


def test_stakes_on_all_tables_sum_to_one() -> None:
    """All bets together, over every pair of three levels, begin with the stake of 1, and each with its part."""
    encoding = Categorical(["a", "b", "c"])
    levels = [encoding.level(each) for each in ("0.5", 1, 2)]
    total = 0.0
    for older, newer in itertools.combinations(levels, 2):
        mean = 0.0
        for old, new in itertools.product(range(3), repeat=2):
            pairs = ReportPairs(encoding)
            pairs.add([["abc"[old]], ["abc"[new]]], epsilons=[older.epsilon, newer.epsilon])
            law = compute_blur_distribution(3, older.retention, newer.retention, report=new)
            evidence = compute_betting_evidence(pairs.tables, levels)
            mean += float(law[old]) / 3 * np.exp(evidence.log_capitals[0])
        total += mean
    assert total == pytest.approx(1.0, rel=1e-12)


def test_the_covariance_of_arrivals_in_closed_form() -> None:
    """Beside the matrix itself, summed over all rows and inverted."""
    rng = np.random.default_rng(7)
    left = np.array([500, 20, 300, 90, 0])
    rows = [rng.multinomial(n, [0 if v == w else 1 / 4 for v in range(5)]) for w, n in enumerate(left)]
    came = np.sum(rows, axis=0)
    covariance, mean = np.zeros((5, 5)), np.zeros(5)
    for w, n in enumerate(left):
        law = np.array([0 if v == w else 1 / 4 for v in range(5)])
        covariance += n * (np.diag(law) - np.outer(law, law))
        mean += n * law
    away = came - mean
    distance, freedom = _compute_arrival_chi_squared(left, came)
    assert freedom == 4
    assert distance == pytest.approx(float(away @ np.linalg.pinv(covariance) @ away), rel=1e-9)
