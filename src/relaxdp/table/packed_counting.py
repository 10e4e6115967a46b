"""Counts of reports that are packed bytes: no two need be alike, so they are not grouped but added up bit by bit.

DuckDB still reads, and finds the highest level of every object; the encoding counts, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import CountsError, DescriptionError
from relaxdp.estimation.counts import Counts
from relaxdp.table.formats import BATCH_ROWS, Format
from relaxdp.table.released_files import Axis, ReleasedFile

MOST_GROUPS = 1_000


def is_packed(axis: Axis) -> bool:
    """Tell whether reports of this column are bytes to be added up, and not values to be grouped."""
    return axis.mechanism.encoding.report_width is not None


def count_packed(
    connection: Any, files: list[ReleasedFile], axis: Axis, by: str | None
) -> list[tuple[str | None, Counts]]:
    """Return the counts of every group, each object at its highest level."""
    levels = list(axis.levels.values())
    groups: dict[str | None, Counts] = {}
    for batch in _rows(connection, files, axis, by):
        for kept, level, reports in split(batch):
            if level < 0:
                raise CountsError(
                    "an id is missing, or stands in more than one row at the same level. One id is one "
                    "object: within a file, and among files of one level, it stands once."
                )
            counts, objects = count_reports(axis.mechanism.encoding, reports, axis.name)
            group = groups.setdefault(kept, Counts(axis.mechanism))
            group.add_counts(counts, epsilon=levels[level], objects=objects)
        if len(groups) > MOST_GROUPS:
            raise CountsError("{by!r} makes more than {most:,} groups.", by=by, most=MOST_GROUPS)
    if not groups:
        raise CountsError("there are no rows: there is nothing to estimate.")
    return sorted(groups.items(), key=lambda item: (item[0] is None, item[0] or ""))


def split(batch: Any) -> Iterator[tuple[str | None, int, Any]]:
    """Return the reports of every group and level in a batch with the columns kept, level and report."""
    table = pa.Table.from_batches([batch])
    for pair in table.select(["kept", "level"]).group_by(["kept", "level"]).aggregate([]).to_pylist():
        kept, level = pair["kept"], pair["level"]
        same = pc.is_null(table["kept"]) if kept is None else pc.equal(table["kept"], kept)
        chosen = pc.and_(pc.fill_null(same, False), pc.equal(table["level"], level))
        yield kept, level, table.filter(chosen)["report"].combine_chunks()


def count_reports(encoding: Encoding, reports: Any, name: str) -> tuple[Any, int]:
    """Return the counts of packed reports; those that the encoding cannot have made are refused."""
    try:
        return encoding.count_reports(reports)
    except CountsError:
        raise CountsError(
            "a report in {name!r} is not one that the declared values allow: it was changed after its release.",
            name=name,
        ) from None


def _rows(connection: Any, files: list[ReleasedFile], axis: Axis, by: str | None) -> Iterator[Any]:
    """Return batches of group, level and report; the level is -1 where an id does not stand once at each level.

    It is one query, because what Arrow reads can be read once. The best row is taken as a whole: column by column
    DuckDB would pass over what is missing there, and take it from a lower level.
    """
    places = {threshold: place for place, threshold in enumerate(axis.levels)}
    parts = []
    for number, (file, name) in enumerate(zip(files, axis.names, strict=True)):
        columns = {"report": str(name)} | ({"kept": by} if by is not None else {})
        columns |= {"id": file.description.id_column} if len(files) > 1 else {}
        source = file.relation(connection, f"file{number}", columns)
        level = places[file.description.columns[str(name)].threshold]
        kept = "NULL" if by is None else "kept"
        ids = "0" if len(files) == 1 else "id"
        report = _report(axis, file, str(name))
        chosen = f"{ids} AS id, {kept}::VARCHAR AS kept, {level} AS level, {report} AS report"
        parts.append(f"SELECT {chosen} FROM {source}")  # noqa: S608 (names are quoted where they enter)
    reports = " UNION ALL ".join(parts)
    query = f"SELECT kept, level, report FROM ({reports})"  # noqa: S608 (names are quoted where they enter)
    if len(files) > 1:
        best = "arg_max({'kept': kept, 'level': level, 'report': report}, level)"
        repeated = "id IS NULL OR count(*) > bit_count(bit_or(1::UBIGINT << level))"
        objects = f"SELECT {best} AS best, {repeated} AS repeated FROM ({reports}) GROUP BY id"  # noqa: S608
        place = "CASE WHEN repeated THEN -1 ELSE best.level END"
        query = f"SELECT best.kept AS kept, {place} AS level, best.report AS report FROM ({objects})"  # noqa: S608
    yield from connection.sql(query).to_arrow_reader(BATCH_ROWS)


def _report(axis: Axis, file: ReleasedFile, name: str) -> str:
    """Return SQL for a packed report. In CSV it is written in hexadecimal digits."""
    if file.table.format is Format.CSV:
        return "unhex(report)"
    kind = file.table.schema.field(name).type
    width = axis.mechanism.encoding.report_width
    if not (pa.types.is_binary(kind) or kind == pa.binary(width) or pa.types.is_large_binary(kind)):
        raise DescriptionError(
            "the column {name!r} of {file!r} is of type {kind}, and its reports are bytes.",
            name=name,
            file=str(file.path),
            kind=kind,
        )
    return "report"
