"""`rx.difference`: who stayed, left and joined, in files and frames, and every object's own change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import CountsError, DescriptionError, MixedFilesError, TableFileError, UnknownColumnError
from relaxdp.estimation.dates import Dates, Difference
from relaxdp.table import dates
from relaxdp.table.change_counting import axes_of, count_joined
from relaxdp.table.counting import whole_files

KEY = rx.Key.from_bytes(bytes(range(32)))
VALUES = ["yes", "no", "?"]
ROWS, STAYED, JOINED = 3_000, 2_000, 700
RNG = np.random.default_rng(11)
OLD = {
    "id": RNG.permutation(ROWS),
    "voted": RNG.choice(VALUES, ROWS, p=[0.4, 0.5, 0.1]),
    "age": RNG.uniform(20, 60, ROWS),
    "region": RNG.choice(["north", "south"], ROWS),
}
KEPT = RNG.permutation(ROWS)[:STAYED]
NEW = {
    "id": np.concatenate([OLD["id"][KEPT], np.arange(ROWS, ROWS + JOINED)]),
    "voted": np.concatenate([OLD["voted"][KEPT], RNG.choice(VALUES, JOINED)]),
    "age": np.concatenate([OLD["age"][KEPT] + 1, RNG.uniform(20, 60, JOINED)]),
    "region": np.concatenate([OLD["region"][KEPT], RNG.choice(["north", "south"], JOINED)]),
}
MOVED = RNG.random(STAYED + JOINED) < 0.1
NEW["voted"][MOVED] = "yes"
CONNECTION = duckdb.connect()


def released(table: Any, mechanism: Any, release: str, epsilon: Any = 2, name: str = "voted", **options: Any) -> Any:
    source = pa.table(table) if isinstance(table, dict) else table
    where: dict[str, Any] = {"id": "id", "key": KEY, "release": release, "ledger": None} | options
    return rx.release(source, {name: mechanism}, epsilon=epsilon, **where)


def scores(table: Any, mechanism: Any, epsilon: Any, name: str = "voted") -> dict[int, Any]:
    """Every object's own unbiased shares, by its id: what a report says of each value, debiased."""
    encoding = mechanism.encoding
    support = encoding.support(encoding.level(epsilon).retention)
    held = encoding.supports(*encoding.read(table.column(name).combine_chunks()))
    return dict(zip(table.column("id").to_pylist(), support.debias(held.astype(float)), strict=True))


ENCODINGS = {
    "values": rx.Categorical(VALUES),
    "other order": rx.Categorical(["?", "no", "yes"]),
    "bits": rx.Unary(VALUES),
    "hashes in another order": rx.LocalHash(["no", "yes", "?"], buckets=3),
}


@pytest.mark.parametrize(
    ("old", "new"),
    [("values", "values"), ("values", "other order"), ("values", "bits"), ("hashes in another order", "bits")],
)
def test_the_change_is_the_mean_of_every_objects_own(old: str, new: str) -> None:
    """Shares, errors about a population and everybody's, from scores that are put together object by object."""
    mechanisms = ENCODINGS[old], ENCODINGS[new]
    tables = released(OLD, mechanisms[0], "2026", 1), released(NEW, mechanisms[1], "2027", 2)
    found = rx.difference(*tables)
    assert found.objects == {"stayed": STAYED, "joined": JOINED, "left": ROWS - STAYED}
    labels = list(mechanisms[0].encoding.labels)
    assert list(found.stayed.labels) == labels
    order = [list(mechanisms[1].encoding.labels).index(label) for label in labels]
    then = scores(tables[0], mechanisms[0], 1)
    now = {who: each[order] for who, each in scores(tables[1], mechanisms[1], 2).items()}
    both = then.keys() & now.keys()
    own = np.array([now[who] - then[who] for who in both])
    assert np.allclose(found.stayed.value, own.mean(axis=0))
    plain = own.std(axis=0) / np.sqrt(len(own))
    assert np.allclose(found.stayed.standard_error("population"), plain, rtol=1e-9)
    assert np.allclose(found.stayed.standard_error(), np.hypot(found.stayed.old.std_error, found.stayed.new.std_error))
    old_all, new_all = (np.array(list(each.values())) for each in (then, now))
    assert np.allclose(found.everybody.value, new_all.mean(axis=0) - old_all.mean(axis=0))
    influence = [
        (now[who] - new_all.mean(axis=0)) / len(new_all) * (who in now) if who not in then
        else -(then[who] - old_all.mean(axis=0)) / len(old_all) if who not in now
        else (now[who] - new_all.mean(axis=0)) / len(new_all) - (then[who] - old_all.mean(axis=0)) / len(old_all)
        for who in then.keys() | now.keys()
    ]  # fmt: skip
    spread = np.sqrt(np.square(influence).sum(axis=0))
    assert np.allclose(found.everybody.standard_error("population"), spread, rtol=1e-9)
    for who, result, side in (("joined", found.joined, now), ("left", found.left, then)):
        alone = np.array([each for person, each in side.items() if person not in both])
        assert np.allclose(result.value, alone.mean(axis=0)), who
        assert list(result.labels) == labels


def numbers(table: dict[str, Any]) -> dict[str, Any]:
    return table | {"age": [None if place % 9 == 0 else number for place, number in enumerate(table["age"])]}


@pytest.mark.parametrize("missing", [(False, False), (False, True), (True, True)])
def test_means_and_what_is_missing(missing: tuple[bool, bool]) -> None:
    """The error is that of the sample of changes: to first order where the mean is a ratio."""
    mechanisms = [rx.Numeric(0, 100, missing=each) for each in missing]
    tables = [
        released(numbers(table) if each else table, mechanism, release, 3, "age")
        for table, each, mechanism, release in zip((OLD, NEW), missing, mechanisms, ("2026", "2027"), strict=True)
    ]
    found = rx.difference(*tables)
    assert list(found.stayed.labels) == ["mean"]
    both, own = sorted(set(OLD["id"]) & set(NEW["id"])), []
    for table, mechanism, result in zip(tables, mechanisms, (found.stayed.old, found.stayed.new), strict=True):
        shares = scores(table, mechanism, 3, "age")
        weights = np.array([0.0, 0.0, 100.0][-len(mechanism.encoding.labels) :])
        there = np.ones(len(weights))
        if len(weights) == 3:
            there[0] = 0
        mine = np.array([shares[who] for who in both])
        share = (mine @ there).mean()
        assert np.allclose(result.value, (mine @ weights).mean() / share)
        own.append((mine @ (weights - float(result.value) * there)) / share)
    plain = np.std(own[1] - own[0]) / np.sqrt(STAYED)
    for about in ("objects", "population"):  # the reports' own spread, whatever it is about
        assert np.allclose(found.stayed.standard_error(about), plain, rtol=5e-3)
    if all(missing):
        then, now = (
            [each[0] for who, each in sorted(scores(table, mechanism, 3, "age").items()) if who in both]
            for table, mechanism in zip(tables, mechanisms, strict=True)
        )
        lost = np.subtract(now, then)
        assert np.allclose(found.stayed.missing.value, lost.mean())
        assert np.allclose(found.stayed.missing.standard_error("population"), lost.std() / np.sqrt(STAYED), rtol=1e-9)
        assert re.search(r"^missing: [\d.]+ % -> [\d.]+ %, [+-][\d.]+ points \(", repr(found), flags=re.MULTILINE)
        assert "missing: " in found._repr_html_()
    else:
        assert found.stayed.missing is None
    apart = rx.difference(*tables, independent=True)
    assert apart.stayed is None
    assert np.allclose(apart.everybody.value, found.everybody.value)
    assert apart.everybody.std_error > found.everybody.std_error  # ages go together, which only ids can tell


def test_levels_within_a_date() -> None:
    """Everybody at 0.5 and some at 2, at both dates: each counts once, and pairs of levels go together."""
    answers = rx.Categorical(VALUES)
    sides, best = [], []
    for table, release in ((OLD, "2026"), (NEW, "2027")):
        some = {name: column[table["id"] % 3 == 0] for name, column in table.items()}
        low, high = released(table, answers, release, "0.5"), released(some, answers, release, 2)
        sides.append([low, high])
        best.append(scores(low, answers, "0.5") | scores(high, answers, 2))
    found = rx.difference(*sides)
    assert found.old.levels == {"0.5": 2000, "2": 1000}
    own = np.array([best[1][who] - each for who, each in best[0].items() if who in best[1]])
    assert len(own) == found.objects["stayed"] == STAYED
    assert np.allclose(found.stayed.value, own.mean(axis=0))
    # Within levels, as everywhere: which level an object has is no chance.
    assert np.allclose(found.stayed.standard_error("population"), own.std(axis=0) / np.sqrt(STAYED), rtol=0.02)
    precise = rx.difference(*sides, method="precision")
    assert (precise.stayed.std_error < found.stayed.std_error).all()


MAKERS: dict[str, Any] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "pyarrow": lambda table: table,
    "duckdb": CONNECTION.from_arrow,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_frames_of_every_kind_and_files_agree(kind: str, tmp_path: Path) -> None:
    answers = rx.Categorical(VALUES)
    frames = [released(MAKERS[kind](pa.table(each)), answers, name) for each, name in ((OLD, "2026"), (NEW, "2027"))]
    for name, table in (("2026", OLD), ("2027", NEW)):
        pa_parquet.write_table(released(table, answers, name), tmp_path / f"{name}.parquet")
    files = [tmp_path / "2026.parquet", tmp_path / "2027.parquet"]
    wanted = rx.difference(*files).to_arrow()
    assert rx.difference(*frames).to_arrow().equals(wanted)
    assert rx.difference(frames[0], files[1]).to_arrow().equals(wanted)


@pytest.mark.parametrize("ending", ["csv", "arrow", "jsonl"])
def test_files_of_every_kind(ending: str, tmp_path: Path) -> None:
    key, sources = tmp_path / "key", []
    rx.Key.from_bytes(bytes(range(32))).save(key)
    for name, table in (("2026", OLD), ("2027", NEW)):
        pa_parquet.write_table(pa.table(table), tmp_path / f"in-{name}.parquet")
        for kind in ("parquet", ending):
            rx.release(
                tmp_path / f"in-{name}.parquet", {"voted": rx.Unary(VALUES)}, id="id", epsilon=2, key=key,
                to=tmp_path / f"{name}.{kind}", release=name, ledger=None,
            )  # fmt: skip
        sources.append(tmp_path / f"{name}.{ending}")
    wanted = rx.difference(tmp_path / "2026.parquet", tmp_path / "2027.parquet")
    assert rx.difference(*sources).to_arrow().equals(wanted.to_arrow())
    assert (wanted.old.label, wanted.new.label) == ("2026", "2027")


def test_nobody_in_common_and_nobody_else() -> None:
    answers = rx.Categorical(VALUES)
    old, strangers = released(OLD, answers, "2026"), released(NEW | {"id": NEW["id"] + 10_000}, answers, "2027")
    found, apart = (rx.difference(old, strangers, independent=each) for each in (False, True))
    assert found.stayed is None
    assert found.change is found.everybody
    assert (found.objects, apart.objects) == ({"stayed": 0, "joined": STAYED + JOINED, "left": ROWS}, {})
    for about in ("objects", "population"):
        assert np.array_equal(found.everybody.interval(about=about), apart.everybody.interval(about=about))
    alike = rx.difference(old, released(OLD, answers, "2027"))
    assert (alike.joined, alike.left, list(alike.changes)) == (None, None, ["stayed"])
    assert np.array_equal(alike.stayed.interval(), alike.everybody.interval())


def test_ids_are_joined_only_where_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = rx.Categorical(VALUES)
    old, new = (released(each, answers, name) for each, name in ((OLD, "2026"), (NEW, "2027")))
    nameless = [each.drop_columns(["id"]).replace_schema_metadata(each.schema.metadata) for each in (old, new)]
    with refused(UnknownColumnError, says="it takes them to count an object once"):
        rx.difference(*nameless)
    monkeypatch.setattr(dates, "count_joined", None)
    assert rx.difference(*nameless, independent=True).objects == {}


def test_little_memory_is_enough(tmp_path: Path) -> None:
    """Ids are joined on disk where they do not fit."""
    rows, sides = 300_000, []
    for release in ("2026", "2027"):
        texts = [f"a rather long name of an object, number {number}" for number in range(rows)]
        table = released({"id": texts, "voted": np.tile(VALUES, rows // 3)}, rx.Categorical(VALUES), release)
        pa_parquet.write_table(table, tmp_path / f"{release}.parquet")
        sides.append(whole_files([tmp_path / f"{release}.parquet"], []))
    old, new = sides
    tally = count_joined(old, new, axes_of(old, new, (None, None)), memory_limit="60MB")
    assert tally.pairs[0].objects == rows


def test_dates_have_names(tmp_path: Path) -> None:
    """By the date of a series, by the day, by the file, by the release; all by the first that tells them apart."""
    answers = rx.Categorical(VALUES)
    tables = [released(each, answers, name) for each, name in ((OLD, "first"), (NEW, "second"))]
    for folder, table in zip(("a", "b"), tables, strict=True):
        (tmp_path / folder).mkdir()
        pa_parquet.write_table(table, tmp_path / folder / "out.parquet")
    pa_parquet.write_table(tables[1], tmp_path / "2027.parquet")

    def names(*sources: Any, **options: Any) -> tuple[str, str]:
        found = rx.difference(*sources, **options)
        return found.old.label, found.new.label

    old = tmp_path / "a" / "out.parquet"
    assert names(old, tmp_path / "2027.parquet") == ("out", "2027")
    assert names(old, tmp_path / "b" / "out.parquet") == ("first", "second")
    assert names(*tables) == ("first", "second")
    assert names(*tables, labels=["then", "now"]) == ("then", "now")
    again = released(NEW, answers, "first", key=rx.Key.from_bytes(bytes(32)))
    assert names(tables[0], again) == ("date 1", "date 2")
    columns = {"then": answers, "now": answers}
    both = rx.release(
        pa.table({"id": OLD["id"], "then": OLD["voted"], "now": OLD["voted"]}), columns,
        id="id", epsilon=1, key=KEY, release="one", ledger=None,
    )  # fmt: skip
    assert names(both, both, column="then", new_column="now") == ("then", "now")
    dated = [
        released(each, answers, "one", as_of=day, date=date)
        for each, day, date in ((OLD, "2026-05-01", "2026"), (NEW, "2027-05-01", "2027"))
    ]
    assert names(*dated) == ("2026", "2027")
    days = [
        released(each, answers, name, as_of=day)
        for each, name, day in ((OLD, "first", "2026-05-01"), (NEW, "second", "2027-05-01"))
    ]
    assert names(*days) == ("2026-05-01", "2027-05-01")


def test_more_than_two_dates_are_compared_one_by_one() -> None:
    answers = rx.Categorical(VALUES)
    tables = [released(each, answers, name) for each, name in ((OLD, "2026"), (NEW, "2027"), (OLD, "2028"))]
    found = rx.difference(*tables)
    assert isinstance(found, Dates)
    assert [date.label for date in found.dates] == ["2026", "2027", "2028"]
    assert [(step.old.label, step.new.label) for step in found] == [("2026", "2027"), ("2027", "2028")]
    for step, pair in zip(found, (tables[:2], tables[1:]), strict=True):
        assert step.to_arrow().equals(rx.difference(*pair).to_arrow())
    frame = found.to_frame()
    assert list(frame)[:3] == ["date", "value", "estimate"]
    assert len(frame) == 9


# What is refused.


def test_one_path_is_no_two_dates(tmp_path: Path) -> None:
    answers = rx.Categorical(VALUES)
    low, high = (released(OLD, answers, "2026", epsilon) for epsilon in (1, 2))
    for other in (low, high):
        for independent in (False, True):
            with refused(MixedFilesError, remedy="one_path", path="'voted' of release '2026'"):
                rx.difference(low, other, independent=independent)
    with refused(MixedFilesError, remedy="one_path"):
        rx.difference(released(NEW, answers, "2027"), low, high)
    other_key = released(OLD, answers, "2026", key=rx.Key.from_bytes(bytes(32)))
    assert isinstance(rx.difference(low, other_key), Difference)


def test_what_cannot_be_compared() -> None:
    answers = rx.Categorical(VALUES)
    old, new = released(OLD, answers, "2026"), released(NEW, answers, "2027")
    others = NEW | {"voted": np.where(NEW["voted"] == "?", "no", NEW["voted"]), "again": NEW["voted"]}
    with refused(MixedFilesError, what="values"):
        rx.difference(old, released(others, rx.Categorical(["yes", "no"]), "2027"))
    with refused(MixedFilesError, remedy="new_column", old_attribute="voted", new_attribute="again"):
        rx.difference(old, released(others, answers, "2027", name="again"))
    assert rx.difference(old, released(others, answers, "2027", name="again"), new_column="again").new.column == "again"
    ages = [released(OLD, rx.Numeric(0, most), "2026", name="age") for most in (100, 120)]
    with refused(MixedFilesError, says="declare different"):
        rx.difference(ages[0], released(NEW, rx.Numeric(0, 120), "2027", name="age"))
    with refused(MixedFilesError, says="declare different"):
        rx.difference(ages[0], released(NEW, rx.Numeric(0, 100, clip=True), "2027", name="age"))
    with refused(MixedFilesError, says="declare different"):
        rx.difference(ages[0], new, column="age", new_column="voted")
    texts = released(NEW | {"id": [str(each) for each in NEW["id"]]}, answers, "2027")
    with refused(MixedFilesError, remedy="independent"):
        rx.difference(old, texts)
    assert rx.difference(old, texts, independent=True).objects == {}


def test_rows_that_were_chosen_or_doubled() -> None:
    answers = rx.Categorical(VALUES)
    old, new = released(OLD, answers, "2026", keep=["region"]), released(NEW, answers, "2027", keep=["region"])
    north = [each.filter(pa.compute.equal(each["region"], "north")) for each in (old, new)]
    with refused(DescriptionError, remedy="chosen_rows", name="the frame of date 1"):
        rx.difference(*north)
    found = rx.difference(*north, description=[old, new])
    assert found.objects["stayed"] == (NEW["region"][:STAYED] == "north").sum()
    twice = pa.concat_tables([old, old.slice(0, 5)])
    with refused(CountsError, says="an id stands in two rows"):
        rx.difference(twice, new, description=[old, new])


def test_ids_that_stand_twice_in_a_file(tmp_path: Path) -> None:
    """Also in a file that describes itself and has the number of rows that it says."""
    answers = rx.Categorical(VALUES)
    old, new = released(OLD, answers, "2026"), released(NEW, answers, "2027")
    twice = pa.concat_tables([old.slice(0, ROWS - 5), old.slice(0, 5)])
    pa_parquet.write_table(twice, tmp_path / "2026.parquet")
    pa_parquet.write_table(new, tmp_path / "2027.parquet")
    with refused(CountsError, repeated=5):
        rx.difference(tmp_path / "2026.parquet", tmp_path / "2027.parquet")
    bits = released(OLD, rx.Unary(VALUES), "2026")
    pa_parquet.write_table(pa.concat_tables([bits.slice(0, ROWS - 5), bits.slice(0, 5)]), tmp_path / "2026.parquet")
    with refused(CountsError, says="stands in more than one row at the same level"):
        rx.difference(tmp_path / "2026.parquet", tmp_path / "2027.parquet")


def test_questions_that_make_no_sense(tmp_path: Path) -> None:
    old = released(OLD, rx.Categorical(VALUES), "2026")
    with refused(CountsError, dates=2, what="labels"):
        rx.difference(old, old, labels=["one"])
    with refused(CountsError, says="a date is a file, a frame, or a list of either"):
        rx.difference(old, [])
    with refused(CountsError, says="a date is a file, a frame, or a list of either"):
        rx.difference(old, [old, tmp_path / "nowhere.parquet"])
    with refused(CountsError, says="not offered on Spark"):
        rx.difference(old, type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})())
    with refused(TableFileError):
        rx.difference(old, tmp_path / "nowhere.parquet")
