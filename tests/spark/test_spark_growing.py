"""Growing tables on Spark: the reports, the tags and the refusals of the local engine, and both may take turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ObjectIdError, PathChangedError, TableChangedError, TableFileError, UndeclaredValueError
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.table.spark import release as spark_release
from relaxdp.table.spark.release import SparkFolderDrawing, SparkFrameDrawing
from relaxdp.table.spark.worker import Summary

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")]

ROWS = 2_000
SAID: Any = {"answer": ["no", "yes"], "age": rx.Numeric(0, 100)}
TRUTH = np.random.default_rng(3).choice(["no", "yes"], 2 * ROWS)

Release = Callable[..., Any]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the same key twice, each with a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        rx.Key.from_bytes(bytes(range(32))).save(tmp_path / name / "key")
    return tmp_path


def write(ids: Any, changed: Any = (), group: int = ROWS) -> None:
    rows = np.array(list(ids))
    truth = np.where(np.isin(rows, list(changed)), np.where(TRUTH[rows] == "no", "yes", "no"), TRUTH[rows])
    table = pa.table({"id": rows, "answer": truth, "age": (rows % 90).astype(float)})
    pa_parquet.write_table(table, "in.parquet", row_group_size=group)


def release(engine: str, target: str, epsilon: Any = 1, **more: Any) -> Any:
    """Release as one of the engines does; Java has another working folder, so names are whole."""
    whole = Path.cwd() / ("here" if engine == "local" else "there")
    options: Any = {
        "key": whole / "key",
        "engine": engine,
        "growing": True,
        "budget": 9,
        "new_ledger": "a copy",
        **more,
    }
    return rx.release(str(whole.parent / "in.parquet"), SAID, id="id", epsilon=epsilon, to=whole / target, **options)


def both(target: str, epsilon: Any = 1, **more: Any) -> None:
    """Release on both engines, and compare what leaves, what it costs and what is remembered of the rows."""
    one, two = release("local", f"{target}.parquet", epsilon, **more), release("spark", target, epsilon, **more)
    assert pa_parquet.read_table(f"there/{target}").equals(pa_parquet.read_table(f"here/{target}.parquet"))
    assert [(charge.path, charge.cost) for charge in one.charges] == [
        (charge.path, charge.cost) for charge in two.charges
    ]
    assert tags("here") == tags("there")


def tags(name: str) -> list[str]:
    """The names of the files of tags, which are named by the digests of their rows."""
    return sorted(file.name for file in Path(name, "key.ledger.tags").iterdir())


def both_refuse(kind: type[Any], **fields: Any) -> None:
    for engine in ("local", "spark"):
        with refused(kind, **fields):
            release(engine, "refused" + (".parquet" if engine == "local" else ""), 2)
    assert tags("here") == tags("there")
    assert sorted(file.name for file in Path("there").iterdir() if "refused" in file.name) == []


def test_rows_join_and_leave_as_on_one_machine(spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_release, "_FETCHED", 900)  # so that tags come in several parts
    write(range(ROWS), group=500)  # in order, so that tasks read the file themselves
    both("first")
    write(np.random.default_rng(1).permutation(np.arange(100, 2 * ROWS)))  # Spark sorts
    both("second", 1.5)
    before = tags("there")
    write(range(100), changed=[7])  # these are not in the second release, and are remembered nevertheless
    both_refuse(TableChangedError)
    assert tags("there") == before
    with refused(PathChangedError):
        release("spark", "frozen", 2, growing=False)
    both("forced", 2, force=True)


def test_what_is_refused_is_refused_as_on_one_machine(spark: Any, place: Path) -> None:
    write(range(ROWS))
    both("first")
    write([*range(ROWS), 5])
    both_refuse(ObjectIdError, says="an id occurs in two rows")
    write(range(ROWS))
    table = pa_parquet.read_table("in.parquet")
    pa_parquet.write_table(table.set_column(1, "answer", pa.array(["a secret"] * ROWS)), "in.parquet")
    both_refuse(UndeclaredValueError, row=1)
    pa_parquet.write_table(table.slice(0, 0), "in.parquet")
    both_refuse(TableFileError, says="the table has no rows")
    for name in ("here", "there"):
        next(Path(name, "key.ledger.tags").iterdir()).unlink()
    write(range(ROWS))
    both_refuse(TableFileError, says="the row tags of {released} are missing")


def test_engines_and_frames_go_on_with_one_another(spark: Any, place: Path) -> None:
    write(range(ROWS))
    release("local", "first.parquet")
    write(range(50, ROWS + 50))
    frame = spark.read.parquet(str(place / "in.parquet"))
    where: Any = {"id": "id", "key": rx.Key.load("here/key"), "release": "in", "growing": True}
    released = rx.release(frame, SAID, epsilon=2, **where)
    release("local", "second.parquet", 2)
    kept = pa_parquet.read_table("here/second.parquet")
    assert [tuple(row) for row in sorted(released.collect())] == list(zip(*kept.to_pydict().values(), strict=True))
    write(range(ROWS, ROWS + 50), changed=[ROWS + 1])  # rows that the frame brought
    with refused(TableChangedError):
        release("local", "third.parquet", 2)
    with refused(TableChangedError):
        rx.release(spark.read.parquet(str(place / "in.parquet")), SAID, epsilon=2, **where)


def test_tags_of_other_rows_than_were_told_of_are_refused(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lost worker had tagged is read again, and may be other rows by then."""
    honest = Summary.loads_all.__func__  # type: ignore[attr-defined]

    def told(texts: Any) -> Any:
        return [replace(each, prints=("7" + each.prints[0], *each.prints[1:])) for each in honest(Summary, texts)]

    write(range(ROWS))
    monkeypatch.setattr(Summary, "loads_all", told)
    with refused(TableFileError, says="the table changed while it was read"):
        release("spark", "out")
    assert tags("there") == []


@pytest.mark.parametrize("drawing", [SparkFolderDrawing, SparkFrameDrawing])
def test_a_table_that_is_written_to_meanwhile(
    spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch, drawing: Any
) -> None:
    """Rows are tagged and then drawn: both times they must be the same ones."""
    real = drawing.stage

    def meanwhile(self: Any, *arguments: Any) -> Any:
        write(range(ROWS), changed=[3])
        self._frame = spark.read.parquet(str(place / "in.parquet"))
        return real(self, *arguments)

    write(np.arange(ROWS)[::-1])
    monkeypatch.setattr(drawing, "stage", meanwhile)
    with refused(TableFileError, says="the table changed while it was read"):
        if drawing is SparkFolderDrawing:
            release("spark", "out")
        else:
            frame = spark.read.parquet(str(place / "in.parquet"))
            where: Any = {"key": rx.Key.load("there/key"), "release": "in", "growing": True, "budget": 9}
            rx.release(frame, SAID, id="id", epsilon=1, **where)
    with Ledger.open("there/key.ledger") as ledger:
        assert Subject.population("everyone") not in ledger.subjects()
    assert tags("there") == []
