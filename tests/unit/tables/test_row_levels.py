"""A table whose rows state their level is counted like the same rows in one file for each level."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ColumnError, EstimationError, MetadataError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.files import get_sidecar_path
from relaxdp.tables.metadata import METADATA_KEY, ColumnDescription, FileDescription

KEY = rx.Key.from_bytes(bytes(range(32)))
LEVELS = ["0.5", "1", "4"]
ROWS = 600
POSITIONS: Any = np.arange(ROWS) // 7 % 3
"""The level of each row, as its place in LEVELS."""
WORDS: list[Any] = ["flu", "covid", "none"]
MECHANISMS: dict[str, tuple[Mechanism, list[Any]]] = {
    "categorical": (rx.Categorical(WORDS), WORDS),
    "missing": (rx.Categorical([*WORDS, None]), [*WORDS, None]),
    "numbers as values": (rx.Categorical([1, 2, 30]), [1, 2, 30]),
    "numeric": (rx.Numeric(0, 10), [0.0, 2.5, 10.0]),
    "missing numbers": (rx.Numeric(0, 10, missing=True), [0.0, None, 10.0]),
    "unary": (rx.Unary(WORDS), WORDS),
    "local hash": (rx.LocalHash(WORDS, buckets=3), WORDS),
    "wave": (rx.SquareWave(0, 10, bins=9, window=4), [0.0, 2.5, 10.0]),
}


def describe(table: pa.Table, columns: dict[str, ColumnDescription]) -> pa.Table:
    text = FileDescription("id", columns, rows=len(table)).to_json()
    return table.replace_schema_metadata({METADATA_KEY: text.encode()})


def make_column(mechanism: Mechanism, values: list[Any], name: str, positions: Any) -> tuple[Any, Any, Any]:
    """Return reports, stated levels and description of rows that are at the levels in these positions."""
    ids, truths = pa.array(range(ROWS)), pa.array(np.array(values, object)[np.arange(ROWS) % len(values)])
    by_level: list[Any] = [
        mechanism.release(truths, ids, key=KEY, epsilon=epsilon, name="survey", column=name) for epsilon in LEVELS
    ]
    reports = pa.concat_arrays(by_level).take(pa.array(positions * ROWS + np.arange(ROWS)))
    description = replace(
        ColumnDescription.from_level(
            mechanism, mechanism.level(LEVELS[-1]), path=PathId("survey", name), id_type="integer",
            key_fingerprint=KEY.fingerprint,
        ),
        level_column=f"{name}_epsilon", row_epsilons=tuple(map(Decimal, LEVELS)),
    )  # fmt: skip
    return reports, pa.array(LEVELS).take(pa.array(positions)).dictionary_encode(), description


def set_level(description: ColumnDescription, epsilon: str) -> ColumnDescription:
    """Return the description of rows that are all at one level."""
    level = description.mechanism().level(epsilon)
    return replace(description, epsilon=level.epsilon, threshold=level.threshold, level_column=None, row_epsilons=())


def make_tables(kind: str = "categorical", positions: Any = POSITIONS) -> tuple[pa.Table, list[pa.Table]]:
    """Return a table whose rows are at three levels, and the same rows as one table for each level."""
    reports, stated, description = make_column(*MECHANISMS[kind], "answer", positions)
    city, weight = pa.array(["north", "south"]).take(pa.array(np.arange(ROWS) % 2)), 1 + np.arange(ROWS) % 5
    table = pa.table(
        {"id": range(ROWS), "answer": reports, "answer_epsilon": stated, "city": city, "weight": weight}
    )  # fmt: skip
    return describe(table, {"answer": description}), [
        describe(table.filter(positions == place), {"answer": set_level(description, epsilon)})
        for place, epsilon in enumerate(LEVELS)
    ]


def assert_same(one: Any, other: Any) -> None:
    assert one.n == other.n
    assert np.array_equal(one.value, other.value)
    assert np.array_equal(one.interval(), other.interval())


@pytest.mark.parametrize("kind", MECHANISMS)
def test_rows_that_state_their_level_are_those_of_separate_tables(kind: str, tmp_path: Path) -> None:
    table, separate = make_tables(kind)
    wanted = rx.estimate(separate)
    assert wanted.n == ROWS
    assert_same(rx.estimate(table), wanted)
    pa_parquet.write_table(table, tmp_path / "rows.parquet")
    assert_same(rx.estimate(tmp_path / "rows.parquet"), wanted)
    described = rx.description(table)
    assert FileDescription.from_json(described.to_json()) == described
    for frame in (table.to_pandas(), pl.from_arrow(table)):
        assert_same(rx.estimate(frame, description=described), wanted)


@pytest.mark.parametrize("kind", ["categorical", "missing", "numeric"])
def test_rows_of_csv_files_state_their_level(kind: str, tmp_path: Path) -> None:
    table, separate = make_tables(kind)
    path = tmp_path / "rows.csv"
    pa_csv.write_csv(table.set_column(2, "answer_epsilon", table["answer_epsilon"].cast(pa.string())), path)
    get_sidecar_path(path).write_text(rx.description(table).to_json(), "utf-8")
    assert_same(rx.estimate(path), rx.estimate(separate))


@pytest.mark.parametrize("kind", ["categorical", "unary"])
def test_individuals_of_several_tables_count_once_at_their_highest_level(kind: str) -> None:
    later = np.where(POSITIONS == 0, 2, POSITIONS)
    first, whole = make_tables(kind)[0], make_tables(kind, later)[0]
    described = rx.description(whole).columns["answer"]
    more = describe(whole.filter(POSITIONS == 0), {"answer": set_level(described, LEVELS[2])})
    assert_same(rx.estimate([first, more]), rx.estimate(whole))


@pytest.mark.parametrize("kind", ["categorical", "local hash"])
def test_groups_and_weights(kind: str) -> None:
    table, separate = make_tables(kind)
    assert_same(rx.estimate(table, weights="weight"), rx.estimate(separate, weights="weight"))
    groups, wanted = rx.estimate(table, by="city"), rx.estimate(separate, by="city")
    assert [*groups] == [*wanted] == ["north", "south"]
    for city in wanted:
        assert_same(groups[city], wanted[city])
    by_level = rx.estimate(table, by="answer_epsilon")
    for epsilon, alone in zip(LEVELS, separate, strict=True):
        assert_same(by_level[epsilon], rx.estimate(alone))


@pytest.mark.parametrize("kind", ["categorical", "unary"])
@pytest.mark.parametrize("is_other_stated", [True, False])
def test_crosstabs(kind: str, is_other_stated: bool) -> None:
    """Both columns of a crosstab may state levels, each its own; or one of them."""
    row = np.arange(ROWS)
    answers, answer_levels, answer = make_column(*MECHANISMS["categorical"], "answer", row % 3)
    places = row // 3 % 3 if is_other_stated else np.full(ROWS, 2)
    others, other_levels, other = make_column(*MECHANISMS[kind], "other", places)
    columns = {"id": row, "answer": answers, "other": others, "answer_epsilon": answer_levels}
    if is_other_stated:
        columns["other_epsilon"] = other_levels
    table = pa.table(columns)
    stated = describe(table, {"answer": answer, "other": other if is_other_stated else set_level(other, LEVELS[2])})
    separate = [
        describe(
            table.filter((row % 3 == one) & (places == two)),
            {"answer": set_level(answer, LEVELS[one]), "other": set_level(other, LEVELS[two])},
        )
        for one in range(3)
        for two in sorted({*places.tolist()})
    ]
    found, wanted = (rx.estimate(each, "answer", crosstab="other") for each in (stated, separate))
    assert found.n == ROWS
    assert np.array_equal(found.value, wanted.value)


@pytest.mark.parametrize("kind", ["categorical", "missing", "numeric", "unary"])
@pytest.mark.parametrize("stated", ["2", "", "0.50", "nan", None])
def test_a_level_that_is_not_listed_or_missing_is_rejected(kind: str, stated: str | None) -> None:
    table, _ = make_tables(kind)
    levels = table["answer_epsilon"].to_pylist()
    changed = table.set_column(2, "answer_epsilon", pa.array([*levels[:5], stated, *levels[6:]]))
    rx.estimate(changed.set_column(2, "answer_epsilon", pa.array(levels)))
    options: list[dict[str, Any]] = [{}, {"by": "city"}, {"weights": "weight"}]
    for asked in options:
        with pytest.raises(EstimationError, match="changed after its release"):
            rx.estimate(changed, **asked)


@pytest.mark.parametrize("library", [pd, pl, pa], ids=["pandas", "polars", "pyarrow"])
def test_rows_without_their_levels_are_not_counted(library: ModuleType, tmp_path: Path) -> None:
    """A column of levels that was dropped, or a caller who states one level for all rows."""
    table, _ = make_tables()
    description, bare = rx.description(table), table.drop_columns("answer_epsilon")
    frames: dict[ModuleType, Callable[[pa.Table], Any]] = {pd: pa.Table.to_pandas, pl: pl.from_arrow, pa: lambda t: t}
    with refused(ColumnError, says="states the level of each row", column="answer_epsilon"):
        rx.estimate(frames[library](bare), description=description)
    with refused(MetadataError, says="contradicts it"):
        rx.estimate(table, "answer", mechanism=rx.Categorical(WORDS), epsilon=4)
    pa_parquet.write_table(bare, tmp_path / "bare.parquet")
    with refused(MetadataError, says="names columns that the file does not have"):
        rx.estimate(tmp_path / "bare.parquet")


@pytest.mark.parametrize(
    "damage",
    [
        {"row_epsilons": None}, {"level_column": None}, {"row_epsilons": []}, {"level_column": 7},
        {"row_epsilons": "124"}, {"row_epsilons": ["0.5", "x"]}, {"row_epsilons": [None]}, {"row_epsilons": 4},
    ],
)  # fmt: skip
def test_damaged_levels_are_rejected(damage: dict[str, Any]) -> None:
    content = json.loads(rx.description(make_tables()[0]).to_json())
    FileDescription.from_json(json.dumps(content))
    column = content["columns"]["answer"] | damage
    content["columns"]["answer"] = {name: value for name, value in column.items() if value is not None}
    with refused(MetadataError, says="damaged"):
        FileDescription.from_json(json.dumps(content))
