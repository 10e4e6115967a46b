"""A backup comes back as it was, or not at all; an old one is noticed; nothing of the key is in it but sealed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
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
    BackupError,
    KeyFileError,
    LedgerError,
    OldLedgerError,
    OptionError,
    RelaxdpError,
    SecondLedgerError,
    TableFileError,
)
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.safekeeping import archive
from relaxdp.safekeeping.archive import opened
from relaxdp.safekeeping.backup import back_up, restore

KEY = rx.Key.from_bytes(bytes(range(32)))
EVERYONE = Subject.population("everyone")
WORDS = "correct horse battery"
COST = archive._COST


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key that has released at 0.5, and a passphrase; guesses are cheap here, but for one test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(archive, "_COST", 1 << 4)
    KEY.save("key")
    pa_parquet.write_table(pa.table({"id": range(200), "x": ["a", "b"] * 100}), "in.parquet")
    release("first.parquet", "0.5", "--budget", "2")
    Path("words").touch(0o600)
    Path("words").write_text(f"{WORDS}\n")
    return tmp_path


def release(target: str, epsilon: str, *words: str, key: str = "key") -> str:
    return printed(
        "release", "in.parquet", target, "--id", "id", "--column", "x", "--values", "a,b", "--epsilon", epsilon,
        "--key", key, "--yes", *(words if "--release" in words else [*words, "--no-snapshot"]),
    )  # fmt: skip


def backup(target: str = "backup", *words: str) -> str:
    return printed("backup", target, "--key", "key", "--passphrase-file", "words", *words)


def come_back(source: str = "backup", *words: str, key: str = "new/key", status: int = 0) -> str:
    Path(key).parent.mkdir(exist_ok=True)
    return printed("restore", source, "--key", key, "--passphrase-file", "words", *words, status=status)


def lose() -> None:
    """The machine's disk is lost: key, ledger and mark."""
    for name in ("key", "key.ledger", "key.ledger.begun"):
        Path(name).unlink()


def names(folder: str) -> list[str]:
    return sorted(file.name for file in Path(folder).iterdir())


def test_what_comes_back_is_relaxed_without_its_table(place: Path) -> None:
    """Key, ledger and snapshot are all that is needed: the table is gone with the machine."""
    release("kept.parquet", "0.5", "--release", "study")
    printed("relax", "study", "wanted.parquet", "--epsilon", "0.8", "--key", "key", "--yes")
    backup()
    lose()
    shutil.rmtree("key.ledger.snapshots")
    Path("in.parquet").unlink()
    come_back("backup", "--released", "kept.parquet")
    printed("relax", "study", "again.parquet", "--epsilon", "0.8", "--key", "new/key", "--yes")
    assert Path("again.parquet").read_bytes() == Path("wanted.parquet").read_bytes()
    assert "cost 0.2" in printed("relax", "study", "more.parquet", "--epsilon", "1", "--key", "new/key", "--yes")


def test_round_trip(place: Path) -> None:
    for kind, name in (("snapshots", "a.snapshot"), ("tags", "b.parquet"), ("snapshots", ".unfinished")):
        Path(f"key.ledger.{kind}").mkdir(exist_ok=True)
        Path(f"key.ledger.{kind}", name).write_bytes(os.urandom(3 << 20))
    was = {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name[0] in "abk"}
    shown = printed("budget", "history", "--key", "key")
    said = backup()
    assert "wrote the key 404702b4a9c7e559 and the ledger to backup: 3 entries, the last of" in said
    assert "2 files beside it" in said
    assert Path("backup").stat().st_mode & 0o777 == 0o600
    content = Path("backup").read_bytes()
    assert not any(secret in content for secret in (bytes(range(32)), bytes(range(32)).hex().encode(), WORDS.encode()))
    lose()
    for kind in ("snapshots", "tags"):
        shutil.rmtree(f"key.ledger.{kind}")
    said = come_back("backup", "--released", "first.parquet")
    assert "compared with released columns: 1; it knows them all" in said
    assert f"the key has spent in {str(place / 'key.ledger')!r}, and goes on here" in said
    assert names("new") == ["key", "key.ledger", "key.ledger.begun", "key.ledger.snapshots", "key.ledger.tags"]
    found = {path.name: path for path in Path("new").rglob("*") if path.is_file()}
    assert all(path.stat().st_mode & 0o077 == 0 for path in found.values())
    assert all(
        path.read_bytes() == was[name] for name, path in found.items() if name in ("key", "a.snapshot", "b.parquet")
    )
    assert ".unfinished" not in found
    assert printed("budget", "history", "--key", "new/key") == shown
    # The marks of the user know the restored ledger: the key goes on with it, and begins no other.
    assert "(the level before: 0.5)" in release("second.parquet", "1", key="new/key")
    with pytest.raises(SecondLedgerError):
        release("third.parquet", "1", "--ledger", "another.db", "--budget", "2", key="new/key")


def test_on_a_machine_that_never_saw_the_key(place: Path, state: Path) -> None:
    """No mark is there, and the first one is made by the restore: a copy of the key is noticed from then on."""
    backup()
    lose()
    shutil.rmtree(state)
    said = come_back()
    assert "goes on here" not in said
    assert f"`relaxdp budget check FILES --ledger {place / 'new' / 'key.ledger'}` compares" in said
    with pytest.raises(SecondLedgerError):
        release("third.parquet", "1", "--ledger", "another.db", "--budget", "2", key="new/key")


def test_a_ledger_that_is_still_there_does_not_go_on_twice(place: Path) -> None:
    backup()
    with refused(BackupError, place=str(place / "key.ledger"), says="two that go on would each spend the budget"):
        come_back()
    assert names("new") == []
    Path("key.ledger").rename("moved-away")
    come_back()


def test_a_ledger_begun_on_purpose_beside_it_is_no_obstacle(place: Path) -> None:
    backup()
    Path("key.ledger").unlink()
    release("other.parquet", "1", "--ledger", "other.db", "--budget", "1", "--new-ledger", "another hospital")
    come_back()


def test_nothing_is_overwritten(place: Path) -> None:
    backup()
    with refused(BackupError, path="backup", says="exists already"):
        backup()
    with refused(BackupError, says="exists already"):
        printed("restore", "backup", "--key", "key", "--passphrase-file", "words")
    Path("key.ledger").unlink()
    Path("key.ledger-wal").touch()
    with refused(BackupError, says="exists already"):
        printed("restore", "backup", "--key", "key", "--passphrase-file", "words")
    Path("key.ledger-wal").unlink()
    rx.Key.generate().save("other")
    before = Path("other").read_bytes()
    with refused(KeyFileError, path="other", remedy="without_key"):
        come_back(key="other")
    assert Path("other").read_bytes() == before
    assert not Path("other.ledger").exists()
    # The key that is in the backup may be there, as after a restore that was killed before its last step.
    assert "(the level before: 0.5)" in come_back(key="key") + release("second.parquet", "1")


def test_the_same_files_may_be_there_and_others_may_not(place: Path) -> None:
    Path("key.ledger.snapshots").mkdir()
    Path("key.ledger.snapshots/a.snapshot").write_bytes(b"sealed")
    backup()
    lose()
    Path("key.ledger.snapshots/a.snapshot").write_bytes(b"SEALED")
    with refused(BackupError, says="exists already, and is another one"):
        come_back(key="key")
    assert not Path("key").exists()
    Path("key.ledger.snapshots/a.snapshot").write_bytes(b"sealed")
    come_back(key="key")
    assert Path("key.ledger").exists()


def test_an_older_backup_is_noticed(place: Path) -> None:
    backup()
    release("second.parquet", "1")
    assert "knows them all" in printed("budget", "check", "first.parquet", "second.parquet", "--key", "key")
    lose()
    with pytest.raises(OldLedgerError) as caught:
        come_back("backup", "--released", "first.parquet", "--released", "second.parquet")
    assert caught.value.message == (
        f"the ledger {str(place / 'new' / 'key.ledger')!r} is older than what was released: 'x' of release 'in' left "
        "at 1 ('second.parquet'), and the ledger knows 0.5. Look for a newer backup; if there is none, restore this "
        "one without --released, and charge what is missing before anything else (docs/ledger.md). Nothing was "
        "restored."
    )
    assert names("new") == []
    assert "this backup is old: entries that the ledger had and are not in it: 1." in come_back(status=1)
    with refused(OldLedgerError, missing=1, ledger=str(place / "new" / "key.ledger"), remedy="charge_missing"):
        printed("budget", "check", "second.parquet", "--key", "new/key")
    with refused(OldLedgerError, known=4, found=3):  # the number comes along to another address
        release("again.parquet", "1", key="new/key")
    release("again.parquet", "1", "--new-ledger", "the newer one is lost", key="new/key")
    assert Path("again.parquet").read_bytes() == Path("second.parquet").read_bytes()
    assert "knows them all" in printed("budget", "check", "second.parquet", "--key", "new/key")


def test_a_release_that_the_ledger_never_heard_of(place: Path) -> None:
    backup()
    release("other.csv", "1", "--release", "another")
    rx.Key.generate().save("second-key")
    release("by-other-key.parquet", "0.5", "--ledger", "elsewhere.db", "--budget", "1", key="second-key")
    lose()
    come_back(status=1)
    with pytest.raises(
        OldLedgerError, match="'x' of release 'another' left at 1 .*, and the ledger knows nothing of it"
    ):
        printed("budget", "check", "other.csv", "first.parquet", "--key", "new/key")
    with refused(OldLedgerError, missing=1):  # of the same names, and paid for elsewhere
        printed("budget", "check", "by-other-key.parquet", "--key", "new/key")
    with pytest.raises(RelaxdpError, match="does not describe itself"):
        printed("budget", "check", "in.parquet", "--key", "new/key")


def test_a_ledger_that_lacks_the_key_is_noticed_by_its_mark(place: Path) -> None:
    """A backup of the time before the first release."""
    with Ledger.open("early.db") as ledger:
        ledger.set_budget(EVERYONE, 2, reason="agreed")
    printed("backup", "backup", "--ledger", "early.db", "--without-key")
    Path("key.ledger").unlink()
    printed("restore", "backup", "--without-key", "--ledger", "key.ledger")
    with refused(SecondLedgerError, says="which knows nothing of it any more"):
        release("second.parquet", "1")


def test_wrong_passphrases(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backup()
    lose()
    for wrong in ("correct horse batterx", f"{WORDS} ", ""):
        Path("words").write_text(wrong)
        with refused(BackupError, path="backup", says="the passphrase is not that of"):
            come_back()
    assert names("new") == []
    KEY.save("key")
    Path("words").write_text("short")
    with refused(BackupError, least=8):
        printed("backup", "another", "--key", "key", "--ledger", "key.ledger", "--passphrase-file", "words")
    with refused(OptionError, says="there is no terminal to ask"):
        printed("restore", "backup", "--key", "other")
    with refused(BackupError, program="false", problem="failed with exit status 1"):
        printed("restore", "backup", "--key", "other", "--passphrase-command", "false")
    printed("restore", "backup", "--key", "other", "--passphrase-command", f"echo '{WORDS}'")
    assert rx.Key.load("other") == KEY
    Path("words").chmod(0o644)
    with pytest.raises(BackupError, match="can be read by others"):
        printed("restore", "backup", "--key", "third", "--passphrase-file", "words")


def test_a_passphrase_is_costly_to_guess() -> None:
    """So much memory for each guess, in version 1 of a backup for ever: with another cost none would open."""
    assert (COST, archive._BLOCK, archive._LANES) == (1 << 17, 8, 1)
    assert archive.unseal(archive.seal(KEY, WORDS, b"list"), WORDS, b"list") == KEY


def test_a_cut_or_changed_backup_gives_nothing_or_what_it_was(place: Path) -> None:
    """Every part of the file in turn; a change that changes nothing is one of a header that nobody reads."""
    Path("key.ledger.snapshots").mkdir()
    Path("key.ledger.snapshots/a.snapshot").write_bytes(b"sealed")
    backup()
    lose()
    shutil.rmtree("key.ledger.snapshots")
    whole = Path("backup").read_bytes()
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        Path("backup").write_bytes(whole[:cut])
        with refused(BackupError, path="backup", says="or it is damaged"):
            come_back()
    assert names("new") == []
    refusals = 0
    for at in [*range(0, len(whole), 3001), *range(len(whole) - 1200, len(whole), 23)]:
        Path("backup").write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            restore(Path("backup"), "new/key.ledger", key="new/key", passphrase=lambda: WORDS)
        except BackupError:
            refusals += 1
            assert names("new") == []
            continue
        assert rx.Key.load("new/key") == KEY
        with Ledger.open("new/key.ledger", create=False) as ledger:
            assert str(ledger.balance(EVERYONE).spent) == "0.5"
        shutil.rmtree("new")
        Path("new").mkdir()
    assert refusals > 40


def test_a_list_that_leads_elsewhere_is_refused(place: Path) -> None:
    """Without a key nothing is sealed, so that somebody could write such a file."""
    printed("backup", "backup", "--key", "key", "--without-key")
    for wrong in ("../evil", "snapshots/../../evil", "/tmp/evil", "snapshots/.hidden", "other/a"):
        with zipfile.ZipFile("backup") as old, zipfile.ZipFile("evil", "w") as new:
            listed = old.read("backup.json").replace(b'"parts": {', b'"parts": {"%s": {"size": 1, "sha256": "%s"}, ' % (
                wrong.encode(), b"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"))  # fmt: skip
            new.writestr("ledger", old.read("ledger"))
            new.writestr(wrong, b"x")
            new.writestr("backup.json", listed)
        with refused(BackupError, says="or it is damaged"):
            restore(Path("evil"), "new.ledger")
    assert not any(Path(each).exists() for each in ("new.ledger", "evil.ledger", "../evil"))


def test_another_ledger_in_a_sealed_backup_is_refused(place: Path) -> None:
    """The list says its hash; one that says another hash is not what was sealed with the key."""
    backup()
    lose()
    with Ledger.open("forged.db") as ledger:
        ledger.set_budget(EVERYONE, 9, reason="mine")
    back_up(Path("forged"), "forged.db")
    with zipfile.ZipFile("backup") as old, zipfile.ZipFile("forged") as other:
        ledger_file, sealed, listed = other.read("ledger"), old.read("key.sealed"), old.read("backup.json")
        lying = other.read("backup.json").replace(b'"key": null', b'"key": "404702b4a9c7e559"')
    for list_, says in ((listed, "or it is damaged"), (lying, "or the file was changed")):
        with zipfile.ZipFile("evil", "w") as new:
            for name, content in (("ledger", ledger_file), ("key.sealed", sealed), ("backup.json", list_)):
                new.writestr(name, content)
        with refused(BackupError, says=says):
            come_back("evil")
    assert names("new") == []


def test_without_the_key(place: Path) -> None:
    printed("backup", "backup", "--key", "key", "--without-key")
    with opened(Path("backup")) as found:
        assert found.contents.key is None
    Path("key.ledger").unlink()
    with refused(BackupError, says="was made without the key", remedy="without_key"):
        come_back()
    printed("restore", "backup", "--key", "key", "--without-key")
    assert "(the level before: 0.5)" in release("second.parquet", "1")


def test_a_growing_table_goes_on(place: Path) -> None:
    """Its row tags come back with the ledger that names them."""

    def grow(rows: int, *words: str, key: str = "key") -> str:
        pa_parquet.write_table(pa.table({"id": range(rows), "x": ["a", "b"] * (rows // 2)}), "in.parquet")
        return release(f"grown-{rows}.parquet", "0.5", "--release", "growing", "--growing", *words, key=key)

    grow(100)
    backup()
    lose()
    shutil.rmtree("key.ledger.tags")
    come_back()
    assert "(the level before: 0.5)" in grow(120, key="new/key")


def test_a_ledger_in_postgresql_has_its_own_tools(place: Path, postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    Ledger.open(url).close()
    with refused(LedgerError, says="pg_dump"):
        back_up(Path("backup"), url)
    assert not Path("backup").exists()
    printed("backup", "backup", "--key", "key", "--without-key")
    with refused(LedgerError, says="pg_dump"):
        restore(Path("backup"), "postgresql://someone@localhost:1/none")


def test_a_ledger_that_is_written_to_meanwhile(place: Path) -> None:
    """Whatever moment a backup is of, it adds up, and a later one knows no less."""
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
                counts.append(back_up(Path(f"backup-{number}"), "key.ledger").events)
                assert before <= counts[-1] <= len(ledger.history())
        finally:
            stop.set()
            writer.join()
    assert counts == sorted(counts)
    Path("key.ledger").rename("moved-away")
    restore(Path("backup-4"), "new.ledger")
    with Ledger.open("new.ledger", create=False) as ledger:
        ledger.verify()
        assert len(ledger.history()) == counts[-1]


# A command whose parts take for ever: whoever stops it need not be quick.
SLOW = """
import sys, time, relaxdp.cli.main, relaxdp.safekeeping.archive as archive

def slowly(quick):
    def slow(*arguments):
        quick(*arguments)
        print("one part", flush=True)
        time.sleep(600)
    return slow

archive.Writer.add, archive.Reader.extract = slowly(archive.Writer.add), slowly(archive.Reader.extract)
relaxdp.cli.main.main()
"""


def stopped(number: signal.Signals, *words: str) -> None:
    """Run a command, and stop it while it writes."""
    with subprocess.Popen([sys.executable, "-c", SLOW, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one part\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) != 0


def test_a_backup_that_is_stopped_leaves_nothing(place: Path) -> None:
    before = names(".")
    stopped(signal.SIGTERM, "backup", "backup", "--key", "key", "--without-key")
    assert names(".") == before


def test_what_is_killed_leaves_only_what_the_next_one_removes(place: Path) -> None:
    stopped(signal.SIGKILL, "backup", "backup", "--key", "key", "--without-key")
    left = list(place.glob(".*.relaxdp-unfinished"))
    assert left
    assert not Path("backup").exists()
    backup()
    assert not any(each.exists() for each in left)
    lose()
    before = names(".")
    stopped(signal.SIGKILL, "restore", "backup", "--without-key", "--ledger", "key.ledger")
    left = list(place.glob(".*.relaxdp-unfinished"))
    assert left
    assert names(".") == sorted([*before, *(each.name for each in left)])
    come_back(key="key")
    assert not any(each.exists() for each in left)


def test_a_full_disk_is_one_sentence(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(BackupError, match="cannot be written: No space left on device. Nothing was written"):
            backup()
    assert "backup" not in names(".")
    with pytest.raises((BackupError, TableFileError), match="Nothing was written"):
        backup("absent/backup")
