"""Honest campaigns are not accused, however often somebody looks; dishonest ones are, and shares come back.

Seeds are written down. The rates are those of many campaigns; a bound lies four standard errors away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from relaxdp import Categorical, LocalHash, Numeric, Unary
from relaxdp.estimation.poisoning import FALSE_ALARM_RATE, PoisoningTest, ReportPairs, check_pairs
from relaxdp.estimation.report_pairs import MAX_TRACKED_LABELS
from relaxdp.mechanisms.report_arrays import pack_reports

Codes = NDArray[np.int64]
VALUES, EPSILONS = 10, ("0.5", "1", "2")


def path(rng: np.random.Generator, mechanism: Any, truths: Codes, epsilons: tuple[str, ...]) -> list[Codes]:
    """Honest reports at all levels, oldest first: the truth is blurred to the newest, and that one to the next."""
    keeps = [float(mechanism.level(each).retention) for each in epsilons]
    reports, above = [truths], 1.0
    for keep in reversed(keeps):
        noise = rng.integers(0, mechanism.alphabet, truths.shape)
        reports.insert(0, np.where(rng.random(truths.shape) < keep / above, reports[0], noise))
        above = keep
    return reports[:-1]


def add(pairs: ReportPairs, older: Codes, newer: Codes, older_epsilon: str, newer_epsilon: str) -> None:
    """Add columns of codes, which are counted in no time."""
    size = len(pairs.mechanism.labels)
    both = np.bincount(older[older == newer], minlength=size)
    counts = [np.array([len(newer), both.sum()]), *(np.bincount(each, minlength=size) for each in (newer, older)), both]
    pairs.add_counts(
        np.concatenate(counts), (pairs.mechanism.level(older_epsilon), pairs.mechanism.level(newer_epsilon))
    )


def one_look(rng: np.random.Generator, objects: int, fakes: int = 0, *, wanted: int = 3) -> tuple[PoisoningTest, Any]:
    """A campaign of two levels in which some always send what they want; with the share of it among all others."""
    answers = Categorical(range(VALUES))
    truths = rng.integers(0, VALUES, objects)
    older, newer = path(rng, answers, truths, ("0.5", "2"))
    older[:fakes] = newer[:fakes] = wanted
    pairs = ReportPairs(answers)
    add(pairs, older, newer, "0.5", "2")
    return check_pairs(pairs), np.mean(truths[fakes:] == wanted)


def check_uniform(chances: list[float]) -> None:
    """The largest distance from the uniform law (Kolmogorov-Smirnov) is what chance allows once in 10,000 times."""
    ordered = np.sort(chances)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    distance = max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1]))
    assert distance < 2.23 / np.sqrt(len(ordered))


def test_the_p_value_is_uniform_where_all_are_honest() -> None:
    rng = np.random.default_rng(2311)
    check_uniform([one_look(rng, 2_000)[0].p_value for _ in range(300)])


@pytest.mark.long
@pytest.mark.parametrize("objects", [500, 10_000])
def test_the_p_value_is_uniform_over_2000_campaigns(objects: int) -> None:
    rng = np.random.default_rng(2312)
    found = [one_look(rng, objects)[0] for _ in range(2_000)]
    check_uniform([each.p_value for each in found])
    assert sum(each.is_alarm for each in found) <= 2_000 * FALSE_ALARM_RATE


def alarms_of_daily_looks(runs: int, days: int, seed: int, false_alarms: float) -> int:
    """How many honest campaigns ever raise an alarm: three levels, devices that come late, stop early or skip one."""
    rng = np.random.default_rng(seed)
    answers = Categorical(range(4))
    alarms = 0
    for _ in range(runs):
        reports = path(rng, answers, rng.choice(4, 1_500, p=[0.6, 0.2, 0.15, 0.05]), EPSILONS)
        came = np.sort(rng.integers(0, days + days // 2, (3, 1_500)), axis=0)
        has_middle = rng.random(1_500) < 0.8
        for day in range(1, days + 1):
            pairs = ReportPairs(answers)
            for old, new, chosen in ((0, 1, has_middle), (1, 2, has_middle), (0, 2, ~has_middle)):
                here = chosen & (came[new] < day)
                add(pairs, reports[old][here], reports[new][here], EPSILONS[old], EPSILONS[new])
            if check_pairs(pairs, levels=EPSILONS, false_alarm_rate=false_alarms).is_alarm:
                alarms += 1
                break
    return alarms


def test_looking_every_day_raises_no_more_false_alarms() -> None:
    assert alarms_of_daily_looks(40, 10, 2313, 0.2) <= 8 + 4 * np.sqrt(40 * 0.2 * 0.8)


@pytest.mark.long
def test_looking_every_day_raises_no_more_false_alarms_in_2000_campaigns() -> None:
    assert alarms_of_daily_looks(2_000, 30, 2314, FALSE_ALARM_RATE) <= 2_000 * FALSE_ALARM_RATE


def check_power(runs: int, seed: int) -> None:
    """One in a hundred always sends a wanted value: found, named, and left out of the share."""
    rng = np.random.default_rng(seed)
    found, plain, corrected = 0, [], []
    for _ in range(runs):
        checked, share = one_look(rng, 100_000, 1_000)
        found += [(each.label, each.kind) for each in checked.suspicious_values] == [(3, "repeated")]
        assert checked.uncleaned_shares is not None
        plain.append(checked.uncleaned_shares.value[3] - share)
        assert checked.cleaned_shares is not None
        corrected.append(checked.cleaned_shares.value[3] - share)
        low, high = checked.fabricator_count.low, checked.fabricator_count.high
        assert low - 100 < 1_000 < high + 100
    assert found >= 0.99 * runs
    assert np.mean(np.square(corrected)) <= np.mean(np.square(plain)) / 25


def test_one_in_a_hundred_is_found_and_named() -> None:
    check_power(25, 2315)


@pytest.mark.long
def test_one_in_a_hundred_is_found_and_named_in_400_runs() -> None:
    check_power(400, 2316)


@pytest.mark.parametrize(
    ("mechanism", "levels"),
    [
        (Numeric(0, 1), ("0.5", "2")),
        (Numeric(0, 1), EPSILONS),
        (Categorical(range(10)), ("0.5", "2")),
        (Categorical(range(MAX_TRACKED_LABELS + 1)), ("0.5", "8")),
    ],
    ids=["two ends", "two ends, three levels", "ten values", "values that are not counted"],
)
def test_the_stated_number_of_repeaters_is_where_the_test_begins_to_notice_them(
    mechanism: Any, levels: tuple[str, ...]
) -> None:
    """Numbers have two reports, which are equal by chance more often, so more individuals can repeat theirs."""
    rng = np.random.default_rng(2320)

    def look(repeaters: int) -> PoisoningTest:
        reports = path(rng, mechanism, rng.integers(0, mechanism.alphabet, 20_000), levels)
        for each in reports:
            each[:repeaters] = reports[-1][:repeaters]
        pairs = ReportPairs(mechanism)
        pairs.add(reports, epsilons=levels)
        return check_pairs(pairs, levels=levels)

    checked = look(0)
    stated = checked.n_unnoticed_repeaters
    assert 1 < stated < 2_000
    assert f"About {stated:,} of 20,000 individuals ({stated / 20_000:.1%}) can repeat every report" in repr(checked)
    assert sum(look(stated // 2).is_alarm for _ in range(40)) < 10
    assert sum(look(stated * 3 // 2).is_alarm for _ in range(40)) > 30


@pytest.mark.parametrize("made_up", ["truth", "report"])
def test_who_blurs_a_lie_honestly_passes_and_gains_no_more_than_the_bound(made_up: str) -> None:
    rng = np.random.default_rng(2317)
    answers, objects, liars = Categorical(range(VALUES)), 100_000, 5_000
    truths = rng.integers(0, VALUES, objects)
    share = np.mean(truths[liars:] == 3)
    lies = truths.copy()
    lies[:liars] = 3
    older, newer = path(rng, answers, lies, ("0.5", "2"))
    if made_up == "report":
        newer[:liars] = 3
        keep = float(answers.level("0.5").retention / answers.level("2").retention)
        older[:liars] = np.where(rng.random(liars) < keep, 3, rng.integers(0, VALUES, liars))
    pairs = ReportPairs(answers)
    add(pairs, older, newer, "0.5", "2")
    checked = check_pairs(pairs)
    assert not checked.is_alarm
    assert checked.p_value > 1e-4
    assert checked.undetected_influence is not None
    assert checked.uncleaned_shares is not None
    gain = checked.uncleaned_shares.value[3] - share
    assert (
        gain <= checked.undetected_influence.individuals * liars / objects + 4 * checked.uncleaned_shares.std_error[3]
    )
    if made_up == "report":  # the bound is what somebody without the value reaches
        assert gain >= 0.8 * checked.undetected_influence.individuals * liars / objects


@pytest.mark.parametrize("mechanism", [Unary(range(VALUES)), LocalHash(range(VALUES), buckets=8)], ids=["bits", "hash"])
def test_bits_and_hashes(mechanism: Any) -> None:
    """Honest ones pass, and 2 % that always send what they want are found; the share comes back."""
    rng = np.random.default_rng(2318)
    objects, fakes, encoding = 40_000, 800, mechanism
    truths = rng.integers(0, VALUES, objects)
    seeds = None
    if encoding.seeded:
        seeds = rng.integers(0, 1 << 63, objects).astype(np.uint64)
        supports = np.stack([encoding.find_supported_labels(np.full((objects, 1), b), seeds) for b in range(8)], axis=1)
        symbols = np.argmax(supports[np.arange(objects), :, truths], axis=1)[:, None]
    else:
        symbols = np.zeros((objects, VALUES), dtype=np.int64)
        symbols[np.arange(objects), truths] = rng.integers(0, 2, objects)
    reports = path(rng, mechanism, symbols, ("0.5", "2"))
    for made_up in (0, fakes):
        for codes in reports:
            if encoding.seeded:
                codes[:made_up, 0] = np.argmax(supports[:made_up, :, 3], axis=1)
            elif made_up:
                codes[:made_up] = np.arange(VALUES) == 3
        packed = [pack_reports(encoding, codes.astype(np.uint8), seeds) for codes in reports]
        pairs = ReportPairs(mechanism)
        pairs.add(packed, epsilons=["0.5", "2"])
        checked = check_pairs(pairs)
        assert checked.is_alarm == bool(made_up)
        assert checked.p_value < 1e-6 if made_up else checked.p_value > 1e-3
    assert (checked.suspicious_values[0].label, checked.suspicious_values[0].kind) == (3, "repeated")
    assert checked.fabricator_count.low <= fakes <= checked.fabricator_count.high
    share = np.mean(truths[fakes:] == 3)
    assert checked.uncleaned_shares is not None
    assert checked.cleaned_shares is not None
    error = abs(checked.cleaned_shares.value[3] - share)
    assert error < 4 * checked.cleaned_shares.std_error[3]
    assert error < abs(checked.uncleaned_shares.value[3] - share) / 2
