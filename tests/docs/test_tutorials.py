"""Whoever follows a tutorial on a bare machine has what its cells need: its first lines say what to install."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
NEEDS = {"plot": r"matplotlib|\.plot\(", "server": r"own_server", "pandas": r"import pandas"}


def installed(page: str) -> set[str]:
    """Return extras and packages of the first `pip install`."""
    found = re.search(r"`pip install ([^`]+)`", page.partition("```")[0])
    assert found, "it does not say what to install"
    return set(re.findall(r"[a-z]+", found[1]))


@pytest.mark.parametrize("name", sorted(page.stem for page in TUTORIALS.glob("[!i]*.md")))
def test_a_tutorial_says_what_it_needs(name: str) -> None:
    page = (TUTORIALS / f"{name}.md").read_text("utf-8")
    cells = "".join(re.findall(r"```\{code-cell\} python\n(.*?)```", page, flags=re.DOTALL))
    assert installed(page) == {"relaxdp"} | {need for need, used in NEEDS.items() if re.search(used, cells)}


def test_one_line_suffices_for_all() -> None:
    page = (TUTORIALS / "index.md").read_text("utf-8")
    assert "pip install 'relaxdp[demo]' pandas" in page
