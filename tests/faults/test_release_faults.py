"""Releases that are killed at random instants, and releases that race for the last of a budget.

The short campaign runs with the tests; `make faults` sets RELAXDP_FAULTS=500.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.faults.campaign import sizes
from tests.faults.forking import Zygote
from tests.faults.zygote import VALUES, carry_out
from tests.patience import PATIENCE

from relaxdp import Categorical, Key
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.subject import Subject

KILLS = sizes(8, 40)
ROWS = 30_000
TRUTH = np.random.default_rng(1).choice(VALUES, ROWS)
KEY = Key.from_bytes(bytes(range(32)))
EVERYONE = Subject.population("everyone")


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    one = Zygote("tests.faults.zygote")
    yield one
    one.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pa_parquet.write_table(pa.table({"id": np.arange(ROWS), "answer": TRUTH}), tmp_path / "in.parquet")
    KEY.save(tmp_path / "key")
    Ledger.open(tmp_path / "ledger").close()
    return tmp_path


def reports(epsilon: str) -> list[str]:
    found: list[str] = (
        Categorical(VALUES)
        .release(TRUTH, np.arange(ROWS), key=KEY, epsilon=epsilon, release="faults", attribute="answer")
        .tolist()
    )
    return found


def spent(folder: Path) -> Decimal:
    with Ledger.open(folder / "ledger") as ledger:
        ledger.verify()
        return ledger.balance(EVERYONE).spent


@pytest.mark.parametrize("kills", KILLS)
def test_killed_at_random_instants(zygote: Zygote, folder: Path, kills: int) -> None:
    """After every kill: no half-written file, the ledger shows at least what left; and the rerun is identical."""
    rng = random.Random(7)
    order = {"folder": str(folder), "budget": "1000"}
    timings = []
    for number in range(4):  # the first one begins the ledger, and takes longer than those that are killed
        began = time.perf_counter()
        zygote.start({**order, "target": f"warm-{number}.parquet", "epsilon": f"0.00{number + 1}"})
        assert zygote.line() == [0]
        timings.append(time.perf_counter() - began)
    usual = min(timings[1:])
    died = appeared = charged = 0
    before = spent(folder)
    for number in range(1, kills + 1):
        epsilon, target = f"{number * 0.01:.2f}", folder / f"out-{number}.parquet"
        (child,) = zygote.start({**order, "target": target.name, "epsilon": epsilon})
        time.sleep(rng.random() * usual * 1.4)  # also when it is almost done
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        killed = zygote.line() == [-signal.SIGKILL]
        died += killed
        usual *= 1.1 if killed else 0.8  # what else runs on this machine changes
        expected, after = reports(epsilon), spent(folder)
        if target.exists():
            appeared += 1
            assert pa_parquet.read_table(target)["answer"].to_pylist() == expected
            assert after == Decimal(epsilon)
        assert after in (before, Decimal(epsilon))
        charged += after == Decimal(epsilon)
        zygote.start({**order, "target": f"again-{number}.parquet", "epsilon": epsilon})
        assert zygote.line() == [0]
        assert pa_parquet.read_table(folder / f"again-{number}.parquet")["answer"].to_pylist() == expected
        before = spent(folder)
        assert before == Decimal(epsilon)
        for file in folder.glob("*.parquet"):
            if file.name != "in.parquet":
                file.unlink()
    assert died > kills / 3, "too few releases were killed while they ran"
    print(f"{kills} kills, {died} while it ran; {charged} had charged, {appeared} of them had appeared")


def test_what_a_kill_leaves_is_swept_away(zygote: Zygote, folder: Path) -> None:
    order = {"folder": str(folder), "budget": "10", "target": "out.parquet", "epsilon": "0.5"}
    for _ in range(50):
        (child,) = zygote.start(order)
        while not list(folder.glob(".out.parquet.*")) and not (folder / "out.parquet").exists():
            time.sleep(0.0005)
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        zygote.line()
        if list(folder.glob(".out.parquet.*")) and not (folder / "out.parquet").exists():
            break
        (folder / "out.parquet").unlink(missing_ok=True)
    assert list(folder.glob(".out.parquet.*"))
    zygote.start(order)
    assert zygote.line() == [0]
    assert not list(folder.glob(".out.parquet.*"))
    assert pa_parquet.read_table(folder / "out.parquet")["answer"].to_pylist() == reports("0.5")


def test_sixteen_releases_race_for_the_last_of_a_budget(zygote: Zygote, folder: Path) -> None:
    """Sixteen paths at 0.1 each, and a budget of 0.5: exactly five are granted, and exactly five files appear."""
    orders = [
        {"folder": str(folder), "budget": "0.5", "target": f"r{n}.parquet", "epsilon": "0.1", "release": f"r{n}"}
        for n in range(16)
    ]
    zygote.start(*orders)
    assert sorted(zygote.line()) == [0] * 5 + [2] * 11
    assert len(list(folder.glob("r*.parquet"))) == 5
    assert spent(folder) == Decimal("0.5")


@pytest.mark.parametrize("limit", [0, 5_000, 60_000])
def test_a_full_disk(folder: Path, limit: int) -> None:
    """The system refuses to let the output grow: one sentence, exit status 2, nothing written, nothing charged."""
    words = [
        "release", str(folder / "in.parquet"), str(folder / "full.parquet"), "--column", "answer", "--id", "id",
        "--values", ",".join(VALUES), "--epsilon", "1", "--key", str(folder / "key"), "--budget", "2",
        "--ledger", str(folder / "ledger"),
    ]  # fmt: skip
    script = (
        "import resource, sys, relaxdp.cli.main, relaxdp.table.formats as formats\n"
        "start = formats.Output.__init__\n"
        "def limited(*arguments, **options):\n"
        f"    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))\n"
        "    start(*arguments, **options)\n"
        "formats.Output.__init__ = limited\n"
        f"sys.argv = {['relaxdp', *words]!r}\n"
        "relaxdp.cli.main.main()\n"
    )
    before = sorted(folder.iterdir())
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip().endswith("Nothing was released.")
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(folder.iterdir()) == before
    with Ledger.open(folder / "ledger") as ledger:
        assert ledger.history() == []


# A release whose sort takes for ever: whoever sends it a signal need not be quick.
SORTING = """
import signal, sys, relaxdp.cli.main, relaxdp.table.order as order
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it (nohup)
order._relation = lambda *_: "(SELECT sum(range) AS c0, 'flu' AS c1 FROM range(300000000000))"
relaxdp.cli.main.main()
"""

_AT_WORK = """
import json, sys
from pathlib import Path
from relaxdp.table.temporary import aside, temporary_folder
with aside(Path(sys.argv[1]) / "slow.parquet") as file, temporary_folder() as folder:
    print(json.dumps([str(file), str(folder)]), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def spills(tmp_path: Path) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def stopped(folder: Path, spills: Path, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Send a signal to a release while it sorts."""
    pa_parquet.write_table(pa.table({"id": [2, 1], "answer": ["flu", "none"]}), folder / "unsorted.parquet")
    words = [
        "release", str(folder / "unsorted.parquet"), str(folder / "out.parquet"), "--column", "answer", "--id", "id",
        "--values", ",".join(VALUES), "--epsilon", "1", "--key", str(folder / "key"), "--budget", "2",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", SORTING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(spills)},
    )  # fmt: skip
    with process:
        while not list(spills.iterdir()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        assert list(folder.glob(".out.parquet.*"))
        process.send_signal(number)
        said, complaint = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(words, process.returncode, said, complaint)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop_it_leaves_no_truth(folder: Path, spills: Path, number: signal.Signals) -> None:
    before = {*folder.iterdir(), folder / "unsorted.parquet"}
    done = stopped(folder, spills, number)
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
        order = {"folder": str(folder), "budget": "10", "target": "other.parquet", "epsilon": "0.5"}
        assert carry_out(order) == 0
        assert {*spills.iterdir(), *folder.glob(".*")} == held
        at_work.communicate("over")
    assert not [*spills.iterdir(), *folder.glob(".*")]
