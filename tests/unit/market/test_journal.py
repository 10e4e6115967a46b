"""A database that was restored from an older copy: what it forgot is noticed, and sold again before anything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.servers.markets import MARKET_KEY, VALUES, Here, Refused, dump, level_of, release_file
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import RelaxdpError
from relaxdp.market.journal import Forgotten, Journal
from relaxdp.market.keys import begin_journal
from relaxdp.market.listings import find
from relaxdp.market.schema import LEVELS
from relaxdp.server_errors import MarketKeyError
from relaxdp.service.maintenance import back_up, restore
from relaxdp.storage.database import Database

PRICES = {"points": [["0.1", 10], ["1", 100], ["3", 300]]}
OPENER = Callable[..., Here]
RUNNER = CliRunner()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OPENER]:
    """Open markets of one key, by the names of their databases; all write into one journal, or into the one named."""
    with ExitStack() as stack:

        def open_one(name: str, journal: str | None = "journal") -> Here:
            database = stack.enter_context(closing(Database(f"sqlite:///{tmp_path}/{name}.db")))
            if journal is not None:
                (tmp_path / journal).mkdir(exist_ok=True)
            return Here(database, journal=None if journal is None else Journal(tmp_path / journal))

        yield open_one


@pytest.fixture
def market(opened: OPENER, tmp_path: Path) -> Here:
    """A market with a release up to 2, of which 0.5 was sold when the copy was made, and 1 and 0.2 since."""
    made = opened("market")
    for name, role in (("clinic", "seller"), ("institute", "buyer"), ("insurer", "buyer"), ("late", "buyer")):
        made.account(name, role)
        if role == "buyer":
            made.credit(name, 1000)
    for listing in ("diagnoses", "quiet"):
        made.list_release("clinic", listing, PRICES)
        made.deliver("clinic", listing, release_file(tmp_path, "2", release=listing))
    made.buy("institute", "diagnoses", "0.5")
    back_up(f"sqlite:///{tmp_path}/market.db", tmp_path / "copy.db")
    made.buy("institute", "diagnoses", "1", upgrade=True)
    made.buy("insurer", "diagnoses", "0.2")
    return made


def ends(trader: Here, listing: str = "diagnoses") -> dict[str, tuple[str | None, str | None]]:
    """Return between which levels each level was drawn, by epsilon."""
    levels = {row[1]: row for row in dump(trader.database)[LEVELS.name] if row[0] == trader_number(trader, listing)}
    names = {threshold: row[2] for threshold, row in levels.items()}
    return {row[2]: (names.get(row[4]), names.get(row[5])) for row in levels.values() if not row[3]}


def trader_number(trader: Here, listing: str) -> int:
    with trader.database.reading() as connection:
        return trader.market.visible(connection, listing, None).number


def digests(trader: Here, *buyers: str) -> dict[str, str]:
    return {each["epsilon"]: each["digest"] for buyer in buyers for each in trader.purchases(buyer)}


def refused(trader: Here, act: Callable[[], Any]) -> None:
    before = dump(trader.database)
    with pytest.raises(Refused) as found:
        act()
    assert found.value.code == "forgotten_sales"
    assert found.value.sentence == (
        "the market's database was restored from an older copy and has forgotten sales of this release: until the "
        "operator has made them again, nothing else of it is sold. Nothing was sold."
    )
    assert dump(trader.database) == before


def file_of(folder: Path, listing: str = "diagnoses") -> Path:
    """Return the one file of the journal that tells of a listing."""
    (found,) = [file for file in (folder / "journal").glob("*.jsonl") if f'"{listing}"'.encode() in file.read_bytes()]
    return found


def lines(folder: Path, listing: str = "diagnoses") -> list[dict[str, Any]]:
    return [json.loads(line) for line in file_of(folder, listing).read_text("utf-8").splitlines()]


def test_what_was_forgotten_is_sold_again_first(market: Here, opened: OPENER, tmp_path: Path) -> None:
    """In its order, byte for byte, to the same buyers; then what comes is drawn as if nothing had happened."""
    restored = opened("copy")
    refused(restored, lambda: restored.buy("late", "diagnoses", "0.7"))
    refused(restored, lambda: restored.buy("late", "diagnoses", "1"))  # the next one, and somebody else's
    refused(restored, lambda: restored.buy("insurer", "diagnoses", "0.2"))  # forgotten too, and not the next one
    assert restored.buy("late", "quiet", "0.7")["new"]  # nothing of this one was forgotten
    restored.buy("institute", "diagnoses", "1", upgrade=True)
    refused(restored, lambda: restored.buy("institute", "diagnoses", "1.5", upgrade=True))
    restored.buy("insurer", "diagnoses", "0.2")
    assert digests(restored, "institute", "insurer") == digests(market, "institute", "insurer")
    for each in (market, restored):
        each.account("new", "buyer")
        each.credit("new", 1000)
        each.buy("new", "diagnoses", "0.7")
        assert ends(each)["0.7"] == ("0.5", "1")
    assert digests(market, "new") == digests(restored, "new")


def test_without_a_journal_a_second_draw_would_be_sold(market: Here, opened: OPENER) -> None:
    """What the journal is for: the level would be drawn past one that is out."""
    careless = opened("copy", journal=None)
    careless.buy("late", "diagnoses", "0.7")
    assert ends(careless)["0.7"] == ("0.5", "2")
    market.buy("late", "diagnoses", "0.7")
    assert ends(market)["0.7"] == ("0.5", "1")
    assert digests(careless, "late") != digests(market, "late")


def test_another_machine_that_sold_from_the_copy(market: Here, opened: OPENER) -> None:
    """It has a journal of its own, which knows of nothing; the first one notices, however much was sold since."""
    elsewhere = opened("copy", journal="elsewhere")
    for name, epsilon in (("one", "0.7"), ("two", "0.2"), ("three", "0.2")):
        elsewhere.account(name, "buyer")
        elsewhere.credit(name, 1000)
        elsewhere.buy(name, "diagnoses", epsilon)
    assert digests(elsewhere, "two") == digests(market, "insurer")  # the third sale is the same, and its history is not
    back = opened("copy")
    refused(back, lambda: back.buy("late", "diagnoses", "0.7"))
    assert back.buy("late", "quiet", "0.7")["new"]


def test_a_listing_whose_sales_were_forgotten_keeps_its_path(opened: OPENER, tmp_path: Path) -> None:
    """The copy knows of no sale, and closing would give the path up, as of a listing that never sold anything."""
    made = opened("market")
    made.account("clinic", "seller")
    made.account("late", "buyer")
    made.credit("late", 1000)
    made.list_release("clinic", "a", PRICES)
    made.deliver("clinic", "a", release_file(tmp_path, "2"))
    back_up(f"sqlite:///{tmp_path}/market.db", tmp_path / "copy.db")
    made.buy("late", "a", "0.5")
    for journal, is_taken in (("journal", True), (None, False)):
        restore(tmp_path / "copy.db", f"sqlite:///{tmp_path}/again-{is_taken}.db")
        restored = opened(f"again-{is_taken}", journal=journal)
        restored.close("clinic", "a")
        restored.list_release("clinic", "b", PRICES)
        if is_taken:
            with pytest.raises(Refused, match="this release is listed already, as 'a'"):
                restored.deliver("clinic", "b", release_file(tmp_path, "2"))
        else:
            restored.deliver("clinic", "b", release_file(tmp_path, "2"))


def test_pools_too(opened: OPENER, tmp_path: Path) -> None:
    made = opened("market")
    for name in ("ann", "bob"):
        made.account(name, "seller")
    for name in ("late", "insurer"):
        made.account(name, "buyer")
        made.credit(name, 1000)
    made.pool("snacks", {"name": "categorical", "values": VALUES}, {"points": [["0.1", 5], ["2", 20]]})
    made.join("ann", "snacks", level_of("2"), "flu", 3)
    made.join("bob", "snacks", level_of("1"), "covid", 3)
    back_up(f"sqlite:///{tmp_path}/market.db", tmp_path / "copy.db")
    sold = made.buy("insurer", "snacks", "0.5")
    restored = opened("copy")
    refused(restored, lambda: restored.buy("late", "snacks", "0.3"))
    assert restored.buy("insurer", "snacks", "0.5")["digest"] == sold["digest"]
    assert restored.buy("late", "snacks", "0.3")["new"]


# What becomes of the files.


def test_the_journal_is_private_and_says_what_was_sold(market: Here, tmp_path: Path) -> None:
    found = lines(tmp_path)
    sold = [("institute", "0.5", False), ("institute", "1", True), ("insurer", "0.2", False)]
    assert [(each["buyer"], each["epsilon"], each["upgrade"]) for each in found] == sold
    known = digests(market, "institute", "insurer")
    assert [each["digest"] for each in found] == [known[each["epsilon"]] for each in found]
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert found[0]["writer"] == f"relaxdp {rx.__version__}, pyarrow {pa.__version__}"


def test_killed_between_the_sale_and_the_journal(market: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sale stands, and what is missing in the journal is written with whatever is sold or handed out next."""
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_append", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            market.buy("late", "diagnoses", "0.7")
    assert len(lines(tmp_path)) == 3
    assert not market.buy("late", "diagnoses", "0.7")["new"]
    assert [each["epsilon"] for each in lines(tmp_path)] == ["0.5", "1", "0.2", "0.7"]


def test_a_line_that_was_not_finished(market: Here, tmp_path: Path) -> None:
    file = file_of(tmp_path)
    whole = file.read_bytes()
    for rest in (whole[:1], whole[:100], whole[:767], bytes(768), bytes(2000)):  # a part of a line, or room for some
        file.write_bytes(whole + rest)
        assert not market.buy("insurer", "diagnoses", "0.2")["new"]
        assert file.read_bytes() == whole + rest  # there was nothing to write
    market.buy("late", "diagnoses", "0.7")
    assert file.read_bytes().startswith(whole)
    assert [each["epsilon"] for each in lines(tmp_path)] == ["0.5", "1", "0.2", "0.7"]


@pytest.mark.parametrize("damage", [b"", b"{}", b"[[[", b'{"number": 1}', b"\xff\xfe", b"null", b"[" * 767])
def test_a_damaged_line_sells_nothing(market: Here, tmp_path: Path, damage: bytes) -> None:
    file = file_of(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:1536] + damage.ljust(767) + b"\n")
    refused(market, lambda: market.buy("late", "diagnoses", "0.7"))
    assert market.buy("late", "quiet", "0.7")["new"]
    with market.database.reading() as connection:
        assert Journal(tmp_path / "journal").forgotten(connection) == [Forgotten(file.stem, None)]


def test_a_journal_that_cannot_be_written(market: Here, tmp_path: Path) -> None:
    """The buyer is told to ask again, and is not charged twice."""
    folder, away = tmp_path / "journal", tmp_path / "away"
    folder.rename(away)
    folder.write_text("in the way")
    balance = market.balance("late")
    with pytest.raises(Refused, match="the market's journal cannot be used") as found:
        market.buy("late", "diagnoses", "0.5")
    assert found.value.code == "storage_unavailable"
    folder.unlink()
    away.rename(folder)
    market.buy("late", "diagnoses", "0.5")
    assert market.balance("late") == balance - 50
    assert len(lines(tmp_path)) == 4


def test_many_write_at_once(market: Here, tmp_path: Path) -> None:
    file = file_of(tmp_path)
    file.unlink()

    def write(_: int) -> None:
        with market.database.reading() as connection:
            Journal(tmp_path / "journal").keep(connection, find(connection, "diagnoses"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(32)))
    assert [each["epsilon"] for each in lines(tmp_path)] == ["0.5", "1", "0.2"]


# The command.


def command(tmp_path: Path, *words: str) -> tuple[int, list[str]]:
    key = tmp_path / "key"
    if not key.exists():
        MARKET_KEY.save(key)
        begin_journal(tmp_path / "journal", MARKET_KEY)
    url = f"sqlite:///{tmp_path}/copy.db"
    journal = str(tmp_path / "journal")
    options = ("--db", url, "--market-key", str(key), "--market-journal", journal)
    result = RUNNER.invoke(app, ["admin", "recover", *options, *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output.splitlines()


def test_recover(market: Here, opened: OPENER, tmp_path: Path) -> None:
    """The same buyers own the same files, and have paid what they had paid."""
    assert command(tmp_path) == (0, ["forgotten sales made again: 2; missing: 0"])
    restored = opened("copy")
    for name in ("clinic", "institute", "insurer"):
        assert restored.balance(name) == market.balance(name)
    assert digests(restored, "institute", "insurer") == digests(market, "institute", "insurer")
    assert command(tmp_path) == (0, ["nothing was forgotten"])
    assert restored.buy("late", "diagnoses", "0.7")["new"]


def test_recover_says_what_is_missing(market: Here, opened: OPENER, tmp_path: Path) -> None:
    """A level that was delivered since, an account and credits that came since; what does not need them is made."""
    market.deliver("clinic", "quiet", release_file(tmp_path, "2.5", release="quiet"))
    market.account("newest", "buyer")
    market.credit("newest", 1000)
    market.buy("newest", "quiet", "2.25")
    market.buy("late", "quiet", "0.3")
    code, said = command(tmp_path)
    assert code == 1
    assert said == [
        "not made again: quiet at epsilon 2.25 for newest (purchase 4): there is no account with this name.",
        "not made again: quiet at epsilon 0.3 for late (purchase 5): an earlier sale of it was not made",
        "forgotten sales made again: 2; missing: 2",
    ]
    restored = opened("copy")
    restored.account("newest", "buyer")
    code, said = command(tmp_path)
    assert "epsilon 2.25 is more than the seller has authorised, which is 2. Nothing was sold." in said[0]
    restored.deliver("clinic", "quiet", release_file(tmp_path, "2.5", release="quiet"))
    assert "newest has 0 credits" in command(tmp_path)[1][0]
    restored.credit("newest", 1000)
    assert command(tmp_path) == (0, ["forgotten sales made again: 2; missing: 0"])
    assert digests(restored, "newest", "late") == digests(market, "newest", "late")


def test_recover_needs_the_market(tmp_path: Path) -> None:
    with pytest.raises(RelaxdpError, match="there is no database"):
        command(tmp_path)
    assert not (tmp_path / "copy.db").exists()


def test_recover_after_refunds(market: Here, opened: OPENER, tmp_path: Path) -> None:
    """Whoever bought what they had owned was given back what they had paid; so that is done again, too."""
    first = next(each for each in market.purchases("insurer") if each["epsilon"] == "0.2")
    market.refund("clinic", first["number"])
    market.buy("insurer", "diagnoses", "0.2")
    market.refund("clinic", market.purchases("insurer")[0]["number"])
    market.buy("insurer", "diagnoses", "0.1")
    assert command(tmp_path) == (0, ["forgotten sales made again: 4; missing: 0"])
    restored = opened("copy")
    assert restored.balance("insurer") == market.balance("insurer")
    assert digests(restored, "institute", "insurer") == digests(market, "institute", "insurer")
    assert command(tmp_path) == (0, ["nothing was forgotten"])


def test_recover_after_a_second_restore(market: Here, opened: OPENER, tmp_path: Path) -> None:
    """Numbers were given twice; the lines of a path are still in their order."""
    restore(tmp_path / "copy.db", f"sqlite:///{tmp_path}/second.db")
    assert command(tmp_path)[1] == ["forgotten sales made again: 2; missing: 0"]
    once = opened("copy")
    once.buy("late", "quiet", "0.3")
    once.buy("late", "diagnoses", "0.7")
    known = digests(once, "institute", "insurer", "late")
    (tmp_path / "second.db").replace(tmp_path / "copy.db")
    for log in ("copy.db-wal", "copy.db-shm"):
        (tmp_path / log).unlink(missing_ok=True)
    assert command(tmp_path)[1] == ["forgotten sales made again: 4; missing: 0"]
    assert digests(opened("copy"), "institute", "insurer", "late") == known


# One path, whatever its listing is called.


def test_the_path_is_remembered_and_not_the_name(opened: OPENER, tmp_path: Path) -> None:
    """Its listing was lost with the database, and the seller lists the release again under another name."""
    made = opened("market")
    made.account("clinic", "seller")
    for name in ("late", "insurer"):
        made.account(name, "buyer")
        made.credit(name, 1000)
    made.list_release("clinic", "early", PRICES)
    back_up(f"sqlite:///{tmp_path}/market.db", tmp_path / "copy.db")
    made.list_release("clinic", "x", PRICES)
    made.deliver("clinic", "x", release_file(tmp_path, "2"))
    made.buy("insurer", "x", "0.5")
    restored = opened("copy")
    restored.deliver("clinic", "early", release_file(tmp_path, "2"))
    refused(restored, lambda: restored.buy("late", "early", "0.5"))
    assert "there is no listing with this id" in command(tmp_path)[1][0]
    restored.list_release("clinic", "x", PRICES)
    assert "the listing of this name is of another release, or closed" in command(tmp_path)[1][0]
    restored.close("clinic", "early")  # which sold nothing, whatever the journal knows of the path
    restored.deliver("clinic", "x", release_file(tmp_path, "2"))
    assert command(tmp_path) == (0, ["forgotten sales made again: 1; missing: 0"])
    assert digests(restored, "insurer") == digests(made, "insurer")
    assert restored.buy("late", "x", "0.3")["new"]


def test_a_path_that_was_given_up_and_sold_by_another_listing(opened: OPENER, tmp_path: Path) -> None:
    """In the copy the first one is open again, and has the path."""
    made = opened("market")
    made.account("clinic", "seller")
    made.account("late", "buyer")
    made.credit("late", 1000)
    for listing in ("a", "b"):
        made.list_release("clinic", listing, PRICES)
    made.deliver("clinic", "a", release_file(tmp_path, "2"))
    back_up(f"sqlite:///{tmp_path}/market.db", tmp_path / "copy.db")
    made.close("clinic", "a")
    made.deliver("clinic", "b", release_file(tmp_path, "2"))
    made.buy("late", "b", "0.5")
    restored = opened("copy")
    refused(restored, lambda: restored.buy("late", "a", "0.5"))
    restored.close("clinic", "a")
    restored.deliver("clinic", "b", release_file(tmp_path, "2"))
    assert command(tmp_path) == (0, ["forgotten sales made again: 1; missing: 0"])
    assert digests(restored, "late") == digests(made, "late")


def test_another_file_is_said(market: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draw is the same, and the writer of the file is not."""
    monkeypatch.setattr("relaxdp.market.goods.BATCH_ROWS", 7)
    code, said = command(tmp_path)
    assert code == 1
    assert "it would be another file than the one that was sold" in said[0]
    assert f"(relaxdp {rx.__version__}, pyarrow {pa.__version__})" in said[0]


def test_a_journal_that_is_not_there(market: Here, tmp_path: Path) -> None:
    """An empty folder in its place would say that nothing was ever sold."""
    command(tmp_path)
    (tmp_path / "journal").rename(tmp_path / "away")
    with pytest.raises(MarketKeyError, match="the journal of this market is not in .*: say where it is"):
        command(tmp_path)
    (tmp_path / "journal").mkdir()
    with pytest.raises(MarketKeyError, match="the journal of this market is not in "):
        command(tmp_path)
    assert command(tmp_path, "--begin-journal") == (0, ["began the journal anew; listings in it: 2"])
    again, before = ((tmp_path / name) for name in ("journal", "away"))
    assert {file.name for file in again.iterdir()} == {file.name for file in before.iterdir()}
    assert [len(file.read_bytes()) for file in again.glob("*.jsonl")] == [3 * 768]
