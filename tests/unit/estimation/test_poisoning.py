"""Pairs of reports that were added in any way are the same pairs, and every encoding's fakes are left out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ColumnError, EstimationError
from relaxdp.estimation.poisoning import CleanedEstimate
from relaxdp.mechanisms.report_arrays import count_supported_labels, read_report_column

EPSILONS = ("0.5", "1", "2")


def released(mechanism: Any, truths: Any, epsilons: tuple[str, ...] = EPSILONS) -> list[Any]:
    key, ids = rx.Key(bytes(range(32))), np.arange(len(truths))
    where: Any = {"key": key, "name": "r", "column": "a"}
    return [mechanism.release(truths, ids, epsilon=epsilon, **where) for epsilon in epsilons]


def test_pairs_may_be_added_in_any_way() -> None:
    answers = rx.Categorical(["a", "b", "c"])
    reports = released(answers, np.array(["a", "b", "c", "a"] * 50))
    columns, tables = rx.poisoning.ReportPairs(answers), rx.poisoning.ReportPairs(answers)
    columns.add(reports, epsilons=EPSILONS)
    for old, new in ((0, 1), (1, 2)):
        tables.add([reports[old], reports[new]], epsilons=[EPSILONS[old], EPSILONS[new]])
    for one, other in zip(columns.tables, tables.tables, strict=True):
        assert np.array_equal(one.counts, other.counts)
    assert columns.n == 200  # each object once, by its newest report
    found = rx.poisoning.check_pairs(columns, n=250, levels=EPSILONS)
    assert (found.n_tested_individuals, found.n_untested_individuals) == (200, 50)
    assert found.uncleaned_shares is not None
    assert np.array_equal(found.uncleaned_shares.value, answers.estimate(reports[2], epsilon="2").value)
    assert not found.is_alarm
    assert found.cleaned_shares is None
    assert "50 of 250 here" in repr(found)


def test_what_are_no_pairs_is_refused() -> None:
    pairs = rx.poisoning.ReportPairs(rx.Categorical(["a", "b"]))
    with refused(ColumnError, says="different lengths"):
        pairs.add([["a"], ["a", "b"]], epsilons=[1, 2])
    with refused(ColumnError, columns=2, epsilons=3):
        pairs.add([["a"], ["b"]], epsilons=[1, 2, 3])
    with refused(EstimationError, older="2", newer="1"):
        pairs.add([["a"], ["a"]], epsilons=[2, 1])
    with refused(EstimationError):
        rx.poisoning.check_pairs(pairs, false_alarm_rate=0.0)


def test_nothing_is_said_without_pairs() -> None:
    found = rx.poisoning.check_pairs(rx.poisoning.ReportPairs(rx.Categorical(["a", "b"])), n=7)
    assert (found.n_tested_individuals, found.n_untested_individuals, found.p_value, found.anytime_p_value) == (
        0,
        7,
        1.0,
        1.0,
    )
    assert found.uncleaned_shares is None
    assert found.cleaned_shares is None
    assert found.undetected_influence is None
    assert found.fabricator_count.estimate == 0


@pytest.mark.parametrize(
    ("mechanism", "wanted"),
    [(rx.Numeric(0, 100), 100), (rx.SquareWave(0, 100, bins=8, window=8), 14)],
    ids=["numeric", "wave"],
)
def test_the_mean_without_what_was_made_up(mechanism: Any, wanted: int) -> None:
    objects, fakes = 20_000, 1_000
    truths = np.linspace(20, 60, objects)
    older, newer = released(mechanism, truths, ("0.5", "2"))
    assert not rx.poisoning.check_reports(mechanism, older, newer, older_epsilon="0.5", newer_epsilon="2").is_alarm
    column = [np.array(each) for each in (older, newer)]
    for each in column:
        each[:fakes] = wanted
    found = rx.poisoning.check_reports(mechanism, *column, older_epsilon="0.5", newer_epsilon="2")
    assert found.suspicious_values[0].label == wanted
    assert found.undetected_influence is not None
    assert found.undetected_influence.values == "the mean"
    assert isinstance(found.cleaned_shares, CleanedEstimate)
    assert found.uncleaned_shares is not None
    honest = float(np.mean(truths[fakes:]))
    plain, corrected = (abs(float(each.value) - honest) for each in (found.uncleaned_shares, found.cleaned_shares))
    assert corrected < plain / 2
    low, high = found.cleaned_shares.interval(0.9999)
    assert low <= honest <= high


def test_values_that_are_too_many_are_tested_together() -> None:
    answers = rx.Categorical(range(3_000))
    reports = np.arange(3_000)
    found = rx.poisoning.check_reports(answers, reports, reports, older_epsilon="0.5", newer_epsilon="2")
    assert found.is_alarm
    assert (found.suspicious_values, found.uncleaned_shares, found.cleaned_shares) == ([], None, None)
    assert found.fabricator_count.estimate == pytest.approx(3_000)


def test_who_answers_otherwise_each_time_is_noticed_too() -> None:
    rng = np.random.default_rng(5)
    answers = rx.Categorical(range(5))
    older = rng.integers(0, 5, 5_000)
    found = rx.poisoning.check_reports(answers, older, (older + 1) % 5, older_epsilon="1", newer_epsilon="1.5")
    assert found.is_alarm
    assert {each.kind for each in found.suspicious_values} >= {"changed"}
    assert found.fabricator_count.high > 4_000


def test_who_repeats_no_wanted_value_is_left_out_as_well() -> None:
    """Attackers that repeat what they drew once push nothing, and no value is named: those that changed tell it."""
    rng = np.random.default_rng(6)
    truths, fakes = rng.choice(60, 20_000, p=np.repeat([0.03, 0.002], [20, 40]) / 0.68), 1_200
    answers = rx.Categorical(range(60))
    older, newer = released(answers, truths, ("0.5", "2"))
    older[:fakes] = newer[:fakes] = rng.integers(20, 60, fakes)
    found = rx.poisoning.check_reports(answers, older, newer, older_epsilon="0.5", newer_epsilon="2")
    assert found.is_alarm
    assert found.fabricator_count.low <= fakes <= found.fabricator_count.high
    assert found.cleaned_shares is not None
    honest = np.mean(truths[fakes:] < 20)
    assert found.uncleaned_shares is not None
    plain, corrected = (
        abs(float(each.value[:20].sum()) - honest) for each in (found.uncleaned_shares, found.cleaned_shares)
    )
    assert corrected < plain / 2


def test_bits_of_which_none_is_named_are_not_corrected() -> None:
    rng = np.random.default_rng(7)
    bits = rx.Unary(range(16))
    older, newer = (rng.integers(0, 256, (3_000, 2)).astype(np.uint8) for _ in range(2))
    found = rx.poisoning.check_reports(bits, older, newer, older_epsilon="1", newer_epsilon="1.2")
    assert found.is_alarm
    assert found.fabricator_count.estimate > 500
    assert found.cleaned_shares is None or {each.kind for each in found.suspicious_values} & {"repeated", "changed"}


@pytest.mark.parametrize("levels", [("1", "1.0000000000000001"), ("37", "38"), ("42", "43")])
def test_levels_that_a_float_does_not_tell_apart(levels: tuple[str, str]) -> None:
    answers = ["a", "b"] * 50
    pairs = rx.poisoning.ReportPairs(rx.Categorical(["a", "b"]))
    pairs.add([answers, answers], epsilons=levels)
    assert not rx.poisoning.check_pairs(pairs).is_alarm


def test_a_hash_that_is_repeated_names_values_that_it_supports() -> None:
    hashes = rx.LocalHash(range(6), buckets=4)
    older, newer = released(hashes, np.arange(6_000) % 6, ("0.5", "2"))
    report = newer[0].copy()
    for each in (older, newer):
        each[:600] = report
    found = rx.poisoning.check_reports(hashes, older, newer, older_epsilon="0.5", newer_epsilon="2")
    supported = set(np.flatnonzero(count_supported_labels(hashes, *read_report_column(hashes, newer[:1]))))
    assert {each.kind for each in found.suspicious_values} == {"repeated"}
    assert {each.label for each in found.suspicious_values} <= supported


@pytest.mark.parametrize("levels", [("0.5", "2"), EPSILONS])
def test_the_alarm_begins_where_the_result_states_it(levels: tuple[str, ...]) -> None:
    """Only all values together are tested here, so expected counts decide. Levels of a schedule divide the stakes."""
    answers = rx.Categorical(range(3_000))

    def check(repeaters: int) -> rx.poisoning.PoisoningTest:
        pairs = rx.poisoning.ReportPairs(answers)
        for place, (older, newer) in enumerate(pairwise(map(answers.level, levels))):
            kept = float(older.retention / newer.retention)
            equal = round(repeaters + (100_000 - repeaters) * (kept + (1 - kept) / 3_000))
            for superseded in {False, place + 2 < len(levels)}:
                pairs.add_counts(np.array([100_000, equal]), (older, newer), superseded=superseded)
        return rx.poisoning.check_pairs(pairs, levels=levels)

    stated = check(0).n_unnoticed_repeaters
    assert 100 < stated < 2_000
    assert check(stated).n_unnoticed_repeaters == stated  # does not depend on reports
    assert not check(stated - 2).is_alarm
    assert check(stated + 3).is_alarm
