"""Growing tables: rows may join and leave, but a row that was released may not change.

A fingerprint of a whole table cannot tell a new row from a changed one, so keyed tags of all rows ever released are
kept beside the ledger. Their file is named by its digest, and the ledger records that digest: the commit of the ledger
is what makes one of them valid. So a crash before it leaves the old tags valid, a crash after it the new ones, which
were durable before; and tags that were lost, damaged or put back from a backup are noticed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.private_file import PrivateFileError, locked_folder, sync_folder
from relaxdp.draw.stream import PathId
from relaxdp.encodings.release import Fingerprint
from relaxdp.errors import RelaxdpError, TableChangedError, TableFileError
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.entries import Entry, PathFacts, Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.table.formats import Input
from relaxdp.table.plain import plain
from relaxdp.table.publication import Seen
from relaxdp.table.request import TableRequest
from relaxdp.table.tags import TagWriter, digest_of, merge

_WORK = ".unfinished"


@dataclass(slots=True)
class Growth:
    """What a release of a growing table adds: tags that are durable but not yet valid, and what has changed."""

    seen: list[Seen] = field(default_factory=list)
    """What the ledger is to record for each column, the digest of its tags: from then on they are valid."""
    prints: list[str] = field(default_factory=list)
    """The fingerprints of the table as it was tagged; the rows that leave must be the same ones."""

    def check(self, drawn: Sequence[Seen]) -> None:
        """Refuse a table that was written to between the two times that it is read."""
        if [each.fingerprint for each in drawn] != self.prints:
            raise TableFileError("the table changed while it was read.")


def tags_folder(ledger: Path) -> Path:
    """Return where the tags of a ledger's growing tables lie."""
    return ledger.with_name(ledger.name + ".tags")


@contextmanager
def watched_growth(
    request: TableRequest, entries: Sequence[Entry], payer: Payer, table: Input, *, threads: int
) -> Iterator[Growth]:
    """Compare a table with the tags of its earlier releases, and keep new tags for it aside.

    Other releases of growing tables under the same ledger wait meanwhile: two that join their rows to the same tags
    would each lose the other's.
    """
    assert payer.growing is not None  # noqa: S101
    tags = _Tags(payer.growing, payer.subject)
    with _locked(tags.folder):
        tags.sweep(payer.ledger, entries)
        try:
            growth = Growth()
            account = payer.look()  # as it is now that nobody else may tag
            fresh, growth.prints = _tag(request, tags, table)
            for entry, file in zip(entries, fresh, strict=True):
                growth.seen.append(tags.join(account, entry, file, payer.force, threads))
            yield growth
        finally:
            tags.sweep(payer.ledger, entries)


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of one subject's growing tables."""

    folder: Path
    subject: Subject

    def join(self, account: Account, entry: Entry, fresh: Path, force: bool, threads: int) -> Seen:
        """Join the rows of one column to the tags that the ledger names, or begin new ones for a new path."""
        state = account.last_epoch(entry.path.release, entry.path.attribute)
        path = replace(entry.path, epoch=1) if state is None else state.path
        if state is None or not _same_path(state.facts, entry.facts):
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
        digest, changed = ("", 0) if lost else self._merge(old, fresh, path, threads)
        if changed and not force:
            raise TableChangedError(
                "rows of {path} changed since the last release ({changed:,} of them). Rows may join and leave, but a "
                "changed row shows that it changed.",
                remedy="force_changed",
                path=path,
                changed=changed,
            )
        if not (lost or changed):
            return Seen(digest)
        return Seen(self._merge(None, fresh, _next(path, state), threads)[0], changed=True)

    def _merge(self, old: Path | None, fresh: Path, path: PathId, threads: int) -> tuple[str, int]:
        writer = TagWriter(self.folder / f"{self.name(path)}{_WORK}")
        try:
            changed = merge(old, fresh, writer, threads)
            digest = writer.close()
            writer.path.rename(self.file(path, digest))
            sync_folder(self.folder)
        except OSError as problem:
            raise _cannot_be_written(problem) from None
        finally:
            writer.abandon()
        return digest, changed

    def name(self, path: PathId) -> str:
        """Return what the names of all tags of a path begin with, whatever its epoch."""
        texts = (self.subject.kind, self.subject.name, path.release, path.attribute)
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
                state = account.last_epoch(entry.path.release, entry.path.attribute)
                valid = None
                if state is not None and state.facts.growing:
                    valid = self.file(state.path, str(state.facts.table_fingerprint))
                for file in self.folder.glob(f"{self.name(entry.path)}*"):
                    if file != valid:
                        file.unlink(missing_ok=True)


def _next(path: PathId, state: PathState | None) -> PathId:
    return path if state is None else replace(path, epoch=path.epoch + 1)


def _same_path(old: PathFacts, new: PathFacts) -> bool:
    return replace(old, table_fingerprint=None) == replace(new, table_fingerprint=None)


def _tag(request: TableRequest, tags: _Tags, table: Input) -> tuple[list[Path], list[str]]:
    """Write the tags of the table's rows, in the order of the table, beside those of its earlier releases."""
    columns = request.planned()
    prints = [Fingerprint.of(request.key, each.encoding, each.path) for each in columns]
    writers: list[TagWriter] = []
    try:
        writers += [TagWriter(tags.folder / f"{tags.name(each.path)}.fresh{_WORK}") for each in columns]
        first_row = 0
        for batch in table.batches(request.input_columns()):
            ids = plain(batch.column(request.id_column))
            for each, tagged, writer in zip(columns, prints, writers, strict=True):
                truth = each.request.truth(batch.column(each.request.column), first_row)
                writer.write(*tagged.add_rows(each.encoding, truth, ids, first_row))
            first_row += batch.num_rows
        for writer in writers:
            writer.close()
    except BaseException as problem:
        for writer in writers:
            writer.abandon()
        if isinstance(problem, OSError) and not isinstance(problem, RelaxdpError):
            raise _cannot_be_written(problem) from None
        raise
    return [writer.path for writer in writers], [each.text() for each in prints]


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
