"""`relaxdp plan`: the third of three, a schedule's steps, JSON for programs, and one sentence for a mistake."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app, main
from relaxdp.errors import PlanError
from relaxdp.estimation.planning import epsilon_for, half_width, objects_for, plan

RUNNER = CliRunner()


def run(*words: str) -> str:
    shown = RUNNER.invoke(app, ["plan", *words], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.output


def answer(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json"))
    return found


def test_two_give_the_third() -> None:
    found = answer("--half-width", "0.01", "--objects", "100000", "--values", "5")
    assert (found["found"], found["epsilon"]) == ("epsilon", str(epsilon_for(0.01, objects=100_000, values=5)))
    assert found["half_width"] <= found["wanted_half_width"] == 0.01
    found = answer("--half-width", "0.01", "--epsilon", "1", "--values", "5", "--share", "0.2")
    assert (found["found"], found["objects"]) == ("objects", objects_for(0.01, epsilon=1, values=5, share=0.2))
    found = answer("--objects", "100000", "--epsilon", "1", "--values", "5", "--confidence", "0.9")
    assert found["found"] == "half_width"
    assert found["half_width"] == half_width(objects=100_000, values=5, epsilon=1, confidence_level=0.9)
    assert found["wanted_half_width"] is None


def test_what_the_interval_is_about() -> None:
    words = ("--half-width", "0.01", "--objects", "100000", "--values", "5", "--about", "population", "--simultaneous")
    found = answer(*words)
    wanted = epsilon_for(0.01, objects=100_000, values=5, about="population", simultaneous=True)
    assert found["epsilon"] == str(wanted)
    assert (found["about"], found["simultaneous"], found["share"]) == ("population", True, None)
    assert "95 % intervals of all values at once, about the population." in run(*words)


def test_table() -> None:
    shown = run("--half-width", "0.01", "--objects", "100000", "--values", "5", "--share", "0.1")
    assert (
        "100,000 objects, 5 values as categorical, a share of 0.1; 95 % intervals of each value, about these objects."
        in shown
    )
    assert "epsilon (found)" in shown
    assert "0.9235" in shown


def test_steps_and_the_stop() -> None:
    words = ("--objects", "100000", "--values", "5", "--half-width", "0.012")
    schedule = ("--schedule", "linear", "--first", "0.1", "--last", "2", "--steps", "5")
    found = answer(*words, *schedule)
    assert [step["epsilon"] for step in found["steps"]] == ["0.1", "0.575", "1.05", "1.525", "2"]
    assert [step["met"] for step in found["steps"]] == [False, False, True, True, True]
    assert found["stop_at"] == "1.05"
    assert "Stop at epsilon 1.05: the half-width is 0.0113." in run(*words, *schedule)


@pytest.mark.parametrize(
    ("schedule", "levels"),
    [
        (("geometric", "--first", "0.1", "--last", "0.8", "--steps", "4"), ["0.1", "0.2", "0.4", "0.8"]),
        (("noisy-sampling", "--alpha", "1", "--beta", "0.5", "--steps", "2"), ["0.227336", "0.43378"]),
        (("explicit", "--levels", "0.1, 0.5,1"), ["0.1", "0.5", "1"]),
    ],
)
def test_every_schedule(schedule: tuple[str, ...], levels: list[str]) -> None:
    words = ("--objects", "1000", "--values", "2", "--schedule", *schedule)
    found = answer(*words)
    assert [step["epsilon"] for step in found["steps"]] == levels
    assert {step["met"] for step in found["steps"]} == {None}
    assert all(level in run(*words) for level in levels)


def test_a_schedule_that_ends_too_early() -> None:
    words = ("--objects", "1000", "--values", "2", "--schedule", "explicit", "--levels", "0.1,0.5")
    assert "precise enough: it takes epsilon 3.802." in run(*words, "--half-width", "0.01")
    assert answer(*words, "--half-width", "0.01")["stop_at"] is None
    assert "even without noise it is 0.0315" in run(*words, "--half-width", "0.01", "--about", "population")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "give the third. They are --half-width, --objects and --epsilon."),
        ("--objects 5 --epsilon 1 --half-width 0.1", "They are --half-width, --objects and --epsilon."),
        ("--objects 5 --epsilon x", "epsilon must be a number such as 0.5 or '0.5', not 'x'."),
        ("--objects 0 --epsilon 1", "the number of objects must be a whole number from 1 to 10^15, not 0."),
        ("--objects 5 --half-width 2", "a half-width lies between 0 and 0.5, like 0.01; not 2.0."),
        ("--objects 5 --half-width 0.1 --steps 3", "--steps belongs to a schedule: name one with --schedule."),
        ("--schedule linear --objects 5 --first 1", "needs --first and --last and --steps: --last is missing."),
        ("--schedule explicit --objects 5 --levels 1 --beta 1", "needs --levels: --beta does not belong to it."),
        ("--schedule explicit --levels 1", "Give --objects, and not --epsilon."),
        ("--schedule explicit --levels 2,1 --objects 5", "epsilon may only grow: 1 follows 2 in the schedule."),
    ],
)
def test_a_mistake_is_one_sentence(
    words: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["relaxdp", "plan", "--values", "5", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.out == ""
    assert sentence in shown.err
    assert shown.err.count("\n") == 1


def test_dates_add_up_and_a_change_is_of_two_of_them() -> None:
    made = answer("--values", "3", "--objects", "20000", "--epsilon", "1", "--dates", "3")
    (step,) = made["series"]
    assert (made["dates"], step["epsilon"], step["total"]) == (3, "1", "3")
    assert step["change_half_width"] == pytest.approx(2**0.5 * made["half_width"])
    assert "4 dates, each with a path of its own" in run("--values", "3", "--objects", "20000", "--dates", "4")
    with pytest.raises(PlanError):
        plan(values=3, objects=10, epsilon=1).over(0)


def test_numbers_are_planned_with_the_best_encoding() -> None:
    steps = answer("--range", "0", "100", "--objects", "5000")["steps"]
    assert [step["encoding"] for step in steps] == ["numeric"] * 4 + ["wave"] * 4
    assert [("median_half_width" in step) for step in steps] == [False] * 4 + [True] * 4
    said = answer("--range", "0", "100", "--objects", "5000", "--epsilon", "4", "--encoding", "wave:bins=32")
    expected = plan(range=(0, 100), bins=32, encoding="wave", objects=5000, epsilon=4)
    assert (said["half_width"], said["median_half_width"]) == (expected.half_width, expected.median)
    assert "The median is that of numbers spread evenly" in run(
        "--range", "0", "9", "--objects", "900", "--epsilon", "2"
    )
    assert "median" not in run("--range", "0", "9", "--objects", "900", "--epsilon", "1")


def test_a_schedule_of_waves_says_what_its_window_costs() -> None:
    """The best window for the last level has nearly twice the variance of the best one at the first."""
    words = ("--range", "0", "100", "--objects", "5000", "--schedule", "explicit", "--levels", "0.5,1,2,4")
    wide, middle, narrow = answer(*words)["windows"]
    assert [each["window"] for each in (wide, middle, narrow)] == [64, 32, 16]
    assert (narrow["is_planned"], narrow["best_at"], middle["best_at"]) == (True, ["4"], ["1", "2"])
    assert 1.85 < narrow["first_times"] == narrow["worst_times"] < 1.95
    assert narrow["last_times"] == wide["first_times"] == 1
    shown = run(*words)
    assert "16 (planned)" in shown
    assert "1.77 (least)" in shown
    assert "windows" not in answer(*words, "--encoding", "numeric")


def test_what_a_publication_costs() -> None:
    words = ["--values", "2", "--objects", "5000", "--schedule", "explicit", "--levels", "0.5,2", "--published"]
    found = answer(*words, "--delta", "1e-7")["published"]
    expected = [rx.shuffled(level, objects=5_000, delta=1e-7, values=2) for level in ("0.5", 2)]
    assert [level["epsilon"] for level in found["levels"]] == [str(each.epsilon) for each in expected]
    assert found["assumes"] == list(rx.Shuffled.assumes)
    shown = run(*words)
    assert "Published: one publication of a closed group of 5,000, delta 1e-06" in shown
    assert all(sentence in shown for sentence in rx.Shuffled.assumes)
    (dated,) = answer("--range", "0", "1", "--objects", "500", "--epsilon", "1", "--dates", "3", "--published")[
        "published"
    ]["levels"]
    assert (dated["publications"], dated["law"]) == (3, "numeric")
    (hashed,) = answer(
        "--values", "50", "--encoding", "local-hash:buckets=5", "--objects", "500", "--epsilon", "1", "--published"
    )["published"]["levels"]
    assert hashed["law"] == "local-hash"
    (both,) = answer("--values", "2", "--cross", "3", "--objects", "500", "--epsilon", "1", "--published")["published"][
        "levels"
    ]
    assert (both["report_epsilon"], both["law"]) == ("2", "whatever the reports are")
    assert "published" not in answer("--values", "2", "--objects", "50", "--epsilon", "1")


@pytest.mark.parametrize("more", [["--stop", "0.5=30%"], ["--delta", "tiny"], ["--delta", "0"]])
def test_what_has_no_price_towards_the_public(more: list[str]) -> None:
    words = ["--values", "2", "--objects", "50", "--epsilon", "1", "--published", *more]
    assert isinstance(RUNNER.invoke(app, ["plan", *words]).exception, PlanError)
    assert isinstance(RUNNER.invoke(app, ["plan", *words[:6], "--delta", "1e-6"]).exception, PlanError)
