"""Snapshots: the very reports that the old table would give, and nothing that can be read, changed or exchanged."""

from __future__ import annotations

import filecmp
import os
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from pandas.testing import assert_frame_equal

import relaxdp as rx
from relaxdp.errors import (
    LevelError,
    OptionError,
    SnapshotError,
    TableChangedError,
    UndeclaredValueError,
    UnknownReleaseError,
    WrongKeyError,
)
from relaxdp.ledger.entries import Subject
from relaxdp.publication import snapshot, snapshot_folder
from relaxdp.publication.snapshot import PartWriter, SnapshotTable, _as_steps, _ids, cannot_be_written

ROWS = 400
VALUES = ["flu", "covid", "none"]
EVERYONE = Subject.population("everyone")
IDS: dict[str, Callable[[], Any]] = {
    "integers": lambda: pa.array(np.arange(ROWS) * 3 - 100),
    "text": lambda: pa.array(sorted(f"person {number}" for number in range(ROWS))),
    "bytes": lambda: pa.array([number.to_bytes(4, "big") for number in range(ROWS)]),
    "uuids": lambda: pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([uuid.UUID(int=number).bytes for number in range(ROWS)], pa.binary(16))
    ),
}


def answers(rows: int = ROWS, seed: int = 1) -> Any:
    return pa.array(np.random.default_rng(seed).choice(VALUES, rows))


def ages(rows: int = ROWS) -> Any:
    return pa.array(np.random.default_rng(2).uniform(0, 100, rows))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.generate().save("key")
    return tmp_path


def write(ids: Any = None, **columns: Any) -> None:
    pa_parquet.write_table(pa.table({"id": IDS["integers"]() if ids is None else ids, **columns}), "table.parquet")


def release(to: str, epsilon: float = 0.5, columns: Any = None, **options: Any) -> Any:
    options = {"budget": 9 if not Path("key.ledger").exists() else None, **options}
    said = {"answer": VALUES} if columns is None else columns
    return rx.release(
        "table.parquet", said, id="id", epsilon=epsilon, key="key", to=to, release="study", accept=True, **options
    )


def relax(to: str | None, epsilon: float = 1, **options: Any) -> Any:
    return rx.relax("study", epsilon=epsilon, key="key", to=to, accept=True, **options)


def kept(place: Path) -> Path:
    (only,) = (place / "key.ledger.snapshots").iterdir()
    return only


def spent() -> Decimal:
    with rx.Ledger.open("key.ledger") as ledger:
        ledger.verify()
        return ledger.account(EVERYONE).spent


COLUMNS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "categorical": (rx.Categorical(VALUES), answers),
    "many values": (rx.Categorical(list(range(1000))), lambda: pa.array(np.arange(ROWS) * 2)),
    "unary-optimised": (rx.mechanism(VALUES, encoding="unary-optimised"), answers),
    "local-hash": (rx.mechanism(list(range(50)), encoding="local-hash", buckets=5), lambda: pa.array([7] * ROWS)),
    "numeric": (rx.Numeric(0, 120), ages),
    "wave": (rx.Wave(0, 120, bins=16, epsilon=2), ages),
    "clipped": (rx.Column(range=(20, 80), clip=True), ages),
    "missing": (rx.Column(range=(0, 100), missing=True), lambda: pa.array([None, 1.5] * (ROWS // 2))),
    "bins": (rx.Column(bins=[18, 65], nulls="none"), lambda: pa.array([None, 3.0, 40.0, 70.0] * (ROWS // 4))),
}


@pytest.mark.parametrize("ids", IDS)
def test_relaxing_needs_no_table(place: Path, ids: str) -> None:
    write(IDS[ids](), answer=answers(), age=ages())
    columns = {"answer": VALUES, "age": rx.Numeric(0, 120)}
    release("0.5.parquet", columns=columns)
    table = Path("table.parquet").rename("kept.parquet")
    costs = [charge.cost for charge in relax("1.parquet").charges]
    relax("2.parquet", 2)
    assert costs == [Decimal("0.5")] * 2
    assert spent() == 4
    table.rename("table.parquet")
    for level in (1, 2):
        again = release("old.parquet", level, columns, again=True)
        assert [charge.cost for charge in again.charges] == [0, 0]
        assert filecmp.cmp(f"{level}.parquet", "old.parquet", shallow=False)
        Path("old.parquet").unlink()


@pytest.mark.parametrize("name", COLUMNS)
def test_every_encoding(place: Path, name: str) -> None:
    said, column = COLUMNS[name]
    write(answer=column())
    release("0.5.csv", columns={"answer": said})
    relax("1.csv")
    release("old.csv", 1, {"answer": said})
    assert filecmp.cmp("1.csv", "old.csv", shallow=False)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames(place: Path, kind: Any) -> None:
    order = np.random.default_rng(3).permutation(ROWS)
    table = pa.table({"id": IDS["integers"](), "answer": answers()}).take(order)
    frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}[kind]()
    said: Any = {"id": "id", "key": "key", "release": "study", "accept": True}
    rx.release(frame, {"answer": VALUES}, epsilon=0.5, budget=9, **said)
    relaxed = relax(None, frame=kind)
    old = rx.release(frame, {"answer": VALUES}, epsilon=1, **said)
    assert type(relaxed) is type(old)
    if kind == "pandas":
        assert_frame_equal(relaxed, old)
        assert relaxed.attrs == old.attrs
    else:
        assert relaxed.equals(old)
    assert rx.description(relaxed) == rx.description(old)


def test_a_frame_with_an_empty_piece(place: Path) -> None:
    """Tables that were filtered or put together have such pieces: nothing is drawn from them, and nothing kept."""
    piece = pa.table({"id": IDS["integers"](), "answer": answers()})
    table = pa.concat_tables([piece.slice(0, 0), piece.slice(0, 9), piece.slice(0, 0), piece.slice(9)])
    said: Any = {"id": "id", "key": "key", "release": "study", "accept": True}
    rx.release(table, {"answer": VALUES}, epsilon=0.5, budget=9, **said)
    assert relax(None).equals(rx.release(table, {"answer": VALUES}, epsilon=1, **said))


def test_what_was_read_back_does_not_show_itself(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    with rx.Ledger.open("key.ledger") as ledger:
        (digest,) = ledger.snapshots()
    for batch in SnapshotTable(kept(place), rx.Key.load("key"), digest).batches(()):
        assert repr(batch).startswith("<relaxdp")


def test_a_changed_table_is_refused_and_its_snapshot_is_not(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    rows = answers().to_pylist()
    write(answer=pa.array([rows[1], rows[0], *rows[2:]]) if rows[0] != rows[1] else answers(seed=5))
    with pytest.raises(TableChangedError) as refused:
        release("1.parquet", 1)
    assert "rx.relax" in refused.value.message
    assert "date=" in refused.value.message
    relax("1.parquet")
    assert spent() == 1


def test_a_changed_table_of_a_date_names_the_date(place: Path) -> None:
    with rx.Ledger.open("key.ledger") as ledger:
        ledger.declare_series(EVERYONE, "study", {"2026": 1}, reason="yearly", budget=9)
    write(answer=answers())
    release("0.5.parquet", date="2026")
    write(answer=answers(seed=5))
    with pytest.raises(TableChangedError, match=r"rx\.relax\('study', date='2026'\)"):
        release("1.parquet", 1, date="2026")
    relax("1.parquet", date="2026")


def test_files_say_as_of_when(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    today = datetime.now(UTC).date().isoformat()
    relax("1.parquet")
    for file in ("0.5.parquet", "1.parquet"):
        assert rx.description(file).columns["answer"].as_of == today
    with pytest.raises(OptionError, match=today):
        release("2.parquet", 2, as_of="2020-02-29")


def test_a_day_can_be_said(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet", as_of="2020-02-29")
    release("1.parquet", 1)
    assert rx.description("1.parquet").columns["answer"].as_of == "2020-02-29"
    with pytest.raises(OptionError, match="written like"):
        release("2.parquet", 2, as_of="yesterday")


def test_what_is_kept_is_private_and_small(place: Path) -> None:
    write(answer=answers())
    done = release("0.5.parquet")
    file = kept(place)
    assert done.snapshot == file
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    content = file.read_bytes()
    assert not [value for value in VALUES if value.encode() in content]
    assert b"answer" not in content
    assert len(content) < ROWS * 2 + 2000


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([-(2**63), -1, 0, 5, 2**63 - 1]),
        pa.array([0, 2**63, 2**64 - 1], pa.uint64()),
        pa.array([*range(snapshot._PIECE), 70_000, 70_001]),  # the largest step is the first of another piece
        pa.array([-128, 0, 127], pa.int8()),
        pa.array([3, 250], pa.uint8()),
        pa.array(range(0, 200_000, 3), pa.int32()),
        pa.array([7]),
        pa.array(["a", "b"]),
        pa.array([], pa.int64()),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_come_back_as_they_were(ids: Any) -> None:
    columns, said = _as_steps(ids)
    found = _ids(pa.RecordBatch.from_pydict(columns).replace_schema_metadata(said))
    assert found.equals(ids)
    assert found.type == ids.type


def test_its_length_tells_nothing_of_the_truths(place: Path) -> None:
    sizes = set()
    for number, truth in enumerate(([0] * ROWS, list(range(ROWS)), [999] * ROWS)):
        write(answer=pa.array(truth))
        done = rx.release(
            "table.parquet", {"answer": list(range(1000))}, id="id", epsilon=1, key="key", to=f"{number}.parquet",
            release=f"{number}", accept=True, budget=9 if number == 0 else None,
        )  # fmt: skip
        sizes.add(done.snapshot.stat().st_size)
    assert len(sizes) == 1


def test_two_snapshots_of_one_table_share_no_byte_pattern(place: Path) -> None:
    """Random bytes in the header make a key of its own: a nonce is never used twice, whatever is sealed again."""
    write(answer=answers())
    first = release("0.5.parquet").snapshot.read_bytes()
    kept(place).unlink()
    second = release("again.parquet").snapshot.read_bytes()
    assert len(first) == len(second)
    same = sum(one == other for one, other in zip(first[100:], second[100:], strict=True))
    assert same < len(first) / 50


def harmed(content: bytes) -> dict[str, bytes]:
    """Return a snapshot in which something is not as it was."""
    flipped = {f"byte {at}": at for at in (0, 20, 55, 60, 90)}
    flipped |= {"a byte in the middle": len(content) // 2, "the last byte": len(content) - 1}
    found = {name: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for name, at in flipped.items()}
    return found | {
        "nothing": b"",
        "cut in the header": content[:30],
        "cut in a chunk": content[: len(content) // 2],
        "without its end": content[: -(4 + 16)],
        "with something behind it": content + b"x",
        "twice": content + content,
    }


HARMED = list(harmed(bytes(500)))


@pytest.mark.parametrize("harm", HARMED)
def test_a_harmed_snapshot_is_refused(place: Path, harm: str) -> None:
    write(answer=answers())
    release("0.5.parquet")
    file = kept(place)
    file.write_bytes(harmed(file.read_bytes())[harm])
    with pytest.raises(SnapshotError) as refused:
        relax("1.parquet")
    assert refused.value.message.endswith("Nothing was released.")
    assert spent() == Decimal("0.5")
    assert not Path("1.parquet").exists()


def test_a_snapshot_of_another_release_key_or_day_is_refused(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    file, own = kept(place), kept(place).read_bytes()
    write(answer=answers(seed=2))
    other = rx.release(
        "table.parquet", {"answer": VALUES}, id="id", epsilon=1, key="key", to="other.parquet", release="other",
        accept=True,
    )  # fmt: skip
    forced = release("forced.parquet", force=True)  # the second epoch of the same release
    for wrong in (other.snapshot, forced.snapshot):
        file.write_bytes(wrong.read_bytes())
        with rx.Ledger.open("key.ledger") as ledger:
            digest = next(each for each in ledger.snapshots() if file.name.endswith(f"{each[:32]}.snapshot"))
        with pytest.raises(SnapshotError, match="not the snapshot that the ledger names"):
            list(SnapshotTable(file, rx.Key.load("key"), digest).batches(()))
    file.write_bytes(own)
    forced.snapshot.write_bytes(own)  # rolled back
    with pytest.raises(SnapshotError, match="of another release"):
        relax("1.parquet")
    rx.Key.generate().save("stranger")
    with pytest.raises(SnapshotError, match="sealed with another key"):
        rx.relax("other", epsilon=2, key="stranger", ledger="key.ledger", to="1.parquet")


def test_a_rolled_back_snapshot_of_the_same_path_is_refused(place: Path) -> None:
    write(answer=answers())
    older = release("0.5.parquet").snapshot.read_bytes()
    kept(place).unlink()
    newer = release("again.parquet").snapshot
    newer.write_bytes(older)
    with pytest.raises(SnapshotError, match="not the snapshot that the ledger names"):
        relax("1.parquet")


def test_a_lost_snapshot_is_made_again_from_the_table(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    kept(place).unlink()
    with pytest.raises(SnapshotError, match="is not in"):
        relax("1.parquet")
    release("again.parquet")
    relax("1.parquet")
    assert spent() == 1


def test_it_need_not_be_kept(place: Path) -> None:
    write(answer=answers())
    assert release("0.5.parquet", snapshots=False).snapshot is None
    assert not (place / "key.ledger.snapshots").exists()
    with pytest.raises(SnapshotError, match="no snapshot was kept"):
        relax("1.parquet")
    assert release("1.parquet", 1).snapshot is not None
    relax("2.parquet", 2)


def test_it_may_lie_elsewhere(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet", snapshots="vault")
    assert len(list((place / "vault").iterdir())) == 1
    with pytest.raises(SnapshotError, match=r"rx\.release|snapshots="):
        relax("1.parquet")
    relax("1.parquet", snapshots="vault")


def test_two_ledgers_keep_theirs_in_one_folder(place: Path) -> None:
    """What the other ledger names is not ours to remove, though release, column and population are called the same."""
    write(answer=answers())
    kept = []
    for owner in ("one", "two"):
        (place / owner).mkdir()
        rx.Key.generate().save(f"{owner}/key")
        released = rx.release(
            "table.parquet", {"answer": VALUES}, id="id", epsilon=0.5, key=f"{owner}/key", to=f"{owner}.parquet",
            release="study", accept=True, budget=9, snapshots="vault",
        )  # fmt: skip
        kept.append(released.snapshot)
    assert all(each.exists() for each in kept)
    for owner in ("one", "two"):
        rx.relax("study", epsilon=1, key=f"{owner}/key", to=f"{owner}-1.parquet", accept=True, snapshots="vault")


def test_one_column_of_several(place: Path) -> None:
    write(answer=answers(), age=ages())
    release("0.5.parquet", columns={"age": rx.Numeric(0, 120), "answer": VALUES})
    relax("1.parquet", columns=["answer"])
    assert pa_parquet.read_schema("1.parquet").names == ["id", "answer"]
    relax("2.parquet", 2)
    assert pa_parquet.read_schema("2.parquet").names == ["id", "age", "answer"]
    assert spent() == 4


def test_what_a_newer_snapshot_replaces_does_not_stay(place: Path) -> None:
    """Truths lie around no longer than somebody can go on from them."""
    write(answer=answers(), age=ages())
    alone = release("a.parquet").snapshot
    together = release("b.parquet", columns={"answer": VALUES, "age": rx.Numeric(0, 120)}).snapshot
    assert (alone.exists(), kept(place)) == (False, together)
    relax("1.parquet")


def test_rows_that_nobody_could_read_back_are_not_charged(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(answer=answers())
    monkeypatch.setattr(snapshot, "_MOST_BYTES", 600)
    with pytest.raises(SnapshotError, match="ids as long"):
        release("0.5.parquet")
    assert not Path("key.ledger").exists()


def test_columns_that_were_released_apart(place: Path) -> None:
    write(answer=answers(), age=ages())
    release("a.parquet")
    release("b.parquet", columns={"age": rx.Numeric(0, 120)})
    with pytest.raises(OptionError, match="apart"):
        relax("1.parquet")
    relax("1.parquet", columns=["age"])


def test_a_place_that_nothing_is_kept_in_is_refused(place: Path) -> None:
    write(answer=answers())
    for more in ({"ledger": None}, {"growing": True}):
        with pytest.raises(OptionError, match="nothing is kept"):
            release("0.5.parquet", snapshots="vault", **more)
    release("0.5.parquet")
    with pytest.raises(OptionError, match="pyarrow, pandas, polars"):
        relax(None, frame="excel")
    with pytest.raises(SnapshotError, match="nobody says where"):
        relax("1.parquet", snapshots=False)


def test_algorithm_1_closes_what_was_kept(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    rx.relax_reports(
        "table.parquet", {"answer": VALUES}, reports="0.5.parquet", to="1.parquet", id="id", epsilon=1, key="key",
        release="study", accept=True,
    )  # fmt: skip
    for level in (0.5, 2):
        with pytest.raises(SnapshotError, match="Algorithm 1"):
            relax("2.parquet", level, again=True)


def test_what_cannot_be_relaxed(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    with pytest.raises(UnknownReleaseError, match="knows no release 'other'"):
        rx.relax("other", epsilon=1, key="key", to="1.parquet")
    with pytest.raises(UnknownReleaseError, match="no column 'age'"):
        relax("1.parquet", columns=["age"])
    with pytest.raises(LevelError, match="only grow"):
        relax("1.parquet", 0.1)
    assert [charge.cost for charge in relax("low.parquet", 0.1, again=True).charges] == [0]
    assert [charge.cost for charge in relax("1.parquet", dry_run=True).charges] == [Decimal("0.5")]


def test_what_is_no_ledger_and_no_folder(place: Path) -> None:
    write(answer=answers())
    for wrong in ({"snapshots": None}, {"snapshots": 3}):
        with pytest.raises(OptionError):
            release("0.5.parquet", **wrong)
    with pytest.raises(OptionError):
        relax("1.parquet", ledger=None)


def test_rows_that_come_and_go_are_not_kept(place: Path) -> None:
    write(answer=answers())
    assert release("0.5.parquet", growing=True).snapshot is None
    with pytest.raises(SnapshotError, match="join and leave"):
        relax("1.parquet")


def test_a_wrong_key_says_so(place: Path) -> None:
    write(answer=answers())
    release("0.5.parquet")
    rx.Key.generate().save("stranger")
    with pytest.raises((SnapshotError, WrongKeyError), match="key"):
        rx.relax("study", epsilon=1, key="stranger", ledger="key.ledger", to="1.parquet")


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.large_binary()], ids=str)
def test_unsorted_ids_keep_their_type(place: Path, kind: Any) -> None:
    write(
        pa.array([f"{number * 7 % ROWS:03}" for number in range(ROWS)]).cast(pa.binary()).cast(kind), answer=answers()
    )
    release("0.5.parquet")
    relax("1.parquet")
    release("old.parquet", 1)
    assert filecmp.cmp("1.parquet", "old.parquet", shallow=False)


def test_unsorted_tables_and_many_batches(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = np.random.default_rng(3).permutation(ROWS)
    table = pa.table({"id": IDS["integers"](), "answer": answers()}).take(order)
    pa_parquet.write_table(table, "table.parquet", row_group_size=37)
    release("0.5.parquet")
    relax("1.parquet")
    release("old.parquet", 1)
    assert pa_parquet.read_table("1.parquet").equals(pa_parquet.read_table("old.parquet"))


@pytest.mark.parametrize("where", ["folder", "read-only", "write", "sync", "name", "sync of the folder"])
def test_a_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Where nothing can be kept, nothing is released; --no-snapshot is the way out."""
    write(answer=answers())
    if where == "folder":
        (place / "key.ledger.snapshots").write_text("in the way")
    elif where == "read-only":
        real_open = os.open
        monkeypatch.setattr(
            os,
            "open",
            lambda path, *how, **more: _full() if ".snapshot." in str(path) else real_open(path, *how, **more),
        )
    elif where == "write":
        monkeypatch.setattr(PartWriter, "_put", _refusing_put)
    elif where == "name":
        real_rename = Path.rename
        monkeypatch.setattr(
            Path, "rename", lambda self, to: _full() if to.suffix == ".snapshot" else real_rename(self, to)
        )
    elif where == "sync of the folder":
        monkeypatch.setattr(snapshot_folder, "sync_folder", lambda folder: _full())
    else:
        real = os.fsync
        monkeypatch.setattr(os, "fsync", lambda number: _full() if _is_snapshot(number) else real(number))
    with pytest.raises(SnapshotError, match="snapshots=False"):
        release("0.5.parquet")
    assert not Path("0.5.parquet").exists()
    assert not Path("key.ledger").exists() or spent() == 0
    monkeypatch.undo()
    monkeypatch.chdir(place)
    release("0.5.parquet", snapshots=False, budget=9)


def test_a_folder_that_was_there_stays(place: Path) -> None:
    (place / "vault").mkdir()
    write(answer=pa.array(["undeclared"] * ROWS))
    with pytest.raises(UndeclaredValueError):
        release("0.5.parquet", snapshots="vault")
    assert list((place / "vault").iterdir()) == []


def _refusing_put(self: Any, content: bytes) -> None:
    raise cannot_be_written(OSError(28, "No space left on device"))


def _full() -> None:
    raise OSError(28, "No space left on device")


def _is_snapshot(number: int) -> bool:
    return "snapshots" in str(Path(f"/proc/self/fd/{number}").resolve())


def test_only_what_was_charged_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is refused in the end leaves no snapshot behind."""
    write(answer=answers())
    release("0.5.parquet", budget="0.6")
    before: Sequence[Path] = sorted((place / "key.ledger.snapshots").iterdir())
    write(answer=answers(seed=7))
    with pytest.raises(rx.errors.BudgetExceededError):
        rx.release(
            "table.parquet", {"answer": VALUES}, id="id", epsilon=1, key="key", to="1.parquet", release="more",
            accept=True,
        )  # fmt: skip
    assert sorted((place / "key.ledger.snapshots").iterdir()) == before


def test_pandas_names_that_are_numbers(place: Path) -> None:
    frame = pd.DataFrame({0: range(ROWS), 1: answers().to_pylist()})
    rx.release(frame, {1: VALUES}, id=0, epsilon=0.5, key="key", release="study", budget=9, accept=True)
    relaxed = relax(None, frame="pandas")
    assert list(relaxed.columns) == ["0", "1"]
