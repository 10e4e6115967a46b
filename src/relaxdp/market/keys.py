"""The market's key: one file, beside a SQLite database or where the operator says; without it the market is closed."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from relaxdp.errors import add_consequence
from relaxdp.market.market import Market
from relaxdp.market.schema import SETUP
from relaxdp.sampling.keys import Key
from relaxdp.sampling.private_file import PrivateFileError, read_private_file, write_private_file
from relaxdp.server_errors import MarketKeyError
from relaxdp.service.settings import Settings
from relaxdp.storage.address import SqliteAddress
from relaxdp.storage.database import Database

ENDING = ".market-key"
_MARK = "market"


def key_file(settings: Settings, database: Database) -> Path | None:
    """Return where the market's key lies; None where the market is closed."""
    if settings.market_key is not None:
        return settings.market_key
    if isinstance(database.address, SqliteAddress):
        return Path(f"{database.address.path}{ENDING}")
    return None


@add_consequence("Nothing was started.")
def open_market(settings: Settings) -> bool:
    """Open the market before the service starts: make its key at the first start, and check it at every other one.

    A key that is lost is not made again: levels that are drawn with another one would be second draws of what was sold.
    """
    database = Database(settings.database)
    try:
        file = key_file(settings, database)
        if file is None:
            return False
        if not file.exists():
            _check_new(database, file)
            Key.generate().save(file)
        key, folder = Key.load(file), journal_folder(settings, file)
        if _fingerprint(database) is None:
            begin_journal(folder, key)
        Market(database, key).open()
        check_journal(folder, key)
    finally:
        database.close()
    return True


def journal_folder(settings: Settings, key: Path) -> Path:
    """Return where the market's journal lies: beside its key, for it must not go back with the database."""
    return settings.market_journal or Path(f"{key.resolve()}.sold")


def begin_journal(folder: Path, key: Key) -> None:
    """Begin the journal of a market, with a mark that says whose it is."""
    try:
        folder.mkdir(0o700, exist_ok=True)
        write_private_file(folder / _MARK, f"{key.fingerprint}\n".encode(), replace=True)
    except (OSError, PrivateFileError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise MarketKeyError(
            "the market's journal cannot be written to {path!r}: {why}. Name another folder with --market-journal.",
            why=why,
            path=str(folder),
        ) from None


def check_journal(folder: Path, key: Key) -> None:
    """Refuse a folder that is not this market's journal: without it nobody would notice that sales were forgotten."""
    try:
        found = read_private_file(folder / _MARK)
    except PrivateFileError as problem:
        raise MarketKeyError("{path!r} {why}.", path=str(folder / _MARK), why=problem) from None
    if found is None or found.decode("utf-8", "replace").strip() != key.fingerprint:
        raise MarketKeyError(
            "the journal of this market is not in {path!r}: say where it is with --market-journal. If it is "
            "lost, `relaxdp admin recover --begin-journal` begins it anew (docs/market.md).",
            path=str(folder),
        )


def _check_new(database: Database, file: Path) -> None:
    known = _fingerprint(database)
    if known is not None:
        raise MarketKeyError(
            "there is no file {path!r}, and the market of this database was opened with the key {fingerprint}.",
            fingerprint=known,
            path=str(file),
        )


def _fingerprint(database: Database) -> str | None:
    """Return the fingerprint of the key that the market was opened with; None where it was not."""
    with database.reading() as connection:
        known: str | None = connection.execute(select(SETUP.c.key_fingerprint)).scalar()
        return known
