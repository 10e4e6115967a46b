"""A ledger that is lost, on the command line: it is missed, nothing is begun by a refusal, and it can be made anew."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import printed
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import (
    BudgetExceededError,
    BudgetMissingError,
    LedgerAccessError,
    LevelError,
    OldLedgerError,
    RelaxdpError,
    SamplerChangedError,
    SecondLedgerError,
)
from relaxdp.ledger.entries import Entry, PathFacts, Subject
from relaxdp.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    pa_parquet.write_table(
        pa.table({"id": range(200), "x": ["a", "b"] * 100, "region": ["n", "s"] * 100}), "in.parquet"
    )
    return tmp_path


def release(target: str, epsilon: str, *words: str) -> Any:
    columns = ("--column", "x", "--values", "a,b") if "--column" not in words else ()
    command = "relax" if "--from-reports" in words else "release"
    return printed(
        command, "in.parquet", target, "--id", "id", "--epsilon", epsilon, "--key", "key", "--yes", *columns, *words
    )


def names(place: Path) -> list[str]:
    return sorted(file.name for file in place.iterdir())


def test_a_key_without_a_ledger(place: Path) -> None:
    with pytest.raises(BudgetMissingError) as found:
        release("out.parquet", "1")
    assert found.value.message == (
        f"there is no ledger {str(place / 'key.ledger')!r}. If this key has released before, restore it "
        "(docs/ledger.md); else begin it with a budget. --budget 2 gives one. Nothing was released."
    )
    assert "would cost 1" in release("out.parquet", "1", "--budget", "2", "--dry-run")
    with refused(BudgetExceededError, budget="2"):
        release("out.parquet", "3", "--budget", "2")
    assert names(place) == ["in.parquet", "key"]


def test_a_lost_ledger_is_missed_and_made_anew(place: Path) -> None:
    """As docs/ledger.md says: without the mark, each file's epsilon again charges it again and gives the same file."""
    release("first.parquet", "0.5", "--budget", "2")
    release("second.parquet", "1")
    shown = printed("budget", "show", "--key", "key")
    (place / "key.ledger").rename(place / "lost")
    before = names(place)
    for words in ((), ("--budget", "2"), ("--budget", "2", "--dry-run"), ("--ledger", "key.ledger", "--budget", "2")):
        with pytest.raises(LedgerAccessError, match="is gone: one was begun here .* Nothing was released"):
            release("third.parquet", "1", *words)
    with pytest.raises(LedgerAccessError, match="is gone: one was begun here .* as docs/ledger.md says.$"):
        printed("budget", "show", "--key", "key")
    assert names(place) == before
    (place / "key.ledger.begun").unlink()
    with refused(SecondLedgerError, says="which knows nothing of it any more"):
        release("first-again.parquet", "0.5", "--budget", "2")
    release("first-again.parquet", "0.5", "--budget", "2", "--new-ledger", "lost, made anew")
    release("second-again.parquet", "1")
    for name in ("first", "second"):
        assert (place / f"{name}.parquet").read_bytes() == (place / f"{name}-again.parquet").read_bytes()
    assert printed("budget", "show", "--key", "key") == shown


def test_an_older_copy_in_the_ledgers_place_is_noticed(place: Path, state: Path) -> None:
    """By the number of entries that the user's marks know; who goes on says why, and that is recorded."""
    release("first.parquet", "0.5", "--budget", "2")
    older = (place / "key.ledger").read_bytes()
    release("second.parquet", "1")
    (place / "key.ledger").write_bytes(older)
    for words in ((), ("--dry-run",)):
        with pytest.raises(OldLedgerError) as found:
            release("third.parquet", "1.5", *words)
    assert found.value.message == (
        f"the ledger {str(place / 'key.ledger')!r} is an older copy: it had 4 entries when this key last spent, and "
        "has 3. Restore the newer one; if it is lost, charge what is missing (`relaxdp budget check FILES` names it), "
        "the first time with --new-ledger REASON. Nothing was released."
    )
    release("again.parquet", "1", "--new-ledger", "the newer one is lost")
    assert "the newer one is lost; it had 4 entries, and has 3" in printed("budget", "history", "--key", "key")
    release("third.parquet", "1.5")
    with Ledger.open("key.ledger") as ledger:
        ledger.verify()
    (count,) = state.rglob("*.entries")
    assert (int(count.read_text()), count.stat().st_mode & 0o777) == (6, 0o600)
    count.write_text("damaged")
    release("fourth.parquet", "1.75")


def test_what_a_kill_left_of_its_beginning_is_swept(place: Path) -> None:
    left = place / ".key.ledger.0a1b_c2d.relaxdp-unfinished"
    others = [place / ".key.ledger.mine", place / ".other.ledger.0a1b_c2d.relaxdp-unfinished"]
    for file in (left, left.with_name(f"{left.name}-journal"), *others):
        file.touch(0o600)
    release("first.parquet", "0.5", "--budget", "2")
    assert sorted(place.glob(".*")) == sorted(others)


def test_what_was_made_with_last_is_charged_and_not_drawn_again(place: Path) -> None:
    """As docs/ledger.md says: from what the file says about itself, and the path goes on from there."""
    release("old.parquet", "0.5", "--budget", "3")
    release("relaxed.parquet", "2", "--from-reports", "old.parquet")
    (place / "key.ledger").unlink()
    (place / "key.ledger.begun").unlink()
    said = rx.description("relaxed.parquet").columns["x"]
    digest = rx.Categorical(["a", "b"]).encoding.params.hex()
    facts = PathFacts(
        "categorical", digest, said.key_fingerprint, said.id_type, table_fingerprint=None, sampler=said.sampler
    )
    with Ledger.open("key.ledger") as ledger:
        ledger.charge_all(
            Subject.population("everyone"), [Entry(said.path, facts, said.epsilon, last=Decimal("0.5"))], budget=3,
            reason="relaxed.parquet, by Algorithm 1",
        )  # fmt: skip
    anew = ("--new-ledger", "lost, made anew")
    for words, error in ((("--again",), SamplerChangedError), (("--from-reports", "old.parquet"), LevelError)):
        with refused(error, path="'x' of release 'in'"):
            release("second-draw.parquet", "2", *words, *anew)
    with refused(OldLedgerError, known=5, found=4):  # the marks know that more was recorded
        release("more.parquet", "2.5", "--from-reports", "relaxed.parquet")
    said = release("more.parquet", "2.5", "--from-reports", "relaxed.parquet", *anew)
    assert "cost 0.5; spent 2.5 of the budget 3" in said


def test_a_frame_misses_its_ledger_too(place: Path) -> None:
    options: dict[str, Any] = {
        "id": "id", "epsilon": 1, "key": rx.Key.load("key"), "release": "in", "ledger": "ledger.db"
    }  # fmt: skip
    frame, columns = pa_parquet.read_table("in.parquet"), {"x": rx.Categorical(["a", "b"])}
    with pytest.raises(
        BudgetMissingError, match=r"there is no ledger .* with a budget. budget=2 gives one. Nothing was released.$"
    ):
        rx.release(frame, columns, **options)
    assert names(place) == ["in.parquet", "key"]
    rx.release(frame, columns, budget=1, **options)
    (place / "ledger.db").unlink()
    with pytest.raises(LedgerAccessError, match="is gone: one was begun here"):
        rx.release(frame, columns, budget=1, **options)


def test_several_columns_that_do_not_fit(place: Path) -> None:
    release("x.parquet", "1", "--budget", "2")
    both = ("--column", "x", "--column", "region", "--values", "x=a,b", "--values", "region=n,s")
    for words in (both, (*both, "--dry-run")):
        with refused(BudgetExceededError, left="1", budget="2", needed="1.5"):
            release("both.parquet", "1.25", *words)
    assert "spent 2 of the budget 2" in release("both.parquet", "1", *both)


def test_other_values_are_refused_in_words(place: Path) -> None:
    release("x.parquet", "1", "--budget", "2")
    with pytest.raises(RelaxdpError) as found:
        printed(
            "release", "in.parquet", "y.parquet", "--id", "id", "--epsilon", "1", "--key", "key", "--column", "x",
            "--values", "b,a",
        )  # fmt: skip
    assert found.value.message == (
        "the list of values (or their order) is not what 'x' of release 'in' was released with. Give the same --values "
        "in the same order, with --nulls as before. --force opens a new path, charged to everyone in addition to the 1 "
        "of the old one. Nothing was released."
    )
