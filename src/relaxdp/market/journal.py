"""The journal: what was sold of each listing, written beside the market's key before a file leaves.

A database that is restored from a copy has forgotten the sales made since, while their files are out. A level that is
sold without regard to them would be drawn from other neighbours: a second draw. The journal does not go back with the
database, so the market notices, and sells nothing else of a listing before what was forgotten was sold again: the same
levels in the same order, which gives the same bytes, since draws are keyed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, select

from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import ForgottenSalesError, StorageUnavailableError
from relaxdp.market.schema import ACCOUNTS, LISTINGS, PURCHASES

ENDING = ".sold"
_LINES = ".jsonl"
_WIDTH = 512  # of every line, so that the one of any sale is found at once


@dataclass(frozen=True, slots=True)
class Sold:
    """One line: a sale, and by its history all sales of the listing before it, whoever made them."""

    number: int
    buyer: str
    upgrade: bool
    epsilon: str
    digest: str
    history: str

    def line(self) -> bytes:
        """Return it as it is written."""
        return json.dumps(asdict(self)).encode().ljust(_WIDTH - 1) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Sold | None:
        """Read a line; None where it is damaged."""
        try:
            return cls(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            return None


class Journal:
    """A folder with a file for each listing. It is only appended to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, connection: Connection, listing: str) -> None:
        """Refuse a listing whose sales are not those of the journal.

        Asked within the transaction of a sale: a sale that was forgotten is made again, and no other one. The last sale
        that both know of is compared, whose history tells of all before it.
        """
        places = _sales(listing, PURCHASES.c.place).order_by(PURCHASES.c.place.desc()).limit(1)
        newest: int | None = connection.execute(places).scalar()
        if newest is None:
            return
        with self._open(listing) as file:
            both = min(newest, _lines(file) - 1)
            written = _line(file, both) if both >= 0 else None
        if both >= 0 and (written is None or written.history != _sold(connection, listing, both, both)[0].history):
            raise ForgottenSalesError(
                "the market's database was restored from an older copy and has forgotten sales of this listing: until "
                "the operator has made them again, nothing of it is sold or handed out. Nothing was done."
            )

    def keep(self, connection: Connection, listing: str) -> None:
        """Write down all sales of a listing that are not in the journal yet. Nothing of them leaves before."""
        with _usable(), locked_folder(self._folder):
            self.check(connection, listing)
            with self._open(listing) as file:
                known = _lines(file)
            new = _sold(connection, listing, known)
            if new:
                self._append(listing, known, b"".join(one.line() for one in new))

    def knows(self, listing: str) -> bool:
        """Tell whether anything was ever sold of a listing, also if the database has forgotten it."""
        with self._open(listing) as file:
            return _lines(file) > 0

    def forgotten(self, connection: Connection) -> list[tuple[str, Sold]]:
        """Return the sales that the database does not know, in their order, each with its listing."""
        found: list[tuple[str, Sold]] = []
        for place in self._folder.glob(f"*{_LINES}"):
            with self._open(place.stem) as file:
                written = [_line(file, line) for line in range(_lines(file))]
            if None in written:
                raise StorageUnavailableError(f"the market's journal {str(place)!r} is damaged. Nothing was done.")
            lines, sold = [one for one in written if one is not None], _sold(connection, place.stem)
            same = takewhile(lambda pair: pair[0].history == pair[1].history, zip(lines, sold, strict=False))
            found += [(place.stem, one) for one in lines[sum(1 for _ in same) :]]
        return sorted(found, key=lambda each: each[1].number)

    @contextmanager
    def _open(self, listing: str) -> Iterator[int | None]:
        """Open what was written of a listing; None where nothing was."""
        with _usable():
            try:
                descriptor = os.open(self._place(listing), os.O_RDONLY)
            except FileNotFoundError:
                yield None
                return
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def _append(self, listing: str, known: int, content: bytes) -> None:
        place = self._place(listing)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(known * _WIDTH)  # of a line that was not finished nothing stays; nothing left because of it
            file.seek(known * _WIDTH)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._folder)

    def _place(self, listing: str) -> Path:
        return self._folder / f"{listing}{_LINES}"


def _lines(file: int | None) -> int:
    """Return how many lines were finished."""
    return 0 if file is None else os.fstat(file).st_size // _WIDTH


def _line(file: int | None, place: int) -> Sold | None:
    assert file is not None  # noqa: S101
    os.lseek(file, place * _WIDTH, os.SEEK_SET)
    return Sold.read(os.read(file, _WIDTH))


def _sold(connection: Connection, listing: str, first: int = 0, last: int | None = None) -> list[Sold]:
    """Return the sales of a listing from one place to another, as the database knows them."""
    sold = PURCHASES.c
    columns = (sold.number, ACCOUNTS.c.name, sold.previous, sold.epsilon, sold.digest, sold.history)
    query = _sales(listing, *columns).join(ACCOUNTS, ACCOUNTS.c.number == sold.buyer).where(sold.place >= first)
    if last is not None:
        query = query.where(sold.place <= last)
    return [
        Sold(number, buyer, previous is not None, epsilon, digest, history)
        for number, buyer, previous, epsilon, digest, history in connection.execute(query.order_by(sold.place))
    ]


def _sales(listing: str, *columns: Any) -> Select[Any]:
    found = select(*columns).select_from(PURCHASES).join(LISTINGS, LISTINGS.c.number == PURCHASES.c.listing)
    return found.where(LISTINGS.c.id == listing)


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except (OSError, PrivateFileError):
        raise StorageUnavailableError(
            "the market's journal cannot be used, and nothing leaves that is not written there. What was not "
            "acknowledged may be sent again."
        ) from None
