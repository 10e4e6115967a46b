"""`relaxdp init | release | relax | budget | retire | check | backup` on a vault, end to end."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import printed, status_and_words

import relaxdp as rx
from relaxdp.cli import release as release_command
from relaxdp.cli.release import parse_declared_columns
from relaxdp.errors import OldVaultError, RelaxdpError, VaultError
from relaxdp.tables.vault_folder import VaultFolder

ROWS = 3000
VALUES = ["flu", "covid", "none"]
RNG = np.random.default_rng(3)
TRUTH = RNG.choice(VALUES, ROWS)
AGES = RNG.integers(0, 100, ROWS)
DIAGNOSIS = "diagnosis=flu,covid,none"


def write_table(name: str = "patients.parquet", rows: Any = slice(None), **changes: Any) -> None:
    columns = {
        "patient": np.arange(ROWS),
        "diagnosis": TRUTH,
        "age": AGES,
        "region": np.array(["n", "s"] * (ROWS // 2)),
    }
    columns |= changes
    pa_parquet.write_table(pa.table({key: pa.array(column[rows]) for key, column in columns.items()}), name)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_table()
    printed("init", "study.vault", "--budget", "4")
    return tmp_path


def release(out: str, *words: str, source: str = "patients.parquet", epsilon: str = "0.5") -> str:
    columns = () if "--column" in words else ("--column", DIAGNOSIS)
    return printed("release", source, out, "--id", "patient", "--epsilon", epsilon, *columns, *words)


def budget() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed("budget", "--json"))
    return found


def draw(epsilon: str) -> list[str]:
    """Draw what the release command must give, by the mechanism alone."""
    key = VaultFolder(Path("study.vault")).key
    reports: list[str] = rx.Categorical(VALUES).release(
        TRUTH.tolist(), list(range(ROWS)), key=key, epsilon=epsilon, name="patients", column="diagnosis"
    )
    return reports


# Create a vault.


def test_init_makes_a_private_folder_and_says_what_it_is(place: Path) -> None:
    said = printed("init", "other.vault", "--budget", "2.5", "--reason", "consent of 2026")
    assert "Created the vault 'other.vault' with a budget of 2.5" in said
    assert "is the data" in said
    assert "Keep it private, and back it up" in said
    assert "Use one vault for everything about the same people" in said
    for each in (place / "other.vault").rglob("*"):
        assert each.name == ".gitignore" or not each.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), each
    assert "consent of 2026" in printed("budget", "history", "--vault", "other.vault")


def test_the_key_may_live_elsewhere(place: Path) -> None:
    said = printed("init", "apart.vault", "--budget", "2", "--key-file", "apart.key")
    assert "is in apart.key" in said
    assert not (place / "apart.vault" / "key").exists()
    rx.Key.from_bytes(bytes(range(32))).save("plain.key")
    said = printed("init", "command.vault", "--budget", "2", "--key-command", "cat plain.key")
    assert "comes from the command" in said
    for vault in ("apart.vault", "command.vault"):
        release(f"{vault}.parquet", "--vault", vault)
        assert json.loads(printed("budget", "--vault", vault, "--json"))["spent"] == "0.5"


# Release and relax.


def test_release_writes_ids_and_reports_and_says_what_happens(place: Path) -> None:
    said = release("out.parquet", "--passthrough", "region")
    for part in ("'patients'", "study.vault", "out.parquet", "3,000 rows", "k-ary", "unprotected", "region", "patient"):
        assert part in said
    assert "Spent 0.5 of the budget 4, 3.5 remaining" in said
    out = pa_parquet.read_table("out.parquet")
    assert out.column_names == ["patient", "diagnosis", "region"]
    assert out["diagnosis"].to_pylist() == draw("0.5")


def test_relaxing_costs_the_difference_and_needs_no_table(place: Path) -> None:
    release("out.parquet", "--passthrough", "region")
    Path("patients.parquet").unlink()
    said = printed("relax", "patients", "better.parquet", "--epsilon", "1")
    assert "Cost 0.5. Spent 1 of the budget 4" in said
    assert pa_parquet.read_table("better.parquet")["diagnosis"].to_pylist() == draw("1")
    assert "Cost 0." in printed("relax", "patients", "same.parquet", "--epsilon", "0.5")
    assert pa_parquet.read_table("same.parquet").equals(pa_parquet.read_table("out.parquet"))
    assert budget()["spent"] == "1"


def test_one_column_of_a_release_is_relaxed(place: Path) -> None:
    said = release("out.parquet", "--column", DIAGNOSIS, "--column", "age=0..100", "--dry-run")
    assert "It would cost 1." in said
    release("out.parquet", "--column", DIAGNOSIS, "--column", "age=0..100")
    assert "age_report" in pa_parquet.read_schema("out.parquet").names
    found = json.loads(printed("relax", "patients", "age.parquet", "--epsilon", "1", "--column", "age", "--json"))
    assert (found["cost"], found["spent"], list(found["columns"])) == ("0.5", "1.5", ["age"])


def test_a_dry_run_states_the_cost_and_leaves_nothing(place: Path) -> None:
    before = sorted(place.rglob("*"))
    assert "It would cost 0.5" in release("out.parquet", "--dry-run")
    assert json.loads(release("out.parquet", "--dry-run", "--json"))["dry_run"]
    assert sorted(place.rglob("*")) == before
    assert budget()["spent"] == "0"


def test_json_names_the_vault_and_quiet_says_nothing(place: Path) -> None:
    found = json.loads(release("out.parquet", "--json"))
    assert (found["vault"], found["name"], found["rows"]) == ("study.vault", "patients", ROWS)
    assert found["unprotected"] == ["patient"]
    assert release("again.parquet", "--quiet") == ""
    assert "Dry run" in release("dry.parquet", "--quiet", "--dry-run")


def test_what_can_be_declared(place: Path) -> None:
    """Files of values, missing values and numbers, clipped numbers, mechanisms by name, whole numbers."""
    Path("values.txt").write_text("flu\ncovid\nnone\n")
    ages = pa.array([None if age > 90 else int(age) for age in AGES])
    table = pa_parquet.read_table("patients.parquet")
    gaps = pa.array([None if value == "none" else value for value in TRUTH.tolist()])
    table = table.append_column("gaps", gaps).append_column("half", ages).append_column("hour", pa.array(AGES % 3))
    pa_parquet.write_table(table, "patients.parquet")
    words = [
        *("--values-file", "diagnosis=values.txt", "--column", "gaps=flu,covid", "--missing", "gaps"),
        *("--column", "half=0..50", "--missing", "half", "--clip", "half", "--column", "hour=0,1,2"),
        *("--mechanism", "hour=olh:buckets=4", "--column", "age=0..100", "--mechanism", "age=wave:bins=16,window=4"),
    ]
    found = json.loads(release("out.parquet", *words, "--json"))
    mechanisms = {name: each["mechanism"] for name, each in found["columns"].items()}
    assert mechanisms == {
        "diagnosis": "categorical", "gaps": "categorical", "half": "numeric-missing", "hour": "local-hash",
        "age": "wave",
    }  # fmt: skip
    assert found["cost"] == "2.5"


def test_missing_is_last_among_the_values_and_ranges_are_exact() -> None:
    assert parse_declared_columns(["a=x,y"], [], [], ["a"]) == {"a": ["x", "y", None]}
    for text, ends in {"0..120": (0, 120), "-1.5..2": (-1.5, 2), "-2e3..-1": (-2000, -1), "+1..2": (1, 2)}.items():
        found = parse_declared_columns([f"n={text}"], [], [], [])["n"]
        assert (found.low, found.high) == ends
    assert parse_declared_columns(["n=1..2,3..4"], [], [], []) == {"n": ["1..2", "3..4"]}
    assert parse_declared_columns(["a=b=c,d"], [], [], []) == {"a": ["b=c", "d"]}


def test_sql_shapes_a_file(place: Path) -> None:
    query = "SELECT patient, CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS age_group FROM input"
    found = json.loads(release("out.parquet", "--sql", query, "--column", "age_group=young,old", "--json"))
    assert (found["name"], list(found["columns"])) == ("patients", ["age_group"])


@pytest.mark.parametrize("is_terminal", [True, False])
def test_rows_that_joined_and_left_are_for_a_terminal_only(
    place: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    write_table(rows=slice(5, None))
    release("out.parquet")
    write_table(rows=slice(0, ROWS - 3))
    monkeypatch.setattr(release_command, "is_interactive", lambda: is_terminal)
    said = release("next.parquet", "--json")
    assert ("5 rows joined and 3 left" in said) == is_terminal
    assert "joined" not in json.loads(said.splitlines()[0])


def test_changed_rows_are_rejected_with_both_ways_out(place: Path) -> None:
    release("out.parquet")
    write_table(diagnosis=np.roll(TRUTH, 1))
    status, said = status_and_words(
        "release", "patients.parquet", "next.parquet", "--id", "patient", "--column", DIAGNOSIS, "--epsilon", "1"
    )
    assert status == 2
    assert "relaxdp relax" in said
    assert "new name" in said
    release("next.parquet", "--name", "patients-2027")
    assert budget()["spent"] == "1"


# The budget.


def test_budget_shows_raises_and_remembers(place: Path) -> None:
    release("out.parquet")
    shown = printed("budget")
    for part in ("study.vault", "patients", "diagnosis", "0.5", "spent", "remaining"):
        assert part in shown
    assert "is now 5, 4.5 of it remaining" in printed("budget", "raise", "5", "--reason", "board decision")
    found = budget()
    assert (found["budget"], found["spent"], found["remaining"]) == ("5", "0.5", "4.5")
    assert found["releases"] == [
        {
            "name": "patients",
            "column": "diagnosis",
            "mechanism": "k-ary randomized response",
            "epsilon": "0.5",
            "retired": False,
        }
    ]
    history = printed("budget", "history")
    assert "board decision" in history
    assert "study.vault" in history
    events = printed("budget", "history", "--json")
    assert len(json.loads(events)["events"]) == 3
    assert '"snapshot"' in events
    assert '"joined"' not in events
    assert '"left"' not in events
    assert '"known"' not in events


def test_a_retired_release_is_never_relaxed_and_its_cost_stays(place: Path) -> None:
    release("out.parquet")
    assert "Its cost stays." in printed("retire", "patients", "--reason", "the study ended")
    assert not list((place / "study.vault" / "snapshots").iterdir())
    assert status_and_words("relax", "patients", "more.parquet", "--epsilon", "1")[0] == 2
    assert budget()["spent"] == "0.5"
    assert "patients (retired)" in printed("budget")


# Find, check, adopt, back up.


def test_the_vault_is_found_by_option_variable_or_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed("init", "other.vault", "--budget", "7")
    with pytest.raises(VaultError, match="other.vault.*study.vault"):
        printed("budget")
    assert "7" in printed("budget", "--vault", "other.vault")
    monkeypatch.setenv("RELAXDP_VAULT", "study.vault")
    assert budget()["budget"] == "4"
    assert json.loads(printed("budget", "--json", "--vault", "other.vault"))["budget"] == "7"
    assert "is now 5" in printed("budget", "raise", "5", "--reason", "named by the variable")
    monkeypatch.delenv("RELAXDP_VAULT")
    os.chdir("other.vault")
    with pytest.raises(VaultError, match="no vault"):
        printed("budget")


def test_check_verifies_vault_and_files(place: Path) -> None:
    release("out.parquet")
    said = printed("check", "out.parquet")
    assert "study.vault" in said
    assert "drawn again and equal" in said
    reports = pa_parquet.read_table("out.parquet")
    swapped = reports.set_column(1, "diagnosis", reports["diagnosis"].take(pa.array(range(ROWS)[::-1])))
    pa_parquet.write_table(swapped, "swapped.parquet")
    assert "Problem: swapped.parquet" in printed("check", "swapped.parquet", status=1)
    assert json.loads(printed("check", "swapped.parquet", "--json", status=1))["problems"]


def test_an_older_copy_is_rejected_until_it_is_adopted(place: Path) -> None:
    shutil.copytree("study.vault", "copy")
    release("out.parquet")
    shutil.rmtree("study.vault")
    shutil.move("copy", "study.vault")
    with pytest.raises(OldVaultError, match="relaxdp check --adopt"):
        release("next.parquet")
    printed("check", status=1)
    printed("check", "--adopt", "the newer one burnt")
    assert budget()["spent"] == "0"
    assert "the newer one burnt" in printed("budget", "history")


def test_a_backup_leaves_the_key_out_unless_asked(place: Path) -> None:
    release("out.parquet")
    assert "without its key" in printed("backup", "copy")
    assert not (place / "copy" / "key").exists()
    assert "with its key" in printed("backup", "whole", "--with-key")
    shutil.rmtree("study.vault")
    shutil.move("whole", "study.vault")
    assert "Cost 0.5" in printed("relax", "patients", "more.parquet", "--epsilon", "1")


def test_the_first_page_by_shell(place: Path) -> None:
    """Run the five commands of the introduction as a person types them, and one with a mistake."""
    shutil.rmtree("study.vault")
    script = """set -e
    relaxdp init study.vault --budget 2
    relaxdp release patients.parquet out.parquet --id patient --column diagnosis=flu,covid,none --epsilon 0.6
    relaxdp relax patients better.parquet --epsilon 1
    relaxdp estimate better.parquet
    relaxdp budget
    relaxdp relax patients best.parquet --epsilon 3
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    error, hint, consequence = done.stderr.splitlines()
    assert error.startswith("Error: ")
    assert hint.startswith("Hint: ")
    assert "relaxdp budget raise" in hint
    assert consequence == "Nothing was released."
    assert "covid" in done.stdout
    assert not Path("best.parquet").exists()


def test_every_error_of_these_commands_is_ours(place: Path) -> None:
    """A vault that is a file, damaged or open to others."""
    Path("file.vault").write_text("no vault")
    shutil.copytree("study.vault", "damaged.vault")
    Path("damaged.vault/ledger.db").unlink()
    shutil.copytree("study.vault", "wide.vault")
    Path("wide.vault").chmod(0o755)
    for name in ("file.vault", "damaged.vault", "wide.vault"):
        with pytest.raises(RelaxdpError) as caught:
            printed("budget", "--vault", name)
        assert caught.value.hint, name
