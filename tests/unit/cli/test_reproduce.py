"""`relaxdp reproduce`: what it writes, what it refuses, and its exit status."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.refusals import refused
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.errors import ArgumentError, TableFileError
from relaxdp.paper import runner
from relaxdp.paper.claims import Claim, ClaimCheck, ClaimOutcome
from relaxdp.paper.lab import Lab
from relaxdp.paper.report import MANIFEST, write_folder

ONLY = ["--only", "mean", "--only", "figure-1a"]
VOID = {"meta", "img", "br"}


def reproduce(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", "--out", str(folder), *words])


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Page(HTMLParser):
    """Collects what a page refers to, and checks that its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened += [] if tag in VOID else [tag]
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        assert tag not in ("link", "script", "iframe")

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


@pytest.mark.long
def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "5")):
        result = reproduce(tmp_path / folder, "--seed", seed, *ONLY)
        assert result.exit_code == 0, result.output
        assert "report.html" in result.output
    first, same, other = (content(tmp_path / folder) for folder in "abc")
    assert first == same
    assert sorted(first) == sorted(other)
    assert first["data/mean.csv"] != other["data/mean.csv"]
    assert first["data/figure-1a.csv"] == other["data/figure-1a.csv"]
    expected = {"report.html", "report.md", "summary.json", MANIFEST, "data/mean.csv", "data/figure-1a.csv"}
    assert set(first) == expected | {
        f"figures/{name}.{kind}" for name in ("mean", "figure-1a") for kind in ("png", "svg")
    }
    assert first["figures/mean.png"].startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".*"))


def test_the_page_asks_nobody_and_the_markdown_links_exist(tmp_path: Path) -> None:
    assert reproduce(tmp_path / "out", *ONLY).exit_code == 0
    page = Page()
    page.feed((tmp_path / "out" / "report.html").read_text("utf-8"))
    assert page.opened == []
    assert len([each for each in page.references if each.startswith("data:image/svg+xml;base64,")]) == 2
    assert all(each.startswith(("data:", "#")) for each in page.references)
    assert "url(" not in (tmp_path / "out" / "report.html").read_text("utf-8")
    markdown = (tmp_path / "out" / "report.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", markdown)
    assert len(links) == 4
    assert all((tmp_path / "out" / link).exists() for link in links)
    for word in ("The paper says", "Correction", "Measured", "false-alarm rate at most", "holds as corrected"):
        assert word in markdown


def test_json_is_alone_on_the_output(tmp_path: Path) -> None:
    result = reproduce(tmp_path / "out", "--json", "--only", "table-p-aa", "--only", "collusion-proof-2009")
    summary = json.loads(result.stdout)
    assert [each["verdict"] for each in summary["claims"]] == ["holds", "not checkable here"]
    assert summary["passed"] is True
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))


def test_a_failed_claim_is_exit_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(lab: Lab) -> ClaimOutcome:
        return ClaimOutcome("1 < 2", "Comparison.", [ClaimCheck("one is more than two", False, "it is <less>")])

    monkeypatch.setattr(runner, "CLAIMS", [Claim("wrong", "A <wrong> claim", "Nowhere", "1 > 2", check)])
    result = reproduce(tmp_path / "out")
    assert result.exit_code == 1
    assert "one is more than two" in result.output
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "does not hold" in page
    assert "A &lt;wrong&gt; claim" in page
    assert "it is &lt;less&gt;" in page
    assert reproduce(tmp_path / "out", "--json").exit_code == 1


def test_unknown_claim(tmp_path: Path) -> None:
    result = reproduce(tmp_path / "out", "--only", "figure-9")
    assert isinstance(result.exception, ArgumentError)
    assert "there is no claim 'figure-9'; the claims are split-budget, " in result.exception.message
    assert not (tmp_path / "out").exists()


def test_an_earlier_run_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(out, {"report.md": b"old", "data/old.csv": b"1"})
    write_folder(out, {"report.md": b"new"})
    assert set(content(out)) == {"report.md", MANIFEST}
    assert (out / "report.md").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (out / "mine.txt").write_text("precious")
    with pytest.raises(
        TableFileError, match=r"holds 'mine.txt', which no earlier run has written or which was changed"
    ):
        write_folder(out, {"report.md": b"newer"})
    (out / "mine.txt").unlink()
    (out / "report.md").write_text("with my notes")
    with pytest.raises(TableFileError, match=r"holds 'report.md'"):
        write_folder(out, {"report.md": b"newer"})
    assert (out / "report.md").read_text() == "with my notes"


def test_an_earlier_run_gets_its_name_back_if_the_new_one_cannot_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "out", {"report.md": b"old"})
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with refused(TableFileError, why="Permission denied"):
        write_folder(tmp_path / "out", {"report.md": b"new"})
    assert (tmp_path / "out" / "report.md").read_bytes() == b"old"


def test_foreign_places_are_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "judge_all", lambda *words, **more: pytest.fail("it ran"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("a file")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / MANIFEST).write_text("{")
    for name in ("folder", "file", "damaged"):
        result = reproduce(tmp_path / name)
        assert isinstance(result.exception, TableFileError), name
        assert result.exception.message.endswith("Name another folder. Nothing was written.")
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_is_fine_and_an_unwritable_one_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", {"report.md": b"new"})
    assert (tmp_path / "empty" / "report.md").exists()
    (tmp_path / "file").write_text("")
    with refused(TableFileError, why="File exists"):
        write_folder(tmp_path / "file" / "out", {"report.md": b"new"})
