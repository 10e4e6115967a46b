"""What pages weigh: bundles that are the same bytes twice, served beside the sources that they were made of alone."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.browser.bundles import ROOT, esbuild

from relaxdp.service.bundle import INDEX, MADE, PAGES, SOURCES, build, digest_of, read_folder
from relaxdp.service.page_files import SETTING, PageFile, PageFiles, enclosing


@pytest.fixture(autouse=True)
def _bundles_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by default, whatever tests of pages set for all of a session."""
    monkeypatch.delenv(SETTING, raising=False)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the pages as they are."""
    folder = tmp_path_factory.mktemp("bundle") / "bundled"
    build(esbuild(), bundle=folder)
    return folder


def test_the_same_sources_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    """Whoever has the sources can make what browsers run, in any folder, and compare."""
    shutil.copytree(SOURCES, tmp_path / "elsewhere" / "web")
    build(esbuild(), tmp_path / "elsewhere" / "web", tmp_path / "again")
    made = read_folder(bundle, (*MADE, INDEX))
    assert read_folder(tmp_path / "again", (*MADE, INDEX)) == made
    assert {name.split("/")[0] for name in made} == {*PAGES, INDEX}
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("tmp")] == []


def test_pages_load_a_bundle_of_the_very_sources(bundle: Path, tmp_path: Path) -> None:
    files = PageFiles(bundle=bundle)
    assert files.bundled
    for page in PAGES:
        text = files.page(page)
        place = f"static/{files.digest}/bundle/{page}"
        assert text.count('rel="stylesheet"') == text.count("<script") == 1
        for name in ("main.js", "style.css"):
            assert f'{place}/{name}"' in text
            found, lasting = files.find(f"{files.digest}/bundle/{page}/{name}")
            assert found is not None
            assert lasting
            assert found.content == (bundle / page / name).read_bytes()
    changed = tmp_path / "web"
    shutil.copytree(SOURCES, changed)
    with (changed / "device" / "path.js").open("a") as file:
        file.write("\n")
    assert not PageFiles(changed, bundle).bundled


def test_a_damaged_bundle_is_not_served(bundle: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "bundled"
    shutil.copytree(bundle, damaged)
    (damaged / "survey" / "main.js").write_text("alert(1)")
    assert not PageFiles(bundle=damaged).bundled
    index = json.loads((damaged / INDEX).read_text())
    assert index["made"] != digest_of(read_folder(damaged, MADE))
    (damaged / INDEX).unlink()
    assert not PageFiles(bundle=damaged).bundled


@pytest.mark.parametrize("page", PAGES)
def test_without_a_bundle_pages_say_which_modules_they_need(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded in advance is what the script imports, and all of it is there for ever."""
    monkeypatch.setenv(SETTING, "off")
    files = PageFiles()
    assert not files.bundled
    text = files.page(page)
    needed = [each.split('"')[0] for each in text.split('rel="modulepreload" href="')[1:]]
    assert len(needed) > 15
    assert any(each.endswith("/kit/dom.js") for each in needed)
    place = f"static/{files.digest}/"
    for name in needed:
        found, lasting = files.find(name.partition("static/")[2])
        assert place in name
        assert found is not None
        assert lasting
    assert ".d.ts" not in text
    assert f'{place}{page}/main.js"' in text


def test_an_address_lasts_only_while_nothing_changes() -> None:
    files = PageFiles()
    assert files.find("device/relaxdp.js")[1] is False
    for name in ("", "0" * 16, f"{'0' * 16}/device/relaxdp.js", f"{files.digest}/survey/page.html", f"{files.digest}/"):
        assert files.find(name)[0] is None


def test_packed_bytes_are_the_same_ones(bundle: Path, node: str) -> None:
    file = PageFile(b"a" * 5000, "text/plain", b"packed by somebody else")
    packed, coding = file.form("deflate, gzip")
    assert gzip.decompress(packed) == file.content
    assert (len(packed) < 100, coding) == (True, "gzip")
    assert file.form("") == file.form("identity, gzip; q=0, br;q=0.0") == (file.content, "")
    assert file.form("gzip, br;q=0.9") == (b"packed by somebody else", "br")
    script = 'process.stdout.write(require("zlib").brotliDecompressSync(require("fs").readFileSync(process.argv[1])))'
    for name in ("survey/main.js", "market/style.css"):
        line = [node, "-e", script, str(bundle / f"{name}.br")]
        assert subprocess.run(line, check=True, capture_output=True).stdout == (bundle / name).read_bytes()


def test_what_is_enclosed_cannot_act() -> None:
    """A question is a stranger's text; in an attribute it stays one."""
    hostile = json.dumps({"question": "\"><script>alert(1)</script>' onload=alert(2) </head>"}).encode()
    page = enclosing("<html><head>\n  </head></html>", hostile, '"tag"').decode()
    assert page.count("<") == 5
    assert page.count(">") == 5
    assert page.count('"') == 4


@pytest.mark.long
def test_the_wheel_has_the_bundle(tmp_path: Path) -> None:
    """Where node and its tools are there, a wheel has what pages load, and its sources beside it."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("hatch_build.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "packages", tree / "packages", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("bundled", "__pycache__", "*.so"))
    line = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run([*line, str(tmp_path / "without")], cwd=tree, check=True, capture_output=True)
    (tree / "node_modules").symlink_to(esbuild().parents[1])
    subprocess.run([*line, str(tmp_path / "with")], cwd=tree, check=True, capture_output=True)
    for folder, bundled in (("without", False), ("with", True)):
        (wheel,) = (tmp_path / folder).iterdir()
        place = tmp_path / f"{folder}-unpacked"
        with zipfile.ZipFile(wheel) as file:
            file.extractall(place)
        package = place / "relaxdp"
        assert PageFiles(package / "web", package / "service" / "bundled").bundled == bundled
