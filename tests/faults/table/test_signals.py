"""Releases that are asked to stop while they sort, and what a kill leaves behind: no truth stays on a disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.faults.table.releases import VALUES, prepare, release
from tests.patience import PATIENCE

pytestmark = pytest.mark.long

# A release whose sort takes for ever: whoever sends it a signal need not be quick.
SORTING = """
import signal, sys, relaxdp.cli.main, relaxdp.table.order as order
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it (nohup)
def relation(*_):
    print("sorting", flush=True)
    return "(SELECT sum(range) AS c0, 'flu' AS c1 FROM range(300000000000))"

order._relation = relation
relaxdp.cli.main.main()
"""

# The same, where what the handler raises is dropped the first time, as a library in C may do.
DEAF = """
import relaxdp.table.interrupts as interrupts
heard, is_leaving = [], interrupts.is_leaving
interrupts.is_leaving = lambda: heard.append(1) or len(heard) == 1 or is_leaving()
""" + SORTING  # fmt: skip

_AT_WORK = """
import json, sys
from pathlib import Path
from relaxdp.publication.staging import aside, temporary_folder
with aside(Path(sys.argv[1]) / "slow.parquet") as file, temporary_folder() as folder:
    print(json.dumps([str(file), str(folder)]), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prepare(tmp_path, rows=300)
    return tmp_path


@pytest.fixture
def spills(tmp_path: Path) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def stopped(
    folder: Path, spills: Path, number: signal.Signals, code: str = SORTING
) -> subprocess.CompletedProcess[str]:
    """Send a signal to a release while it sorts."""
    pa_parquet.write_table(pa.table({"id": [2, 1], "answer": ["flu", "none"]}), folder / "unsorted.parquet")
    words = [
        "release", str(folder / "unsorted.parquet"), str(folder / "out.parquet"), "--column", "answer", "--id", "id",
        "--values", ",".join(VALUES), "--epsilon", "1", "--key", str(folder / "key"), "--budget", "2",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(spills)},
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "sorting\n", process.communicate()  # its folder is there, and signed
            process.send_signal(number)
            said, complaint = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()  # where it did not stop, nobody waits for its sort
    return subprocess.CompletedProcess(words, process.returncode, said, complaint)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, SORTING), (signal.SIGHUP, SORTING), (signal.SIGTERM, DEAF)]
)
def test_asked_to_stop_it_leaves_no_truth(folder: Path, spills: Path, number: signal.Signals, code: str) -> None:
    before = {*folder.iterdir(), folder / "unsorted.parquet"}
    done = stopped(folder, spills, number, code)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == f"stopped by {number.name}. What was unfinished was removed.\n"
    assert not list(spills.iterdir())
    assert set(folder.iterdir()) == before


def test_what_a_kill_leaves_is_swept_by_any_release(
    folder: Path, spills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sorts nothing and has another target; one at work in the same folders keeps what it has."""
    assert stopped(folder, spills, signal.SIGKILL).returncode == -signal.SIGKILL
    assert len(list(spills.iterdir())) == len(list(folder.glob(".out.parquet.*"))) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(spills))
    at_work = subprocess.Popen(
        [sys.executable, "-c", _AT_WORK, str(folder)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(spills)},
    )  # fmt: skip
    with at_work:
        assert at_work.stdout is not None
        held = {Path(line) for line in json.loads(at_work.stdout.readline())}
        release("file", folder, "other.parquet", "0.5", budget="10")
        assert {*spills.iterdir(), *folder.glob(".*")} == held
        at_work.communicate("over")
    assert not [*spills.iterdir(), *folder.glob(".*")]
