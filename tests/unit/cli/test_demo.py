"""A demo that fails leaves nothing behind, and takes nothing away that was there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

from relaxdp.cli import demo
from relaxdp.errors import TableFileError


def test_the_column_is_the_one_of_the_census() -> None:
    people = demo._make_true_answers()
    assert (len(people), int(people.sum())) == (214_144, 106_417)
    assert set(people.tolist()) == {0, 1}
    assert np.abs(people.reshape(2, -1).mean(axis=1) - people.mean()).max() < 0.01  # mixed, as people are


def test_it_needs_no_more_than_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.ticker"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(demo, "COUNTS", (600, 400))
    monkeypatch.setattr(demo, "_kill_and_repeat_release", lambda *_: None)
    demo.run_demo(tmp_path / "demo")
    assert "A picture of this: pip install 'relaxdp[plot]'" in capsys.readouterr().out
    assert not (tmp_path / "demo" / "demo.png").exists()


@pytest.mark.parametrize("problem", [TableFileError("the disk is full."), KeyboardInterrupt()])
def test_nothing_is_left_where_it_stops_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def stop(*_: Any) -> None:
        assert (tmp_path / "demo" / demo.VAULT / "key").exists()
        assert (tmp_path / "demo" / demo.PEOPLE).exists()
        raise problem

    monkeypatch.setattr(demo, "_make_true_answers", lambda: np.array([0, 1, 1]))
    monkeypatch.setattr(demo, "_release_at_all_levels", stop)
    with pytest.raises(type(problem)):
        demo.run_demo(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with refused(TableFileError, says="was not made by the demo"):
        demo.run_demo(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]
