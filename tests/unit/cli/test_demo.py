"""A demo that fails leaves nothing behind, and takes nothing away that was there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused

from relaxdp.cli import demo
from relaxdp.errors import MissingPartError, TableFileError


def test_nothing_is_left_where_its_data_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "causaldata", None)
    with refused(MissingPartError, says="pip install 'relaxdp[demo]'"):
        demo.run(tmp_path / "deep" / "demo")
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_demo_stays_where_the_data_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / demo.MARK).touch()
    (tmp_path / "key").write_text("earlier")
    monkeypatch.setitem(sys.modules, "causaldata", None)
    with pytest.raises(MissingPartError):
        demo.run(tmp_path)
    assert (tmp_path / "key").read_text() == "earlier"


@pytest.mark.parametrize("problem", [TableFileError("the disk is full."), KeyboardInterrupt()])
def test_nothing_is_left_where_it_stops_halfway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def stop(*_: Any) -> None:
        assert (tmp_path / "demo" / "key").exists()
        assert (tmp_path / "demo" / demo.PEOPLE).exists()
        raise problem

    monkeypatch.setattr(demo, "_people", lambda: np.array([0, 1, 1]))
    monkeypatch.setattr(demo, "_release_all", stop)
    with pytest.raises(type(problem)):
        demo.run(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with refused(TableFileError, says="was not made by the demo"):
        demo.run(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]
