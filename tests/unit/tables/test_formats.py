"""Released files of every kind: the same reports and descriptions, and nothing else is left."""

from __future__ import annotations

import gzip
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE
from tests.refusals import refused
from tests.released import KEY, open_vault

import relaxdp as rx
from relaxdp.errors import MetadataError, RelaxdpError, TableFileError
from relaxdp.mechanisms.numeric import RangeMechanism
from relaxdp.tables.files import TableFile
from relaxdp.tables.released_files import open_released_file

VALUES = ["flu", "covid", "none"]
ROWS = 300
TABLE: dict[str, Any] = {
    "id": [(7 * row) % ROWS for row in range(ROWS)],
    "illness": [VALUES[row % 3] for row in range(ROWS)],
    "region": [f'no "{row}"\t;,' for row in range(ROWS)],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pa_parquet.write_table(pa.table(TABLE), "in.parquet")
    return tmp_path


def release(source: Any, output: str, *, name: str = "r", **more: Any) -> rx.Release:
    asked: Any = {"id": "id", "epsilon": 1, "passthrough": ["region"], "planned_epsilon": 9, **more}
    columns = asked.pop("columns", {"illness": rx.Categorical(VALUES)})
    return open_vault(Path().absolute()).release(source, columns, name=name, output=output, **asked)


def rows_of(path: str) -> dict[str, list[Any]]:
    found = TableFile(Path(path))
    rows: dict[str, list[Any]] = pa.Table.from_batches(found.batches(found.schema.names)).to_pydict()
    return rows


def expected(*, text_ids: bool = False) -> dict[str, list[Any]]:
    ids: list[Any] = sorted(map(str, TABLE["id"])) if text_ids else sorted(TABLE["id"])
    places = [TABLE["id"].index(int(each)) for each in ids]
    where: Any = {"key": KEY, "epsilon": 1, "name": "r", "column": "illness"}
    reports = rx.Categorical(VALUES).release([TABLE["illness"][each] for each in places], ids, **where)
    return {"id": ids, "illness": reports, "region": [TABLE["region"][each] for each in places]}


def write(name: str) -> None:
    """Write a table that we did not write ourselves."""
    compression = {".gz": "gzip", ".zst": "zstd"}.get(Path(name).suffix)
    with pa.output_stream(name, compression=compression) as stream:
        pa_csv.write_csv(pa.table(TABLE), stream, pa_csv.WriteOptions(delimiter="\t" if ".tsv" in name else ","))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.zst"])
def test_text_of_every_kind_comes_and_goes(place: Path, name: str) -> None:
    """Every id is text."""
    write(name)
    release(name, f"out-{name}")
    assert rows_of(f"out-{name}") == expected(text_ids=True)
    assert open_released_file(Path(f"out-{name}"))[1].rows == ROWS
    open_vault(place).relax("r", 1, output=f"again-{name}")
    assert Path(f"again-{name}").read_bytes() == Path(f"out-{name}").read_bytes()
    assert rx.estimate(f"out-{name}").value.shape == (3,)
    with refused(MetadataError):
        release(f"out-{name}", "twice.parquet", name="twice")
    made = {f"{each}-{name}{ending}" for each in ("out", "again") for ending in ("", ".relaxdp.json")}
    assert {each.name for each in place.iterdir()} == {"fixed.key", "study.vault", "in.parquet", name, *made}
    assert open_vault(place).check([f"out-{name}", f"again-{name}"]).is_good


def test_compressed_files_are_what_other_programs_read(place: Path) -> None:
    release("in.parquet", "out.csv.gz")
    assert gzip.decompress(Path("out.csv.gz").read_bytes()).startswith(b'"id","illness","region"\n0,')
    release("in.parquet", "out.csv.zst")
    text = pa.input_stream("out.csv.zst", compression="zstd").read()
    assert text == gzip.decompress(Path("out.csv.gz").read_bytes())
    assert pa_csv.read_csv("out.csv.gz").to_pydict() == expected()


MECHANISMS: dict[str, Any] = {
    "integers": rx.Categorical([1, 2]),
    "numbers": rx.Categorical([1.0, 2.5]),
    "texts": rx.Categorical(["1", "2", None]),
    "OLH": rx.LocalHash(["1", "2"], buckets=2),
    "OUE": rx.Unary(["1", "2"]),
    "numeric": rx.Numeric(0, 3),
    "missing": rx.Numeric(0, 3, missing=True),
    "wave": rx.SquareWave(0, 3, bins=8, window=4),
}


@pytest.mark.filterwarnings("ignore::relaxdp.errors.DeterminedColumnWarning")  # by the way the rows are made
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_estimated_and_checked_the_same_from_csv(place: Path, name: str) -> None:
    mechanism = MECHANISMS[name]
    declared = [1, 2.5] if isinstance(mechanism, RangeMechanism) else list(mechanism.labels)
    if name == "missing":
        declared = [1, None]
    truth = [declared[row % len(declared)] for row in range(ROWS)]
    table = pa.table({"id": range(ROWS), "illness": truth, "region": truth})
    for ending in ("parquet", "csv"):
        release(table, f"out.{ending}", epsilon=2, columns={"illness": mechanism})
    one, two = rx.estimate("out.parquet"), rx.estimate("out.csv")
    assert (one.value == two.value).all()
    assert open_vault(place).check(["out.parquet", "out.csv"]).problems == []


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", ["integer", "text", "uuid"])
def test_ids_of_every_type_are_written_relaxed_and_checked(place: Path, kind: str, ending: str) -> None:
    ids: dict[str, Any] = {
        "integer": pa.array(TABLE["id"], pa.int32()),
        "text": pa.array([f"p{row}" for row in TABLE["id"]]),
        "uuid": pa.array([uuid.UUID(int=row * 2**99 + 5).bytes for row in TABLE["id"]], pa.uuid()),
    }
    table = pa.table({**TABLE, "id": ids[kind]})
    release(table, f"one.{ending}")
    relaxed = open_vault(place).relax("r", 1, output=f"two.{ending}")
    assert Path(f"one.{ending}").exists()
    assert rows_of(f"two.{ending}") == rows_of(f"one.{ending}")
    assert relaxed.rows == ROWS
    assert open_vault(place).check([f"one.{ending}", f"two.{ending}"]).problems == []


def test_what_cannot_be_text(place: Path) -> None:
    """Nothing is charged, and nothing is left."""
    for name, column in {"list": pa.array([[row] for row in range(ROWS)]), "bytes": pa.array([b"\xff"] * ROWS)}.items():
        table = pa.table({**TABLE, "region": column})
        with refused(TableFileError):
            release(table, "out.csv")
        open_vault(place).release(
            table, {"illness": VALUES}, id="id", epsilon=1, name=name, passthrough=["region"]
        )  # fmt: skip
        with refused(TableFileError):
            open_vault(place).relax(name, 2, output="out.csv")
    assert open_vault(place).spent == 2
    assert {each.name for each in place.iterdir()} == {"fixed.key", "study.vault", "in.parquet"}


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.csv.gz", "out.csv.zst"])
def test_a_full_disk_is_one_error(place: Path, name: str) -> None:
    """Arrow's streams would complain as well when they are forgotten, which is before the process ends."""
    rows = {"id": range(200_000), "illness": ["flu", "none"] * 100_000, "region": [""] * 200_000}
    pa_parquet.write_table(pa.table(rows), "in.parquet")
    open_vault(place)
    script = (
        "import resource, sys\n"
        "import relaxdp as rx\n"
        "import relaxdp.tables.release_output as output\n"
        "start = output.ReleaseWriter.__init__\n"
        "def limited(*arguments):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "    start(*arguments)\n"
        "output.ReleaseWriter.__init__ = limited\n"
        "try:\n"
        "    asked = {'id': 'id', 'epsilon': 1, 'name': 'r'}\n"
        f"    rx.Vault('study.vault').release('in.parquet', {{'illness': {VALUES!r}}}, output={name!r}, **asked)\n"
        "except (rx.errors.TableFileError, rx.errors.VaultError) as problem:\n"
        "    print(problem.sentence)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.endswith("cannot be written: File too large.\n")
    assert done.stderr == ""
    assert {each.name for each in place.iterdir()} == {"fixed.key", "study.vault", "in.parquet"}
    assert list(Path("study.vault/snapshots").iterdir()) == []
    assert open_vault(place).spent == 0


def test_a_description_is_found_where_a_file_was_compressed_or_joined_since(place: Path) -> None:
    """Reports are not taken for true values."""
    release("in.parquet", "o.csv.gz")
    (place / "o.csv").write_bytes(gzip.decompress((place / "o.csv.gz").read_bytes()))
    with refused(MetadataError):
        release("o.csv", "again.csv", name="s")
    (place / "folder").mkdir()
    release("in.parquet", "folder/2.parquet")
    pa_parquet.write_table(pa.table(TABLE), "folder/1.parquet")
    with pytest.raises(RelaxdpError):
        release("folder", "again.parquet", name="s")
