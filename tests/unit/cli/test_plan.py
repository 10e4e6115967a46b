"""`relaxdp plan`: the third of three, a schedule's steps, JSON for programs, and one sentence for a mistake."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from relaxdp.cli.main import app, main
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
        ("", "Give two of --half-width, --objects and --epsilon."),
        ("--objects 5 --epsilon 1 --half-width 0.1", "Give two of --half-width, --objects and --epsilon."),
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
def test_a_mistake_is_an_error_and_a_hint(
    words: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["relaxdp", "plan", "--values", "5", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.out == ""
    assert sentence in shown.err
    assert shown.err.startswith("Error: ")
    assert shown.err.count("\n") <= 2


def test_numbers_are_planned_with_the_best_encoding() -> None:
    steps = answer("--range", "0", "100", "--objects", "5000")["steps"]
    assert [step["encoding"] for step in steps] == ["numeric"] * 4 + ["wave"] * 4
    said = answer("--range", "0", "100", "--objects", "5000", "--epsilon", "4", "--encoding", "wave:bins=32")
    expected = plan(range=(0, 100), bins=32, encoding="wave", objects=5000, epsilon=4)
    assert said["half_width"] == expected.half_width
