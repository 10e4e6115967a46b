"""Released files for tests: from a vault with a fixed key and a large budget, or without a vault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import relaxdp as rx
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.files import get_file_kind
from relaxdp.tables.metadata import ColumnDescription, FileDescription
from relaxdp.tables.release_output import ReleaseWriter
from relaxdp.tables.release_plan import PlannedColumn
from relaxdp.tables.table_columns import get_id_type, remove_hidden_values

KEY = rx.Key.from_bytes(bytes(range(32)))


def open_vault(folder: Path) -> rx.Vault:
    """Return the vault of a folder, which is created if there is none."""
    place, key = folder / "study.vault", folder / "fixed.key"
    if place.exists():
        return rx.Vault(place)
    KEY.save(key)
    return rx.Vault.create(place, budget=1000, key_command=f"cat '{key}'")


def release_to(path: Path, table: Any, columns: Any, *, epsilon: Any, name: str = "survey", **more: Any) -> rx.Release:
    """Release a table with the column `id` into a file; several files of one folder come from one vault."""
    # A large planned epsilon: also what tells next to nothing is released here.
    asked: dict[str, Any] = {"id": "id", "planned_epsilon": 20, **more}
    return open_vault(path.parent).release(table, columns, epsilon=epsilon, name=name, output=path, **asked)


def write_release(
    path: Path,
    table: pa.Table,
    columns: Mapping[str, Mechanism],
    *,
    key: rx.Key,
    epsilon: Any,
    name: str,
    id: str,
    passthrough: Sequence[str] = (),
) -> Path:
    """Write the file that a vault with this key releases, without a vault: for many files, or for any key."""
    rows = table.sort_by(id).combine_chunks().to_batches()[0]
    arrays, fields, described = [remove_hidden_values(rows.column(id))], [table.schema.field(id)], {}
    for column, mechanism in columns.items():
        level, place = mechanism.level(epsilon), PathId(name, column)
        planned = PlannedColumn(column, mechanism, "", level, place)
        arrays += planned.draw(key, rows.column(column), arrays[0], 0)[0]
        fields += planned.make_fields()
        described[planned.output_name] = ColumnDescription.from_level(
            mechanism, level, path=place, id_type=get_id_type(arrays[0].type), key_fingerprint=key.fingerprint
        )
    arrays += [remove_hidden_values(rows.column(each)) for each in passthrough]
    fields += [table.schema.field(each) for each in passthrough]
    output = ReleaseWriter(path, get_file_kind(path), pa.schema(fields), FileDescription(id, described))
    output.write(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))
    output.close()
    output.close_unfinished()
    return path
