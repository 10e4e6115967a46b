"""Comparing a table with all rows released before, and the new snapshots: the rows of the table, and absent ones.

A changed value and a respelled id reject the whole release: the same people would be drawn twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NoReturn
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from relaxdp.errors import RowsChangedError, VaultError
from relaxdp.ledger.account import ColumnState
from relaxdp.ledger.events import SnapshotSummary
from relaxdp.tables.release_plan import PlannedColumn, ReleasePlan
from relaxdp.tables.snapshot import (
    ChunkKind,
    PartSealer,
    Snapshot,
    StagedSnapshot,
    TrueRows,
    cast_to_common_type,
    compare_values,
    concatenate_ids,
    concatenate_values,
    take_values,
)

MAX_RESPELLED = Decimal("0.01")
"""The share of all known rows that may join while others are absent: respelled ids look like that."""
_LEFT_ROWS = 1 << 16


class _SortedRowReader:
    """Reads the rows of a snapshot in ascending order of their ids, from the front."""

    def __init__(self, chunks: Iterator[TrueRows]) -> None:
        self._chunks, self._last_id = (chunk for chunk in chunks if len(chunk)), None
        self._rows = self._read_next_chunk()

    def _read_next_chunk(self) -> TrueRows | None:
        rows = next(self._chunks, None)
        if rows is not None:
            if self._last_id is not None and not self._last_id < rows.ids[0].as_py():
                # Rows of it would be taken for new ones.
                raise VaultError(
                    "A snapshot (a copy of rows in the vault) is damaged: its rows are not in the order of the ids.",
                    hint="Restore it from a backup of the vault, or release the table under a new name, at full cost.",
                )
            self._last_id = rows.ids[len(rows) - 1].as_py()
        return rows

    def take_rows_until(self, last_id: Any) -> list[TrueRows]:
        """Return all rows whose ids are at most `last_id`; None takes all."""
        taken: list[TrueRows] = []
        while self._rows is not None:
            ids = self._rows.ids
            count = len(ids) if last_id is None else bisect_right(ids, last_id, key=lambda each: each.as_py())
            if count:
                taken.append(self._rows.slice(0, count))
            if count < len(ids):
                self._rows = self._rows.slice(count)
                break
            self._rows = self._read_next_chunk()
        return taken


class SnapshotComparer:
    """Compares the batches of a table with the snapshot of one column, and collects what has left."""

    def __init__(self, snapshot: Snapshot, *, has_left: bool) -> None:
        self.changed = self.joined = 0
        self.left = 0
        """Rows of the last release that are not in the table."""
        self.absent = 0
        """All known rows that are not in the table."""
        self.joined_ids: list[pa.Array] = []
        present = _SortedRowReader(snapshot.read_rows(ChunkKind.PRESENT))
        left = _SortedRowReader(snapshot.read_rows(ChunkKind.LEFT) if has_left else iter(()))
        self._runs = ((present, True), (left, False))

    def compare_rows(self, rows: TrueRows | None) -> TrueRows | None:
        """Compare the next rows, and return known rows before them that are absent; None after the last row."""
        last = None if rows is None else rows.ids[len(rows) - 1].as_py()
        is_known = np.zeros(0 if rows is None else len(rows), dtype=bool)
        absent = []
        for run, is_present in self._runs:
            for old in run.take_rows_until(last):
                gone = old if rows is None else self._compare_known_rows(old, rows, is_known)
                absent += [gone] if len(gone) else []
                self.absent += len(gone)
                self.left += len(gone) if is_present else 0
        joined = int(np.count_nonzero(~is_known))
        if joined and rows is not None:
            self.joined += joined
            self.joined_ids.append(rows.ids.filter(pa.array(~is_known)))
        return merge_rows(absent)

    def _compare_known_rows(self, old: TrueRows, new: TrueRows, is_known: NDArray[np.bool_]) -> TrueRows:
        """Compare known rows with new ones, and return those that are absent from these."""
        old_ids, new_ids = cast_to_common_type(old.ids, new.ids)
        if len(old) == len(new) and old_ids.equals(new_ids):
            is_known[:] = True
            self.changed += int(np.count_nonzero(~compare_values(old.values, new.values)))
            return old.slice(0, 0)
        places = pc.index_in(old_ids, value_set=new_ids)
        is_there = np.asarray(places.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        found = places.drop_null().to_numpy().astype(np.intp)
        same = compare_values(take_values(old.values, np.flatnonzero(is_there)), take_values(new.values, found))
        self.changed += int(np.count_nonzero(~same))
        is_known[found] = True
        return old.take(np.flatnonzero(~is_there))


def merge_rows(parts: list[TrueRows]) -> TrueRows | None:
    """Merge rows of several runs, in the order of their ids."""
    if not parts:
        return None
    ids = concatenate_ids([part.ids for part in parts])
    rows = TrueRows(ids, concatenate_values([part.values for part in parts]))
    return rows.take(np.asarray(pc.sort_indices(ids).to_numpy(), dtype=np.intp)) if len(parts) > 1 else rows


class ColumnSnapshotWriter:
    """Writes the snapshot of one column: all rows of the table, and known rows that are absent from it."""

    def __init__(self, plan: ReleasePlan, column: PlannedColumn, staged: StagedSnapshot, part: PartSealer) -> None:
        self._plan, self._column, self._staged, self.part = plan, column, staged, part
        self._left: list[TrueRows] = []
        self._left_chunks, self._rows = 0, 0
        self.comparison: SnapshotComparer | None = None
        if column.state is not None:
            self._old = Snapshot(plan.vault.snapshots, column.state.snapshot, plan.vault.key)
            self.comparison = SnapshotComparer(self._old, has_left=column.state.left > 0)

    @property
    def joined_and_left(self) -> tuple[int, int]:
        """How many rows joined and left since the last release."""
        return (0, 0) if self.comparison is None else (self.comparison.joined, self.comparison.left)

    def add(self, rows: TrueRows, chunk: bytes) -> None:
        """Add the next rows, after a comparison with those of the last release."""
        if self.comparison is not None:
            self._keep_absent_rows(self.comparison.compare_rows(rows))
            if self.comparison.changed:
                reject_changed_values(self._plan, self._column)
        self.part.write(chunk)
        self._rows += len(rows)

    def finish(self) -> SnapshotSummary:
        """Close the snapshot, or reject a table that does not continue what was released."""
        found, known = self.comparison, self._column.state
        if found is None or known is None:
            self.part.close()
            return SnapshotSummary(self._staged.close(), self._rows, 0, 0, 0)
        self._keep_absent_rows(found.compare_rows(None), is_last=True)
        self.part.close()
        if found.joined_ids and pa.types.is_large_string(found.joined_ids[0].type):
            joined = normalize_spelling(pa.concat_arrays(found.joined_ids))
            reject_respelled_ids(
                self._plan, self._old, lambda ids: pc.any(pc.is_in(ids, value_set=joined), min_count=0).as_py()
            )
        return finish_column_snapshot(self._plan, known, self._staged, n_joined=found.joined, n_absent=found.absent)

    def _keep_absent_rows(self, rows: TrueRows | None, *, is_last: bool = False) -> None:
        self._left += [] if rows is None else [rows]
        if self._left and (is_last or sum(map(len, self._left)) >= _LEFT_ROWS):
            ids = concatenate_ids([each.ids for each in self._left])
            left = TrueRows(ids, concatenate_values([each.values for each in self._left]))
            self.part.write(self.part.seal_rows(ChunkKind.LEFT, self._left_chunks, left))
            self._left, self._left_chunks = [], self._left_chunks + 1


def finish_column_snapshot(
    plan: ReleasePlan, state: ColumnState, staged: StagedSnapshot, *, n_joined: int, n_absent: int
) -> SnapshotSummary:
    """Finish the snapshot of a column, or reject a table in which too many ids were exchanged for others."""
    rows, exchanged = state.known + n_joined, state.exchanged + min(n_joined, n_absent)
    if exchanged > MAX_RESPELLED * rows:
        if not plan.request.accept_new_rows:
            raise RowsChangedError(
                "{joined:,} rows of this table are new, and {left:,} of the rows ever released as {name!r} are absent. "
                "If ids were only respelled, the same people would get a second, independent report.",
                hint="Check that ids are written as before. If the rows are really new, pass accept_new_rows=True "
                "(--accept-new-rows). The ledger records it.",
                name=plan.request.name,
                left=n_absent,
                joined=n_joined,
            )
        exchanged = 0
    return SnapshotSummary(staged.close(), rows, state.joined + n_joined, n_absent, exchanged)


def reject_changed_values(plan: ReleasePlan, column: PlannedColumn) -> NoReturn:
    """Reject a table in which released values have changed."""
    raise RowsChangedError(
        "The values of {column!r} have changed in some rows since they were released as {name!r}. Releasing them again "
        "would show which rows changed.",
        hint="To go on with the old values, use vault.relax({name!r}, ...) or `relaxdp relax`. To release the new "
        "values, release the whole table under a new name, at full cost. Do not drop the changed rows: their absence "
        "shows who changed.",
        column=column.column,
        name=plan.request.name,
    )


def reject_respelled_ids(plan: ReleasePlan, known_snapshot: Snapshot, has_new_id: Callable[[pa.Array], bool]) -> None:
    """Reject new ids that differ from known ones only in spelling. `has_new_id` takes folded ids."""
    for _, rows in known_snapshot.read_all_rows():
        if has_new_id(normalize_spelling(rows.ids)):
            raise RowsChangedError(
                "New ids differ from released ones only in case, spaces, leading zeros or a trailing .0. The same "
                "people would get a second report.",
                hint="Write the ids as in the first release of {name!r}.",
                name=plan.request.name,
            )


def normalize_spelling(ids: Any) -> Any:
    """Return text ids in a form in which different spellings are equal."""
    if not pc.all(pc.string_is_ascii(ids), min_count=0).as_py():  # Arrow's lower case leaves ß and ς as they are
        ids = pa.array([normalize("NFKC", normalize("NFKC", each).casefold()) for each in ids.to_pylist()], ids.type)
    folded = pc.utf8_lower(ids)
    folded = pc.replace_substring_regex(folded, r"[\s\p{Z}\p{Cc}\p{Cf}]+", "")  # also characters that are not seen
    folded = pc.replace_substring_regex(folded, r"\.0+$", "")
    return pc.replace_substring_regex(folded, r"^0+", "")
