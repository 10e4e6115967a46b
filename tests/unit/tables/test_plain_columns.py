"""Kept columns leave with their values alone: no dictionary and no metadata, at any depth, in every kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ColumnError
from relaxdp.tables.table_columns import get_plain_type, remove_hidden_values

NOTE = "secret-note"
IDS = {"in order": [1, 2, 3], "in another order": [3, 1, 2]}
CODED = pa.DictionaryArray.from_arrays(pa.array([2, None, 1], pa.int32()), pa.array([NOTE, "b", "a"]))
STRUCT = pa.StructArray.from_arrays(
    [CODED, pa.array([1, 2, 3])],
    fields=[pa.field("n", CODED.type, metadata={"note": NOTE}), pa.field("m", pa.int64(), metadata={"note": NOTE})],
    mask=pa.array([False, False, True]),
)
TENSOR = pa.fixed_shape_tensor(pa.int32(), [1], dim_names=[NOTE])
COLUMNS: dict[str, Any] = {
    "dictionary": CODED,
    "struct": STRUCT,
    "metadata alone": pa.StructArray.from_arrays(
        [pa.array([1, 2, 3])], fields=[pa.field("m", pa.int64(), metadata={"note": NOTE})]
    ),
    "list": pa.ListArray.from_arrays([0, 2, 2, 3], CODED, mask=pa.array([False, True, False])),
    "large list of structs": pa.LargeListArray.from_arrays([0, 2, 2, 3], STRUCT),
    "view of a list": pa.ListViewArray.from_arrays([0, 1, 0], [1, 2, 0], CODED),
    "list of one size": pa.FixedSizeListArray.from_arrays(pa.concat_arrays([CODED, CODED]), 2),
    "map": pa.MapArray.from_arrays([0, 1, 1, 3], pa.array(["p", "q", "r"]).dictionary_encode(), CODED),
    "dictionary of structs": pa.DictionaryArray.from_arrays([1, None, 1], STRUCT),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3], CODED.dictionary_decode()[1:]),
}

NOT_IN_PARQUET = ("dictionary of structs", "runs")
FILES = [name for name in COLUMNS if name not in NOT_IN_PARQUET]


def carried(kind: Any) -> list[Any]:
    """What a type carries along, at any depth."""
    found = ["dictionary"] if pa.types.is_dictionary(kind) else []
    for place in range(kind.num_fields):
        found += [kind.field(place).metadata] if kind.field(place).metadata else []
        found += carried(kind.field(place).type)
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_the_same_values_and_nothing_else(name: str) -> None:
    column = COLUMNS[name]
    for part in (column, column[1:], column[:0], pa.chunked_array([column[:1], column[1:]])):
        found = remove_hidden_values(part)
        found.validate(full=True)
        assert found.to_pylist() == part.to_pylist()
        assert found.type.equals(get_plain_type(column.type), check_metadata=True)
        assert carried(found.type) == []
        assert remove_hidden_values(found).equals(found)


def test_nothing_stays_under_what_is_missing() -> None:
    """Arrow's files hold what a struct, a list or a map held before it was masked."""
    values = pa.array(["a", NOTE, "b"]).dictionary_encode()
    mask = pa.array([False, True, False])
    masked = [
        pa.StructArray.from_arrays([values], ["n"], mask=mask),
        pa.ListArray.from_arrays([0, 1, 2, 3], values, mask=mask),
        pa.FixedSizeListArray.from_arrays(values, 1, mask=mask),
        pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["p", "q", "r"]), values, mask=mask),
    ]
    for column in masked:
        found = remove_hidden_values(column)
        assert found.to_pylist() == column.to_pylist()
        assert not any(NOTE.encode() in each.to_pybytes() for each in found.buffers() if each is not None)


def test_extensions_and_unions() -> None:
    tensors = pa.ExtensionArray.from_storage(TENSOR, pa.array([[1], [2]], TENSOR.storage_type))
    assert remove_hidden_values(tensors).type == pa.list_(pa.int32(), 1)
    assert get_plain_type(pa.uuid()) == pa.uuid()
    with refused(ColumnError, says="union"):
        get_plain_type(pa.dense_union([pa.field("a", pa.int32())]))


def released(place: Path, table: Any) -> bytes:
    """Release 300 copies of the rows, so that they tell something, and return the file."""
    rows = table.num_rows
    ids = [300 * each + copy for copy in range(300) for each in table["id"].to_pylist()]
    copies = pa.concat_tables([table.drop_columns("id")] * 300).append_column("id", pa.array(ids))
    pa_parquet.write_table(copies, place / "in.parquet")
    vault = rx.Vault.create(place / "study.vault", budget=2)
    vault.release(
        place / "in.parquet", {"x": ["a", "b"]}, id="id", epsilon=1, name="in", output=place / "out.parquet",
        passthrough=["kept"],
    )  # fmt: skip
    relaxed = vault.relax("in", 1).to_frame()
    assert relaxed.equals(pa_parquet.read_table(place / "out.parquet")), rows
    return (place / "out.parquet").read_bytes()


@pytest.mark.filterwarnings("ignore::relaxdp.errors.DeterminedColumnWarning")  # by the way the rows are made
@pytest.mark.parametrize("order", IDS)
@pytest.mark.parametrize("name", FILES)
def test_a_kept_column_of_a_file(tmp_path: Path, name: str, order: str) -> None:
    ids, column = IDS[order], COLUMNS[name]
    table = pa.table({"id": ids, "x": ["a", "b", "a"], "kept": column})
    content = released(tmp_path, table)
    found = pa_parquet.read_table(tmp_path / "out.parquet")
    values = dict(zip(ids, column.to_pylist(), strict=True))
    assert found["kept"].to_pylist() == [values[each // 300] for each in found["id"].to_pylist()]
    assert carried(found.schema.field("kept").type) == []
    assert NOTE.encode() not in content


def test_a_kept_column_that_a_sort_cannot_give_back(tmp_path: Path) -> None:
    kept = pa.array([1, 2], pa.duration("ns"))
    table = pa.table({"id": [2, 1], "x": ["a", "b"], "kept": kept, "Kept": kept})  # so that Arrow reads it
    with refused(ColumnError, says="has a type that cannot be sorted") as caught:
        released(tmp_path, table)
    assert caught.value.__context__ is None
