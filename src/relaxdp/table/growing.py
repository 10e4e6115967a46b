"""Growing tables: rows may join and leave, but a row that was released may not change, and not all may be others.

A file holds two 64-bit tags of every row, one of its id and one of its id and truth; no id, no truth and no order of
rows can be read from it. Two ids share a tag with a chance of about 7e-5 at 50 million rows: a false alarm, no leak.

A fingerprint of a whole table cannot tell a new row from a changed one, so keyed tags of all rows ever released are
kept beside the ledger. Their file is named by its digest, and the ledger records that digest: the commit of the ledger
is what makes one of them valid. So a crash before it leaves the old tags valid, a crash after it the new ones, which
were durable before; and tags that were lost, damaged or put back from a backup are noticed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.draw.stream import PathId, Words
from relaxdp.encodings.release import Fingerprint
from relaxdp.errors import RelaxdpError, TableChangedError, TableFileError
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.entries import Entry, Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.ledger.rules import differs
from relaxdp.publication.plain import plain
from relaxdp.publication.request import Planned, ReleaseRequest
from relaxdp.publication.transaction import Seen
from relaxdp.table.database import open_database
from relaxdp.table.formats import BATCH_ROWS
from relaxdp.table.order import repeated_id

_SCHEMA = pa.schema([("id_tag", pa.uint64()), ("row_tag", pa.uint64())])
_MEMORY = "400MB"


class Tagger:
    """Tags the rows of a table, or of a part of it, for each column of a release."""

    def __init__(self, request: ReleaseRequest, columns: Sequence[Planned]) -> None:
        self._id_column, self._columns, self._first_row = request.id_column, columns, 0
        self._prints = [Fingerprint.of(request.key, each.encoding, each.path) for each in columns]

    def tags(self, batch: Any) -> list[tuple[Words, Words]]:
        """Return the tags of the ids and of the rows of the next batch, for each column."""
        ids, found = plain(batch.column(self._id_column)), []
        for each, tagged in zip(self._columns, self._prints, strict=True):
            truth = each.request.truth(batch.column(each.request.column), self._first_row)
            found.append(tagged.add_rows(each.encoding, truth, ids, self._first_row))
        self._first_row += batch.num_rows
        return found

    def prints(self) -> tuple[str, ...]:
        """Return the fingerprints of what was tagged."""
        return tuple(each.text() for each in self._prints)


class TagWriter:
    """Writes tags to a file that only its owner can read, and knows the digest of what it wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        self._writer: Any = pa_parquet.ParquetWriter(self._file, _SCHEMA, compression="none", use_dictionary=False)
        self._digest = _Digest()

    def write(self, id_tags: Words, row_tags: Words) -> None:
        """Append rows."""
        self._writer.write_batch(pa.RecordBatch.from_arrays([pa.array(id_tags), pa.array(row_tags)], schema=_SCHEMA))
        self._digest.add(id_tags, row_tags)

    def close(self) -> str:
        """Wait for the disk, and return the digest."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sync_folder(self.path.parent)
        return self._digest.text()

    def abandon(self) -> None:
        """Remove the file if it is still under its name."""
        with contextlib.suppress(Exception):  # Arrow's writer would complain later that its file is gone
            self._writer.close()
        self._file.close()
        self.path.unlink(missing_ok=True)


def digest_of(path: Path) -> str | None:
    """Return the digest of a file of tags; None where it is missing or damaged."""
    digest = _Digest()
    try:
        with pa_parquet.ParquetFile(path, pre_buffer=False) as file:
            for number in range(file.num_row_groups):  # one at a time: an iterator would read the whole file ahead
                for batch in file.read_row_group(number).to_batches():
                    digest.add(*_arrays(batch))
    except (OSError, pa.ArrowException):
        return None
    return digest.text()


def merge(old: Path | None, fresh: Path, into: TagWriter, threads: int) -> tuple[int, int]:
    """Write all rows of both files in the order of their tags; return how many ids are in both, and in other rows."""
    common, changed, last = 0, 0, None
    for batch in _together(old, fresh, threads):
        # The last row of the batch before stands in front, so that pairs across a border are seen too.
        carried = 0 if last is None else 1
        columns = batch if last is None else [np.concatenate(pair) for pair in zip(last, batch, strict=True)]
        ids, rows, is_fresh = columns
        same = ids[1:] == ids[:-1]
        if (same & is_fresh[1:] & is_fresh[:-1]).any():
            raise repeated_id()
        common += int(np.count_nonzero(same))
        changed += int(np.count_nonzero(same & (rows[1:] != rows[:-1])))
        first = np.concatenate([[True], ~same])
        first[:carried] = False
        into.write(ids[first], rows[first])
        last = [column[-1:] for column in columns]
    return common, changed


def _together(old: Path | None, fresh: Path, threads: int) -> Generator[list[Any]]:
    """Return the rows of both files in the order of the tags, sorted by DuckDB, which spills to disk."""
    parts = [(fresh, True)] if old is None else [(old, False), (fresh, True)]
    query = " UNION ALL ".join(_part(*part) for part in parts) + " ORDER BY id_tag, fresh"
    failed = TableFileError("the tags of the rows could not be joined: the disk may be full.")
    with open_database(_MEMORY, failed, threads=threads) as database:
        for batch in database.sql(query).to_arrow_reader(BATCH_ROWS):
            yield _arrays(batch)


def _part(path: Path, fresh: bool) -> str:
    name = str(path).replace("'", "''")
    return f"SELECT id_tag, row_tag, {fresh} AS fresh FROM read_parquet('{name}')"  # noqa: S608 (quoted name)


def _arrays(batch: Any) -> list[Any]:
    return [column.to_numpy(zero_copy_only=False) for column in batch.columns]


class _Digest:
    """SHA-256 of the tags in their order, whatever the file around them looks like, and their number."""

    def __init__(self) -> None:
        self._hash, self._rows = sha256(), 0

    def add(self, id_tags: Words, row_tags: Words) -> None:
        pairs = np.stack([id_tags, row_tags], axis=1).astype("<u8")
        self._hash.update(pairs.tobytes())
        self._rows += len(pairs)

    def text(self) -> str:
        return f"{self._rows}:{self._hash.hexdigest()[:32]}"


_WORK = ".unfinished"


TagRows = Callable[[Sequence[TagWriter]], Sequence[str]]
"""Writes the tags of all rows, with one writer for each column, and returns the fingerprints of the table."""


class Growth:
    """What a release of a growing table adds: tags that are durable but not yet valid; nothing for any other table."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._seen: list[Seen] | None = None
        self._prints: list[str] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the tags from the look at the rows on, until the publication is over."""
        with self._stack:
            yield

    def look(
        self, entries: Sequence[Entry], payer: Payer, columns: Sequence[Planned], tag_rows: TagRows, threads: int
    ) -> list[Seen]:
        """Compare a table with the tags of its earlier releases, and keep new tags for it aside.

        What is returned is what the ledger is to record, the digest of each column's tags: from then on they are valid.
        """
        self._seen, self._prints = self._stack.enter_context(_watched(entries, payer, columns, tag_rows, threads))
        return self._seen

    def checked(self, drawn: list[Seen]) -> list[Seen]:
        """Return what the ledger is told, or refuse a table that was written to between the times that it is read."""
        if self._seen is None:
            return drawn
        if [each.fingerprint for each in drawn] != self._prints:
            raise changed_meanwhile()
        return self._seen


def changed_meanwhile() -> TableFileError:
    """Return the refusal of a table that was not the same each time that it was read."""
    return TableFileError("the table changed while it was read.")


@contextmanager
def _watched(
    entries: Sequence[Entry], payer: Payer, columns: Sequence[Planned], tag_rows: TagRows, threads: int
) -> Iterator[tuple[list[Seen], list[str]]]:
    """Tag a table and join its tags to those of its earlier releases; give these, and the table's fingerprints.

    Other releases of growing tables under the same ledger wait meanwhile: two that join their rows to the same tags
    would each lose the other's.
    """
    assert payer.growing is not None  # noqa: S101
    tags = _Tags(payer.growing, payer.subject)
    with _locked(tags.folder):
        tags.sweep(payer.ledger, entries)
        try:
            account = payer.look()  # as it is now that nobody else may tag
            fresh, prints = _tag(tags, columns, tag_rows)
            pairs = zip(entries, fresh, strict=True)
            yield [tags.join(account, entry, file, payer.force, threads) for entry, file in pairs], prints
        finally:
            tags.sweep(payer.ledger, entries)


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of one subject's growing tables."""

    folder: Path
    subject: Subject

    def join(self, account: Account, entry: Entry, fresh: Path, force: bool, threads: int) -> Seen:
        """Join the rows of one column to the tags that the ledger names, or begin new ones for a new path."""
        state = account.last_epoch(entry.path)
        path = replace(entry.path, epoch=1) if state is None else state.path
        # The same rule as the charge: a path that the ledger goes on with is one whose rows are compared.
        if state is None or differs(state, entry) is not None:
            return Seen(self._merge(None, fresh, _next(path, state), threads)[0])
        old = self.file(path, str(state.facts.table_fingerprint))
        lost = digest_of(old) != state.facts.table_fingerprint
        if lost and not force:
            raise TableFileError(
                "the row tags of {released} are missing, damaged or not those that the ledger names, so that "
                "nobody can tell whether rows changed.",
                released=path,
                path=str(old),
            )
        digest, common, changed = ("", 0, 0) if lost else self._merge(old, fresh, path, threads)
        # Everybody would be drawn anew, and nothing charged for it: to release new rows alone nobody needs a path. A
        # table without any row is refused by whoever counts rows.
        others = not lost and not common and pa_parquet.read_metadata(fresh).num_rows > 0
        if others and not force:
            raise TableChangedError(
                "no id of this table was released before as {path}. If its ids are only written in another way, like "
                "17.0 for 17, everybody would be drawn a second time. A table that grows has earlier rows, too.",
                remedy="force_changed",
                path=path,
            )
        if changed and not force:
            refusal = TableChangedError(
                "rows of {path} changed since the last release. Rows may join and leave, but a changed row shows that "
                "it changed.",
                remedy="force_changed",
                path=path,
            )
            refusal.changed_rows = changed
            raise refusal
        if not (lost or others or changed):
            return Seen(digest)
        return Seen(self._merge(None, fresh, _next(path, state), threads)[0], changed=True)

    def _merge(self, old: Path | None, fresh: Path, path: PathId, threads: int) -> tuple[str, int, int]:
        writer = TagWriter(self.folder / f"{self.name(path)}{_WORK}")
        try:
            common, changed = merge(old, fresh, writer, threads)
            digest = writer.close()
            writer.path.rename(self.file(path, digest))
            sync_folder(self.folder)
        except OSError as problem:
            raise _cannot_be_written(problem) from None
        finally:
            writer.abandon()
        return digest, common, changed

    def name(self, path: PathId) -> str:
        """Return what the names of all tags of a path begin with, whatever its epoch."""
        texts = (self.subject.kind, self.subject.name, replace(path, epoch=1).stream_name(), path.attribute)
        return sha256(b"".join(length_prefixed(text.encode()) for text in texts)).hexdigest()[:24]

    def file(self, path: PathId, digest: str) -> Path:
        """Return where tags with a digest lie."""
        return self.folder / f"{self.name(path)}-{path.epoch}-{digest.replace(':', '-')}.parquet"

    def sweep(self, ledger: Ledger, entries: Sequence[Entry]) -> None:
        """Remove what the ledger does not name: unfinished work, and the tags before the last release.

        The ledger is asked anew. A release that failed may have been committed, and then its tags are the valid ones.
        """
        with contextlib.suppress(RelaxdpError, OSError):
            account = ledger.account(self.subject)
            for entry in entries:
                state = account.last_epoch(entry.path)
                valid = None
                if state is not None and state.facts.growing:
                    valid = self.file(state.path, str(state.facts.table_fingerprint))
                for file in self.folder.glob(f"{self.name(entry.path)}*"):
                    if file != valid:
                        file.unlink(missing_ok=True)


def _next(path: PathId, state: PathState | None) -> PathId:
    return path if state is None else replace(path, epoch=path.epoch + 1)


def _tag(tags: _Tags, columns: Sequence[Planned], tag_rows: TagRows) -> tuple[list[Path], list[str]]:
    """Write the tags of the table's rows, in any order, beside those of its earlier releases."""
    writers: list[TagWriter] = []
    try:
        writers += [TagWriter(tags.folder / f"{tags.name(each.path)}.fresh{_WORK}") for each in columns]
        prints = tag_rows(writers)
        for writer in writers:
            writer.close()
    except BaseException as problem:
        for writer in writers:
            writer.abandon()
        if isinstance(problem, OSError) and not isinstance(problem, RelaxdpError):
            raise _cannot_be_written(problem) from None
        raise
    return [writer.path for writer in writers], list(prints)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as problem:
        raise _cannot_be_written(problem) from None
    try:
        with locked_folder(folder):
            yield
    except PrivateFileError as problem:
        raise TableFileError("the folder {folder!r} {problem}.", folder=str(folder), problem=problem) from None


def _cannot_be_written(problem: OSError) -> TableFileError:
    if isinstance(problem, TableFileError):
        return problem
    what = problem.strerror or os.strerror(problem.errno or 0)
    return TableFileError("the row tags cannot be written: {what}.", what=what)
