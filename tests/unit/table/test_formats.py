"""Files of every kind, in and out: the same reports, the same descriptions, and nothing of a value in a refusal."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.patience import PATIENCE
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import DescriptionError, OptionError, RelaxdpError, TableDamagedError, TableFileError
from relaxdp.table.arriving import name_of
from relaxdp.table.formats import Input, released
from relaxdp.table.kinds import stem_of

KEY = rx.Key.from_bytes(bytes(range(32)))
VALUES = ["flu", "covid", "none"]
SECRET = "secret-illness"
ROWS = [{"id": number, "illness": VALUES[number % 3], "region": f'no "{number}"\t;,'} for number in (5, 3, 4, 1, 2)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    KEY.save("key")
    pa_parquet.write_table(pa.Table.from_pylist(ROWS), "in.parquet")
    return tmp_path


def release(source: str, to: str, **options: Any) -> Any:
    said: Any = {"id": "id", "epsilon": 1, "key": KEY, "release": "r", "ledger": None, "keep": ["region"], **options}
    return rx.release(source, {"illness": VALUES}, to=to, **said)


def rows_of(path: str) -> list[dict[str, Any]]:
    found = Input(Path(path))
    rows: list[dict[str, Any]] = pa.Table.from_batches(found.batches(found.schema.names)).to_pylist()
    return rows


def expected(text_ids: bool = False) -> list[dict[str, Any]]:
    ids: list[Any] = sorted(str(row["id"]) if text_ids else row["id"] for row in ROWS)
    truth = {str(row["id"]): row for row in ROWS}
    reports = rx.Categorical(VALUES).release(
        [truth[str(each)]["illness"] for each in ids], ids, key=KEY, epsilon=1, release="r", attribute="illness"
    )
    return [
        {"id": each, "illness": report, "region": truth[str(each)]["region"]}
        for each, report in zip(ids, reports, strict=True)
    ]


def write(name: str, rows: list[dict[str, Any]] = ROWS) -> None:
    """Write a table that we did not write ourselves."""
    out = io.BytesIO()
    pa_csv.write_csv(pa.Table.from_pylist(rows), out, pa_csv.WriteOptions(delimiter="\t" if ".tsv" in name else ","))
    content = out.getvalue()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    elif name.endswith(".zst"):
        content = pa.Codec("zstd").compress(content, asbytes=True)
    Path(name).write_bytes(content)


TEXTS = ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.zst"]


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_every_kind_comes_and_goes(place: Path, name: str) -> None:
    """Every id is text."""
    write(name)
    release(name, f"out-{name}")
    assert rows_of(f"out-{name}") == expected(text_ids=True)
    # The description lies beside it, and both are what the same release writes again.
    assert released(Path(f"out-{name}"))[1].rows == len(ROWS)
    release(name, f"again-{name}")
    assert Path(f"again-{name}").read_bytes() == Path(f"out-{name}").read_bytes()
    assert rx.estimate(f"out-{name}").value.shape == (3,)
    with refused(DescriptionError):  # reports are not taken for a truth
        release(f"out-{name}", "twice.parquet")
    assert sorted(map(str, place.iterdir())) == sorted(
        str(place / each)
        for each in ("key", "in.parquet", name, f"out-{name}", f"out-{name}.relaxdp.json", f"again-{name}",
                     f"again-{name}.relaxdp.json")
    )  # fmt: skip


def test_compressed_files_are_what_other_programs_read(place: Path) -> None:
    release("in.parquet", "out.csv.gz")
    assert gzip.decompress(Path("out.csv.gz").read_bytes()).startswith(b'"id","illness","region"\n1,')
    release("in.parquet", "out.csv.zst")
    text = pa.input_stream("out.csv.zst", compression="zstd").read()
    assert text == gzip.decompress(Path("out.csv.gz").read_bytes())


@pytest.mark.parametrize("mechanism", [
    rx.Categorical([1, 2]), rx.Categorical([1.0, 2.5]), rx.mechanism(["1", "2"], encoding="local-hash", buckets=2),
    rx.mechanism(["1", "2"], encoding="unary-optimised"), rx.Numeric(0, 3),
])  # fmt: skip
def test_every_encoding_is_estimated_the_same_from_csv(place: Path, mechanism: Any) -> None:
    encoding = mechanism.encoding
    truth = [1, 2.5] * 20 if encoding.domain == "range" else list(encoding.labels) * 20
    pa_parquet.write_table(pa.table({"id": range(40), "illness": truth}), "own.parquet")
    options: Any = {"id": "id", "epsilon": 2, "key": KEY, "release": "r", "ledger": None}
    for name in ("out.parquet", "out.csv"):
        rx.release("own.parquet", {"illness": mechanism}, to=name, **options)
    one, two = rx.estimate("out.parquet"), rx.estimate("out.csv")
    assert (one.value == two.value).all()


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zst"])
def test_a_compressed_file_that_is_cut_off_is_damaged(place: Path, name: str) -> None:
    write(name)
    Path(name).write_bytes(Path(name).read_bytes()[:-30])
    with refused(TableDamagedError):
        release(name, "out.parquet")


def test_a_row_of_compressed_tabs_with_other_fields_is_named(place: Path) -> None:
    Path("in.tsv.gz").write_bytes(gzip.compress(f"id\tillness\n1\tflu\n2\t{SECRET}\tmore\n".encode()))
    with refused(TableFileError, row=2, fields=2):
        release("in.tsv.gz", "out.parquet", keep=())


@pytest.mark.long
@pytest.mark.parametrize("name", ["out.csv.gz", "out.csv.zst"])
def test_a_full_disk_is_one_sentence_for_compressed_text_too(place: Path, name: str) -> None:
    """Arrow's streams would complain beside it when they are forgotten, which is before the process ends."""
    rows = {"id": range(200_000), "illness": ["flu", "none"] * 100_000}
    pa_parquet.write_table(pa.table(rows), "in.parquet")
    script = (
        "import resource, sys\n"
        "import relaxdp as rx\n"
        "import relaxdp.table.output as output\n"
        "start = output.Output.__init__\n"
        "def limited(*arguments):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))\n"
        "    start(*arguments)\n"
        "output.Output.__init__ = limited\n"
        "try:\n"
        "    said = {'id': 'id', 'epsilon': 1, 'key': 'key', 'ledger': None}\n"
        f"    rx.release('in.parquet', {{'illness': {VALUES!r}}}, to={name!r}, **said)\n"
        "except rx.errors.TableFileError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (done.stdout, done.stderr) == (f"{name!r} cannot be written: File too large. Nothing was released.\n", "")
    assert sorted(each.name for each in place.iterdir()) == ["in.parquet", "key"]


@pytest.mark.parametrize("mark", ["", "ab", '"', "\n", "x", "ü"])
def test_what_cannot_separate_is_refused(place: Path, mark: str) -> None:
    write("t.csv")
    with refused(TableFileError, says="one character"):
        release("t.csv", "out.csv", separator=mark)
    with refused(TableFileError, says="something separates"):
        release("in.parquet", "out.csv", separator=";")
    with refused(OptionError, option="separator"):
        rx.release(pa.table({"id": [1]}), {"id": ["a", "b"]}, id="id", epsilon=1, key=KEY, release="r", separator=";")


def test_a_folder_of_text_files_is_no_table(place: Path) -> None:
    Path("folder").mkdir()
    write("folder/a.csv")
    with refused(TableFileError, says="has no Parquet files"):
        release("folder", "out.csv")
    assert stem_of(Path("patients.csv.gz")) == stem_of(Path("patients.csv")) == "patients"


@pytest.mark.parametrize("lost", ["id", "illness"])
def test_a_folder_of_parquet_files_with_other_columns_is_refused(place: Path, lost: str) -> None:
    table = pa.table({"id": [1, 2], "illness": ["flu", "covid"]})
    Path("folder").mkdir()
    pa_parquet.write_table(table, "folder/a.parquet")
    pa_parquet.write_table(table.rename_columns({lost: "other"}), "folder/b.parquet")
    with refused(TableFileError, says="other columns"):
        release("folder", "out.csv", keep=())


# Addresses.


@pytest.fixture
def store(place: Path) -> Iterator[str]:
    """A store that speaks as much of S3 as it takes to read a file."""

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(with_content=False)

        def do_GET(self) -> None:
            self.answer(with_content=True)

        def answer(self, *, with_content: bool) -> None:
            file = place / "bucket" / Path(self.path.partition("?")[0]).name
            content = file.read_bytes() if file.is_file() else None
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            part = content if content is None or asked is None else content[int(asked[1]) : int(asked[2]) + 1]
            self.send_response(404 if part is None else 200 if asked is None else 206)
            self.send_header("Content-Length", str(len(part or b"")))
            self.end_headers()
            if with_content and part:
                self.wfile.write(part)

        def log_message(self, *words: Any) -> None:
            pass

    (place / "bucket").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        where = f"127.0.0.1%3A{server.server_port}"
        yield f"s3://me:{SECRET}@bucket/{{}}?scheme=http&endpoint_override={where}&region=eu-central-1"
        server.shutdown()
        thread.join()


def test_an_address_is_read_like_a_file(store: str) -> None:
    write("bucket/patients.csv")
    release(store.format("patients.csv"), "out.csv")
    assert rows_of("out.csv") == expected(text_ids=True)
    for name in ("out.csv", "out.csv.relaxdp.json"):
        Path(name).rename(f"bucket/{name}")
    assert rx.estimate(store.format("out.csv")).value.shape == (3,)
    with refused(DescriptionError):
        release(store.format("out.csv"), "twice.csv")


def test_an_address_that_cannot_be_read_is_refused_without_its_secrets(store: str) -> None:
    for address in (store.format("none.csv"), f"https://me:{SECRET}@localhost/none.csv", "file:///nowhere/none.csv"):
        with refused(TableFileError, name="none.csv", scheme=address.partition(":")[0]) as caught:
            release(address, "out.csv")
        assert SECRET not in f"{caught.value!r}{caught.value.fields}{caught.value.__context__!r}"
    with refused(OptionError, option="to"):
        release("in.parquet", "s3://bucket/out.parquet")


def test_an_address_names_a_file_in_its_own_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is quoted in an address may be a slash: nothing is written, or removed, outside of the private folder."""
    (place / "sub").mkdir()
    (place / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place / "tmp"))
    pa_parquet.write_table(pa.table({"id": [1, 2], "illness": VALUES[:2]}), "truth.parquet")
    before = (place / "truth.parquet").read_bytes()
    said: Any = {"id": "id", "epsilon": 1, "key": KEY, "release": "r", "ledger": None}
    for number, address in enumerate((
        f"file://{place}/sub/..%2Ftruth.parquet", f"file:///{str(place).replace('/', '%2F')}%2Ftruth.parquet",
        f"foo://x/{str(place).replace('/', '%2F')}%2Ftruth.parquet",
    )):  # fmt: skip
        with contextlib.suppress(RelaxdpError):
            rx.release(address, {"illness": VALUES}, to=f"out-{number}.parquet", **said)
        assert (place / "truth.parquet").read_bytes() == before
        assert list((place / "tmp").iterdir()) == []
    assert name_of("file:///a/b%2F..") == ""


def test_a_description_is_found_where_a_file_was_compressed_or_joined_since(place: Path) -> None:
    pa_parquet.write_table(pa.table({"id": [1, 2], "illness": VALUES[:2]}), "truth.parquet")
    said: Any = {"id": "id", "epsilon": 1, "key": KEY, "ledger": None}
    columns = {"illness": VALUES}
    rx.release("truth.parquet", columns, to="o.csv.gz", release="r", **said)
    (place / "o.csv").write_bytes(gzip.decompress((place / "o.csv.gz").read_bytes()))
    with refused(DescriptionError) as caught:
        rx.release("o.csv", columns, to="again.csv", release="s", **said)
    assert "o.csv.gz.relaxdp.json says so" in str(caught.value)
    (place / "o.csv.gz").unlink()
    sidecar = place / "o.csv.gz.relaxdp.json"
    sidecar.unlink()
    sidecar.mkdir()
    (place / "o.csv.gz").write_bytes(gzip.compress((place / "o.csv").read_bytes()))
    with refused(TableFileError, says="whether {name!r} has a description"):  # there is one, and it cannot be read
        rx.release(f"file://{place}/o.csv.gz", columns, to="again.csv", release="s", **said)
    (place / "folder").mkdir()
    rx.release("truth.parquet", columns, to="folder/2.parquet", release="r", **said)
    shutil.copy("truth.parquet", "folder/1.parquet")
    with pytest.raises(RelaxdpError):
        rx.release("folder", columns, to="again.parquet", release="s", **said)
