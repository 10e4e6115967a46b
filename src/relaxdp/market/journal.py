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
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Select, select

import relaxdp
from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import ForgottenSalesError, StorageUnavailableError
from relaxdp.market.schema import ACCOUNTS, LISTINGS, PURCHASES

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

    def check(self, connection: Connection, listing: str) -> None:
        """Refuse a listing of a path whose sales are not those of the journal.

        Asked within the transaction of a sale: a sale that was forgotten is made again, to whoever had made it, and no
        other one. The last sale that both know of is compared, whose history tells of all before it.
        """
        path = path_of(connection, listing)
        newest = None if path is None else _newest(connection, path)
        if path is None or newest is None:
            return
        with self._open(path) as file:
            known = _lines(file)
            both = min(newest, known - 1)
            written = _line(file, both) if both >= 0 else None
        if both < 0:
            return
        (sold,) = _sold(connection, path, both, both)
        is_again = newest < known
        if written is None or written.history != sold.history or (is_again and written.buyer != sold.buyer):
            raise ForgottenSalesError(
                "the market's database was restored from an older copy and has forgotten sales of this release: until "
                "the operator has made them again, nothing else of it is sold. Nothing was done."
            )

    def keep(self, connection: Connection, listing: str) -> None:
        """Write down all sales of a listing that are not in the journal yet. Nothing of them leaves before."""
        path = path_of(connection, listing)
        if path is None:
            return
        newest = _newest(connection, path)
        with self._open(path) as file:
            is_written = newest is None or newest < _lines(file)
        if is_written:
            self.check(connection, listing)
            return
        with _usable(), locked_folder(self._folder):
            self.check(connection, listing)
            with self._open(path) as file:
                known = _lines(file)
            new = _sold(connection, path, known)
            if new:
                self._append(path, known, b"".join(one.line() for one in new))

    def knows(self, connection: Connection, listing: str) -> bool:
        """Tell whether anything was ever sold of a listing, also if the database has forgotten it."""
        path = path_of(connection, listing)
        if path is None:
            return False
        with self._open(path) as file:
            first = _line(file, 0) if _lines(file) else None
            return _lines(file) > 0 and (first is None or first.listing == listing)

    def forgotten(self, connection: Connection) -> list[Forgotten]:
        """Return the sales that the database does not know, in an order in which they can be made again."""
        found: list[tuple[int, int, Forgotten]] = []
        for place in self._folder.glob(f"*{_LINES}"):
            path = place.stem
            with self._open(path) as file:
                lines = [_line(file, line) for line in range(_lines(file))]
            sold = _sold(connection, path)
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


def path_of(connection: Connection, listing: str) -> str | None:
    """Return the path of a listing; None where nothing of it can be sold."""
    path: str | None = connection.execute(select(LISTINGS.c.path).where(LISTINGS.c.id == listing)).scalar()
    return path


def _newest(connection: Connection, path: str) -> int | None:
    """Return the place of the last sale of a path."""
    places = _sales(path, PURCHASES.c.place).order_by(PURCHASES.c.place.desc()).limit(1)
    newest: int | None = connection.execute(places).scalar()
    return newest


def _sold(connection: Connection, path: str, first: int = 0, last: int | None = None) -> list[Sold]:
    """Return the sales of a path from one place to another, as the database knows them."""
    sold, named = PURCHASES.c, ACCOUNTS.c.name
    columns = (sold.number, LISTINGS.c.id, named, sold.previous, sold.epsilon, sold.digest, sold.history)
    query = _sales(path, *columns).join(ACCOUNTS, ACCOUNTS.c.number == sold.buyer).where(sold.place >= first)
    if last is not None:
        query = query.where(sold.place <= last)
    return [
        Sold(number, listing, buyer, previous is not None, epsilon, digest, history, _WRITER)
        for number, listing, buyer, previous, epsilon, digest, history in connection.execute(query.order_by(sold.place))
    ]


def _sales(path: str, *columns: Any) -> Select[Any]:
    found = select(*columns).select_from(PURCHASES).join(LISTINGS, LISTINGS.c.number == PURCHASES.c.listing)
    return found.where(LISTINGS.c.path == path)


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except (OSError, PrivateFileError):
        raise StorageUnavailableError(
            "the market's journal cannot be used, and nothing leaves that is not written there. What was not "
            "acknowledged may be sent again."
        ) from None
