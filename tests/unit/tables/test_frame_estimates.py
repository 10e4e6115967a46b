"""Estimates from released data frames: those of files, each individual once, and never a silent wrong answer."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
import pytest
from tests.frames import AGES, ANSWERS, COLUMNS, MAKERS, ORDER, ROWS, SECRET, VALUES, made, to_pandas
from tests.refusals import refused
from tests.released import KEY, open_vault

import relaxdp as rx
from relaxdp.errors import (
    ColumnError,
    EstimationError,
    MetadataError,
    RelaxdpError,
    TableFileError,
)
from relaxdp.tables import metadata
from relaxdp.tables.estimate import count

every_kind = pytest.mark.parametrize("kind", MAKERS)


@pytest.fixture
def vault(tmp_path: Path) -> rx.Vault:
    return open_vault(tmp_path)


def release(vault: rx.Vault, frame: Any, epsilon: Any = "0.5", **more: Any) -> Any:
    """Return the released frame."""
    asked: dict[str, Any] = {"id": "person", "name": "in", "columns": {"diagnosis": ANSWERS}}
    return vault.release(frame, epsilon=epsilon, **asked | more).to_frame()


def expected(epsilon: Any = "0.5") -> list[str]:
    where: Any = {"key": KEY, "epsilon": epsilon, "name": "in", "column": "diagnosis"}
    reports: list[str] = ANSWERS.release(COLUMNS["diagnosis"][ORDER].tolist(), list(range(ROWS)), **where)
    return reports


def shown(problem: BaseException | None) -> str:
    """Return everything that an exception and what led to it would print."""
    texts = []
    while problem is not None:
        texts.append(f"{problem!r} {problem}")
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
    return " ".join(texts)


@every_kind
def test_estimates_are_those_of_files(vault: rx.Vault, kind: str, tmp_path: Path) -> None:
    columns = {"diagnosis": ANSWERS, "age": AGES, "region": rx.Categorical(["north", "south"])}
    released = release(vault, made(kind), columns=columns, passthrough=["name"])
    table = release(vault, made("pyarrow"), columns=columns, passthrough=["name"])
    pa_parquet.write_table(table, tmp_path / "out.parquet")
    files = [tmp_path / "out.parquet"]
    for column in ("diagnosis", "age"):
        wanted = count(files, column=column).groups[0][1].estimate()
        found = rx.estimate(released, column)
        assert type(found) is type(wanted)
        assert np.array_equal(found.value, wanted.value)
        assert np.array_equal(found.interval(), wanted.interval())
    groups = rx.estimate(released, "diagnosis", by="name")
    assert list(groups) == ["secret name"]
    assert np.array_equal(groups["secret name"].value, rx.estimate(released, "diagnosis").value)
    pairs = count(files, column="diagnosis", crosstab="region").estimate()
    assert np.array_equal(rx.estimate(released, "diagnosis", crosstab="region").value, pairs.value)
    with refused(ColumnError, listed="'diagnosis', 'age_report', 'region'"):
        rx.estimate(released)
    with refused(ColumnError, says="is a released column"):
        rx.estimate(released, "diagnosis", by="region")


def test_groups(vault: rx.Vault) -> None:
    for kind in MAKERS:
        released = release(vault, made(kind), passthrough=["region"])
        found = rx.estimate(released, by="region")
        assert list(found) == ["north", "south"]
        mine = np.array(expected())[COLUMNS["region"][ORDER] == "south"]
        assert np.array_equal(found["south"].value, ANSWERS.estimate(mine, epsilon="0.5").value)


@every_kind
def test_objects_count_once_at_their_highest_level(vault: rx.Vault, kind: str) -> None:
    """All objects at 0.5, and half of them at 2; kinds may be mixed."""
    half = {name: values[COLUMNS["person"] < ROWS // 2] for name, values in COLUMNS.items()}
    low, high = release(vault, made(kind)), release(vault, MAKERS["polars"](half), "2")
    counts = rx.Counts(ANSWERS)
    counts.add(expected("2")[: ROWS // 2], epsilon="2")
    counts.add(expected()[ROWS // 2 :], epsilon="0.5")
    assert np.array_equal(rx.estimate([low, high]).value, counts.estimate().value)
    assert np.array_equal(rx.estimate([low, high], method="precision").value, counts.estimate("precision").value)
    with refused(MetadataError, says="in the list twice"):
        rx.estimate([low, low])
    other = release(rx.Vault.create(vault.path.with_name("other.vault"), budget=9), made(kind), "2")
    with refused(MetadataError, name="Data frame 2", words="another key", first_name="Data frame 1"):
        rx.estimate([low, other])


@pytest.mark.parametrize("mechanism", [rx.Unary(VALUES), rx.LocalHash(VALUES, buckets=5)], ids=["unary", "hash"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_packed_reports_count_once_and_can_be_described(vault: rx.Vault, kind: Any, mechanism: Any) -> None:
    low, high = (release(vault, kind(COLUMNS), level, columns={"diagnosis": mechanism}) for level in (0.5, 2))
    alone, both = rx.estimate(high), rx.estimate([low, high])
    assert np.array_equal(both.value, alone.value)
    assert np.array_equal(both.interval(), alone.interval())
    told = rx.estimate(high, "diagnosis", mechanism=mechanism, epsilon=2)
    assert np.array_equal(told.value, alone.value)


def test_clipping_is_part_of_the_description(vault: rx.Vault) -> None:
    other = rx.Vault.create(vault.path.with_name("other.vault"), budget=9)
    plain, clipped = (
        release(holder, to_pandas(COLUMNS), 1, columns={"age": rx.Numeric(0, 14400, clip=clip)})
        for holder, clip in ((vault, False), (other, True))
    )
    assert [rx.description(each).columns["age_report"].clip for each in (plain, clipped)] == [False, True]
    with refused(MetadataError, words="numbers that were clipped, or not"):
        rx.estimate([plain, clipped])


def test_a_description_travels_with_pandas_and_pyarrow(vault: rx.Vault, tmp_path: Path) -> None:
    frame, table = release(vault, made("pandas")), release(vault, made("pyarrow"))
    wanted = rx.estimate(frame).value
    frame.to_parquet(tmp_path / "pandas.parquet")
    pa_parquet.write_table(table, tmp_path / "arrow.parquet")
    travelled = [
        frame.copy(), frame.sort_values("diagnosis"), frame.assign(more=1), pd.concat([frame]),
        pd.read_parquet(tmp_path / "pandas.parquet"), pa_parquet.read_table(tmp_path / "pandas.parquet"),
        pa.Table.from_pandas(frame), pa.Table.from_pandas(frame).to_pandas(),
        pa_parquet.read_table(tmp_path / "arrow.parquet"), table.select(["diagnosis"]),
    ]  # fmt: skip
    for each in travelled:
        assert np.array_equal(rx.estimate(each).value, wanted)
    assert rx.description(table) == rx.description(frame) == rx.description(tmp_path / "arrow.parquet")
    assert rx.description(frame).columns["diagnosis"].values == tuple(VALUES)


def test_polars_frames_are_recognised_while_they_live(vault: rx.Vault, tmp_path: Path) -> None:
    gc.collect()  # what earlier tests left
    known = len(metadata._RELEASED)
    released = release(vault, made("polars"))
    assert len(metadata._RELEASED) == known + 1
    rx.estimate(released)
    text = rx.description(released).to_json()
    released.write_parquet(tmp_path / "out.parquet", metadata={"relaxdp": text})
    value = rx.estimate(released).value
    copy = released.clone()
    for changed in (copy, released.filter(pl.col("diagnosis") == "flu"), released.lazy()):
        with refused(MetadataError, says="no description of its reports"):
            rx.estimate(changed)
    assert np.array_equal(rx.estimate(copy, description=released).value, value)
    assert np.array_equal(rx.estimate(copy, "diagnosis", mechanism=ANSWERS, epsilon=0.5).value, value)
    del released
    gc.collect()
    assert len(metadata._RELEASED) == known
    again = pl.read_parquet(tmp_path / "out.parquet")
    with refused(MetadataError, says="no description of its reports"):
        rx.estimate(again)
    assert np.array_equal(rx.estimate(again, description=tmp_path / "out.parquet").value, value)
    assert np.array_equal(count([tmp_path / "out.parquet"]).groups[0][1].estimate().value, value)


def test_filters_and_joins_are_never_a_silent_wrong_answer(vault: rx.Vault) -> None:
    """Metadata outlives a filter by reports, whose estimate would be wrong; and a join that repeats objects."""
    frame, table = (
        release(vault, made("pandas"), passthrough=["region"]),
        release(vault, made("pyarrow"), passthrough=["region"]),
    )
    twice = pd.DataFrame({"region": ["north", "north", "south"]})
    for changed in (
        frame[frame["diagnosis"] == "flu"],
        pd.concat([frame, frame]),
        frame.merge(twice, on="region"),
        table.filter(pc.equal(table["diagnosis"].cast(pa.string()), "flu")),
        pa.concat_tables([table, table]),
        table.slice(5),
        table.rename_columns(["person", "illness", "region"]),
        table.drop_columns(["diagnosis"]),
    ):
        with pytest.raises(MetadataError):
            rx.estimate(changed)
    with refused(MetadataError, released_rows=2000):
        rx.estimate(frame.query("diagnosis == 'flu'"))
    north = frame[frame["region"] == "north"]
    chosen = rx.estimate(north, description=rx.description(north))
    assert np.array_equal(chosen.value, rx.estimate(frame, by="region")["north"].value)
    with refused(EstimationError, says="An id occurs twice"):
        rx.estimate(frame.merge(twice, on="region"), description=frame)
    joined = frame.merge(pd.DataFrame({"person": range(ROWS), "weight": 1.0}), on="person")
    assert np.array_equal(rx.estimate(joined, description=frame).value, rx.estimate(frame).value)


def test_questions_that_make_no_sense(vault: rx.Vault) -> None:
    low, high = release(vault, made("polars")), release(vault, made("polars"), "2")
    mistakes: list[tuple[Any, dict[str, Any], type[RelaxdpError], dict[str, Any]]] = [
        ([low, high], {"description": low}, MetadataError, {"says": "needs its own description"}),
        (low, {"mechanism": ANSWERS}, MetadataError, {"says": "only valid together with `column`"}),
        (low, {"mechanism": ANSWERS, "epsilon": 1}, MetadataError, {"says": "only valid together with `column`"}),
        ([], {}, EstimationError, {"says": "`source` is an empty list"}),
        (low, {"by": "region", "crosstab": "x"}, EstimationError, {"option": "by"}),
        (
            [low, high.drop("person")], {"description": [None, high]},
            ColumnError, {"name": "Data frame 2", "column": "person"},
        ),
        (
            [low, high.cast({"person": pl.String})], {"description": [None, high]},
            MetadataError, {"name": "Data frame 2", "expected": "integer"},
        ),
        (
            low.with_columns(diagnosis=pl.lit(SECRET)), {"description": low},
            EstimationError, {"values": 3, "undeclared": ROWS, "column": "diagnosis"},
        ),
        (made("pyarrow"), {}, MetadataError, {"says": "no description of its reports"}),
        ("in.parquet", {}, TableFileError, {"path": "in.parquet"}),
    ]  # fmt: skip
    for frame, more, error, fields in mistakes:
        with refused(error, **fields) as caught:
            rx.estimate(frame, **more)
        assert SECRET not in shown(caught.value)
    assert np.array_equal(
        rx.estimate([low.clone(), high.clone()], description=[low, high]).value, rx.estimate(high).value
    )


def forms(reports: list[Any], kind: Any) -> dict[str, Any]:
    """Return the same column in every form that Arrow has for it."""
    entries = ["unused", *sorted({each for each in reports if each is not None}, reverse=True)]
    entries = entries if kind == pa.string() else [-1, *entries[1:]]
    plain = pa.array(reports, kind)
    codes = [None if each is None else entries.index(each) for each in reports]
    doubled = [code if code is None or place % 2 else code + len(entries) for place, code in enumerate(codes)]
    with_null = [len(entries) if code is None and place % 2 else code for place, code in enumerate(codes)]

    def pair(indices: Any, index_type: Any, words: Any) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(indices, index_type), pa.array(words, kind))

    half = len(reports) // 2
    return {
        "plain": plain,
        "cut": pa.concat_arrays([plain[:7], plain])[7:],
        "encoded": plain.dictionary_encode(),
        "encoded and cut": pa.concat_arrays([plain[:7], plain]).dictionary_encode()[7:],
        "unused entries": pair(codes, pa.int8(), entries),
        "wide indices": pair(codes, pa.uint64(), entries),
        "repeated entries": pair(doubled, pa.int16(), entries * 2),
        "a null entry": pair(with_null, pa.int32(), [*entries, None]),
        "two dictionaries": pa.chunked_array(
            [plain[:half].dictionary_encode(), pair(codes[half:], pa.int32(), entries)]
        ),
    }


@pytest.mark.parametrize("values", [["a", "b", "ü"], ["a", "b", None], [3, 4, 70_000], [3, 4, None]])
def test_reports_count_alike_in_every_form_of_a_column(values: list[Any]) -> None:
    drawn = np.random.default_rng(1).choice(len(values), 400_000, p=[0.2, 0.5, 0.3])
    counts, mechanism = np.bincount(drawn), rx.Categorical(values)
    expected = rx.Counts(mechanism)
    expected.add_counts(counts, epsilon=1)
    is_text = isinstance(values[0], str)
    columns = forms([values[each] for each in drawn], pa.string() if is_text else pa.int64())
    if is_text:
        columns |= {str(kind): columns["plain"].cast(kind) for kind in (pa.large_string(), pa.string_view())}
    for name, column in columns.items():
        found = rx.estimate(pa.table({"r": column}), "r", mechanism=mechanism, epsilon=1)
        assert found.n == len(drawn), name
        assert np.array_equal(found.value, expected.estimate().value), name


def test_entries_of_a_dictionary_are_checked_where_a_row_has_them() -> None:
    """A missing report, one that is not declared, and an index without an entry are as wrong in a dictionary."""
    asked: Any = {"mechanism": rx.Categorical(["a", "b"]), "epsilon": 1}
    words = pa.array(["a", "b", SECRET])
    for indices, undeclared in (([0, 1, 2, 2], 2), ([0, None, 1], 1)):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), words)
        with refused(EstimationError, undeclared=undeclared, total=len(indices)):
            rx.estimate(pa.table({"r": column}), "r", **asked)
    for wrong in (3, -1):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, wrong], pa.int8()), words, safe=False)
        with pytest.raises(TableFileError, match="damaged") as raised:
            rx.estimate(pa.table({"r": column}), "r", **asked)
        assert SECRET not in shown(raised.value)
    empty = pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), words)
    with refused(EstimationError, says="no rows"):
        rx.estimate(pa.table({"r": empty}), "r", **asked)
