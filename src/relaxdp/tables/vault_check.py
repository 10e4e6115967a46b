"""`vault.check`: verify the chain of events, the snapshots, the modes of files, and released files."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import RelaxdpError
from relaxdp.ledger.account import Account, ColumnState
from relaxdp.sampling.arrow_columns import decode_dictionary
from relaxdp.tables.metadata import ColumnDescription, FileDescription
from relaxdp.tables.release_output import format_reports
from relaxdp.tables.release_plan import PlannedColumn
from relaxdp.tables.snapshot import (
    Snapshot,
    cast_to_common_type,
    concatenate_ids,
    normalize_ids,
    parse_id_type,
    restore_ids,
)
from relaxdp.tables.table_source import NotAscendingError, open_source
from relaxdp.tables.vault_folder import VaultFolder
from relaxdp.theory.epsilon import format_epsilon


@dataclass(slots=True)
class CheckResult:
    """The result of a check: verified parts, and problems."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def __str__(self) -> str:
        return "\n".join([*self.lines, *(f"PROBLEM: {problem}" for problem in self.problems)])


def check_vault(vault: VaultFolder, files: Sequence[Path]) -> CheckResult:
    """Check a vault: verify everything that can be verified."""
    found = CheckResult()
    try:
        account, old = vault.read_account_and_problem()
    except RelaxdpError as problem:
        found.problems.append(problem.sentence)
        return found
    if old:
        found.problems.append(f"The vault '{vault.path.name}' {old}.")
    else:
        found.lines.append(f"ledger: {account.number} events, each linked to the one before it")
    _check_snapshots(vault, account, found)
    wide = vault.find_paths_open_to_others()
    found.problems += [f"'{place}' can be read by other users of this machine." for place in wide]
    if not wide:
        found.lines.append("modes: only you can read the vault")
    for file in files:
        _check_file(vault, account, file, found)
    return found


def _check_snapshots(vault: VaultFolder, account: Account, result: CheckResult) -> None:
    count = 0
    for release in account.releases.values():
        if release.retired:
            continue
        digests = {column.column: column.snapshot for column in release.columns.values()}
        if release.passthrough_snapshot is not None:
            digests["the pass-through columns"] = release.passthrough_snapshot
        for what, digest in digests.items():
            try:
                Snapshot(vault.snapshots, digest, vault.key).verify()
                count += 1
            except RelaxdpError as problem:
                result.problems.append(f"{what} of {release.name!r}: {problem.sentence}")
    result.lines.append(f"snapshots: {count} verified")


def _check_file(vault: VaultFolder, account: Account, file: Path, result: CheckResult) -> None:
    try:
        with open_source(file) as source:
            try:
                problems, rows = _check_released_columns(vault, account, source.report_description, source)
            except NotAscendingError:  # numbers are text in a text file, and sort in another order
                source.sort_from_now_on()
                problems, rows = _check_released_columns(vault, account, source.report_description, source)
    except RelaxdpError as problem:
        problems, rows = [problem.sentence], 0
    if problems:
        result.problems += [f"{file}: {problem}" for problem in problems]
    elif rows:
        result.lines.append(f"{file}: {rows:,} rows, drawn again and equal")
    else:
        result.lines.append(f"{file}: its levels are charged; it is retired, so that its rows cannot be drawn again")


def _check_released_columns(
    vault: VaultFolder, account: Account, description: FileDescription | None, source: Any
) -> tuple[list[str], int]:
    """Compare a released file with the ledger, and its reports with what the snapshots give."""
    if description is None:
        return ["it is not a file that relaxdp released, or it was rewritten since."], 0
    head = description.head
    if head is None or head.vault != vault.id:
        return ["it was released by another vault, or by none."], 0
    if head.event > account.number or vault.ledger.get_digest(head.event) != head.digest:
        return [
            "it was released by a newer or another copy of this vault, which has spent more than this one knows."
        ], 0
    problems, rows = [], 0
    for output, described in description.columns.items():
        release = account.releases.get(described.path.release)
        state = None if release is None else release.columns.get(described.path.attribute)
        if release is None or state is None or described.epsilon > state.largest:
            epsilon = format_epsilon(described.epsilon)
            problems.append(f"{output!r} is at epsilon {epsilon}, which this vault has never charged.")
        elif not _is_same_path(described, state, release.id_type):
            problems.append(f"{output!r} has another mechanism or other ids than the release of this vault.")
        elif not release.retired:
            differing, rows = _count_differing_reports(vault, state, described, description.id_column, output, source)
            if differing:
                problems.append(f"{differing:,} reports of {output!r} are not what the vault draws.")
    return problems, rows


def _is_same_path(described: ColumnDescription, state: ColumnState, id_type: str) -> bool:
    encoding = described.mechanism()
    return (encoding.name, encoding.params.hex(), described.id_type) == (state.mechanism, state.params, id_type)


def _count_differing_reports(
    vault: VaultFolder, state: ColumnState, described: ColumnDescription, id_column: str, output: str, source: Any
) -> tuple[int, int]:
    """Count the reports of a file that differ from what the snapshot gives; return that and how many were compared."""
    mechanism = described.mechanism()
    level = mechanism.level(described.epsilon, described.threshold)
    planned = PlannedColumn(state.column, mechanism, "", level, described.path)
    names = [field.name for field in planned.make_fields()]
    known: list[tuple[Any, list[Any]]] = []
    snapshot = Snapshot(vault.snapshots, state.snapshot, vault.key)
    id_type = parse_id_type(snapshot.read_description()["id"])
    for _, rows in snapshot.read_all_rows():
        # Numbers of any width are the same ids, and rows that left may not fit into the type of the last table.
        drawn_ids = rows.ids if pa.types.is_integer(id_type) else restore_ids(rows.ids, id_type)
        reports, _ = planned.draw(vault.key, rows.values, drawn_ids, 0)
        known.append((rows.ids, [decode_dictionary(each) for each in reports]))
    ids = concatenate_ids([each for each, _ in known])
    drawn = [pa.chunked_array([arrays[place] for _, arrays in known]) for place in range(len(names))]
    differing, compared = 0, 0
    with source.batches([id_column, *names], id_column) as batches:
        for batch in batches:
            found, value_set = cast_to_common_type(_convert_ids(batch.column(id_column), ids.type), ids)
            places = pc.index_in(found, value_set=value_set)
            same = places.is_valid()
            for name, array in zip(names, drawn, strict=True):
                expected = array.take(places)
                same = pc.and_(same, _compare_report_columns(expected, batch.column(name), described.n_bits_as_text))
            differing += batch.num_rows - pc.sum(same, min_count=0).as_py()
            compared += batch.num_rows
    return differing, compared


def _convert_ids(ids: Any, id_type: Any) -> Any:
    """Convert ids of a file to the type of the snapshot: in a text file they are text."""
    ids = normalize_ids(ids)
    if not pa.types.is_large_string(ids.type) or id_type == ids.type:
        return ids
    if pa.types.is_large_binary(id_type):
        return pa.array([uuid.UUID(each).bytes for each in ids.to_pylist()], id_type)
    return ids.cast(pa.decimal128(20, 0))


def _compare_report_columns(column: Any, other_column: Any, n_bits_as_text: int | None) -> Any:
    """Compare reports row by row; a missing category is a report like any other."""
    other_column = decode_dictionary(other_column)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_fixed_size_binary(column.type) and column.type != other_column.type:
        column = format_reports(column, n_bits_as_text)
    if column.type != other_column.type:
        column, other_column = column.cast(pa.string()), other_column.cast(pa.string())
    both_missing = pc.and_(column.is_null(), other_column.is_null())
    return pc.or_(pc.fill_null(pc.equal(column, other_column), False), both_missing)
