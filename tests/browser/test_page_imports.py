"""Folders of the web pages: pages share only `kit` and `device`, and `device` imports nothing else."""

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


def get_folder(file: Path) -> str:
    return file.relative_to(WEB).parts[0]


def imports_of(file: Path) -> set[str]:
    """The folders that a script imports from, types included."""
    found = set()
    for name in SPECIFIER.findall(file.read_text("utf-8")):
        assert name.startswith("."), f"{file}: {name} is not a file of the pages"
        place = (file.parent / name).resolve()
        assert place.is_file(), f"{file}: there is no {name}"
        found.add(get_folder(place))
    return found


def test_a_page_imports_only_from_itself_kit_and_device() -> None:
    files = list(WEB.rglob("*.js"))
    assert len(files) > 40
    for file in files:
        assert get_folder(file) in MAY_IMPORT, f"{file.name} is in no known folder"
        strangers = imports_of(file) - MAY_IMPORT[get_folder(file)]
        assert not strangers, f"{file.relative_to(WEB)} imports from {strangers}"


def test_pages_use_their_own_styles() -> None:
    for page in WEB.rglob("*.html"):
        named = re.findall(r'"[./]*static/([^"]+)"', page.read_text("utf-8"))
        assert len(named) > 3
        assert {name.split("/")[0] for name in named} <= {get_folder(page), "kit"}
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
    monkeypatch.setattr("tests.browser.test_page_imports.WEB", tmp_path)
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
