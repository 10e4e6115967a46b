"""Growing tables: rows join and leave, changed rows are counted and refused, and every crash is safe."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import status_and_words
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.draw.stream import PathId
from relaxdp.ledger.ledger import Ledger
from relaxdp.table import growing, release
from relaxdp.table.formats import released
from relaxdp.table.release import TableDrawing

pytestmark = pytest.mark.long

ROWS = 3000
VALUES = ["flu", "covid", "none"]
TRUTH = np.random.default_rng(5).choice(VALUES, 2 * ROWS)
KEY = rx.Key.from_bytes(bytes(range(32)))


class Killed(BaseException):
    """What stands for a crash: nobody catches it."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    KEY.save(tmp_path / "key")
    write(range(ROWS))
    assert run("--budget", "5", target="first.parquet")[0] == 0
    return tmp_path


def write(ids: Any, changed: Any = (), name: str = "in.parquet") -> None:
    rows = np.array(list(ids))
    other = np.where(TRUTH[rows] == "flu", "none", "flu")
    truth = np.where(np.isin(rows, list(changed)), other, TRUTH[rows])
    pa_parquet.write_table(pa.table({"id": rows, "diagnosis": truth, "age": (rows * 7 % 90).astype(float)}), name)


def run(*words: str, target: str = "out.parquet", epsilon: str = "1", growing: bool = True, **more: str) -> Any:
    options = {"column": "diagnosis", "id": "id", "epsilon": epsilon, "key": "key", **more}
    if options["column"] == "diagnosis":
        options.setdefault("values", ",".join(VALUES))
    spoken = [text for name, value in options.items() for text in (f"--{name}", value)]
    flags = ["--growing"] if growing else []
    return status_and_words("release", "in.parquet", target, *spoken, *words, *flags)


def reports(name: str) -> dict[int, str]:
    out = pa_parquet.read_table(name)
    return dict(zip(out["id"].to_pylist(), out["diagnosis"].to_pylist(), strict=True))


def expected(ids: Any, epsilon: str = "1", epoch: int = 1, changed: Any = ()) -> dict[int, str]:
    rows = list(ids)
    truth = [("none" if TRUTH[row] == "flu" else "flu") if row in changed else str(TRUTH[row]) for row in rows]
    answers = rx.Categorical(VALUES)
    drawn = answers.release(truth, rows, key=KEY, epsilon=epsilon, release="in", attribute="diagnosis", epoch=epoch)
    return dict(zip(rows, drawn, strict=True))


def spent() -> str:
    shown = CliRunner().invoke(app, ["budget", "show", "--ledger", "key.ledger", "--json"])
    return str(json.loads(shown.output)["spent"])


def sidecars(place: Path) -> list[Path]:
    return sorted((place / "key.ledger.tags").iterdir())


def test_rows_join_and_leave_and_come_back(place: Path) -> None:
    write(range(100, 2 * ROWS))
    assert run(target="second.parquet", epsilon="1.5")[0] == 0
    assert reports("second.parquet") == expected(range(100, 2 * ROWS), "1.5")
    order = np.random.default_rng(1).permutation(2 * ROWS)
    write(order)
    assert "cost 0; spent 1.5" in run(target="third.parquet", epsilon="1.5")[1]
    assert reports("third.parquet") == expected(range(2 * ROWS), "1.5")
    assert list(reports("third.parquet")) == list(range(2 * ROWS))
    write(range(100), changed=[7])  # missing in the second release, and remembered nevertheless
    assert run(epsilon="1.5")[1].startswith("rows of 'diagnosis' of release 'in' changed since the last release.")


def test_changed_rows_are_counted_and_refused(place: Path) -> None:
    before, files = sorted(place.iterdir()), sidecars(place)
    write(range(ROWS + 50), changed=[3, 17, 2999])
    status, sentence = run(epsilon="2")
    assert status == 2
    assert sentence == (
        "rows of 'diagnosis' of release 'in' changed since the last release. Rows may join and leave, "
        "but a changed row shows that it changed. --force opens a new path, charged to everyone. Nothing was released."
    )
    assert sorted(place.iterdir()) == before
    assert sidecars(place) == files
    assert spent() == "1"


def test_forcing_opens_an_epoch_with_tags_of_its_own(place: Path) -> None:
    write(range(50, ROWS), changed=[60, 70])
    assert run(epsilon="2")[0] == 2
    assert "cost 2; spent 3" in run("--force", epsilon="2")[1]
    assert released(place / "out.parquet")[1].columns["diagnosis"].path == PathId("in", "diagnosis", 2)
    assert reports("out.parquet") == expected(range(50, ROWS), "2", 2, {60, 70})
    assert "cost 0; spent 3" in run(target="again.parquet", epsilon="2")[1]
    assert reports("again.parquet") == reports("out.parquet")
    write(range(50, ROWS), changed=[60])
    assert "'in', epoch 2 changed since the last release." in run(epsilon="2", target="more.parquet")[1]
    write([*range(10), 100], changed=[3])  # only in the first epoch, so a new row of the second
    assert run(epsilon="2", target="new.parquet")[0] == 0
    assert [file.name.split("-")[1] for file in sidecars(place)] == ["2"]


@pytest.mark.parametrize(
    "spelled",
    [lambda row: f"{row}.0", lambda row: f"{row:06d}", lambda row: f"{row} ", lambda row: f"P{row}"],
    ids=["as a float", "with zeros", "padded", "in capitals"],
)
def test_ids_that_are_all_written_in_another_way_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: Callable[[int], str]
) -> None:
    """Else everybody would have a second report at the level, of noise of its own, and nothing would be charged."""
    monkeypatch.chdir(tmp_path)
    KEY.save(tmp_path / "key")

    def spell(spelling: Callable[[int], str], rows: Any = range(ROWS)) -> None:
        truth = TRUTH[list(rows)]
        pa_parquet.write_table(pa.table({"id": [spelling(row) for row in rows], "diagnosis": truth}), "in.parquet")

    usual: Callable[[int], str] = (lambda row: f"p{row}") if spelled(1) == "P1" else str
    spell(usual)
    assert run("--budget", "3", target="first.parquet")[0] == 0
    spell(spelled)
    status, sentence = run(target="second.parquet")
    assert status == 2
    assert sentence.startswith("no id of this table was released before as 'diagnosis' of release 'in'.")
    assert spent() == "1"
    assert "cost 1; spent 2" in run("--force", target="forced.parquet")[1]  # another path, and it is paid for
    assert "cost 0; spent 2" in run(target="again.parquet")[1]
    spell(spelled, range(ROWS - 1, ROWS + 50))  # one earlier row will do
    assert "cost 0; spent 2" in run(target="grown.parquet")[1]


def test_an_as_of_date_is_rejected_for_a_growing_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of such a release were never compared again, so that a table with respelled ids was drawn twice."""
    monkeypatch.chdir(tmp_path)
    KEY.save(tmp_path / "key")
    write(range(ROWS))
    status, message = run("--as-of", "2026-01-01", "--budget", "3")
    assert status == 2
    assert message == (
        "a growing table cannot have an as-of date. Its rows come from different days. Leave the date out. "
        "Nothing was released."
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.parquet", "key"]
    with pytest.raises(rx.errors.OptionError, match="as-of date"):
        rx.release(
            "in.parquet", {"diagnosis": VALUES}, id="id", epsilon=1, key="key", to="out.parquet", budget=3,
            growing=True, as_of="2026-01-01",
        )  # fmt: skip


def test_rows_are_compared_although_the_ledger_holds_an_as_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such ledgers exist: the date was accepted once."""
    monkeypatch.chdir(tmp_path)
    KEY.save(tmp_path / "key")
    write(range(ROWS))
    with monkeypatch.context() as patch:
        patch.setattr("relaxdp.publication.transaction._as_of", lambda *_: "2026-01-01")
        assert run("--budget", "3", target="first.parquet")[0] == 0
    write(range(ROWS), changed=[7])
    assert run(target="second.parquet")[1].startswith("rows of 'diagnosis' of release 'in' changed")
    write(range(ROWS, 2 * ROWS))
    assert run(target="third.parquet")[1].startswith("no id of this table was released before")
    write(range(ROWS + 1))
    assert "cost 0; spent 1" in run(target="fourth.parquet")[1]


def test_tags_show_neither_ids_nor_truths_and_are_private(place: Path) -> None:
    (file,) = sidecars(place)
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0
    kept = pa_parquet.read_table(file)
    assert kept.column_names == ["id_tag", "row_tag"]
    id_tags, row_tags = (column.to_numpy() for column in kept.columns)
    assert len(kept) == ROWS
    assert (np.diff(id_tags) > 0).all()  # in their own order, so that of the rows is gone
    assert len(np.unique(row_tags)) == ROWS
    assert not (id_tags == row_tags).any()
    for column in (id_tags, row_tags):  # uniform: 16 equal parts, six standard deviations
        counts = np.bincount((column >> np.uint64(60)).astype(int), minlength=16)
        assert (abs(counts - ROWS / 16) < 6 * (ROWS / 16) ** 0.5).all()


def test_numbers_and_several_columns_grow_too(place: Path) -> None:
    words = ["--range", "0", "100"]
    assert run(*words, column="age", release="ages")[0] == 0
    write(range(ROWS + 9))
    assert run(*words, column="age", release="ages", target="more.parquet")[0] == 0
    table = pa_parquet.read_table("in.parquet")
    ages = table["age"].to_numpy().copy()
    ages[5] += 1
    pa_parquet.write_table(table.set_column(2, "age", pa.array(ages)), "in.parquet")
    both = ["--column", "diagnosis", "--values", "diagnosis=" + ",".join(VALUES), "--range", "0", "100"]
    assert run(*words, column="age", release="ages", target="last.parquet")[1].startswith(
        "rows of 'age' of release 'ages' changed since the last release."
    )
    assert run(*both, column="age", release="in", target="both.parquet")[0] == 0
    ages[6] += 1
    pa_parquet.write_table(table.set_column(2, "age", pa.array(ages)), "in.parquet")
    assert (
        "rows of 'age' of release 'in' changed since the last release."
        in run(*both, column="age", release="in", target="no.parquet")[1]
    )


def switched(place: Path) -> dict[str, Any]:
    return {"growing": False}


def forced_switch(place: Path) -> dict[str, Any]:
    return {"growing": False, "words": ["--force"]}


def began_without(place: Path) -> dict[str, Any]:
    run(growing=False, release="plain", target="plain.parquet")
    return {"release": "plain", "target": "out2.parquet"}


def no_ledger(place: Path) -> dict[str, Any]:
    return {"words": ["--no-ledger"]}


def lost(place: Path) -> dict[str, Any]:
    sidecars(place)[0].unlink()
    return {}


def damaged(place: Path) -> dict[str, Any]:
    (file,) = sidecars(place)
    data = bytearray(file.read_bytes())
    data[1000] ^= 1
    file.write_bytes(data)
    return {}


def repeated(place: Path) -> dict[str, Any]:
    write([*range(20), 7])
    return {}


def unknown_value(place: Path) -> dict[str, Any]:
    return {"values": "flu,covid", "release": "other"}


def missing_id(place: Path) -> dict[str, Any]:
    table = pa.table({"id": [1, None, 3], "diagnosis": ["flu"] * 3})
    pa_parquet.write_table(table, "in.parquet")
    return {}


def unchanged(place: Path) -> dict[str, Any]:
    return {"words": ["--force"]}


def too_much(place: Path) -> dict[str, Any]:
    return {"epsilon": "9"}


@pytest.mark.parametrize(
    ("prepare", "part"),
    [
        (switched, "was released as a growing table, and is continued as one only"),
        (forced_switch, "was released as a growing table, and is continued as one only"),
        (began_without, "a table that does not grow is recorded, and this is a growing one"),
        (no_ledger, "tags of the rows lie beside the ledger, so it takes one"),
        (lost, "the row tags of 'diagnosis' of release 'in' are missing, damaged or not those"),
        (damaged, "the row tags of 'diagnosis' of release 'in' are missing, damaged or not those"),
        (repeated, "an id occurs in two rows"),
        (unknown_value, "is not one of the 2 declared values"),
        (missing_id, "row 2: the id is missing"),
        (unchanged, "nothing differs from what was released before"),
        (too_much, "budget exceeded: 4 left of 5, this release needs 8"),
    ],
)
def test_refusals_charge_and_write_nothing(place: Path, prepare: Callable[[Path], dict[str, Any]], part: str) -> None:
    arguments = {"epsilon": "2", **prepare(place)}
    words = arguments.pop("words", [])
    before, cost = sorted(place.rglob("*")), spent()
    status, sentence = run(*words, **arguments)
    assert status == 2
    assert part in sentence
    assert "Nothing was released" in sentence
    assert sorted(place.rglob("*")) == before
    assert spent() == cost


def test_lost_tags_can_be_given_up(place: Path) -> None:
    lost(place)
    assert "cost 2; spent 3" in run("--force", epsilon="2")[1]
    assert "cost 0; spent 3" in run(epsilon="2", target="again.parquet")[1]


def leave(writer: Any) -> None:
    """Close a file of tags without removing it."""
    with contextlib.suppress(Exception):
        writer._writer.close()
    writer._file.close()


# Every place at which a release of a growing table can be killed, and whether the ledger knows of it then.
POINTS = [
    (growing, "_tag", "before", False),
    (growing, "_tag", "after", False),
    (growing, "merge", "before", False),
    (growing.TagWriter, "close", "after", False),
    (growing._Tags, "_merge", "after", False),
    (TableDrawing, "stage", "before", False),
    (TableDrawing, "stage", "after", False),
    (Ledger, "charge_all", "before", False),
    (Ledger, "charge_all", "after", True),
    (release, "put_in_place", "before", True),
]


@pytest.mark.parametrize(("owner", "name", "when", "committed"), POINTS)
@pytest.mark.parametrize("swept", [pytest.param(True, id="raised"), pytest.param(False, id="killed")])
def test_a_crash_anywhere_is_safe(
    place: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, when: str, committed: bool, swept: bool
) -> None:
    """Killed means that nothing was cleaned up either. Then the same command gives the same file, for the same cost."""
    real = getattr(owner, name)

    def crash(*arguments: Any, **named: Any) -> Any:
        if when == "after":
            real(*arguments, **named)
        raise Killed

    write(range(200, ROWS + 200))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, crash)
        if not swept:
            patch.setattr(growing._Tags, "sweep", lambda *_: None)
            patch.setattr(growing.TagWriter, "abandon", leave)
        with pytest.raises(Killed):
            run(epsilon="2")
    assert spent() == ("2" if committed else "1")
    assert not (place / "out.parquet").exists()
    # The rows of the crashed run count exactly if it was charged.
    write(range(ROWS, ROWS + 200), changed=[ROWS + 1])
    if committed:
        assert "since the last release. Rows may" in run(epsilon="2")[1]
    write(range(200, ROWS + 200))
    status, output = run(epsilon="2")
    assert status == 0
    assert f"cost {0 if committed else 1}; spent 2" in output
    assert reports("out.parquet") == expected(range(200, ROWS + 200), "2")
    assert len(sidecars(place)) == 1
    write(range(100), changed=[3])
    assert (
        "rows of 'diagnosis' of release 'in' changed since the last release."
        in run(epsilon="2", target="last.parquet")[1]
    )


def test_a_table_that_is_written_to_meanwhile(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TableDrawing.stage

    def meanwhile(*arguments: Any) -> Any:
        write(range(ROWS), changed=[3])
        return real(*arguments)

    monkeypatch.setattr(TableDrawing, "stage", meanwhile)
    assert run(epsilon="2") == (2, "the table changed while it was read. Nothing was released.")
    assert spent() == "1"


def test_merging_across_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs that are cut apart by the border of a batch are still compared."""
    monkeypatch.setattr(growing, "BATCH_ROWS", 3)
    rng = np.random.default_rng(2)
    for round_number in range(20):
        ids = rng.choice(40, 25, replace=False).astype(np.uint64)
        old, fresh = np.sort(ids[:15]), ids[5:]
        rows = rng.integers(0, 2, 40).astype(np.uint64)
        other = np.where(rng.random(40) < 0.2, 1 - rows, rows).astype(np.uint64)
        paths = [tmp_path / f"{round_number}-{part}" for part in range(3)]
        for path, chosen, tag in ((paths[0], old, rows), (paths[1], fresh, other)):
            writer = growing.TagWriter(path)
            writer.write(chosen, tag[chosen.astype(int)])
            writer.close()
        writer = growing.TagWriter(paths[2])
        both = np.intersect1d(old, fresh).astype(int)
        changed = int(np.count_nonzero(rows[both] != other[both]))
        assert growing.merge(paths[0], paths[1], writer, 1) == (len(both), changed)
        assert writer.close() == growing.digest_of(paths[2])
        assert pa_parquet.read_table(paths[2])["id_tag"].to_pylist() == sorted({*old.tolist(), *fresh.tolist()})
