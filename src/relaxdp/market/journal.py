"""The journal: what was sold of each path, written beside the market's key before a file leaves.

A database that is restored from a copy has forgotten the sales made since, while their files are out. A level that is
sold without regard to them would be drawn from other neighbours: a second draw. The journal does not go back with the
database, so the market notices, and sells nothing else of a path before what was forgotten was sold again: the same
levels in the same order, which gives the same bytes, since draws are keyed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from sqlalchemy import Connection, select

import relaxdp
from relaxdp.market import listings
from relaxdp.market.listings import StoredListing
from relaxdp.market.schema import ACCOUNTS, PURCHASES
from relaxdp.sampling.private_file import PrivateFileError, lock_folder, sync_folder
from relaxdp.server_errors import ForgottenSalesError, StorageUnavailableError
from relaxdp.storage.database import unacknowledged

_LINES = ".jsonl"
_WIDTH = 768  # of every line, so that the one of any sale is found at once
_WRITER = f"relaxdp {relaxdp.__version__}, pyarrow {pa.__version__}"


@dataclass(frozen=True, slots=True)
class Sold:
    """One line: a sale, and by its history all sales of the path before it."""

    number: int
    listing: str
    buyer: str
    upgrade: bool
    epsilon: str
    digest: str
    history: str
    writer: str

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


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A sale of a path that the database does not know; None where the line that tells of it is damaged."""

    path: str
    sold: Sold | None


class Journal:
    """A folder with a file for each path that was sold. It is only appended to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, connection: Connection, listing: StoredListing) -> None:
        """Refuse a listing of a path whose sales are not those of the journal.

        Asked within the transaction of a sale: a sale that was forgotten is made again, to whoever had made it, and no
        other one. The last sale that both know of is compared, whose history tells of all before it.
        """
        newest = None if listing.path is None else _newest(connection, listing)
        if listing.path is None or newest is None:
            return
        with self._open(listing.path) as file:
            known = _lines(file)
            both = min(newest, known - 1)
            written = _line(file, both) if both >= 0 else None
        if both < 0:
            return
        (sold,) = _sold(connection, listing, both, both)
        is_again = newest < known
        if written is None or written.history != sold.history or (is_again and written.buyer != sold.buyer):
            raise ForgottenSalesError(
                "the market's database was restored from an older copy and has forgotten sales of this "
                "release: until the operator has made them again, nothing else of it is sold."
            )

    def keep(self, connection: Connection, listing: StoredListing) -> None:
        """Write down all sales of a listing that are not in the journal yet. Nothing of them leaves before."""
        path = listing.path
        if path is None:
            return
        newest = _newest(connection, listing)
        with self._open(path) as file:
            is_written = newest is None or newest < _lines(file)
        if is_written:
            self.check(connection, listing)
            return
        with _usable(), lock_folder(self._folder):
            self.check(connection, listing)
            with self._open(path) as file:
                known = _lines(file)
            new = _sold(connection, listing, known)
            if new:
                self._append(path, known, b"".join(one.line() for one in new))

    def knows(self, listing: StoredListing) -> bool:
        """Tell whether anything was ever sold of a listing, also if the database has forgotten it."""
        if listing.path is None:
            return False
        with self._open(listing.path) as file:
            first = _line(file, 0) if _lines(file) else None
            return _lines(file) > 0 and (first is None or first.listing == listing.id)

    def forgotten(self, connection: Connection) -> list[Forgotten]:
        """Return the sales that the database does not know, in an order in which they can be made again."""
        found: list[tuple[int, int, Forgotten]] = []
        for place in self._folder.glob(f"*{_LINES}"):
            path = place.stem
            with self._open(path) as file:
                lines = [_line(file, line) for line in range(_lines(file))]
            listing = listings.of_path(connection, path)
            sold = [] if listing is None else _sold(connection, listing)
            same = 0
            while same < min(len(lines), len(sold)):
                line = lines[same]
                if line is None or line.history != sold[same].history:
                    break
                same += 1
            # Numbers begin anew after a restore, and still the lines of a path are in their order.
            numbers = list(accumulate((0 if line is None else line.number for line in lines), max))
            found += [(numbers[each], each, Forgotten(path, lines[each])) for each in range(same, len(lines))]
        return [forgotten for _, _, forgotten in sorted(found, key=lambda each: each[:2])]

    @contextmanager
    def _open(self, path: str) -> Iterator[int | None]:
        """Open what was written of a path; None where nothing was."""
        with _usable():
            try:
                descriptor = os.open(self._place(path), os.O_RDONLY)
            except FileNotFoundError:
                yield None
                return
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def _append(self, path: str, known: int, content: bytes) -> None:
        descriptor = os.open(self._place(path), os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(known * _WIDTH)  # of a line that was not finished nothing stays; nothing left because of it
            file.seek(known * _WIDTH)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._folder)

    def _place(self, path: str) -> Path:
        return self._folder / f"{path}{_LINES}"


def _lines(file: int | None) -> int:
    """Return how many lines were finished: a power cut may leave a part of one, or room for one."""
    count = 0 if file is None else os.fstat(file).st_size // _WIDTH
    while count and not _bytes(file, count - 1).strip(b"\0"):
        count -= 1
    return count


def _line(file: int | None, place: int) -> Sold | None:
    return Sold.read(_bytes(file, place))


def _bytes(file: int | None, place: int) -> bytes:
    assert file is not None  # noqa: S101
    os.lseek(file, place * _WIDTH, os.SEEK_SET)
    return os.read(file, _WIDTH)


def _newest(connection: Connection, listing: StoredListing) -> int | None:
    """Return the place of the last sale of a listing, which are all sales of its path."""
    places = select(PURCHASES.c.place).where(PURCHASES.c.listing == listing.number)
    newest: int | None = connection.execute(places.order_by(PURCHASES.c.place.desc()).limit(1)).scalar()
    return newest


def _sold(connection: Connection, listing: StoredListing, first: int = 0, last: int | None = None) -> list[Sold]:
    """Return the sales of a listing from one place to another, as the database knows them."""
    sold = PURCHASES.c
    query = select(sold.number, ACCOUNTS.c.name, sold.previous, sold.epsilon, sold.digest, sold.history)
    query = query.join(ACCOUNTS, ACCOUNTS.c.number == sold.buyer)
    query = query.where(sold.listing == listing.number, sold.place >= first)
    if last is not None:
        query = query.where(sold.place <= last)
    return [
        Sold(number, listing.id, buyer, previous is not None, epsilon, digest, history, _WRITER)
        for number, buyer, previous, epsilon, digest, history in connection.execute(query.order_by(sold.place))
    ]


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except (OSError, PrivateFileError):
        raise unacknowledged(
            StorageUnavailableError(
                "the market's journal cannot be used, and nothing leaves that is not written there."
            )
        ) from None
