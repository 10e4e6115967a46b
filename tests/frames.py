"""One table as data frames of every kind, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import relaxdp as rx

ROWS = 2000
VALUES = ["flu", "covid", "none"]
ANSWERS, AGES = rx.Categorical(VALUES), rx.Numeric(0, 120)
RNG = np.random.default_rng(7)
COLUMNS: dict[str, Any] = {
    "person": RNG.permutation(ROWS),
    "diagnosis": RNG.choice(VALUES, ROWS),
    "age": RNG.integers(0, 100, ROWS),
    "region": RNG.choice(["north", "south"], ROWS),
    "name": np.array(["secret name"] * ROWS),
}
ORDER = np.argsort(COLUMNS["person"])
SECRET = "secret-illness"
CONNECTION = duckdb.connect()


def to_pandas(columns: dict[str, Any]) -> Any:
    frame = pd.DataFrame({name: list(values) for name, values in columns.items()})
    frame.index = pd.Index([f"row {row}" for row in range(len(frame))], name="label")
    frame.attrs["origin"] = "a secret place"
    return frame


def to_arrow(columns: dict[str, Any]) -> Any:
    arrays = {name: pa.array(list(values)) for name, values in columns.items()}
    return pa.table(arrays).replace_schema_metadata({"origin": "a secret place"})


def to_duckdb(columns: dict[str, Any]) -> Any:
    return CONNECTION.from_arrow(to_arrow(columns))


MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": to_pandas,
    "polars": lambda columns: pl.DataFrame({name: list(values) for name, values in columns.items()}),
    "lazy": lambda columns: pl.LazyFrame({name: list(values) for name, values in columns.items()}),
    "pyarrow": to_arrow,
    "duckdb": to_duckdb,
}


def made(kind: str, **changes: Any) -> Any:
    """Return the table as a frame of one kind."""
    return MAKERS[kind](COLUMNS | changes)


def read_columns(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of any frame as lists."""
    if isinstance(frame, pd.DataFrame):
        return {str(name): frame[name].tolist() for name in frame.columns}
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    if isinstance(frame, pa.Table):
        return frame.to_pydict()  # type: ignore[no-any-return]
    rows = frame.fetchall()
    return {name: [row[place] for row in rows] for place, name in enumerate(frame.columns)}
