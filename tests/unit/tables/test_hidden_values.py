"""Values under nulls, unused parts of buffers and memory of the input do not leave with a pass-through column."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx

ROWS = 1000
SECRET = "secret-note"
SECRET_AGE = int.from_bytes(b"SecrtAge", "little")
HIDDEN = (SECRET.encode(), b"SecrtAge")
"""The bytes of both. A released frame or file contains neither."""
MISSING = np.arange(ROWS) % 3 == 0
ORDERS = {"ascending": np.arange(ROWS), "descending": np.arange(ROWS)[::-1]}


def redacted(values: Any) -> pa.Array:
    """Return an array whose values are masked, and stay in its buffers."""
    array = pa.array(values)
    buffers = array.buffers()
    valid = pa.array(~MISSING).buffers()[1]
    return pa.Array.from_buffers(array.type, len(array), [valid, *buffers[1:]])


NAMES = redacted([SECRET if missing else f"n{row}" for row, missing in enumerate(MISSING)])
AGES = redacted([SECRET_AGE if missing else row for row, missing in enumerate(MISSING)])
MASK = pa.array(MISSING)
PRESENT = pa.array([SECRET if missing else "x" for missing in MISSING])
LISTS: dict[str, Any] = {
    "struct": pa.StructArray.from_arrays([PRESENT, AGES], ["name", "age"], mask=MASK),
    "list": pa.ListArray.from_arrays(np.arange(ROWS + 1), PRESENT, mask=MASK),
    "large list of structs": pa.LargeListArray.from_arrays(
        np.arange(ROWS + 1), pa.StructArray.from_arrays([NAMES, AGES], ["name", "age"])
    ),
    "list of one size": pa.FixedSizeListArray.from_arrays(PRESENT, 1, mask=MASK),
    "list of nulls": pa.ListArray.from_arrays(np.arange(ROWS + 1), NAMES),
}
ARROW: dict[str, Any] = {
    "integer": AGES,
    "text": NAMES,
    "large text": pc.cast(PRESENT, pa.large_string()),
    "bytes": pa.Array.from_buffers(pa.binary(), ROWS, NAMES.buffers()),
    "fixed bytes": pa.Array.from_buffers(pa.binary(8), ROWS, AGES.buffers()),
    "time": pa.Array.from_buffers(pa.timestamp("us"), ROWS, AGES.buffers()),
    "text view": pc.cast(PRESENT, pa.string_view()),
    "map": pa.MapArray.from_arrays(np.arange(ROWS + 1), pa.array(["k"] * ROWS), PRESENT, mask=MASK),
    **LISTS,
}
for _name in ("large text", "text view"):  # masked after they were made, as above
    _buffers = ARROW[_name].buffers()
    ARROW[_name] = pa.Array.from_buffers(ARROW[_name].type, ROWS, [pa.array(~MISSING).buffers()[1], *_buffers[1:]])


def pandas_columns() -> Iterator[tuple[str, Any]]:
    ages = np.where(MISSING, SECRET_AGE, np.arange(ROWS))
    yield "Int64", pd.arrays.IntegerArray(ages, MISSING.copy())
    yield "Float64", pd.arrays.FloatingArray(ages.view("f8").copy(), MISSING.copy())
    yield "boolean", pd.arrays.BooleanArray(np.ones(ROWS, bool), MISSING.copy())
    for name in ("integer", "text", "struct", "list"):
        yield f"{name} of Arrow", pd.arrays.ArrowExtensionArray(pa.chunked_array([ARROW[name]]))
    yield "string of Arrow", pd.array(NAMES.to_pylist(), dtype="string[pyarrow]")


POLARS = [name for name in ARROW if name not in ("map", "fixed bytes")]
PANDAS = dict(pandas_columns())


@pytest.fixture
def vault(tmp_path: Path) -> rx.Vault:
    return rx.Vault.create(tmp_path / "study.vault", budget=9)


def release(vault: rx.Vault, data: Any, output: Path | None = None) -> rx.Release:
    """Release a column with the pass-through column."""
    asked: Any = {"id": "id", "epsilon": 1, "planned_epsilon": 9, "name": "r", "output": output}
    return vault.release(data, {"x": ["a", "b"]}, passthrough=["kept"], **asked)


def columns(order: str, kept: Any) -> dict[str, Any]:
    return {"id": pa.array(ORDERS[order]), "x": pa.array(["a", "b"] * (ROWS // 2)), "kept": kept}


def in_order(order: str, values: list[Any]) -> list[Any]:
    return values if order == "ascending" else values[::-1]


def buffers(column: pa.ChunkedArray) -> list[pa.Buffer]:
    return [buffer for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None]


def assert_hides_nothing(content: bytes) -> None:
    assert not [each for each in HIDDEN if each in content]


def assert_no_view(before: pa.ChunkedArray, after: pa.ChunkedArray) -> None:
    """Assert that two columns have no byte of memory in common."""
    old = [(buffer.address, buffer.address + buffer.size) for buffer in buffers(before)]
    for buffer in buffers(after):
        assert not [1 for low, high in old if buffer.address < high and low < buffer.address + buffer.size]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ARROW)
def test_arrow_tables(vault: rx.Vault, name: str, order: str) -> None:
    table = pa.table(columns(order, ARROW[name]))
    made = release(vault, table).to_frame()["kept"]
    relaxed = vault.relax("r", 1).to_frame()["kept"]
    assert relaxed.to_pylist() == made.to_pylist()
    assert_hides_nothing(b"".join(each.to_pybytes() for each in buffers(relaxed)))
    assert made.to_pylist() == in_order(order, ARROW[name].to_pylist())
    made.validate(full=True)
    assert_hides_nothing(b"".join(each.to_pybytes() for each in buffers(made)))
    assert_no_view(table["kept"], made)


def words_of(file: Path) -> set[str]:
    """Return the words that a Parquet file holds for a column, also those that no row has."""
    column = pa_parquet.read_table(file, columns=["kept"], read_dictionary=["kept"])["kept"]
    return {word for chunk in column.chunks for word in chunk.dictionary.to_pylist()}


@pytest.mark.filterwarnings("ignore::relaxdp.errors.DeterminedColumnWarning")  # by the way the rows are made
@pytest.mark.parametrize("order", ORDERS)
def test_parquet_files(vault: rx.Vault, tmp_path: Path, order: str) -> None:
    """A file holds every word of a dictionary, also one that no row has."""
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    kept = pa.DictionaryArray.from_arrays(np.arange(ROWS) % 2, [NAMES[1].as_py(), "n2", SECRET])
    pa_parquet.write_table(pa.table(columns(order, kept)), source)
    assert SECRET in words_of(source)
    release(vault, source, target)
    assert words_of(target) == {"n1", "n2"}
    assert pa_parquet.read_table(target)["kept"].to_pylist() == in_order(order, kept.to_pylist())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", POLARS)
@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_polars_frames(vault: rx.Vault, name: str, order: str, lazy: bool) -> None:
    frame: Any = pl.from_arrow(pa.table(columns(order, ARROW[name])))
    released = release(vault, frame.lazy()).to_frame().collect() if lazy else release(vault, frame).to_frame()
    made = released["kept"]
    assert made.dtype == frame["kept"].dtype
    assert made.to_list() == in_order(order, frame["kept"].to_list())
    arrow = released.select("kept").to_arrow()["kept"]
    assert_hides_nothing(b"".join(each.to_pybytes() for each in buffers(arrow)))
    assert_hides_nothing(pickle.dumps(released))
    assert_no_view(frame.select("kept").to_arrow()["kept"], arrow)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PANDAS)
def test_pandas_frames(vault: rx.Vault, name: str, order: str) -> None:
    frame = pd.DataFrame({**columns(order, None), "kept": PANDAS[name]})
    released = release(vault, frame).to_frame()["kept"]
    assert released.dtype == frame["kept"].dtype
    values = in_order(order, frame["kept"].tolist())
    assert [pd.isna(each) is True for each in released] == [pd.isna(each) is True for each in values]
    assert [each for each in released if pd.isna(each) is not True] == [
        each for each in values if pd.isna(each) is not True
    ]
    assert_hides_nothing(pickle.dumps(released))
    mine, theirs = released.array, frame["kept"].array
    if hasattr(mine, "__arrow_array__") and hasattr(released.dtype, "pyarrow_dtype"):
        assert_no_view(pa.chunked_array(pa.array(theirs)), pa.chunked_array(pa.array(mine)))
    elif hasattr(mine, "_data"):
        assert not np.shares_memory(mine._data, theirs._data)
        assert not mine._data[np.asarray(released.isna())].any()


@pytest.mark.parametrize("order", ORDERS)
def test_columns_of_numpy_are_copied(vault: rx.Vault, order: str) -> None:
    frame = pd.DataFrame({**columns(order, None), "kept": np.arange(ROWS)})
    released = release(vault, frame).to_frame()
    assert not np.shares_memory(released["kept"].to_numpy(), frame["kept"].to_numpy())
    assert not np.shares_memory(released["id"].to_numpy(), frame["id"].to_numpy())


@pytest.mark.parametrize("order", ORDERS)
def test_python_objects_are_copied(vault: rx.Vault, order: str) -> None:
    """An array in a cell may be a view of a larger one."""
    whole = np.arange(2 * ROWS)
    cells = [whole[2 * row : 2 * row + 1] for row in range(ROWS)]
    frame = pd.DataFrame({**columns(order, None), "kept": pd.Series(cells, dtype=object)})
    released = release(vault, frame).to_frame()
    assert [each.tolist() for each in released["kept"]] == in_order(order, [each.tolist() for each in cells])
    assert not any(np.shares_memory(each, whole) for each in released["kept"])


@pytest.mark.parametrize("order", ORDERS)
def test_duckdb_relations(vault: rx.Vault, order: str) -> None:
    with duckdb.connect() as database:
        table = pa.table(columns(order, NAMES))
        made = release(vault, database.from_arrow(table)).to_frame().to_arrow_table()["kept"]
    assert made.to_pylist() == in_order(order, NAMES.to_pylist())
    assert_hides_nothing(b"".join(each.to_pybytes() for each in buffers(made)))


def test_a_slice_leaves_without_the_rest_of_its_frame(vault: rx.Vault) -> None:
    """Text of polars points into buffers that the slice shares with the whole frame."""
    long = [f"{SECRET} of row {row}, which was not chosen" for row in range(ROWS)]
    texts = [*long[:-10], *(f"a text of row {row} that is long enough" for row in range(10))]
    frame = pl.DataFrame({"id": range(ROWS), "x": ["a", "b"] * (ROWS // 2), "kept": texts}).tail(10)
    released = release(vault, frame).to_frame()
    assert released["kept"].to_list() == frame["kept"].to_list()
    assert_hides_nothing(b"".join(each.to_pybytes() for each in buffers(released.to_arrow()["kept"])))


def test_columns_of_a_union_are_rejected(vault: rx.Vault) -> None:
    """A sparse union holds a value of each of its types for every row, also of those that are not chosen."""
    kinds = pa.array([0, 1] * (ROWS // 2), pa.int8())
    column = pa.UnionArray.from_sparse(kinds, [PRESENT, pa.array(range(ROWS))])
    with refused(rx.errors.ColumnError, says="union"):
        release(vault, pa.table(columns("ascending", column)))


class Foreign(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
    """A type of another package, whose columns may hold anything."""

    name, type = "foreign", str


class ForeignArray(pd.api.extensions.ExtensionArray):  # type: ignore[misc]
    dtype = Foreign()

    def __init__(self, items: Any) -> None:
        self.items = np.asarray(items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        found = self.items[place]
        return ForeignArray(found) if isinstance(found, np.ndarray) else found

    def copy(self) -> Any:
        return ForeignArray(self.items.copy())


def test_columns_of_unknown_extension_types_are_rejected(vault: rx.Vault) -> None:
    frame = pd.DataFrame({**columns("ascending", None), "kept": ForeignArray(np.arange(ROWS))})
    with refused(rx.errors.ColumnError, name="kept"):
        release(vault, frame)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_release_does_not_carry_the_table_along(tmp_path: Path, make: Any) -> None:
    """A release may be pickled or kept: neither values, categories, index nor attributes of the table are in it."""
    secret = "a secret answer"
    table: dict[str, Any] = {"id": range(500), "answer": ["no", "yes"] * 250, "other": [secret] * 500}
    frame = make(table)
    if make is pd.DataFrame:
        frame = frame.astype({"other": "category"}).set_index(pd.Index([secret] * 500))
        frame.attrs["note"] = secret
    vault = rx.Vault.create(tmp_path / "study.vault", budget=1)
    release = vault.release(frame, {"answer": ["no", "yes"]}, id="id", epsilon=1, name="answers")
    assert secret.encode() not in pickle.dumps(release)
    assert release.to_frame() is not None
