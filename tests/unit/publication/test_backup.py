"""A backup is a consistent copy of a ledger and the files next to it; an older copy is noticed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import printed
from tests.patience import PATIENCE
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import (
    LedgerError,
    LedgerLockedError,
    OldLedgerError,
    RelaxdpError,
    SecondLedgerError,
    TableFileError,
)
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.publication.backup import back_up

KEY = rx.Key.from_bytes(bytes(range(32)))
EVERYONE = Subject.population("everyone")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key that has released at 0.5."""
    monkeypatch.chdir(tmp_path)
    KEY.save("key")
    pa_parquet.write_table(pa.table({"id": range(200), "x": ["a", "b"] * 100}), "in.parquet")
    release("first.parquet", "0.5", "--budget", "2")
    return tmp_path


def release(target: str, epsilon: str, *words: str, key: str = "key") -> str:
    return printed(
        "release", "in.parquet", target, "--id", "id", "--column", "x", "--values", "a,b", "--epsilon", epsilon,
        "--key", key, "--yes", *words,
    )  # fmt: skip


def backup(target: str = "copy", *words: str) -> str:
    return printed("backup", target, "--key", "key", *words)


def lose() -> None:
    """Remove the ledger and the files next to it."""
    for each in Path().glob("key.ledger*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def restore(source: str = "copy", target: str = ".") -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)


def names(folder: str) -> list[str]:
    return sorted(file.name for file in Path(folder).iterdir())


def test_a_copy_relaxes_without_its_table() -> None:
    printed("relax", "in", "wanted.parquet", "--epsilon", "0.8", "--key", "key", "--yes")
    shown = printed("budget", "history", "--key", "key")
    assert "copied the ledger" in backup()
    assert names("copy") == ["key.ledger", "key.ledger.snapshots"]
    lose()
    Path("in.parquet").unlink()
    restore()
    assert printed("budget", "history", "--key", "key") == shown
    printed("relax", "in", "again.parquet", "--epsilon", "0.8", "--key", "key", "--yes")
    assert Path("again.parquet").read_bytes() == Path("wanted.parquet").read_bytes()
    assert "cost 0.2" in printed("relax", "in", "more.parquet", "--epsilon", "1", "--key", "key", "--yes")


def test_only_the_owner_can_read_a_copy_and_the_key_is_left_out_unless_asked(place: Path) -> None:
    for kind, name in (("snapshots", "a.snapshot"), ("tags", "b.parquet"), ("snapshots", ".unfinished")):
        Path(f"key.ledger.{kind}").mkdir(exist_ok=True)
        Path(f"key.ledger.{kind}", name).write_bytes(name.encode() * (3 << 17))
    backup()
    copied = {str(each.relative_to("copy")): each for each in Path("copy").rglob("*")}
    assert {"key.ledger", "key.ledger.snapshots/a.snapshot", "key.ledger.tags/b.parquet"} <= set(copied)
    assert not any("unfinished" in name or name == "key" for name in copied)
    files = {name: each for name, each in copied.items() if "/" in name}
    assert all(each.read_bytes() == (place / name).read_bytes() for name, each in files.items())
    for each in (Path("copy"), *copied.values()):
        assert each.stat().st_mode & 0o777 == (0o700 if each.is_dir() else 0o600)
    secrets = (bytes(range(32)), bytes(range(32)).hex().encode())
    assert not any(secret in each.read_bytes() for each in copied.values() if each.is_file() for secret in secrets)
    backup("whole", "--with-key")
    assert rx.Key.load("whole/key") == KEY
    printed("backup", "printed", "--key-command", "cat key", "--ledger", "key.ledger", "--with-key")
    assert rx.Key.load("printed/key") == KEY


def test_a_growing_table_goes_on() -> None:
    """Its row tags come back with the ledger that names them."""

    def grow(rows: int, *words: str) -> str:
        pa_parquet.write_table(pa.table({"id": range(rows), "x": ["a", "b"] * (rows // 2)}), "in.parquet")
        return release(f"grown-{rows}.parquet", "0.5", "--release", "growing", "--growing", *words)

    grow(100)
    backup()
    lose()
    restore()
    assert "(the level before: 0.5)" in grow(120)


def test_nothing_is_overwritten() -> None:
    backup()
    before = names("copy")
    with refused(TableFileError, path="copy", says="exists already"):
        backup()
    assert names("copy") == before
    with pytest.raises(TableFileError, match="Nothing was written"):
        backup("absent/copy")


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(TableFileError, match="cannot be written: No space left on device. Nothing was written"):
            backup()
    assert "copy" not in names(".")


def test_a_ledger_that_is_written_to_meanwhile() -> None:
    """Every copy is consistent, and a later one contains no less."""
    stop, counts = threading.Event(), []

    def spend() -> None:
        with Ledger.open("key.ledger") as ledger:
            for number in range(3, 2_000):
                if stop.is_set():
                    return
                ledger.raise_budget(EVERYONE, number, reason="more")

    with Ledger.open("key.ledger") as ledger:
        writer = threading.Thread(target=spend)
        writer.start()
        try:
            for number in range(5):
                before = len(ledger.history())
                counts.append(back_up("key.ledger", Path(f"copy-{number}")))
                assert before <= counts[-1] <= len(ledger.history())
        finally:
            stop.set()
            writer.join()
    assert counts == sorted(counts)
    with Ledger.open("copy-4/key.ledger", create=False) as copied:
        copied.verify()
        assert len(copied.history()) == counts[-1]


def test_nothing_is_charged_while_files_are_opened() -> None:
    """A charge could remove the snapshot that the copied ledger names."""
    with Ledger.open("key.ledger") as ledger, Ledger.open("key.ledger", timeout=0) as other:
        with ledger.copied_to(Path("copied.db")), pytest.raises(LedgerLockedError):
            other.raise_budget(EVERYONE, 3, reason="more")
        other.raise_budget(EVERYONE, 3, reason="more")


def test_a_ledger_in_postgresql_has_its_own_tools(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    Ledger.open(url).close()
    with refused(LedgerError, says="pg_dump"):
        back_up(url, Path("copy"))
    assert not Path("copy").exists()


# A command that stops after its first file, so that a test can interrupt it without haste.
SLOW = """
import time, relaxdp.cli.main, relaxdp.publication.backup as backup

def copy_slowly(*arguments):
    copy(*arguments)
    print("one file", flush=True)
    time.sleep(600)

copy, backup._copy_file = backup._copy_file, copy_slowly
relaxdp.cli.main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_backup_that_is_stopped_leaves_nothing(number: signal.Signals) -> None:
    before = names(".")
    words = [sys.executable, "-c", SLOW, "backup", "copy", "--key", "key"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one file\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) != 0
    assert "copy" not in names(".")
    if number is signal.SIGKILL:  # The next one removes what it left.
        assert names(".") != before
        backup()
        before = sorted([*before, "copy"])
    assert names(".") == before


def test_an_older_copy_is_noticed(place: Path) -> None:
    backup()
    release("second.parquet", "1")
    assert "knows them all" in printed("budget", "check", "first.parquet", "second.parquet", "--key", "key")
    lose()
    restore()
    with pytest.raises(OldLedgerError) as caught:
        printed("budget", "check", "first.parquet", "second.parquet", "--key", "key")
    assert caught.value.message == (
        f"the ledger {str(place / 'key.ledger')!r} is older than what was released: 'x' of release 'in' left at 1 "
        "('second.parquet'), and the ledger knows 0.5. Before anything else is released, charge what is missing: "
        "docs/ledger.md says how."
    )
    with refused(OldLedgerError, known=4, found=3):
        release("again.parquet", "1")
    release("again.parquet", "1", "--new-ledger", "the newer one is lost")
    assert Path("again.parquet").read_bytes() == Path("second.parquet").read_bytes()
    assert "knows them all" in printed("budget", "check", "second.parquet", "--key", "key")


def test_a_release_that_the_ledger_does_not_contain() -> None:
    backup()
    release("other.csv", "1", "--release", "another")
    rx.Key.generate().save("second-key")
    release("by-other-key.parquet", "0.5", "--ledger", "elsewhere.db", "--budget", "1", key="second-key")
    lose()
    restore()
    with pytest.raises(
        OldLedgerError, match="'x' of release 'another' left at 1 .*, and the ledger knows nothing of it"
    ):
        printed("budget", "check", "other.csv", "first.parquet", "--key", "key")
    with refused(OldLedgerError, missing=1):  # The names are the same, and another ledger was charged.
        printed("budget", "check", "by-other-key.parquet", "--key", "key")
    with pytest.raises(RelaxdpError, match="does not describe itself"):
        printed("budget", "check", "in.parquet", "--key", "key")


def test_a_ledger_that_lacks_the_key_is_noticed_by_its_mark() -> None:
    """A copy from the time before the first release."""
    with Ledger.open("early.db") as ledger:
        ledger.set_budget(EVERYONE, 2, reason="agreed")
    printed("backup", "copy", "--ledger", "early.db")
    Path("key.ledger").unlink()
    Path("copy/early.db").rename("key.ledger")
    with refused(SecondLedgerError, says="which knows nothing of it any more"):
        release("second.parquet", "1")
