"""Files of levels: one digest for the same rows in every file, another one for every other content, hostile files."""

from __future__ import annotations

import hashlib
import json
import resource
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.released import write_release

import relaxdp as rx
from relaxdp.market import level_file
from relaxdp.market.level_file import LevelReports, compute_level_digest, read_level_file, write_level_file
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import LevelFileError
from relaxdp.tables.metadata import METADATA_KEY

KEY = rx.Key.from_bytes(bytes(range(32)))
VALUES = ["flu", "covid", "SECRET"]
ANSWERS = rx.Categorical(VALUES)
MECHANISMS: dict[str, tuple[Mechanism, list[Any]]] = {
    "categorical": (ANSWERS, VALUES),
    "missing": (rx.Categorical([*VALUES, None]), [*VALUES, None]),
    "integers": (rx.Categorical([1, 2, 300]), [1, 2, 300]),
    "unary": (rx.Unary(VALUES), VALUES),
    "local hash": (rx.LocalHash(VALUES, buckets=4), VALUES),
    "numeric": (rx.Numeric(0, 10), [1.5, 7.0, 10.0]),
    "numeric, missing": (rx.Numeric(0, 10, missing=True), [1.5, None, 10.0]),
    "square wave": (rx.SquareWave(0, 10, bins=8, window=2), [1.5, 7.0, 10.0]),
}
IDS: dict[str, pa.Array] = {
    "int64": pa.array(range(-10, 30), pa.int64()),
    "text": pa.array(sorted(f"p{row * 7}" for row in range(40))),
    "bytes": pa.array(sorted(bytes([row, 255 - row]) for row in range(40))),
    "uuid": pa.array([uuid.UUID(int=row << 64).bytes for row in range(40)], pa.binary(16)),
}


def make_file(
    folder: Path, mechanism: Mechanism = ANSWERS, answers: Any = VALUES, ids: Any = None, **terms: Any
) -> Path:
    """Release a column as a seller does, into a new file."""
    ids = IDS["int64"] if ids is None else ids
    table = pa.table({"id": ids, "x": pa.array([answers[row % len(answers)] for row in range(len(ids))])})
    where: Any = {"key": KEY, "epsilon": "1", "name": "survey", "id": "id", **terms}
    return write_release(folder / f"{uuid.uuid4().hex}.parquet", table, {"x": mechanism}, **where)


def write_again(path: Path, change: Callable[[pa.Table], pa.Table] = lambda table: table, **options: Any) -> Path:
    """Write the rows of a file as another program does."""
    table = pa_parquet.read_table(path)
    target = path.with_name(f"{uuid.uuid4().hex}.parquet")
    pa_parquet.write_table(change(table).replace_schema_metadata(table.schema.metadata), target, **options)
    return target


def describe(path: Path, change: Callable[[Any, Any], None]) -> Path:
    """Write a file with another description: `change` gets all of it, and the part of the column."""
    table = pa_parquet.read_table(path)
    stated = json.loads(table.schema.metadata[METADATA_KEY])
    change(stated, next(iter(stated["columns"].values())))
    target = path.with_name(f"{uuid.uuid4().hex}.parquet")
    pa_parquet.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(stated)}), target)
    return target


def digest(path: Path) -> str:
    return compute_level_digest(read_level_file(path, is_sorted=False))


def set_column(name: str, make: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, make(table[name]))


# The digest.


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_rows_have_one_digest(tmp_path: Path, name: str, kind: str) -> None:
    path = make_file(tmp_path, *MECHANISMS[name], IDS[kind])
    if kind == "uuid":
        path = write_again(path, set_column("id", lambda column: column.combine_chunks().cast(pa.uuid())))
        path = describe(path, lambda _, column: column.update(id_type="uuid"))
    again = [
        write_again(path, lambda table: table.take(list(range(39, -1, -1)))),
        write_again(path, lambda table: table.select(table.column_names[::-1]), compression="gzip", row_group_size=7),
        write_again(path, use_dictionary=False, compression="none", data_page_version="2.0"),
        write_again(path, lambda table: pa.concat_tables([table.slice(20), table.slice(0, 20)]), use_dictionary=["id"]),
    ]
    expected = compute_level_digest(read_level_file(path))
    assert [digest(each) for each in again] == [expected] * 4
    written = tmp_path / "written.parquet"
    write_level_file(read_level_file(path), written)
    assert digest(written) == expected
    assert pa_parquet.read_table(written).equals(pa_parquet.read_table(path))


@pytest.mark.parametrize("other", [pa.int8(), pa.int32(), pa.uint64()])
def test_equal_numbers_are_equal_ids_in_every_type(tmp_path: Path, other: Any) -> None:
    path = make_file(tmp_path, ids=pa.array(range(40)))
    cast = write_again(path, set_column("id", lambda column: column.cast(other)))
    assert digest(cast) == digest(path)


@pytest.mark.parametrize("other", [pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_equal_texts_are_equal_in_every_type(tmp_path: Path, other: Any) -> None:
    path = make_file(tmp_path, ids=IDS["text"])
    for name in ("id", "x") if not pa.types.is_dictionary(other) else ("x",):
        assert digest(write_again(path, set_column(name, lambda column: column.cast(other)))) == digest(path)


def test_the_digest_is_what_the_format_says(tmp_path: Path) -> None:
    """Computed with struct and hashlib alone; the value is frozen, since receipts contain it."""
    path = make_file(tmp_path, ids=pa.array(["b", "éa", "c"]))
    table, level = pa_parquet.read_table(path).to_pydict(), read_level_file(path)
    rows = sorted((row.encode(), report) for row, report in zip(table["id"], table["x"], strict=True))
    streams = [
        b"".join(struct.pack("<q", len(row)) for row, _ in rows),
        b"".join(row for row, _ in rows),
        struct.pack("<Q", ANSWERS.level(1).threshold) * 3,
        bytes(VALUES.index(report) for _, report in rows),
        b"",
    ]
    lowest = ANSWERS.level(1)
    described = {
        "version": 1, "release": "survey", "attribute": "x", "encoding": "categorical", "epsilon": "1",
        "threshold": str(lowest.threshold), "id_type": "text", "key_fingerprint": KEY.fingerprint, "values": VALUES,
    }  # fmt: skip
    header = b"relaxdp market level 1\n"
    path_digest = hashlib.sha256(header + json.dumps(described, sort_keys=True).encode()).hexdigest()
    head = {
        "columns": [hashlib.sha256(stream).hexdigest() for stream in streams], "path": path_digest, "rows": 3,
        "threshold": str(lowest.threshold),
    }  # fmt: skip
    expected = hashlib.sha256(header + json.dumps(head, sort_keys=True).encode()).hexdigest()
    assert compute_level_digest(level) == expected
    assert expected == "e5b18d946212f946d31f1dada80dca957c1e0fc0b65611fd67daaf8501552478"


def test_every_difference_is_another_digest(tmp_path: Path) -> None:
    level = read_level_file(make_file(tmp_path))
    ids, reports, described = level.ids.to_pylist(), level.reports.to_pylist(), level.description
    changed = next(place for place, report in enumerate(reports) if report != "flu")
    other_reports = pa.array([*reports[:changed], "flu", *reports[changed + 1 :]])
    lower = replace(described, level_column="x_epsilon", row_epsilons=(Decimal("0.5"), Decimal(1)))

    def at(*places: int) -> LevelReports:
        rows = pa.array(["0.5" if place in places else "1" for place in range(40)])
        return replace(level, description=lower, row_epsilons=rows.dictionary_encode())

    def on_path(**names: Any) -> LevelReports:
        return replace(level, description=replace(described, path=replace(described.path, **names)))

    def describing(**fields: Any) -> LevelReports:
        return replace(level, description=replace(described, **fields))

    same = [level, at()]  # all rows at the level itself, stated or not
    others = [
        replace(level, ids=pa.array([*ids[:-1], 99])), replace(level, ids=pa.array([*ids[1:], 99])),
        replace(level, reports=other_reports), replace(level, reports=pa.array([*reports[1:], reports[0]])),
        replace(level, ids=pa.array(ids[1:]), reports=pa.array(reports[1:])),
        read_level_file(make_file(tmp_path, epsilon="0.9")), at(0), at(1), at(0, 1), at(*range(40)),
        on_path(release="other"), on_path(attribute="other"), describing(key_fingerprint="other"),
        describing(id_type="text"), describing(values=("flu", "SECRET", "covid")),
        describing(values=(*VALUES, "more")),
    ]  # fmt: skip
    assert {compute_level_digest(each) for each in same} == {compute_level_digest(level)}
    digests = {compute_level_digest(each) for each in [level, *others]}
    assert len(digests) == len(others) + 1


def test_ids_with_equal_bytes_are_told_apart(tmp_path: Path) -> None:
    """-1 and 2**64 - 1, texts that differ in where they end, and a number, a text and bytes of the same letters."""
    pairs: list[Any] = [
        pa.array([-1], pa.int64()), pa.array([2**64 - 1], pa.uint64()), pa.array([255], pa.uint8()),
        pa.array(["ab", "c"]), pa.array(["a", "bc"]), pa.array([b"a", b"bc"]), pa.array(["", "abc"]),
        pa.array([49]), pa.array(["1"]), pa.array([b"1"]),
    ]  # fmt: skip
    template = read_level_file(make_file(tmp_path))
    found = set()
    for ids in pairs:
        kind = "integer" if pa.types.is_integer(ids.type) else "text" if ids.type == pa.string() else "bytes"
        described = replace(template.description, id_type=kind)
        reports = pa.array(["flu"] * len(ids))
        found.add(compute_level_digest(replace(template, description=described, ids=ids, reports=reports)))
    assert len(found) == len(pairs)


# Files of strangers.


def mixed(path: Path, *, stated: list[str], epsilons: list[str]) -> Path:
    """Write a file with a column that states the level of each row."""

    def state(content: Any, column: Any) -> None:
        column |= {"level_column": "x_epsilon", "row_epsilons": epsilons}

    rows = pa.array([stated[row % len(stated)] for row in range(40)])
    return describe(write_again(path, lambda table: table.append_column("x_epsilon", rows)), state)


Maker = Callable[[Path], Path]


def damage(change: Callable[[bytes], bytes], before: Callable[[pa.Table], pa.Table] = lambda table: table) -> Maker:
    def make(path: Path) -> Path:
        target = write_again(path, before)
        target.write_bytes(change(target.read_bytes()))
        return target

    return make


def rewrite(change: Callable[[pa.Table], pa.Table]) -> Maker:
    return lambda path: write_again(path, change)


def set_first(name: str, value: Any, kind: Any = None) -> Maker:
    return rewrite(set_column(name, lambda column: pa.array([value, *column.to_pylist()[1:]], kind or column.type)))


def set_ids(make: Callable[[int], Any]) -> Maker:
    return rewrite(set_column("id", lambda column: pa.array([make(row) for row in range(len(column))])))


def mix(stated: list[str], epsilons: list[str]) -> Maker:
    return lambda path: mixed(path, stated=stated, epsilons=epsilons)


def describe_as(**fields: Any) -> Maker:
    return lambda path: describe(path, lambda _, column: column.update(fields))


def describe_file(**fields: Any) -> Maker:
    return lambda path: describe(path, lambda stated, _: stated.update(fields))


def nest(depth: int) -> Any:
    return [nest(depth - 1)] if depth else 0


HOSTILE: dict[str, tuple[Maker, str]] = {
    "no Parquet": (damage(lambda _: b"id,x\n1,SECRET\n"), "damaged"),
    "nothing": (damage(lambda _: b""), "damaged"),
    "truncated": (damage(lambda content: content[:-40]), "damaged"),
    "without its head": (damage(lambda content: content[200:]), "damaged"),
    "page overwritten": (damage(lambda content: content[:60] + b"SECRET" * 9 + content[114:]), "damaged"),
    # The number of rows in the footer, a field before the list of row groups.
    "rows without pages": (
        damage(lambda content: content.replace(b"\x16\0\x19", b"\x16P\x19"), lambda table: table[:0]), "damaged",
    ),
    "no rows": (rewrite(lambda table: table[:0]), "0 rows"),
    "no reports": (rewrite(lambda table: table.select(["id"])), "other columns"),
    "another column": (rewrite(lambda table: table.append_column("more", table["x"])), "other columns"),
    "a column twice": (rewrite(lambda table: table.append_column("x", table["x"])), "other columns"),
    "an undeclared report": (set_first("x", "SECRET-2", pa.string()), "not a report"),
    "a missing report": (set_first("x", None), "not a report"),
    "reports of another type": (rewrite(set_column("x", lambda column: pa.array([b"SECRET"] * 40))), "not a report"),
    "unsorted": (rewrite(lambda table: table.take(list(range(39, -1, -1)))), "order of their ids"),
    "a repeated id": (set_first("id", -9), "order of their ids"),
    "a missing id": (set_first("id", None), "id is missing"),
    "ids of another type": (set_ids(lambda row: f"SECRET{row:02}"), "another type"),
    "ids that are no ids": (set_ids(float), "must be whole numbers"),
    "ids in lists": (set_ids(lambda row: [row]), "damaged"),
    "a level above": (mix(["1", "2"], ["1", "2"]), "contradict"),
    "an unlisted level": (mix(["1", "SECRET"], ["1"]), "does not list"),
    "another spelling": (mix(["1.0"], ["1"]), "does not list"),
    "63 levels": (mix(["1"], [f"0.{n}" for n in range(11, 74)]), "more than 62"),
    "another threshold": (describe_as(threshold="1"), "contradict"),
    "a threshold of no number": (describe_as(threshold="SECRET"), "damaged"),
    "an epsilon of no number": (describe_as(epsilon="SECRET"), "damaged"),
    "an unknown mechanism": (describe_as(encoding="SECRET"), "unknown"),
    "RAPPOR": (describe_as(encoding="bloom", values=None, options={"bits": 8, "hashes": 2, "cohorts": 2}), "RAPPOR"),
    "too many values": (describe_as(values=list(range(10_001))), "more than 10,000 values"),
    "one value": (describe_as(values=["SECRET"]), "unknown"),
    "a NUL in a name": (describe_as(release="SECRET\0"), "plain text"),
    "half of a letter": (describe_as(release="SECRET\ud800"), "damaged"),
    "a name without end": (describe_as(attribute="SECRET" * 200), "plain text"),
    "a name of no text": (describe_as(release=["SECRET"]), "damaged"),
    "a fingerprint of no text": (describe_as(key_fingerprint=7), "plain text"),
    "nested": (describe_as(options={"SECRET": nest(400)}), "unknown"),
    "a huge range": (describe_as(encoding="numeric", values=None, range=[0, 10**400]), "damaged"),
    "another id column": (describe_file(id="SECRET"), "other columns"),
    "an id column of no text": (describe_file(id=7), "other columns"),
    "an id column of half a letter": (describe_file(id="SECRET\ud800"), "other columns"),
    "two columns": (lambda path: describe(path, lambda stated, x: stated["columns"].update(y=x)), "one released"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_rejected(tmp_path: Path, name: str) -> None:
    make, expected = HOSTILE[name]
    path = make(make_file(tmp_path))
    for is_sorted in (True, False) if name != "unsorted" else (True,):
        with pytest.raises(LevelFileError, match=expected) as found:
            read_level_file(path, is_sorted=is_sorted)
        assert "SECRET" not in found.value.message
        assert str(tmp_path) not in found.value.message


def test_too_many_rows_are_rejected_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_file(tmp_path)
    monkeypatch.setattr(level_file, "MAX_ROWS", 39)
    with pytest.raises(LevelFileError, match="has 40 rows. A level has 1 to 39"):
        read_level_file(path)


@pytest.mark.parametrize("most", [100, 1 << 12])
def test_columns_larger_than_memory_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    path = make_file(tmp_path, ids=pa.array(sorted(f"{row:0900}" for row in range(40))))
    monkeypatch.setattr(level_file, "MAX_BYTES", most)
    with pytest.raises(LevelFileError, match="larger than a market accepts"):
        read_level_file(path)


def test_a_small_file_that_unfolds_to_more_than_memory(tmp_path: Path) -> None:
    """One long text, 262,144 times: kilobytes in the file, 24 GiB as a column. It is rejected before it unfolds."""
    rows = 262_144
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 100_000]))
    metadata = pa_parquet.read_schema(make_file(tmp_path, ids=IDS["text"])).metadata
    path = tmp_path / "bomb.parquet"
    table = pa.table({"id": ids, "x": pa.array(["flu"] * rows)}).replace_schema_metadata(metadata)
    pa_parquet.write_table(table, path)
    assert path.stat().st_size < 100_000
    code = (
        "import sys; from pathlib import Path\n"
        "from relaxdp.market.level_file import read_level_file\n"
        "from relaxdp.server_errors import LevelFileError\n"
        "try: read_level_file(Path(sys.argv[1]))\n"
        "except LevelFileError as problem: print(problem.sentence)\n"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, preexec_fn=limit
    )
    assert done.stdout == "The file is larger than a market accepts.\n", done.stderr


def test_what_is_not_declared_does_not_travel(tmp_path: Path) -> None:
    """A file is written again: what a description says besides, and what is hidden under missing cells, is gone."""
    path = make_file(tmp_path, *MECHANISMS["missing"])
    reports = pa_parquet.read_table(path)["x"].to_pylist()
    shown = pa.array([report or "HIDDEN" for report in reports]).buffers()
    is_present = pa.array([report is not None for report in reports]).buffers()[1]
    hiding = pa.StringArray.from_buffers(40, shown[1], shown[2], is_present)
    assert None in hiding.to_pylist()
    changed = write_again(path, set_column("x", lambda _: hiding), compression="none", use_dictionary=False)
    lying = describe_file(surprise="HIDDEN")(describe_as(more="HIDDEN")(changed))
    level, written = read_level_file(lying), tmp_path / "written.parquet"
    write_level_file(level, written)
    assert digest(written) == digest(path)
    assert b"HIDDEN" not in b"".join(bytes(each) for each in level.reports.buffers() if each is not None)
    assert b"HIDDEN" not in written.read_bytes()
    assert b"HIDDEN" not in pa_parquet.read_schema(written).metadata[METADATA_KEY]
