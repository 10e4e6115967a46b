"""A device's file: its mode, its lock, and what others may see of it."""

from __future__ import annotations

import pickle
import stat
import subprocess
import sys
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.patience import PATIENCE
from tests.servers.fake_collector import FakeCollector, fake_collector

from relaxdp.device import Device
from relaxdp.device.state import DeviceState, Record, Sent
from relaxdp.errors import BudgetError, RelaxdpError, UndeclaredValueError
from relaxdp.server_errors import AnswerChangedError, DeviceFileError


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with fake_collector() as one:
        yield one


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "device"
    Device.open(file, limit=1).change_limit(2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o640)
    with pytest.raises(DeviceFileError, match="can be read by others"):
        Device.open(file)
    file.chmod(0o600)
    (tmp_path / "second").hardlink_to(file)
    with pytest.raises(DeviceFileError, match="second name"):
        Device.open(file)


def test_what_is_no_device(tmp_path: Path) -> None:
    with pytest.raises(DeviceFileError, match="is a folder"):
        Device.open(tmp_path, limit=1)
    with pytest.raises(DeviceFileError, match="cannot be used"):
        Device.open(tmp_path / "none" / "device", limit=1)
    for content in (b"", b"{}", b"[]", b"nonsense", b'{"check": 1, "format": []}', b"[" * 100_000):
        (tmp_path / "other").write_bytes(content)
        (tmp_path / "other").chmod(0o600)
        with pytest.raises(DeviceFileError, match="damaged or of another kind"):
            Device.open(tmp_path / "other", limit=1)
        assert (tmp_path / "other").read_bytes() == content


def test_a_link_leads_to_the_same_device(tmp_path: Path) -> None:
    device = Device.open(tmp_path / "device", limit=1)
    (tmp_path / "link").symlink_to("device")
    Device.open(tmp_path / "link").change_limit(3)
    assert device.limit == 3
    assert (tmp_path / "link").is_symlink()


def test_a_file_that_says_too_much_was_spent_is_not_followed() -> None:
    record = Record("a", "q", "categorical", "00", "0" * 32, "0" * 64, "2", "now", sent=(Sent("2", "1", "x", "now"),))
    state = DeviceState(Decimal(1), {"a": record})
    assert DeviceState.loads(state.dumps()) is None
    assert DeviceState.loads(DeviceState(Decimal(2), {"a": record}).dumps()) is not None


def test_secrets_are_not_shown(collector: FakeCollector, tmp_path: Path) -> None:
    device = Device.open(tmp_path / "device", limit="1")
    address = collector.open(encoding={"name": "categorical", "values": ["topsecret", "other"]})
    participation = device.join(address)
    participation.answer("topsecret")
    record = participation.record
    assert record.key is not None
    participation.report()
    state = device._file.state()
    shown = [repr(thing) for thing in (device, participation, record, state, participation.offer.address)]
    said: list[BaseException] = []
    for wrong in ("other", "nobody said that"):
        try:
            participation.answer(wrong)
        except RelaxdpError as problem:
            said.append(problem)
    assert [type(each) for each in said] == [AnswerChangedError, UndeclaredValueError]
    for each in said:
        lines = "".join(traceback.format_exception(each, chain=True))
        shown += [lines.split("Error: ", 1)[-1], repr(getattr(each, "fields", {}))]
        assert each.__cause__ is None
    for text in shown:
        assert "topsecret" not in text
        assert record.key not in text
        assert "nobody said" not in text.rsplit("Error: ", 1)[-1]
    for thing in (device, participation):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(thing)


def test_limits_are_exact(tmp_path: Path) -> None:
    device = Device.open(tmp_path / "device", limit=0.1)
    assert device.limit == Decimal("0.1")
    with pytest.raises(BudgetError):
        device.change_limit(0)
    with pytest.raises(BudgetError):
        device.change_limit("inf")


def test_a_device_needs_nothing_of_the_server() -> None:
    """It runs where the packages of the service are not installed."""
    script = (
        "import sys\n"
        "for name in ('msgspec', 'starlette', 'uvicorn'):\n"
        "    sys.modules[name] = None\n"
        "import relaxdp.device, relaxdp.cli.campaign, relaxdp.device.simulate\n"
        "print(relaxdp.device.Device.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "Device\n"


def test_what_a_killed_writer_left_is_swept_away(tmp_path: Path) -> None:
    file = tmp_path / "device[1]"
    for name in (".device[1].abcd_123", ".device[1].swp", ".device1.abcd_123", ".other.abcd_123"):
        (tmp_path / name).write_text("left")
    Device.open(file, limit=1)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        [".device[1].swp", ".device1.abcd_123", ".other.abcd_123", "device[1]"]
    )


def test_sync_goes_on_after_a_failure(collector: FakeCollector, tmp_path: Path) -> None:
    device = Device.open(tmp_path / "device", limit="4")
    for name in "abcd":
        participation = device.join(collector.open(name))
        if name != "d":
            participation.answer("fruit")
    del collector.campaigns["b"]
    collector.campaigns["c"]["state"] = "finished"
    outcomes = device.sync()
    assert [outcome.problem.code if outcome.problem else None for outcome in outcomes] == [
        None, "refused_by_server_error", None,
    ]  # fmt: skip
    assert [outcome.sent is not None for outcome in outcomes] == [True, False, False]
    collector.open("b")
    assert [outcome.sent is not None for outcome in device.sync()] == [True, True]
