"""The examples run as they are, in seconds, and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

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
