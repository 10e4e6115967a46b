"""The shell commands of the README and of some pages run, in order, on the table that the data holder's page makes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

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


@pytest.mark.parametrize("name", ["README.md", "docs/data-holder.md", "docs/install.md"])
def test_shell_blocks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/data-holder.md").read_text("utf-8"), re.DOTALL)
    exec(compile(generator, "data-holder.md", "exec"), {})  # the table of all of them
    run = commands(ROOT / name)
    assert len(run) >= 3
    for words in run:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (words, result.output, result.exception)
