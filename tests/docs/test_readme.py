"""Every Python block of the documentation runs, and prints what its comments say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.docs import play
from typer.testing import CliRunner

from relaxdp.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALONE = [page for page in PAGES if str(page.relative_to(ROOT)) not in play.PAGES]
"""Pages whose Python blocks need no commands. Those of the others run in tests/docs/test_shell_blocks.py."""


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)


def test_commands_print_what_is_shown() -> None:
    """Every `$ relaxdp ...` of the documentation is run, and its output compared."""
    shown = 0
    for page in ALONE:
        for block in re.findall(r"```console\n\$ relaxdp (.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
            command, _, output = block.partition("\n")
            result = CliRunner(env={"COLUMNS": "80"}).invoke(app, shlex.split(command))
            lines = [line.rstrip() for line in result.output.rstrip().splitlines()]
            assert lines == output.rstrip().splitlines(), f"{page.name}: relaxdp {command}"
            shown += 1
    assert shown


@pytest.mark.parametrize("page", [page for page in ALONE if blocks(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    has_random_key = any("Vault.create" in block for block in blocks(page))
    for block in blocks(page):
        played = play.run_python(block, names, str(page))
        assert played.got == played.shown or (has_random_key and played.fits), played.got


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_targets_named_in_the_documentation_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", page.read_text("utf-8"), flags=re.MULTILINE))
        assert {first or second for first, second in named} <= targets, page.name
