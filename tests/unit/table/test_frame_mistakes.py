"""Data frames and what people get wrong first: truth values, dates, gaps, reports as the truth, a stopped query."""

from __future__ import annotations

import datetime
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import (
    DescriptionError,
    RangeError,
    TableFileError,
    UndeclaredValueError,
    UnknownColumnError,
    ValuesError,
)
from relaxdp.ledger.ledger import Ledger

KEY = rx.Key.from_bytes(bytes(range(32)))
CONNECTION = duckdb.connect()
DAYS = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1), datetime.date(2026, 1, 31)]
ANSWERS = rx.Categorical(["true", "false"])

MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "objects": lambda columns: pd.DataFrame({name: pd.Series(each, dtype=object) for name, each in columns.items()}),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": lambda columns: CONNECTION.from_arrow(pa.table(columns)),
}
every_kind = pytest.mark.parametrize("kind", MAKERS)


def release(frame: Any, mechanism: Any, epsilon: str = "60", ledger: Any = None, **more: Any) -> Any:
    return rx.release(
        frame, {"x": mechanism}, id="id", epsilon=epsilon, key=KEY, release="in", ledger=ledger, **more
    )  # fmt: skip


def column(frame: Any) -> list[Any]:
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    found = frame.to_arrow_table() if isinstance(frame, duckdb.DuckDBPyRelation) else frame
    return list(found["x"].to_pylist() if isinstance(found, pa.Table) else found["x"])


@every_kind
@pytest.mark.parametrize(
    ("truth", "values"),
    [([True, False, True], ["true", "false"]), (DAYS, ["2026-01-31", "2026-02-01"])],
)
def test_true_false_and_dates_are_declared_as_text(
    kind: str, truth: list[Any], values: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of frame, a file, and text of the same spelling: one path, and the same reports on it."""
    monkeypatch.chdir(tmp_path)
    KEY.save("key")
    declared, texts = rx.Categorical(values), [values[each == truth[1]] for each in truth]
    frame = MAKERS[kind]({"id": [1, 2, 3], "x": truth})
    assert column(release(frame, declared, ledger="key.ledger", budget=60)) == texts
    alone = declared.release(texts, [1, 2, 3], key=KEY, epsilon="0.5", release="in", attribute="x")
    assert column(release(frame, declared, "0.5")) == alone
    pa_parquet.write_table(pa.table({"id": [1, 2, 3], "x": truth}), "in.parquet")
    words = ["--column", "x", "--id", "id", "--values", ",".join(values), "--epsilon", "60", "--key", "key"]
    done = CliRunner().invoke(app, ["release", "in.parquet", "out.parquet", *words])
    assert "cost 0;" in done.output, done.exception
    assert pa_parquet.read_table("out.parquet")["x"].to_pylist() == texts


@every_kind
def test_true_and_false_under_other_names(kind: str) -> None:
    frame = MAKERS[kind]({"id": [1, 2], "x": [True, False]})
    for values in (["yes", "no"], ["True", "False"], [1, 0]):
        with pytest.raises(ValuesError) as caught:
            release(frame, rx.Categorical(values))
        assert str(caught.value) == (
            "'x' holds true and false, which are declared as 'true' and 'false'. "
            "A column of 'yes' and 'no' that is made of them has values of these names. Nothing was released."
        )


@every_kind
def test_points_in_time(kind: str) -> None:
    frame = MAKERS[kind]({"id": [1], "x": [datetime.datetime(2026, 1, 31, 12)]})
    with refused(UndeclaredValueError, kind="times", values=2, says="and cannot be compared with the"):
        release(frame, ANSWERS)


@every_kind
def test_a_missing_number(kind: str) -> None:
    frame = MAKERS[kind]({"id": [1, 2], "x": [5.0, None]})
    with pytest.raises(RangeError) as caught:
        release(frame, rx.Numeric(0, 10))
    assert str(caught.value) == (
        "row 2: the number is missing. "
        "missing=True makes it a report of its own, and bins can have a value for it. Nothing was released."
    )


@every_kind
def test_reports_are_no_truth_and_no_rows_are_no_table(kind: str, tmp_path: Path) -> None:
    frame = MAKERS[kind]({"id": [1, 2], "x": ["true", "false"], "y": ["p", "q"]})
    released = release(frame, ANSWERS, "1", keep=["y"])
    with pytest.raises(DescriptionError) as caught:
        release(released, ANSWERS, "2", tmp_path / "ledger", budget=5)
    assert str(caught.value) == (
        "'x' of the frame was released by relaxdp, and holds reports instead of the truth. To relax it, release the "
        "table that it was made from at a larger epsilon. Nothing was released."
    )
    kept = rx.release(
        released, {"y": rx.Categorical(["p", "q"])}, id="id", epsilon=1, key=KEY, release="in", ledger=None
    )
    assert rx.description(kept).columns.keys() == {"y"}
    none = frame.limit(0) if kind in ("lazy", "duckdb") else frame[:0]
    with pytest.raises(TableFileError, match=r"the table has no rows. Nothing was released."):
        release(none, ANSWERS, "1", tmp_path / "ledger", budget=5)
    with Ledger.open(tmp_path / "ledger") as book:
        assert book.history() == []


@pytest.mark.long
@pytest.mark.usefixtures("interruptible_person")
def test_a_query_that_is_stopped() -> None:
    """DuckDB notices at once, or when its work is done, which takes seconds here."""
    long = duckdb.connect().sql("SELECT sum(range)::BIGINT AS id, 'true' AS x FROM range(3000000000)")
    person = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    person.start()
    with pytest.raises(KeyboardInterrupt):
        release(long, ANSWERS)
    person.join()


@every_kind
def test_the_names_of_a_frame_without_a_header_are_data(kind: str) -> None:
    """A frame that was read from such a table is called by its first row, which no refusal may quote."""
    frame = MAKERS[kind]({"17": [18], "x-positive": ["x-positive"]})
    with pytest.raises(UnknownColumnError) as caught:
        release(frame, rx.Categorical(["a", "b"]))
    assert caught.value.message == (
        "the table has no column 'id'. It has 2 columns, whose names are not shown: those of a table without a header "
        "are data. Look at the frame's own list of columns. Nothing was released."
    )
    released = release(MAKERS[kind]({"id": [17], "x": ["true"], "x-positive": [1]}), ANSWERS, keep=["x-positive"])
    questions: list[dict[str, Any]] = [{"column": "y"}, {"by": "x-positiv"}]
    for question in questions:
        with pytest.raises(UnknownColumnError) as caught:
            rx.estimate(released, **question)
        assert "x-positive" not in f"{caught.value!r} {caught.value.fields}"


def test_names_of_half_a_letter_are_not_there() -> None:
    """They have no bytes, so that they name no path; and what Python raises for them quotes the whole name."""
    frame = pd.DataFrame({"id": [17, 18], "x": ["true", "false"], "positive \ud800": [1, 2], 3: [1, 2]})
    assert column(release(frame, ANSWERS)) == ["true", "false"]
    with pytest.raises(UnknownColumnError, match="It has 4 columns"):
        release(frame, ANSWERS, keep=["positive \ud800"])


def test_a_column_in_the_place_of_its_name_is_not_shown() -> None:
    frame = pd.DataFrame({"id": [17, 18], "x": ["true", "false"], "region": ["secret-town", "south"]})
    with refused(UnknownColumnError, type="Series"):
        rx.release(frame, {"x": ANSWERS}, id=frame["id"], epsilon=1, key=KEY, release="in", ledger=None)
    for keep, error in ((frame["region"], ValuesError), ([frame["region"]], UnknownColumnError)):
        with pytest.raises(error) as caught:
            release(frame, ANSWERS, keep=keep)
        assert "secret-town" not in str(caught.value)
    with refused(UnknownColumnError, type="Series"):
        rx.estimate(release(frame, ANSWERS), by=frame["region"])
    assert list(release(frame, ANSWERS, keep=frame.columns[2:])) == ["id", "x", "region"]
