"""A key that is reached by a link, or copied, begins no second ledger: what it has spent elsewhere is noticed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import (
    AnswerChangedError,
    BudgetError,
    BudgetExceededError,
    DeviceFileError,
    LedgerError,
    RelaxdpError,
    SecondLedgerError,
    StateFolderWarning,
)
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.marks import Marks, state_folder
from relaxdp.market.client_pool import Pool, remember

KEY = rx.Key.from_bytes(bytes(range(32)))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key and a table, and another one that is empty."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    KEY.save("first/key")
    pa_parquet.write_table(pa.table({"id": range(200), "x": ["a", "b"] * 100}), "in.parquet")
    return tmp_path


def run(*words: str) -> str:
    result = CliRunner().invoke(app, [*words])
    if isinstance(result.exception, RelaxdpError | Warning):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def release(key: str, *words: str, target: str = "out.parquet", epsilon: str = "1") -> str:
    Path(target).unlink(missing_ok=True)
    command = "relax" if "--from-reports" in words else "release"
    return run(
        command, "in.parquet", target, "--column", "x", "--id", "id", "--values", "a,b", "--epsilon", epsilon,
        "--key", key, *words,
    )  # fmt: skip


def copied(folder: str = "first") -> str:
    shutil.copy(f"{folder}/key", "second/key")
    return "second/key"


def names(folder: str) -> list[str]:
    return sorted(file.name for file in Path(folder).iterdir())


def test_no_test_touches_the_users_own_state_folder(state: Path) -> None:
    asked = "from relaxdp.ledger.marks import state_folder; print(state_folder())"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert state_folder() == state / "relaxdp" == Path(told.rstrip("\n"))
    release("first/key", "--budget", "2")
    assert list(state.rglob("*.json"))


def test_where_the_state_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", given)
        assert state_folder() in (
            tmp_path / ".local" / "state" / "relaxdp", tmp_path / "Library" / "Application Support" / "relaxdp"
        )  # fmt: skip


def test_a_link_leads_to_the_ledger_beside_the_key(place: Path) -> None:
    (place / "second" / "link").symlink_to("../first/key")
    release("first/key", "--budget", "1")
    with refused(BudgetExceededError, budget="1"):
        release("second/link", "--release", "another")
    assert "(the level before: 1)" in release("second/link")
    assert "spent" in run("budget", "show", "--key", "second/link")
    assert (names("first"), names("second")) == (
        ["key", "key.ledger", "key.ledger.begun", "key.ledger.snapshots"],
        ["link"],
    )


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--ledger", "second/chosen.db"), ("--release", "another")])
def test_a_copy_begins_no_second_ledger(place: Path, words: tuple[str, ...]) -> None:
    release("first/key", "--budget", "1")
    before = names("second")
    with pytest.raises(SecondLedgerError) as found:
        release(copied(), "--budget", "1", *words)
    assert found.value.message == (
        f"this key has spent in another ledger: {str(place / 'first' / 'key.ledger')!r}. One that begins anew would "
        "forget that. Go on with it: --ledger names it. If there must be a new one, say why: --new-ledger REASON. "
        "Nothing was released."
    )
    assert names("second") == [*before, "key"]
    assert not Path("out.parquet").exists()


def test_a_copy_goes_on_with_the_ledger(place: Path) -> None:
    release("first/key", "--budget", "2")
    assert "(the level before: 1)" in release(copied(), "--ledger", "first/key.ledger", epsilon="2")


def test_a_new_ledger_on_purpose_is_recorded(place: Path) -> None:
    release("first/key", "--budget", "2")
    key = copied()
    with refused(BudgetError, most=500):
        release(key, "--budget", "2", "--new-ledger", " ")
    release(key, "--budget", "2", "--new-ledger", "another hospital")
    assert "(the level before: 1)" in release(key, epsilon="2")  # it knows the key now, and asks no more
    assert "(the level before: 1)" in release("first/key", epsilon="2")
    history = run("budget", "history", "--key", key)
    said = f"begun anew for the key {KEY.fingerprint}, which has spent elsewhere (another hospital; it has spent in"
    assert history.count(said) == 1
    assert str(place / "first" / "key.ledger") in history
    with Ledger.open("second/key.ledger") as ledger:
        ledger.verify()


def test_key_and_ledger_move_together(place: Path) -> None:
    release("first/key", "--budget", "2")
    Path("first").rename("moved")
    assert "(the level before: 1)" in release("moved/key", epsilon="2")
    with refused(SecondLedgerError, ledgers=[str(place / name / "key.ledger") for name in ("first", "moved")]):
        release(copied("moved"), "--budget", "2")


def test_a_ledger_that_is_lost_with_its_mark_is_missed(place: Path) -> None:
    release("first/key", "--budget", "2")
    for name in ("key.ledger", "key.ledger.begun"):
        Path("first", name).unlink()
    with refused(SecondLedgerError, says="which knows nothing of it any more. Restore it"):
        release("first/key", "--budget", "2")
    release("first/key", "--budget", "2", "--new-ledger", "lost, made anew")


def test_a_charge_that_failed_locks_nobody_out(place: Path, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """As after a crash between the mark and the charge: the mark is there, and leads to nothing."""
    key = copied()
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge_all", refuse)
        with refused(LedgerError, says="full"):
            release("first/key", "--budget", "2")
    assert len(list(state.rglob("*.json"))) == 1
    release(key, "--budget", "2")
    with pytest.raises(SecondLedgerError):
        release("first/key", "--budget", "2")


def refuse(*_: Any, **__: Any) -> None:
    raise LedgerError("full")


def test_a_charge_that_was_not_confirmed_counts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a crash between the charge and what confirms its mark: the other ledger is looked into."""
    write = Marks.write
    with monkeypatch.context() as patch:
        patch.setattr(Marks, "write", lambda marks, here, *, sure: sure or write(marks, here, sure=sure))
        release("first/key", "--budget", "2")
    with pytest.raises(SecondLedgerError):
        release(copied(), "--budget", "2")
    Path("first/key.ledger").write_bytes(b"damaged")
    with pytest.raises(SecondLedgerError):  # where nobody can tell, it has spent
        release("second/key", "--budget", "2")


def test_another_ledger_that_holds_nothing_of_the_key_is_harmless(place: Path) -> None:
    with Ledger.open("others.db") as ledger:
        ledger.set_budget(Subject.population("others"), 3, reason="others")
        Marks("ledgers", KEY.fingerprint).mark_of(ledger.address).parent.mkdir(parents=True)
        assert Marks("ledgers", KEY.fingerprint).write(ledger.address, sure=False)
    release("first/key", "--budget", "2")


def test_a_mark_holds_no_secret(place: Path, state: Path) -> None:
    release("first/key", "--budget", "2")
    (mark,) = state.rglob("*.json")
    assert json.loads(mark.read_text()) == {"place": str(place / "first" / "key.ledger"), "sure": True}
    assert mark.parent.name == KEY.fingerprint
    assert (mark.stat().st_mode & 0o777, mark.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert bytes(range(32)).hex() not in mark.read_text()


def test_a_damaged_mark_stops_nobody(place: Path, state: Path) -> None:
    folder = state / "relaxdp" / "ledgers" / KEY.fingerprint
    folder.mkdir(parents=True)
    (folder / "mark.json").write_text("{}")
    (folder / "mark.json").chmod(0o600)
    with pytest.warns(StateFolderWarning, match=r"holds a damaged mark, 'mark\.json'\. It remembers where"):
        release("first/key", "--budget", "2")
    with pytest.warns(StateFolderWarning), pytest.raises(SecondLedgerError):
        release(copied(), "--budget", "2")


def test_a_state_folder_that_cannot_be_used_stops_nobody(place: Path, state: Path) -> None:
    state.write_text("")
    words = ["release", "in.parquet", "out.parquet", "--column", "x", "--id", "id", "--values", "a,b", "--epsilon", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "relaxdp", *words, "--key", "first/key", "--budget", "2"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == (
        f"the state folder {str(state / 'relaxdp' / 'ledgers' / KEY.fingerprint)!r} cannot be used: Not a directory. "
        "It remembers where a key has spent; without it a copy of the key is not noticed.\n"
    )


def test_frames_and_other_commands_keep_the_rule(place: Path) -> None:
    frame, columns = pa_parquet.read_table("in.parquet"), {"x": rx.Categorical(["a", "b"])}
    options: dict[str, Any] = {"id": "id", "epsilon": 1, "key": KEY, "release": "in", "budget": 3}
    rx.release(frame, columns, ledger="first/ledger.db", **options)
    with refused(SecondLedgerError, ledgers=[str(place / "first" / "ledger.db")], says="in another ledger"):
        rx.release(frame, columns, ledger="second/ledger.db", **options)
    rx.release(frame, columns, ledger="second/ledger.db", new_ledger="another hospital", **options)
    release("first/key", "--no-ledger", target="old.parquet", epsilon="0.5")
    for words in ((), ("--dry-run",)):
        with pytest.raises(SecondLedgerError):
            release("first/key", "--from-reports", "old.parquet", "--budget", "3", "--ledger", "third.db", *words)
    Path("params.csv").write_text("k,h,m,f\n8,2,2,0.5\n")
    rappor = ("rappor", "encode", "in.parquet", "reports.parquet", "--params", "params.csv", "--key", "first/key")
    with pytest.raises(SecondLedgerError):
        run(*rappor, "--id", "id", "--column", "x", "--budget", "3", "--ledger", "third.db")
    assert not Path("third.db").exists()


POOL = Pool("salaries", rx.Categorical(["a", "b"]).encoding, (Decimal("0.5"),))


def test_a_copied_or_linked_key_answers_a_pool_once(place: Path) -> None:
    Path("second/link").symlink_to("../first/key")
    remember(POOL, "a", key=rx.Key.load("second/link"))
    assert (names("first"), names("second")) == (["key", "key.pools"], ["link"])
    other = Path(copied())
    for answer in ("a", "b"):
        with pytest.raises(
            DeviceFileError, match=r"used for pools before, which .*first/key\.pools.* Nothing was sent"
        ):
            remember(POOL, answer, key=rx.Key.load(other))
    assert names("second") == ["key", "link"]
    shutil.copy("first/key.pools", "second/key.pools")
    remember(POOL, "a", key=rx.Key.load(other))
    Path("first/key.pools").unlink()
    with refused(DeviceFileError, says="used for pools before"):
        remember(POOL, "b", key=rx.Key.load("first/key"))


def test_a_key_from_no_file_answers_a_pool_once(state: Path) -> None:
    remember(POOL, "a", key=rx.Key.from_command("cat first/key"))
    remember(POOL, "a", key=KEY)
    with refused(AnswerChangedError):
        remember(POOL, "b", key=KEY)
    with refused(DeviceFileError, says="used for pools before"):
        remember(POOL, "a", key=rx.Key.load("first/key"))
    assert len(list(state.rglob("*.pools"))) == 1


def test_a_pool_is_joined_without_a_state_folder(place: Path, state: Path) -> None:
    state.write_text("")
    with pytest.warns(StateFolderWarning, match="cannot be used: Not a directory"):
        remember(POOL, "a", key=rx.Key.load("first/key"))
    assert Path("first/key.pools").exists()
