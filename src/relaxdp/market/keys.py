"""The market's key: one file, beside a SQLite database or where the operator says; without it the market is closed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sqlalchemy import select

from relaxdp.draw.key import Key
from relaxdp.errors import MarketKeyError
from relaxdp.market.journal import ENDING as JOURNAL
from relaxdp.market.market import Market
from relaxdp.market.schema import SETUP
from relaxdp.service.address import SqliteAddress
from relaxdp.service.database import Database
from relaxdp.service.settings import Settings

ENDING = ".market-key"


def key_file(settings: Settings, database: Database) -> Path | None:
    """Return where the market's key lies; None where the market is closed."""
    if settings.market_key is not None:
        return settings.market_key
    if isinstance(database.address, SqliteAddress):
        return Path(f"{database.address.path}{ENDING}")
    return None


def open_market(settings: Settings) -> bool:
    """Open the market before the workers start: make its key at the first start, and check it at every other one.

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
        Market(database, Key.load(file)).open()
        _make_journal(journal_folder(settings, file))
    finally:
        database.close()
    return True


def journal_folder(settings: Settings, key: Path) -> Path:
    """Return where the market's journal lies: beside its key, for it must not go back with the database."""
    return settings.market_journal or Path(f"{key}{JOURNAL}")


def _make_journal(folder: Path) -> None:
    try:
        folder.mkdir(0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise MarketKeyError(
            f"the market's journal cannot be written to {str(folder)!r}: {problem.strerror}. Name another folder with "
            "--market-journal. Nothing was started.",
            path=str(folder),
        ) from None


def _check_new(database: Database, file: Path) -> None:
    with database.reading() as connection:
        known = connection.execute(select(SETUP.c.key_fingerprint)).scalar()
    if known is not None:
        raise MarketKeyError(
            f"there is no file {str(file)!r}, and the market of this database was opened with the key {known}. "
            "Nothing was started.",
            path=str(file),
        )
