"""The shell commands of the README and of the page for data holders run, in order, on a small table."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from typer.testing import CliRunner

from relaxdp.cli.main import app

ROOT = Path(__file__).parents[2]


def commands(page: Path) -> list[list[str]]:
    """Every `relaxdp ...` of a page's sh blocks; comments dropped, continued lines joined."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["relaxdp"]:
                found.append(words[1:])
    return found


@pytest.mark.parametrize("name", ["README.md", "docs/data-holder.md"])
def test_shell_blocks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    truth = np.random.default_rng(1).choice(["flu", "covid", "none"], 2000)
    pa_parquet.write_table(pa.table({"patient": np.arange(2000), "diagnosis": truth}), "patients.parquet")
    run = commands(ROOT / name)
    assert len(run) >= 3
    for words in run:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (words, result.output, result.exception)
