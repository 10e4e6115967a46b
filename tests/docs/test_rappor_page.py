"""The page for RAPPOR's users: its commands run on small files, and its figures come out of the example."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from tests.docs.test_shell_blocks import commands
from typer.testing import CliRunner

from relaxdp.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "rappor.md"


def test_shell_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (generator,) = [block for block in found if "clients.csv" in block]
    exec(compile(generator, PAGE.name, "exec"), {})
    run = commands(PAGE)
    assert len(run) == 6
    for line in run:
        words_of, _, target = " ".join(line).partition(" > ")
        result = CliRunner().invoke(app, words_of.split())
        assert result.exit_code == 0, (line, result.output, result.exception)
        if target:
            Path(target).write_text(result.stdout)
    assert Path("words.png").stat().st_size > 2000


def test_figures_of_the_attack_are_what_the_example_measures(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "rappor_attack.py"))
    example["main"]()
    shown = capsys.readouterr().out
    page = PAGE.read_text("utf-8")
    table = [line for line in page.splitlines() if line.startswith("| ") and "7.4 %" in line]
    assert len(table) == 5
    for line in table:
        cells = [cell.strip().replace(" %", "%") for cell in line.strip("|").split("|")]
        printed = next(each.split() for each in shown.splitlines() if each.split()[:1] == [cells[0]])
        assert [cell.replace("0%", "0.0%") if cell == "0%" else cell for cell in cells[1:5]] == printed[1:5]
    assert "2.755 by sampling, 0.953 by relaxation" in shown
    assert "25.1%  17.9%" in shown


def test_relaxation_gives_away_no_more_than_its_last_report() -> None:
    """On fewer devices: samples add up to the permanent response; reports of relaxation do not add up."""
    example = runpy.run_path(str(ROOT / "examples" / "rappor_attack.py"))
    devices = example["Devices"](600)
    classic = example["classic_attack"](devices)
    held, steps = example["relaxed_attack"](devices)
    assert classic[-1][3] > 0.99
    assert classic[-1][4] > 2 * classic[0][4]
    assert len({named for _, _, named in held}) == 1
    assert all(last >= average - 0.02 for _, last, average in steps)


def test_figures_are_drawn(tmp_path: Path) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "rappor_attack.py"))
    example["main"](tmp_path, 200)
    for name in ("rappor-variance.png", "rappor-attack.png"):
        assert (tmp_path / name).stat().st_size > 10_000
        assert (ROOT / "docs" / "figures" / name).stat().st_size < 100_000
