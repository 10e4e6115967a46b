"""Devices that are killed at random instants, raced, copied, cut off from their disk: never two reports for a level.

A short campaign runs with the tests; `make faults` sets RELAXDP_FAULTS=500.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.faults.forking import Zygote
from tests.patience import PATIENCE
from tests.servers.fake_collector import FakeCollector, fake_collector

from relaxdp.device import Device
from relaxdp.server_errors import DeviceFileError

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("RELAXDP_FAULTS", "20"))
LEVELS = tuple(f"{Decimal(n) / 1000}" for n in range(1, KILLS + 10))
CAMPAIGNS = "abc"


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    one = Zygote("tests.faults.device.device_zygote")
    yield one
    one.close()


@pytest.fixture
def server() -> Iterator[FakeCollector]:
    with fake_collector() as collector:
        yield collector


@pytest.fixture
def file(server: FakeCollector, tmp_path: Path) -> Path:
    """A device that has answered three campaigns with many levels."""
    device = Device.open(tmp_path / "device", limit="3")
    for name in CAMPAIGNS:
        device.join(server.open(name, levels=LEVELS)).answer("fruit")
    return tmp_path / "device"


def check_one_report_for_each_level(server: FakeCollector) -> int:
    """Every request that ever arrived for a level carried the same bytes."""
    seen: dict[tuple[str, str, str], bytes] = {}
    for request in server.requests:
        if request.path.endswith("/reports"):
            content = request.json
            place = (request.path, content["device"], content["level"]["epsilon"])
            assert seen.setdefault(place, request.body) == request.body, "two reports for one level"
    assert server.differing == 0
    assert len({device for _, device, _ in seen}) == len(CAMPAIGNS)
    return len(seen)


def test_killed_at_random_instants(zygote: Zygote, server: FakeCollector, file: Path) -> None:
    """Three campaigns relax at every round; the device is killed on the way, and then finishes its round."""
    rng = random.Random(11)
    for _ in range(2):  # the first time, the zygote is still importing
        began = time.perf_counter()
        zygote.start({"file": str(file)})
        assert zygote.line() == [0]
        usual = time.perf_counter() - began
        for name in CAMPAIGNS:
            server.relax(name)
    died = 0
    for step in range(2, KILLS + 2):
        (child,) = zygote.start({"file": str(file)})
        time.sleep(rng.random() * usual)
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        killed = zygote.line() == [-signal.SIGKILL]
        died += killed
        usual *= 1.1 if killed else 0.8  # what else runs on this machine changes
        zygote.start({"file": str(file)})
        assert zygote.line() == [0]
        device = Device.open(file)
        assert device.spent == 3 * Decimal(LEVELS[step])
        assert all(each.sent[-1].status == "sent" for each in device.campaigns)
        assert list(file.parent.iterdir()) == [file], "what a killed writer left is swept away"
        for name in CAMPAIGNS:
            server.relax(name)
    levels = check_one_report_for_each_level(server)
    assert levels == 3 * (KILLS + 2)
    assert died > KILLS / 4, "too few devices were killed while they ran"
    print(f"{KILLS} kills, {died} while it ran; {levels} levels, one report each")


def test_many_processes_and_threads_on_one_device(zygote: Zygote, server: FakeCollector, file: Path) -> None:
    for step in range(4):
        zygote.start(*[{"file": str(file), "threads": 3}] * 4)
        assert zygote.line() == [0, 0, 0, 0]
        assert Device.open(file).spent == 3 * Decimal(LEVELS[step])
        for name in CAMPAIGNS:
            server.relax(name)
    assert check_one_report_for_each_level(server) == 12


def test_a_race_for_the_last_of_the_limit(zygote: Zygote, server: FakeCollector, tmp_path: Path) -> None:
    """Three campaigns at 0.4 and a limit of 1: whatever the order, exactly two of them get a report."""
    device = Device.open(tmp_path / "device", limit="1")
    for name in CAMPAIGNS:
        device.join(server.open(name, levels=("0.4",))).answer("none")
    zygote.start(*[{"file": str(tmp_path / "device"), "threads": 2}] * 3)
    assert zygote.line() == [2, 2, 2]
    assert len(server.stored) == 2
    assert device.spent == Decimal("0.8")


@pytest.mark.parametrize("limit", [0, 200])
def test_a_full_disk(server: FakeCollector, file: Path, limit: int) -> None:
    """What cannot be written down is not sent; the file stays as it was."""
    before, asked = file.read_bytes(), len(server.requests)
    script = (
        "import resource, signal, sys\n"
        "from relaxdp.device import Device\n"
        "from relaxdp.errors import RelaxdpError\n"
        f"device = Device.open({str(file)!r})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "try:\n"
        "    device.campaigns[0].report()\n"
        "except RelaxdpError as problem:\n"
        "    sys.exit(problem.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("Nothing was sent.")
    assert len(done.stderr.strip().splitlines()) == 1
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    assert [request.method for request in server.requests[asked:]] == ["GET"]


def test_a_restored_backup_is_noticed_by_whoever_saw_more(server: FakeCollector, file: Path) -> None:
    device = Device.open(file)
    backup = file.read_bytes()
    device.campaigns[0].report()
    file.write_bytes(backup)
    with pytest.raises(DeviceFileError, match="went back to an earlier state"):
        device.campaigns[0].report()
    # Somebody who did not see it sends the same report again: it is a function of what the file holds.
    Device.open(file).campaigns[0].report()
    assert server.differing == 0
    file.unlink()
    with pytest.raises(DeviceFileError, match="is gone"):
        device.campaigns[0].report()


@pytest.mark.parametrize("place", range(0, 1600, 97))
def test_a_damaged_file_is_refused(server: FakeCollector, file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place % len(content)] ^= 1
    file.write_bytes(content)
    with pytest.raises(DeviceFileError) as refused:
        Device.open(file)
    assert refused.value.__context__ is None, "the context could hold the answer"
    for cut in (0, 1, len(content) // 2):
        file.write_bytes(bytes(content[:cut]))
        with pytest.raises(DeviceFileError):
            Device.open(file)
