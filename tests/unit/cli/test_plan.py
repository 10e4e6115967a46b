"""`relaxdp plan`: the third of three, a schedule's steps, JSON for programs, and one sentence for a mistake."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from relaxdp.cli.main import app, main
from relaxdp.estimation.planning import find_epsilon, find_margin, find_n, plan

RUNNER = CliRunner()


def run(*words: str) -> str:
    shown = RUNNER.invoke(app, ["plan", *words], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.output


def answer(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json"))
    return found


def test_two_give_the_third() -> None:
    found = answer("--margin", "0.01", "--n", "100000", "--values", "5")
    assert (found["found"], found["epsilon"]) == ("epsilon", str(find_epsilon(0.01, n=100_000, planned_values=5)))
    assert found["margin"] <= found["wanted_margin"] == 0.01
    found = answer("--margin", "0.01", "--epsilon", "1", "--values", "5", "--share", "0.2")
    assert (found["found"], found["n"]) == ("n", find_n(0.01, epsilon=1, planned_values=5, share=0.2))
    found = answer("--n", "100000", "--epsilon", "1", "--values", "5", "--confidence-level", "0.9")
    assert found["found"] == "margin"
    assert found["margin"] == find_margin(n=100_000, planned_values=5, epsilon=1, confidence_level=0.9)
    assert found["wanted_margin"] is None


def test_what_the_interval_is_about() -> None:
    words = ("--margin", "0.01", "--n", "100000", "--values", "5", "--about", "population", "--simultaneous")
    found = answer(*words)
    wanted = find_epsilon(0.01, n=100_000, planned_values=5, about="population", simultaneous=True)
    assert found["epsilon"] == str(wanted)
    assert (found["about"], found["simultaneous"], found["share"]) == ("population", True, None)
    assert "95 % intervals of all values at once, about the population." in run(*words)


def test_table() -> None:
    shown = run("--margin", "0.01", "--n", "100000", "--values", "5", "--share", "0.1")
    assert (
        "100,000 individuals, 5 values as k-ary randomized response, a share of 0.1; 95 % intervals of each value, "
        in shown
    )
    assert "epsilon (found)" in shown
    assert "0.9235" in shown


def test_steps_and_the_stop() -> None:
    words = ("--n", "100000", "--values", "5", "--margin", "0.012")
    schedule = ("--schedule", "linear:0.1,2,5")
    found = answer(*words, *schedule)
    assert [step["epsilon"] for step in found["steps"]] == ["0.1", "0.575", "1.05", "1.525", "2"]
    assert [step["met"] for step in found["steps"]] == [False, False, True, True, True]
    assert found["stop_at"] == "1.05"
    assert "Stop at epsilon 1.05: the margin of error is 0.0113." in run(*words, *schedule)


@pytest.mark.parametrize(
    ("schedule", "levels"),
    [
        ("geometric:0.1,0.8,4", ["0.1", "0.2", "0.4", "0.8"]),
        ("noisy-sampling:1,0.5,2", ["0.227336", "0.43378"]),
        ("0.1, 0.5,1", ["0.1", "0.5", "1"]),
    ],
)
def test_every_schedule(schedule: str, levels: list[str]) -> None:
    words = ("--n", "1000", "--values", "2", "--schedule", schedule)
    found = answer(*words)
    assert [step["epsilon"] for step in found["steps"]] == levels
    assert {step["met"] for step in found["steps"]} == {None}
    assert all(level in run(*words) for level in levels)


def test_a_schedule_that_ends_too_early() -> None:
    words = ("--n", "1000", "--values", "2", "--schedule", "0.1,0.5")
    assert "precise enough: it takes epsilon 3.802." in run(*words, "--margin", "0.01")
    assert answer(*words, "--margin", "0.01")["stop_at"] is None
    assert "even without noise, the margin is 0.0315" in run(*words, "--margin", "0.01", "--about", "population")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "Pass two of margin= (--margin), n= (--n) and epsilon= (--epsilon), such as"),
        (
            "--n 5 --epsilon 1 --margin 0.1",
            "Pass two of margin= (--margin), n= (--n) and epsilon= (--epsilon), such as",
        ),
        ("--n 5 --epsilon x", "Epsilon must be a number such as 0.5 or '0.5', not 'x'."),
        ("--n 0 --epsilon 1", "`n` must be a whole number from 1 to 1,000,000,000,000,000, not 0."),
        ("--n 5 --margin 2", "`margin` must be a number between 0 and 0.5, not 2.0."),
        ("--schedule linear:1 --n 5", "--schedule 'linear:1' is not a schedule."),
        ("--schedule steep:1,2,3 --n 5", "or linear:FIRST,LAST,STEPS or geometric:FIRST,LAST,STEPS or noisy-sampling:"),
        ("--schedule linear:1,2,x --n 5", "--schedule 'linear:1,2,x' is not a schedule."),
        ("--schedule 1", "Pass n= (--n), such as n=10_000."),
        ("--schedule 2,1 --n 5", "The schedule decreases from 2 to 1. A released report cannot be taken back."),
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
    steps = answer("--range", "0", "100", "--n", "5000")["steps"]
    assert [step["mechanism"] for step in steps] == ["numeric"] * 4 + ["wave"] * 4
    said = answer("--range", "0", "100", "--n", "5000", "--epsilon", "4", "--mechanism", "wave:bins=32")
    expected = plan(range=(0, 100), bins=32, mechanism="wave", n=5000, epsilon=4)
    assert said["margin"] == expected.margin
