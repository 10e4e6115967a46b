"""The paper, reproduced at one seed, and planted errors that the verdicts must catch.

Every check that chance enters has a false-alarm rate of at most 1e-6 (`relaxdp.paper.judge.RATE`); the seed is written
down, and fewer runs than the command makes keep this short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.docs.gallery_page import FIGURES, PAGE, gallery_page

from relaxdp.audit.attacks import compute_retentions
from relaxdp.hazmat import relax_once
from relaxdp.paper import feasibility, judge, proofs, tables, utility
from relaxdp.paper.claims import ClaimCheck, Verdict
from relaxdp.paper.lab import AlgorithmOne, Codes, Lab, LabSettings, Levels, Sampler, seeded
from relaxdp.paper.mean import as_printed
from relaxdp.paper.runner import CLAIMS, Run, chosen, data_files, judge_all
from relaxdp.theory.randomized_response import NOISE, compute_report_distribution

pytestmark = pytest.mark.long

SETTINGS = LabSettings(seed=2, runs=400, objects=200_000)


@pytest.fixture(scope="module")
def run() -> Run:
    return judge_all(CLAIMS, Lab(SETTINGS))


def test_every_checkable_claim_holds(run: Run) -> None:
    assert [each.claim.name for each in run.judged if each.verdict is Verdict.FAILS] == []
    unchecked = [each.claim.name for each in run.judged if each.verdict is Verdict.UNCHECKABLE]
    assert unchecked == ["collusion-proof-2009", "optimal-utility"]
    corrected = {each.claim.name for each in run.judged if each.verdict is Verdict.CORRECTED}
    assert {"mean", "one-step", "response-probability", "binary-variance", "noisy-sampling-variance"} <= corrected
    assert {"binary-proof", "feasibility-step", "feasibility-last-step", "mean-of-square"} <= corrected
    assert 0 < run.false_alarm < 1e-4
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def test_a_claim_alone_gives_the_same_numbers(run: Run) -> None:
    alone = judge_all(chosen(["experiment-1-variance"]), Lab(SETTINGS))
    assert dict(data_files(alone)).items() <= dict(data_files(run)).items()
    other = judge_all(chosen(["experiment-1-variance"]), Lab(LabSettings(seed=3, runs=400)))
    assert dict(data_files(other)) != dict(data_files(alone))


def test_gallery_is_of_these_figures(run: Run) -> None:
    assert PAGE.read_text("utf-8") == gallery_page(run), "run: python -m tests.docs.gallery_page"
    names = {f"paper-{name}.png" for each in run.judged for name in each.outcome.pictures}
    assert {path.name for path in FIGURES.glob("paper-*.png")} == names
    assert all((FIGURES / name).stat().st_size < 120_000 for name in names)


class OffByFivePercent(AlgorithmOne):
    """Retentions that are 5 % too high, or too low."""

    def __init__(self, seed: int, factor: Fraction) -> None:
        super().__init__(seed)
        self.factor = factor

    def transcripts(self, values: int, levels: Levels, truth: Codes, *, purpose: str) -> Codes:
        entropy = seeded(self.seed, purpose)
        old, last, rows = NOISE, None, []
        for keep in compute_retentions(levels, values):
            new = min(keep * self.factor, Fraction(999, 1000))
            last = relax_once(values, old, new, truths=truth, last_reports=last, entropy=entropy)
            rows.append(last)
            old = new
        return np.stack(rows)


class IndependentReports(Sampler):
    """A fresh response at every level: each is right, and together they give too much away."""

    name = "path"

    def transcripts(self, values: int, levels: Levels, truth: Codes, *, purpose: str) -> Codes:
        entropy = seeded(self.seed, purpose)
        keeps = compute_retentions(levels, values)
        return np.stack(
            [relax_once(values, NOISE, keep, truths=truth, last_reports=None, entropy=entropy) for keep in keeps]
        )


def verdicts(lab: Lab, *names: str) -> list[Verdict]:
    return [each.verdict for each in judge_all(chosen(names), lab).judged]


SENSITIVE = (
    "marginals", "composition", "mean",
    "experiment-1-frequency", "experiment-1-errors", "experiment-2-frequency", "experiment-2-errors",
)  # fmt: skip


@pytest.mark.parametrize("factor", [Fraction(105, 100), Fraction(95, 100)])
def test_a_retention_that_is_5_percent_off_is_caught(factor: Fraction) -> None:
    lab = Lab(SETTINGS, samplers=[OffByFivePercent(2, factor)])
    assert verdicts(lab, *SENSITIVE) == [Verdict.FAILS] * len(SENSITIVE)


def test_too_high_a_retention_is_caught_by_the_one_sided_test() -> None:
    lab = Lab(SETTINGS, samplers=[OffByFivePercent(2, Fraction(105, 100))])
    (judged,) = judge_all(chosen(["experiment-1-errors"]), lab).judged
    assert not next(check for check in judged.outcome.checks if "no attack is below" in check.name).passed
    private = Lab(SETTINGS, samplers=[OffByFivePercent(2, Fraction(95, 100))])
    (judged,) = judge_all(chosen(["experiment-1-errors"]), private).judged
    assert next(check for check in judged.outcome.checks if "no attack is below" in check.name).passed


def test_an_independent_second_report_is_caught() -> None:
    lab = Lab(SETTINGS, samplers=[IndependentReports(2)])
    caught = ("composition", "market", "experiment-1-errors", "experiment-2-errors")
    assert verdicts(lab, *caught) == [Verdict.FAILS] * 4
    assert verdicts(lab, "marginals", "experiment-1-frequency") == [Verdict.HOLDS] * 2  # each report alone is right


def test_the_printed_mean_formula_is_caught() -> None:
    assert verdicts(Lab(SETTINGS, mean=as_printed), "mean", "mean-of-square") == [Verdict.FAILS] * 2


def test_a_wrong_digit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tables.TABLES, "p_bb", tables.P_BB.replace("0.442", "0.443"))
    assert verdicts(Lab(SETTINGS), "table-p-bb", "table-p-aa") == [Verdict.HOLDS, Verdict.FAILS]


def test_proofs_do_not_hold_of_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh response at the new level, whatever the last one was."""

    def fresh(values: int, old: Fraction, new: Fraction, *, truth: int, last_report: int) -> list[Fraction]:
        return compute_report_distribution(values, new, truth=truth)

    monkeypatch.setattr(proofs, "compute_next_report_distribution", fresh)
    assert verdicts(Lab(SETTINGS), "binary-proof", "feasibility-last-step") == [Verdict.FAILS] * 2


def test_independent_reports_would_say_more_than_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def independent(values: int, keeps: tuple[Fraction, ...], reports: tuple[int, ...], *, truth: int) -> Fraction:
        laws = [compute_report_distribution(values, keep, truth=truth) for keep in keeps]
        return math.prod((law[report] for law, report in zip(laws, reports, strict=True)), start=Fraction(1))

    monkeypatch.setattr(utility, "compute_transcript_probability", independent)
    assert verdicts(Lab(SETTINGS), "optimal-utility") == [Verdict.FAILS]


@pytest.mark.parametrize("dropped", ["aa_bb", "ba_ab"])
def test_a_program_without_a_support_has_more_solutions(dropped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = feasibility.inequalities

    def fewer(values: int, old: float, new: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        left, limits = whole(values, old, new)
        keep = np.arange(len(limits)) != feasibility.SUPPORTS[dropped]
        keep &= np.arange(len(limits)) != feasibility.SUPPORTS["ca_cb"]  # this one follows from the others
        return left[keep], limits[keep]

    monkeypatch.setattr(feasibility, "inequalities", fewer)
    least, greatest = feasibility.solve(4, [(0.5, 1.0), (0.1, 2.0)])
    assert (greatest - least).max(axis=1).min() > 1e-3


CALIBRATED: dict[str, Callable[[np.random.Generator], ClaimCheck]] = {
    "means": lambda random: judge.means("", random.normal(3, 2, (4, 50)), np.full(4, 3), np.full(4, 4)),
    "variances": lambda random: judge.variances("", random.normal(3, 2, (4, 50)), np.full(4, 3), np.full(4, 4)),
    "rates": lambda random: judge.rates("", random.binomial(2000, [0.2, 0.5]), 2000, [0.2, 0.5]),
    "at_least": lambda random: judge.at_least("", random.binomial(2000, [0.3, 0.3]), 2000, 0.3),
    "histogram": lambda random: judge.histogram("", random.multinomial(5000, [0.2, 0.3, 0.5]), [0.2, 0.3, 0.5]),
}


@pytest.mark.parametrize("name", CALIBRATED)
def test_false_alarm_rates_are_what_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a rate of 5 %, correct data fail in at most 5 % of 2,000 trials; 6.7 % allows for chance, 1e-3 of it."""
    monkeypatch.setattr(judge, "RATE", 0.05)
    random = np.random.default_rng(701)
    failed = sum(not CALIBRATED[name](random).passed for _ in range(2000))
    assert 0.015 < failed / 2000 < 0.067


def test_a_larger_variance_is_confirmed_or_not() -> None:
    random = np.random.default_rng(702)
    small, large = random.normal(0, 1, 400), random.normal(0, 2, 400)
    assert judge.larger_variance("", large, small, 0, 4).passed
    assert not judge.larger_variance("", small, small[::-1], 0, 4).passed
    assert judge.larger_variance("", large, small, 0, 1.2).false_alarm > 0.5  # too small a ratio would be missed
