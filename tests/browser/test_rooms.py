"""The rooms of the pages: what they share is the kit's, and the device's end of the wire stands alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "src" / "relaxdp" / "web"
MAY_IMPORT = {
    "device": {"device"},
    "kit": {"kit", "device"},
    "survey": {"survey", "kit", "device"},
    "dashboard": {"dashboard", "kit", "device"},
    "market": {"market", "kit", "device"},
}
SPECIFIER = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["']([^"'\s()]+)["']""")


def room(file: Path) -> str:
    return file.relative_to(WEB).parts[0]


def imports_of(file: Path) -> set[str]:
    """The rooms that a script takes something from, types included."""
    found = set()
    for name in SPECIFIER.findall(file.read_text("utf-8")):
        assert name.startswith("."), f"{file}: {name} is not a file of the pages"
        place = (file.parent / name).resolve()
        assert place.is_file(), f"{file}: there is no {name}"
        found.add(room(place))
    return found


def test_rooms() -> None:
    files = list(WEB.rglob("*.js"))
    assert len(files) > 40
    for file in files:
        assert room(file) in MAY_IMPORT, f"{file.name} stands in no room"
        strangers = imports_of(file) - MAY_IMPORT[room(file)]
        assert not strangers, f"{file.relative_to(WEB)} imports from {strangers}"


def test_pages_use_their_own_styles() -> None:
    for page in WEB.rglob("*.html"):
        named = re.findall(r'"[./]*static/([^"]+)"', page.read_text("utf-8"))
        assert len(named) > 3
        assert {name.split("/")[0] for name in named} <= {room(page), "kit"}
        assert all((WEB / name).is_file() for name in named)


@pytest.mark.parametrize(
    "line",
    [
        'import { a } from "../market/list.js";',
        'import "../market/list.js";',
        'export { a } from "../market/list.js";',
        'const { a } = await import("../market/list.js");',
        '/** @typedef {import("../market/list.js").A} A */',
    ],
)
def test_an_import_of_another_page_would_be_seen(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.browser.test_rooms.WEB", tmp_path)
    for name in ("market", "survey"):
        (tmp_path / name).mkdir()
    (tmp_path / "market" / "list.js").write_text("")
    (tmp_path / "survey" / "main.js").write_text(line)
    assert imports_of(tmp_path / "survey" / "main.js") == {"market"}


def test_the_tools_come_from_everybody_s_own_registry() -> None:
    """A lock file that names the registry of whoever made it would send everybody else there."""
    lock = (WEB.parents[2] / "package-lock.json").read_text("utf-8")
    assert '"integrity"' in lock
    assert not re.search(r'"resolved"|registry', lock)
