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

from sqlalchemy import Connection, select

from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.errors import ForgottenSalesError, StorageUnavailableError
from relaxdp.market.schema import ACCOUNTS, LISTINGS, PURCHASES

ENDING = ".sold"
_LINES = ".jsonl"


@dataclass(frozen=True, slots=True)
class Sold:
    """One line of the journal. What counts is the level and the digest of its file, whoever bought it."""

    number: int
    buyer: str
    upgrade: bool
    epsilon: str
    threshold: str
    digest: str

    def is_as(self, other: Sold | None) -> bool:
        """Tell whether the same file was sold."""
        return other is not None and (self.threshold, self.digest) == (other.threshold, other.digest)

    def line(self) -> bytes:
        """Return it as it is written."""
        return json.dumps(asdict(self)).encode() + b"\n"

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

    def check(self, connection: Connection, listing: str) -> list[Sold]:
        """Refuse a listing whose sales are not those of the journal; return them.

        Asked within the transaction of a sale: a sale that was forgotten is made again, and no other one.
        """
        sold = _sold_of(connection, listing)
        if any(not one.is_as(other) for one, other in zip(sold, self._read(listing), strict=False)):
            raise ForgottenSalesError(
                "the market's database was restored from an older copy and has forgotten sales of this listing: until "
                "the operator has made them again, nothing of it is sold or handed out. Nothing was done."
            )
        return sold

    def keep(self, connection: Connection, listing: str) -> None:
        """Write down all sales of a listing that are not in the journal yet. Nothing of them leaves before."""
        with _usable(), locked_folder(self._folder):
            sold, written = self.check(connection, listing), self._read(listing)
            new = sold[len(written) :]
            if new:
                self._append(listing, b"".join(one.line() for one in new))

    def knows(self, listing: str) -> bool:
        """Tell whether anything was ever sold of a listing, also if the database has forgotten it."""
        return bool(self._read(listing))

    def forgotten(self, connection: Connection) -> list[tuple[str, Sold]]:
        """Return the sales that the database does not know, in their order, each with its listing."""
        found: list[tuple[str, Sold]] = []
        for file in self._folder.glob(f"*{_LINES}"):
            sold, written = _sold_of(connection, file.stem), self._read(file.stem)
            same = sum(1 for _ in takewhile(lambda pair: pair[0].is_as(pair[1]), zip(sold, written, strict=False)))
            for one in written[same:]:
                if one is None:
                    raise StorageUnavailableError(f"the market's journal {str(file)!r} is damaged. Nothing was done.")
                found.append((file.stem, one))
        return sorted(found, key=lambda each: each[1].number)

    def _read(self, listing: str) -> list[Sold | None]:
        """Return what was written. A line without an end was not finished, and nothing left because of it."""
        with _usable():
            try:
                content = self._place(listing).read_bytes()
            except FileNotFoundError:
                return []
        return [Sold.read(line) for line in content.split(b"\n")[:-1]]

    def _append(self, listing: str, content: bytes) -> None:
        descriptor = os.open(self._place(listing), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            file.seek(file.read().rfind(b"\n") + 1)  # over a line that was not finished
            file.truncate()
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._folder)

    def _place(self, listing: str) -> Path:
        return self._folder / f"{listing}{_LINES}"


def _sold_of(connection: Connection, listing: str) -> list[Sold]:
    """Return all sales of a listing in their order, as the database knows them."""
    sold = PURCHASES.c
    query = (
        select(sold.number, ACCOUNTS.c.name, sold.previous, sold.epsilon, sold.threshold, sold.digest)
        .join(LISTINGS, LISTINGS.c.number == sold.listing)
        .join(ACCOUNTS, ACCOUNTS.c.number == sold.buyer)
        .where(LISTINGS.c.id == listing)
        .order_by(sold.number)
    )
    return [
        Sold(number, buyer, previous is not None, epsilon, str(int(threshold)), digest)
        for number, buyer, previous, epsilon, threshold, digest in connection.execute(query)
    ]


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except (OSError, PrivateFileError):
        raise StorageUnavailableError(
            "the market's journal cannot be used, and nothing leaves that is not written there. What was not "
            "acknowledged may be sent again."
        ) from None
