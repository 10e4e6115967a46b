"""A service whose database was put back to an older copy, as it is met over HTTP and on the command line."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.servers.collectors import Running
from tests.servers.markets import Refused, Remote, release_file
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.storage.database import Database

PRICES = {"points": [["0.1", 10], ["2", 200]]}
RUNNER = CliRunner()


def test_put_back_and_recovered(tmp_path: Path) -> None:
    place, copy = tmp_path / "service.db", tmp_path / "copy.db"
    server = Running(f"sqlite:///{place}", tmp_path)
    with closing(Database(str(place))) as database:
        try:
            market = Remote(server, database)
            for name, role in (("clinic", "seller"), ("institute", "buyer"), ("late", "buyer")):
                market.account(name, role)
            for name in ("institute", "late"):
                market.credit(name, 1000)
            market.list_release("clinic", "diagnoses", PRICES)
            market.deliver("clinic", "diagnoses", release_file(tmp_path, "2"))
            first = market.buy("institute", "diagnoses", "0.5")
            assert RUNNER.invoke(app, ["admin", "backup", str(copy), "--db", f"sqlite:///{place}"]).exit_code == 0
            second = market.buy("institute", "diagnoses", "1", upgrade=True)
            lost = market.data("institute", second["number"])
            assert (tmp_path / "service.db.market-key.sold").stat().st_mode & 0o777 == 0o700
            server.stop()

            for file in tmp_path.glob("service.db*"):
                if file.name in ("service.db", "service.db-wal", "service.db-shm"):
                    file.unlink()
            shutil.copy(copy, place)
            server.start()
            assert "has forgotten sales of the market (1): nothing else is sold" in server.log.read_text("utf-8")
            market.server = server
            with pytest.raises(Refused, match="restored from an older copy") as refused:
                market.buy("late", "diagnoses", "0.7")
            assert (refused.value.status, refused.value.code) == (409, "forgotten_sales")
            assert market.data("institute", first["number"])  # what it still knows is handed out
            said = RUNNER.invoke(app, ["admin", "recover", "--db", f"sqlite:///{place}"])  # while the service runs
            assert (said.exit_code, said.output) == (0, "forgotten sales made again: 1; missing: 0\n")
            assert market.data("institute", second["number"]) == lost
            assert market.buy("late", "diagnoses", "0.7")["new"]
        finally:
            server.kill()


def test_a_journal_that_is_not_the_markets_own(tmp_path: Path) -> None:
    """Where the journal cannot be kept, the service does not start."""
    (tmp_path / "file").write_text("x")
    journal, place = tmp_path / "file" / "journal", f"sqlite:///{tmp_path}/service.db"
    found = RUNNER.invoke(app, ["serve", "--port", "0", "--db", place, "--market-journal", str(journal)]).exception
    assert str(found).startswith(f"the market's journal cannot be written to {str(journal)!r}: Not a directory.")
    assert str(found).endswith("Nothing was started.")
