"""The notebook's code cells run from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "relaxing.ipynb"


def test_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}, cell {number}", "exec"), names)
    assert "adding up would claim 5.2" in capsys.readouterr().out
