"""Mistakes in the transaction of a vault, each of which the oracle must notice: otherwise it proves nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis.errors import Flaky
from tests.faults.tables import world as worlds
from tests.faults.tables.jobs import Job, make_person
from tests.faults.tables.test_histories import Histories, explore
from tests.faults.tables.world import World, attempt

from relaxdp.ledger.account import make_release_event
from relaxdp.ledger.events import SnapshotSummary
from relaxdp.tables import snapshot_comparison, transaction, vault
from relaxdp.tables.release_plan import StagedRelease
from relaxdp.tables.release_result import Release
from relaxdp.tables.snapshot import get_snapshot_path
from relaxdp.tables.snapshot_comparison import ColumnSnapshotWriter
from relaxdp.tables.vault_folder import VaultFolder, list_needed_snapshot_digests

FORK = multiprocessing.get_context("fork")
PATIENCE = 60  # seconds, for events that occur at once
ROWS = tuple(make_person(each) for each in range(40))
FIRST = Job("release", "n1", "2", ("a", "b"), ROWS[:38], ("g",), accept=True)
OTHER = tuple(replace(row, a="x" if row.a == "y" else "y") if row.person in (0, 39) else row for row in ROWS)
"""The same table, in which two people have another value."""


def charge_before_stage(plan: Any, stager: Any, source: Any) -> Any:
    with plan.vault.lock_snapshots(plan.account), stager.resources:
        unknown = StagedRelease(0, tuple(SnapshotSummary("", 0, 0, 0, 0) for _ in plan.columns), None)
        account = transaction._charge(plan, unknown, stager)
        staged = transaction._stage(plan, stager)
        stager.hand_over()
    return Release.from_plan(plan, source, staged, account, output=stager.target, table=stager.table)


def publish_before_charge(plan: Any, stager: Any, source: Any) -> Any:
    with plan.vault.lock_snapshots(plan.account), stager.resources:
        staged = transaction._stage(plan, stager)
        stager.hand_over()
        account = transaction._charge(plan, staged, stager)
        plan.vault.remove_superseded_snapshots(plan.account, account)
    return Release.from_plan(plan, source, staged, account, output=stager.target, table=stager.table)


def forget_rows(seal: Any, rows: Any, *, is_last: bool = False) -> None:
    """Replace the snapshot: rows that have left are not kept."""


def compare_if_paid(seal: Any, rows: Any, chunk: bytes) -> None:
    if seal.comparison is not None:
        seal._keep_absent_rows(seal.comparison.compare_rows(rows))
        if seal.comparison.changed and seal._column.cost:
            snapshot_comparison.reject_changed_values(seal._plan, seal._column)
    seal.part.write(chunk)
    seal._rows += len(rows)


def swap_without_compare(account: Any, draft: Any, expected: Any, charge: Any = make_release_event) -> Any:
    return charge(account, draft, account.releases.get(draft.name))


def sweep_by_old_account(folder: Any, account: Any) -> None:
    named = {get_snapshot_path(folder.snapshots, digest) for digest in list_needed_snapshot_digests(account)}
    for left in set(folder.snapshots.iterdir()) - named:
        left.unlink()


# Histories, which the transaction survives as it is.


def release_changed_table(world: World) -> None:
    """A changed table is rejected at any level, and nothing is charged."""
    for level in ("3", "2", "1"):
        world.do(replace(FIRST, epsilon=level, rows=OTHER))


def crash_everywhere(world: World) -> None:
    for step in range(40, 72):
        world.do(replace(FIRST, epsilon=f"{2 + step / 100}", sink="parquet"), crash_at=step, again=True)


def return_changed(world: World) -> None:
    """A person leaves, and comes back with another value."""
    world.do(replace(FIRST, rows=ROWS[1:38]))
    world.do(replace(FIRST, rows=OTHER[:38]))


def race_slowly(step: str, jobs: list[Job]) -> Callable[[World], None]:
    """Two operations. The first waits after a step until the second has started and ended."""

    def run(world: World) -> None:
        owner: Any = transaction if step == "_stage" else vault
        real, is_reached, is_ended = getattr(owner, step), FORK.Event(), FORK.Event()

        def wait_after_step(*arguments: Any) -> Any:
            found = real(*arguments)
            request = found.request if step == "plan_release" else arguments[0].request
            if str(request.epsilon) == jobs[0].epsilon:
                is_reached.set()
                assert is_ended.wait(PATIENCE)
            return found

        def wait_for_step(path: Path, job: Job, *arguments: Any) -> Any:
            if job != jobs[1]:
                return attempt(path, job, *arguments)
            assert is_reached.wait(PATIENCE)
            try:
                return attempt(path, job, *arguments)
            finally:
                is_ended.set()

        with patch.object(owner, step, wait_after_step), patch.object(worlds, "attempt", wait_for_step):
            world.race(jobs, [0, 0])
        world.check_files()

    return run


@dataclass(frozen=True)
class Mutant:
    """A mistake, and a history that must not survive it."""

    owner: Any
    name: str
    replacement: Callable[..., Any]
    history: Callable[[World], None]
    noticed: str


MUTANTS = [
    Mutant(vault, "run_release", charge_before_stage, release_changed_table, "a rejected operation was charged"),
    Mutant(vault, "run_release", publish_before_charge, crash_everywhere, "reports left that were never paid for"),
    Mutant(ColumnSnapshotWriter, "_keep_absent_rows", forget_rows, return_changed, "RowsChangedError"),
    Mutant(ColumnSnapshotWriter, "add", compare_if_paid, release_changed_table, "RowsChangedError"),
    Mutant(
        transaction, "make_release_event", swap_without_compare,
        race_slowly("_stage", [replace(FIRST, epsilon="4", rows=ROWS), replace(FIRST, epsilon="3", rows=OTHER[1:])]),
        "carried out that must be rejected",
    ),
    Mutant(
        VaultFolder, "_remove_unnamed_snapshots", sweep_by_old_account,
        race_slowly("plan_release", [replace(FIRST, epsilon="4"), replace(FIRST, name="n2", epsilon="3")]),
        "cannot be read",
    ),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.replacement.__name__)
def test_mistakes_are_noticed(memory: Path, mutant: Mutant) -> None:
    for is_mutated in (False, True):
        (memory / str(is_mutated)).mkdir()
        world = World(memory / str(is_mutated), budget=100)
        world.do(FIRST)
        if not is_mutated:
            mutant.history(world)
            continue
        mutated = patch.object(mutant.owner, mutant.name, mutant.replacement)
        with mutated, pytest.raises(AssertionError, match=mutant.noticed):
            mutant.history(world)


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS[:5], ids=lambda mutant: mutant.replacement.__name__)
def test_random_histories_notice_mistakes(mutant: Mutant) -> None:
    """Without help. The last mistake takes a process that pauses for longer than one ever does there."""
    with patch.object(mutant.owner, mutant.name, mutant.replacement), pytest.raises((AssertionError, Flaky)):
        explore(Histories, 400, 1, shrink=False)
