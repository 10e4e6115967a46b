"""README as an index shows it: no link leads nowhere, and no address is made up."""

from __future__ import annotations

import re
from pathlib import Path

from packages.index_page import LINK, addresses, shown

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_without_a_home_files_are_named() -> None:
    page = shown(README, None)
    assert not LINK.search(page)
    assert "docs/threat-model.md" in page
    assert "source distribution" in page
    assert addresses(None) == {}
    assert shown("[the map](docs/a.md#b) ![x](p.png) [docs/c.md](docs/c.md) [d](https://e.org)", None).startswith(
        "the map (`docs/a.md`)  docs/c.md [d](https://e.org)"
    )


def test_with_a_home_links_lead_there() -> None:
    page, home = shown(README, "https://code.example/relaxdp"), "https://code.example/relaxdp"
    assert not LINK.search(page)
    assert "source distribution" not in page
    targets = re.findall(rf"\({home}/(?:blob|raw)/main/([^)#]+)", page)
    assert targets
    for target in [*targets, *(each.partition("/main/")[2] for each in addresses(home).values())]:
        assert (ROOT / target).exists() or not target
    assert "![" not in README or f"]({home}/raw/main/docs/figures/" in page
