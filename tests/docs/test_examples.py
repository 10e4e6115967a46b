"""The examples run as they are, in seconds, and print what they promise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_disease_by_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    runpy.run_path(str(EXAMPLES / "disease_by_date.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.count("Share of covid") == 3
    assert shown.count("not yet") == 1
    assert "2026-01 was read at 0.5 then 1 then 2: it cost each person 2, not the sum 3.5." in shown


def test_the_estimates_sharpen_with_age() -> None:
    example = runpy.run_path(str(EXAMPLES / "disease_by_date.py"))
    month = next(iter(example["MONTHS"]))
    rows = [example["row"](month, today) for today in example["READINGS"]]
    ends = [[float(end) for end in row[4].split(" .. ")] for row in rows]
    widths = [high - low for low, high in ends]
    assert widths == sorted(widths, reverse=True)
    assert all(abs((high - low) / 2 - float(row[2])) < 0.002 for (low, high), row in zip(ends, rows, strict=True))


def test_market(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Pooling adds nothing, to the last digit shown, where independent answers would give nearly everything away."""
    monkeypatch.setenv("COLUMNS", "120")
    example = runpy.run_path(str(EXAMPLES / "market.py"), run_name="__main__")
    shown = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines() if line[:1] == "│"]
    guessed = {row[0]: [float(cell.rstrip("%")) for cell in row[1:]] for row in rows}
    assert guessed["all five, pooled"][:2] == guessed["dan, alone"][:2] == guessed["ada, alone"][:2]
    assert guessed["91 buyers of all levels, pooled"][:2] == guessed["the buyer of 1.00, alone"][:2]
    assert guessed["all five, pooled"][2] > guessed["all five, pooled"][1] + 8
    assert guessed["91 buyers of all levels, pooled"][2] > 95
    # 20,000 guesses have a standard error of 0.35 %.
    assert abs(guessed["dan, alone"][1] - 52.7) < 1.8
    assert abs(guessed["the buyer of 1.00, alone"][1] - 57.6) < 1.8
    one, pooled = (example["compute_likelihoods"](levels) for levels in (["0.80"], ["0.35", "0.80", "0.42"]))
    assert np.abs(one - pooled).max() < 1e-10
    assert float(re.search(r"equal up to (\S+)\.\n", shown)[1]) < 1e-10  # type: ignore[index]
    assert "cost a person epsilon 1.00. Independent answers would cost 50.05." in shown


def test_made_up_reports() -> None:
    """Attackers are noticed, the share comes back, and who blurs honestly gains no more than the bound."""
    example = runpy.run_path(str(EXAMPLES / "made_up_reports.py"))
    true, found = example["attack"]("categorical", 5)
    assert {each.label for each in found.suspicious_values} == {8, 9}
    assert abs(found.cleaned_shares.value[8] - true) < 0.01 < found.uncleaned_shares.value[8] - true
    true, careful = example["attack"]("bits", 5, careful=True)
    assert not careful.is_alarm
    assert careful.uncleaned_shares.value[8] < true + 0.05 * careful.undetected_influence.individuals + 0.01


@pytest.mark.long
def test_the_page_on_made_up_reports_has_what_the_example_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    runpy.run_path(str(EXAMPLES / "made_up_reports.py"), run_name="__main__")
    lines = [line.strip("│").split("│") for line in capsys.readouterr().out.splitlines() if line[:1] == "│"]
    page = (EXAMPLES.parent / "docs" / "made-up-reports.md").read_text("utf-8")
    assert len(lines) == 12
    for line in lines:
        assert "| " + " | ".join(cell.strip() for cell in line) + " |" in page
