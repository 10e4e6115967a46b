"""Released columns with a missing category: what files say about them, and how nulls are counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import EstimationError, MetadataError, ValuesError
from relaxdp.estimation.counts import Counts
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import count_report_column, make_report_column, read_report_column
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.counting import CrosstabCounts
from relaxdp.tables.estimate import count, estimate
from relaxdp.tables.files import get_file_kind, get_sidecar_path
from relaxdp.tables.metadata import METADATA_KEY, ColumnDescription, FileDescription
from relaxdp.tables.release_output import ReleaseWriter

KEY = rx.Key.from_bytes(bytes(range(32)))
LISTS: dict[str, list[Any]] = {
    "text": ["flu", None, "", "None"],
    "integer": [None, 7, -3],
    "wide": [2**63 + 1, 5, None],
    "number": [0.5, None, 2.0],
    "bytes": [b"a", b"bc", None],
}


def describe(mechanism: Mechanism, epsilon: Any, attribute: str = "answer") -> ColumnDescription:
    encoding = mechanism
    path = PathId("study", attribute)
    return ColumnDescription.from_level(
        encoding, encoding.level(epsilon), path=path, id_type="integer", key_fingerprint=KEY.fingerprint
    )


def reports(mechanism: Mechanism, truths: Sequence[Any], epsilon: Any, attribute: str = "answer") -> Any:
    where: Any = {"name": "study", "column": attribute}
    packed = mechanism.release(list(truths), list(range(len(truths))), key=KEY, epsilon=epsilon, **where)
    return make_report_column(mechanism, *read_report_column(mechanism, packed))


def write(path: Path, columns: dict[str, tuple[Mechanism, Any]], truths: Sequence[Any], **kept: Any) -> Path:
    """Write a released file as a release does, and the description of CSV next to it."""
    made = {name: reports(mechanism, truths, epsilon, name) for name, (mechanism, epsilon) in columns.items()}
    table = pa.table({"id": pa.array(range(len(truths)), pa.int64()), **made, **kept})
    said = {name: describe(mechanism, epsilon, name) for name, (mechanism, epsilon) in columns.items()}
    description = FileDescription("id", said)
    output = ReleaseWriter(path, get_file_kind(path), table.schema, description)
    for batch in table.to_batches():
        output.write(batch)
    output.close()
    output.close_unfinished()
    if path.suffix == ".csv":
        get_sidecar_path(path).write_text(replace(description, rows=len(truths)).to_json(), "utf-8")
    return path


def estimated(counts: Counts | CrosstabCounts) -> Any:
    return counts.estimate()


def expected_counts(mechanism: Mechanism, truths: Sequence[Any], epsilon: Any, attribute: str = "answer") -> list[int]:
    counts, _ = count_report_column(mechanism, reports(mechanism, truths, epsilon, attribute))
    return [int(each) for each in counts]


@pytest.fixture(params=["parquet", "csv"])
def ending(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# What a file says


@pytest.mark.parametrize("kind", LISTS)
def test_description(kind: str) -> None:
    for mechanism in (rx.Categorical(LISTS[kind]), rx.Unary(LISTS[kind]), rx.LocalHash(LISTS[kind], buckets=3)):
        description = FileDescription("id", {"answer": describe(mechanism, 1)}, rows=3)
        written = json.loads(description.to_json())["columns"]["answer"]["values"]
        assert [each is None for each in written] == [each is None for each in LISTS[kind]]
        assert FileDescription.from_json(description.to_json()) == description
        assert description.columns["answer"].mechanism().params == mechanism.params


def test_two_nulls_are_damage() -> None:
    text = FileDescription("id", {"answer": describe(rx.Categorical(["a", None]), 1)}).to_json()
    with refused(ValuesError, value=None):
        FileDescription.from_json(text.replace('["a", null]', "[null, null]")).columns["answer"].mechanism()


# Files


@pytest.mark.parametrize("kind", LISTS)
def test_nulls_are_counted(tmp_path: Path, kind: str, ending: str) -> None:
    values = LISTS[kind]
    mechanism, truths = rx.Categorical(values), values * 40
    file = write(tmp_path / f"one.{ending}", {"answer": (mechanism, 1)}, truths)
    ((_, counts),) = count([file]).groups
    assert estimated(counts).counts.tolist() == expected_counts(mechanism, truths, 1)


@pytest.mark.parametrize("kind", LISTS)
def test_nulls_of_several_levels(tmp_path: Path, kind: str, ending: str) -> None:
    """Every id counts once, at its highest level, also where its report there is the missing category."""
    values = LISTS[kind]
    mechanism, truths = rx.Categorical(values), values * 40
    files = [
        write(tmp_path / f"{level}.{ending}", {"answer": (mechanism, level)}, truths[:size])
        for level, size in ((1, len(truths)), (3, 30))
    ]
    ((_, counts),) = count(files).groups
    low, high = ({part.epsilon: part for part in estimated(counts).parts}[level] for level in (1, 3))
    everyone = reports(mechanism, truths, 1).to_pylist()[30:]
    assert low.counts.tolist() == [everyone.count(value) for value in values]
    assert high.counts.tolist() == expected_counts(mechanism, truths[:30], 3)


def test_groups_and_pairs(tmp_path: Path, ending: str) -> None:
    values = ["flu", None, "covid"]
    mechanism, bits, truths = rx.Categorical(values), rx.Unary(values), values * 50
    columns: dict[str, tuple[Mechanism, Any]] = {"one": (mechanism, 2), "two": (mechanism, 2), "bits": (bits, 2)}
    years = ["2025" if row % 2 else "2026" for row in range(len(truths))]
    file = write(tmp_path / f"all.{ending}", columns, truths, year=pa.array(years))
    both = [reports(mechanism, truths, 2, name).to_pylist() for name in ("one", "two")]
    by_year = count([file], column="one", by="year").groups
    assert [estimated(counts).counts.tolist() for _, counts in by_year] == [
        [sum(each == value for each, is_at in zip(both[0], years, strict=True) if is_at == year) for value in values]
        for year in ("2025", "2026")
    ]
    pairs = estimated(count([file], column="one", crosstab="two"))
    assert pairs.counts.tolist() == [
        [sum(pair == (a, b) for pair in zip(*both, strict=True)) for b in values] for a in values
    ]
    assert "\n(missing) & (missing)  " in repr(pairs)
    assert pairs.to_arrow().column("two").to_pylist() == values * 3
    packed = estimated(count([file], column="one", crosstab="bits"))
    assert packed.n == len(truths)


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_damaged_text_is_not_missing(tmp_path: Path, kind: str) -> None:
    mechanism = rx.Categorical(LISTS[kind])
    file = write(tmp_path / "one.csv", {"answer": (mechanism, 1)}, LISTS[kind] * 20)
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([lines[0], "0,oops", *lines[2:]]) + "\n", "utf-8")
    with refused(EstimationError, undeclared=1):
        count([file])


def test_a_null_is_not_a_report_where_it_is_not_declared(tmp_path: Path) -> None:
    mechanism, other = rx.Categorical(["flu", None]), rx.Categorical(["flu", "none"])
    file = write(tmp_path / "one.parquet", {"answer": (mechanism, 3)}, ["flu", None] * 20)
    table = pa_parquet.read_table(file)
    text = FileDescription("id", {"answer": describe(other, 3)}).to_json()
    pa_parquet.write_table(table.replace_schema_metadata({METADATA_KEY: text.encode()}), file)
    with refused(EstimationError, values=2):
        count([file])


# Frames


def frames(table: pa.Table) -> dict[str, Any]:
    plain = pa.table({name: pa.array(table.column(name).to_pylist()) for name in table.column_names})
    return {
        "pyarrow": table, "pyarrow plain": plain, "pandas": table.to_pandas(), "pandas plain": plain.to_pandas(),
        "polars": pl.from_arrow(table), "polars plain": pl.from_arrow(plain),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["text", "number", "bytes"])
@pytest.mark.parametrize("library", frames(pa.table({"answer": pa.array(["a"])})))
def test_frames(kind: str, library: str) -> None:
    values = LISTS[kind]
    mechanism, truths = rx.Categorical(values), values * 30
    table = pa.table({"id": range(len(truths)), "answer": reports(mechanism, truths, 2)})
    said = FileDescription("id", {"answer": describe(mechanism, 2)})
    found: Any = estimate(frames(table)[library], description=said)
    assert found.counts.tolist() == expected_counts(mechanism, truths, 2)


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"id": [1, 2], "answer": pa.nulls(2)}),
        pl.DataFrame({"id": [1, 2], "answer": [None, None]}),
        pd.DataFrame({"id": [1, 2], "answer": pd.Series([None, None], dtype=object)}),
    ],
)
def test_frames_without_a_value(frame: Any) -> None:
    mechanism = rx.Categorical(["flu", None])
    said = FileDescription("id", {"answer": describe(mechanism, 2)})
    found: Any = estimate(frame, description=said)
    assert found.counts.tolist() == [0, 2]
    other = FileDescription("id", {"answer": describe(rx.Categorical(["flu", "none"]), 2)})
    with refused(MetadataError):
        estimate(frame, description=other)


def test_groups_of_a_frame() -> None:
    values = ["flu", None]
    mechanism, truths = rx.Categorical(values), values * 30
    table = pa.table({"id": range(60), "year": np.repeat([1, 2], 30), "answer": reports(mechanism, truths, 2)})
    said = FileDescription("id", {"answer": describe(mechanism, 2)})
    found: Any = estimate(table, by="year", description=said)
    assert [int(each.counts.sum()) for each in found.values()] == [30, 30]
