"""Commands of the README and of pages for data holders run in order, and print what is shown below them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.play import PAGES, is_like, play

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


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    monkeypatch.chdir(tmp_path)
    played = list(play(page))
    assert played
    for each in played:
        assert each.fits, f"{each.source}\n{each.got}\nTo renew the page: python -m tests.docs.play"


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_shell_blocks(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(play(page, kinds=("sh",))) == []
    assert len(commands(ROOT / page)) >= 3


def test_estimates_may_differ_by_noise() -> None:
    assert is_like("flu 0.1512 of 3", "flu 0.1489 of 3")
    assert not is_like("flu 0.1512 of 3", "flu 0.2512 of 3")
    assert not is_like("flu 0.1512 of 3", "flu 0.1512 of 4")
