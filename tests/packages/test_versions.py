"""The program behind docs/versions.md: what it would run is there, and what it writes stands in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from packages import postgres, versions

HEAD = "# Versions\n\n| Python | what | with | result |\n|---|---|---|---|\n"


def test_every_case_has_tests() -> None:
    for name, case in versions.CASES.items():
        assert [test for test in case.tests if not (versions.ROOT / test).exists()] == [], name


def test_the_page_speaks_of_cases_only() -> None:
    _, table = versions.PAGE.read_text("utf-8").split(HEAD.split("\n\n")[1])
    rows = [[each.strip() for each in line.split("|")[1:-1]] for line in table.split("\n\n")[0].splitlines()]
    assert rows == sorted(rows, key=lambda row: versions.order(tuple(row)))


def test_a_row_takes_the_place_of_an_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "versions.md"
    page.write_text(f"{HEAD}| 3.12.1 | drawing | numpy 1 | 3 failed |\n\nThe end.\n", "utf-8")
    monkeypatch.setattr(versions, "PAGE", page)
    versions.write(("3.9.20", "drawing", "numpy 1", "1 passed"))
    versions.write(("3.12.1", "PostgreSQL 18", "server 18.4", "2 passed"))
    versions.write(("3.12.1", "drawing", "numpy 2", "4 passed"))
    assert page.read_text("utf-8") == (
        f"{HEAD}| 3.9.20 | drawing | numpy 1 | 1 passed |\n| 3.12.1 | drawing | numpy 2 | 4 passed |\n"
        "| 3.12.1 | PostgreSQL 18 | server 18.4 | 2 passed |\n\nThe end.\n"
    )


def test_the_newest_server_of_a_version() -> None:
    known = ["17.9.0-beta.17", "17.10.0-beta.16", "17.10.0-beta.17", "18.4.0-beta.17", "7.17.0"]
    assert postgres.newest(known, "17") == "17.10.0-beta.17"
    with pytest.raises(postgres.MissingServerError):
        postgres.newest(known, "19")


def test_the_links_of_a_fetched_server(tmp_path: Path) -> None:
    library = tmp_path / "package" / "native" / "lib"
    library.mkdir(parents=True)
    (library / "libpq.so.5.18").write_text("here")
    listed = [{"source": "native/lib/libpq.so.5.18", "target": "native/lib/libpq.so.5"}]
    (library.parent / "pg-symlinks.json").write_text(json.dumps(listed))
    postgres.link(tmp_path / "package")
    (tmp_path / "package").rename(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere/native/lib/libpq.so.5").read_text() == "here"


def test_an_installed_server_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "DEBIAN", tmp_path / "debian")
    monkeypatch.setattr(postgres, "BUILD", tmp_path / "build")
    monkeypatch.setenv("PATH", str(tmp_path))  # no npm is there
    with pytest.raises(postgres.MissingServerError, match="without npm"):
        postgres.programs("18")
    (tmp_path / "debian" / "18" / "bin").mkdir(parents=True)
    (tmp_path / "debian" / "18" / "bin" / "postgres").touch()
    assert postgres.programs("18") == tmp_path / "debian" / "18" / "bin"
