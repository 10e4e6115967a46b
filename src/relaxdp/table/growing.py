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
from relaxdp.errors import RelaxdpError, TableChangedError, TableFileError
from relaxdp.ledger.account import PathState
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.subject import Subject
from relaxdp.table.charging import path_states
from relaxdp.table.fingerprint import Fingerprint
from relaxdp.table.formats import Input
from relaxdp.table.plain import plain
from relaxdp.table.request import TableRequest
from relaxdp.table.tags import TagWriter, digest_of, merge

_WORK = ".unfinished"


@dataclass(slots=True)
class Growth:
    """What a release of a growing table adds: tags that are durable but not yet valid, and what has changed."""

    digests: list[str] = field(default_factory=list)
    """What the ledger is to record for each column; from then on its tags are valid."""
    prints: list[str] = field(default_factory=list)
    """The fingerprints of the table as it was tagged; the rows that leave must be the same ones."""
    changed: list[PathIdentity] = field(default_factory=list)

    def check(self, prints: Sequence[str]) -> None:
        """Refuse a table that was written to between the two times that it is read."""
        if list(prints) != self.prints:
            raise TableFileError("the table changed while it was read. Nothing was released.")


def tags_folder(ledger: Path) -> Path:
    """Return where the tags of a ledger's growing tables lie."""
    return ledger.with_name(ledger.name + ".tags")


@contextmanager
def watched_growth(
    request: TableRequest,
    folder: Path,
    ledger: Ledger,
    subject: Subject,
    facts: Sequence[tuple[PathIdentity, PathFacts]],
    table: Input,
    *,
    force: bool,
    threads: int,
) -> Iterator[Growth]:
    """Compare a table with the tags of its earlier releases, and keep new tags for it aside.

    Other releases of growing tables under the same ledger wait meanwhile: two that join their rows to the same tags
    would each lose the other's.
    """
    with _locked(folder):
        names = [_name(subject, identity) for identity, _ in facts]
        _sweep(folder, names, ledger, subject, facts)
        try:
            growth = Growth()
            states = path_states(ledger, subject)
            fresh, growth.prints = _tag(request, folder, names, table)
            for (identity, given), name, tags in zip(facts, names, fresh, strict=True):
                _join(growth, states.get(identity), identity, given, folder, name, tags, force, threads)
            yield growth
        finally:
            _sweep(folder, names, ledger, subject, facts)


def _join(
    growth: Growth,
    state: PathState | None,
    identity: PathIdentity,
    given: PathFacts,
    folder: Path,
    name: str,
    fresh: Path,
    force: bool,
    threads: int,
) -> None:
    """Join the rows of one column to the tags that the ledger names, or begin new ones for a new path."""
    epoch = 1 if state is None else state.epoch
    if state is not None and _same_path(state.facts, given):
        old = _tags_file(folder, name, epoch, str(state.facts.table_fingerprint))
        lost = digest_of(old) != state.facts.table_fingerprint
        if lost and not force:
            raise TableFileError(
                f"the row tags of {identity} are missing, damaged or not those that the ledger names, so that nobody "
                "can tell whether rows changed. Nothing was released.",
                path=str(old),
            )
        digest, changed = ("", 0) if lost else _merge(old, fresh, folder, name, epoch, threads)
        if changed and not force:
            rows = "1 row" if changed == 1 else f"{changed:,} rows"
            raise TableChangedError(
                f"{rows} changed since the last release of {identity}. Nothing was released. Rows may join and leave, "
                "but a changed row shows that it changed; --force opens a new path, charged to everyone.",
                changed=changed,
            )
        if not (lost or changed):
            growth.digests.append(digest)
            return
        growth.changed.append(identity)
    digest, _ = _merge(None, fresh, folder, name, epoch if state is None else epoch + 1, threads)
    growth.digests.append(digest)


def _same_path(old: PathFacts, new: PathFacts) -> bool:
    return replace(old, table_fingerprint=None) == replace(new, table_fingerprint=None)


def _merge(old: Path | None, fresh: Path, folder: Path, name: str, epoch: int, threads: int) -> tuple[str, int]:
    writer = TagWriter(folder / f"{name}{_WORK}")
    try:
        changed = merge(old, fresh, writer, threads)
        digest = writer.close()
        writer.path.rename(_tags_file(folder, name, epoch, digest))
        sync_folder(folder)
    except OSError as problem:
        raise _cannot_be_written(problem) from None
    finally:
        writer.abandon()
    return digest, changed


def _tag(request: TableRequest, folder: Path, names: list[str], table: Input) -> tuple[list[Path], list[str]]:
    """Write the tags of the table's rows, in the order of the table, beside those of its earlier releases."""
    encodings = [each.mechanism.encoding for each in request.columns]
    prints = [
        Fingerprint(request.key, encoding.path_name(request.release, each.column))
        for each, encoding in zip(request.columns, encodings, strict=True)
    ]
    writers: list[TagWriter] = []
    try:
        writers += [TagWriter(folder / f"{name}.fresh{_WORK}") for name in names]
        first_row = 0
        for batch in table.batches(request.input_columns()):
            ids = plain(batch.column(request.id_column))
            for each, encoding, tags, writer in zip(request.columns, encodings, prints, writers, strict=True):
                truth = each.truth(batch.column(each.column), first_row)
                writer.write(*tags.add_rows(encoding, truth, ids, first_row))
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


def _name(subject: Subject, identity: PathIdentity) -> str:
    texts = (subject.kind, subject.name, identity.release, identity.attribute)
    return sha256(b"".join(length_prefixed(text.encode()) for text in texts)).hexdigest()[:24]


def _tags_file(folder: Path, name: str, epoch: int, digest: str) -> Path:
    return folder / f"{name}-{epoch}-{digest.replace(':', '-')}.parquet"


def _sweep(
    folder: Path,
    names: list[str],
    ledger: Ledger,
    subject: Subject,
    facts: Sequence[tuple[PathIdentity, PathFacts]],
) -> None:
    """Remove what the ledger does not name: unfinished work, and the tags before the last release.

    The ledger is asked anew. A release that failed may have been committed, and then its tags are the valid ones.
    """
    with contextlib.suppress(RelaxdpError, OSError):
        states = path_states(ledger, subject)
        for (identity, _), name in zip(facts, names, strict=True):
            state = states.get(identity)
            valid = None
            if state is not None and state.facts.growing:
                valid = _tags_file(folder, name, state.epoch, str(state.facts.table_fingerprint))
            for file in folder.glob(f"{name}*"):
                if file != valid:
                    file.unlink(missing_ok=True)


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
        raise TableFileError(f"the folder {str(folder)!r} {problem}. Nothing was released.") from None


def _cannot_be_written(problem: OSError) -> TableFileError:
    if isinstance(problem, TableFileError):
        return problem
    what = problem.strerror or os.strerror(problem.errno or 0)
    return TableFileError(f"the row tags cannot be written: {what}. Nothing was released.")
