"""A folder with vaults, in which operations run, crash and race, and are compared with the oracle."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults.tables.jobs import Job
from tests.faults.tables.oracle import EVENTS, KEY, Lineage, Output, read_output
from tests.faults.tables.steps import Child, Steps, crash

from relaxdp.errors import RelaxdpError
from relaxdp.ledger.events import BudgetRaised, ReleaseCharged, ReleaseRetired, VaultCreated
from relaxdp.sampling.keys import Key
from relaxdp.tables.vault import Vault
from relaxdp.tables.vault_folder import VaultFolder

NO_FAULT = Steps(0, crash)


@dataclass(slots=True)
class Result:
    """What an operation returned to its caller."""

    error: str | None = None
    cost: Decimal = Decimal(0)
    table: Any = None
    events: list[int] = field(default_factory=list)


def attempt(vault: Path, job: Job, data: Any, output: Path | None, steps: Steps = NO_FAULT) -> Result:
    """Run an operation on the vault in a folder, with a fault."""
    result, append = Result(), VaultFolder.append_event

    def watch(folder: VaultFolder, make: Any) -> Any:
        account = append(folder, make)
        result.events.append(account.number)
        return account

    with steps.installed(), patch.object(VaultFolder, "append_event", watch):
        try:
            release = job.run(Vault(vault), data, output)
        except RelaxdpError as problem:
            result.error = type(problem).__name__
            return result
    if release is not None:
        result.cost, result.table = sum((each.cost for each in release.columns), Decimal(0)), release.table
    return result


class World:
    """A folder with vaults, tables and outputs, a state folder for each machine, and what must be true of them."""

    def __init__(self, folder: Path, budget: int = 8, ledger: str | None = None) -> None:
        self.folder, self.outputs, self.stopped = folder, list[Output](), Counter[str]()
        self._numbers, self._is_shared = count(1), ledger is not None
        (folder / "out").mkdir()
        self.use_new_machine()
        self.path = folder / "study.vault"
        with patch.object(Key, "generate", lambda: KEY):
            Vault.create(self.path, budget=budget, ledger=ledger)
        self.lineage = Lineage(Decimal(budget), events=[next(EVENTS)])
        self.copies: list[tuple[Path, Lineage]] = []
        self._move_stamp()

    def use_new_machine(self) -> None:
        """Continue where no stamp is known."""
        self._state = self.folder / f"state-{next(self._numbers)}"
        os.environ["XDG_STATE_HOME"] = str(self._state)
        self._stamp: tuple[int, int] | None = None
        self._get_stamp_folder: list[bytes] = []

    @property
    def is_old(self) -> bool:
        """Whether the vault must be rejected until it is adopted."""
        if self._stamp is None:
            return not self._is_shared
        number, event = self._stamp
        return number > len(self.lineage.events) or self.lineage.events[number - 1] != event

    def _move_stamp(self, *, must: bool = True) -> None:
        """Read the stamp after an operation; a crash may have come before it."""
        found = [place.read_bytes() for place in self._state.glob("relaxdp/vaults/*.json")]
        if found != self._get_stamp_folder:
            number = json.loads(found[0])["event"]
            self._get_stamp_folder, self._stamp = found, (number, self.lineage.events[number - 1])
        last = len(self.lineage.events), self.lineage.events[-1]
        assert self._stamp == last or not must, "the stamp was not moved"

    def judge(self, job: Job) -> set[str]:
        """Return the errors by which an operation must be rejected."""
        return {"OldVaultError"} if self.is_old else self.lineage.find_rejections(job)

    def do(
        self, job: Job, *, crash_at: int = 0, after: bool = False, again: bool = False, kill_after: float | None = None
    ) -> str | None:
        """Run an operation, perhaps crash or kill it and run it again, and check everything; return its error."""
        expected, before, costs = self.judge(job), self._list_files(), self._get_costs(job)
        data, output = self._prepare(job)
        run = partial(attempt, self.path, job, data, output, Steps(crash_at, crash, after=after))
        result: Result | None = run() if not crash_at and kill_after is None else Child(run).wait(kill_after)
        events = self._read_events()[len(self.lineage.events) :]
        if result is None:
            assert not (events and expected), f"charged, although {expected}"
            self._settle(job, events, output)
            self.stopped["paid" if events else "unpaid"] += 1
            if again and job.kind in ("release", "relax"):
                assert not (events and self.judge(job)), "it cannot be finished"
                return self.do(job)
            return None
        if expected:
            assert result.error in expected, (result.error, expected)
            assert not events, "a rejected operation was charged"
            assert self._list_files() <= before, "a rejected operation left something behind"
            return result.error
        assert result.error is None, result.error
        assert result.cost == sum(costs)
        self._apply(job, events[-1:])
        assert len(events) == 1
        self._move_stamp()
        self._publish(job, result, output)
        if job.kind in ("release", "relax"):
            self._check_tidy(is_file=output is not None)
        return None

    def do_with_fault(self, job: Job, run: Callable[[Callable[[], Result]], tuple[Result, str | None]]) -> str | None:
        """Run an operation in which one step fails, and then again; return the step, None where nothing failed.

        `run` runs it with the fault, and returns its result and the step that failed. What is left behind by one that
        is "uncertain" is removed by the next release.
        """
        data, output = self._prepare(job)
        result, step = run(partial(attempt, self.path, job, data, output))
        events = self._read_events()[len(self.lineage.events) :]
        assert result.error or events
        self._settle(job, events, output)
        if not result.error and output is None:
            self._publish(job, result, None)
        is_there = output is not None and output.exists()
        assert is_there or result.error or output is None
        if step not in ("unlink", "COMMIT", "uncertain") and job.kind in ("release", "relax"):
            self._check_tidy(is_file=True, is_there=is_there)
        if step is not None and job.kind in ("release", "relax"):
            assert self.do(replace(job, output="") if is_there else job) is None
        self.check_files()
        self.verify()
        return step

    def race(self, jobs: list[Job], delays: list[float], crash_at: int = 0) -> None:
        """Run two operations at once, of which the first may crash, and check that they happened in some order."""
        prepared = [self._prepare(job) for job in jobs]
        runs = [
            partial(attempt, self.path, job, *given, Steps(number, crash))
            for job, given, number in zip(jobs, prepared, (crash_at, 0), strict=True)
        ]
        children = [Child(run, delay) for run, delay in zip(runs, delays, strict=True)]
        results: list[Result | None] = [child.wait() for child in children]
        known = len(self.lineage.events)
        events = self._read_events()[known:]
        owners = {number: place for place, each in enumerate(results) if each for number in each.events}
        verdicts = [self.judge(job) for job in jobs]
        for event in events:
            place = owners.get(event.number, 0)
            assert results[place] is None or event.number in owners, "nobody asked for this event"
            assert not self.judge(jobs[place]), "an operation was carried out that must be rejected"
            self._apply(jobs[place], [event])
            if results[place] is not None or (prepared[place][1] or Path()).is_file():
                self._publish(jobs[place], results[place], prepared[place][1])
            verdicts = [before | self.judge(job) for before, job in zip(verdicts, jobs, strict=True)]
        is_same = jobs[0].name == jobs[1].name
        for result, verdict, (_, output) in zip(results, verdicts, prepared, strict=True):
            if result is not None and not result.events:
                assert result.error in verdict | ({"LedgerBusyError"} if is_same else set()), result.error
            if result is None or not result.events:
                assert output is None or not output.exists() or self._is_published(output), "unpaid"
        if events:
            self._move_stamp(must=None not in results)

    def race_with_copy(self, jobs: list[Job], delays: list[float]) -> None:
        """Run an operation on the vault and one on its last copy, of which exactly one may be carried out."""
        prepared, paths = [self._prepare(job) for job in jobs], (self.path, self.copies[-1][0])
        runs = [partial(attempt, path, job, *each) for path, job, each in zip(paths, jobs, prepared, strict=True)]
        children = [Child(run, delay) for run, delay in zip(runs, delays, strict=True)]
        results: list[Result] = [child.wait() for child in children]
        (winner,) = (place for place, each in enumerate(results) if each.events)
        assert results[1 - winner].error == "OldVaultError", results[1 - winner].error
        if winner:
            self.use_copy(len(self.copies) - 1, in_place=False)
        self._apply(jobs[winner], self._read_events()[len(self.lineage.events) :])
        self._move_stamp()
        self._publish(jobs[winner], results[winner], prepared[winner][1])

    def _is_published(self, file: Path) -> bool:
        return any(each.file == file for each in self.outputs)

    def _get_costs(self, job: Job) -> list[Decimal]:
        return self.lineage.compute_costs(job) if job.kind in ("release", "relax") else []

    def _prepare(self, job: Job) -> tuple[Any, Path | None]:
        number = next(self._numbers)
        output = None if job.sink == "memory" else self.folder / "out" / (job.output or f"{number}.{job.sink}")
        return job.make_data(self.folder, number) if job.kind == "release" else None, output

    def _settle(self, job: Job, events: list[Any], output: Path | None) -> None:
        """Take note of an operation that crashed."""
        self._apply(job, events)
        self._move_stamp(must=False)
        if output is not None and output.exists():
            assert events, "reports left that were never paid for"
            self._publish(job, None, output)

    def _apply(self, job: Job, events: list[Any]) -> None:
        for event in events:
            self.lineage.apply(job, event)

    def _publish(self, job: Job, result: Result | None, output: Path | None) -> None:
        if job.kind not in ("release", "relax"):
            return
        table = None if result is None else result.table
        if table is None:
            assert output is not None
            table = read_output(output)
        made = self.lineage.check_output(job, table, output)
        self.lineage.outputs.append(made)
        self.outputs.append(made)

    # Copies of the vault.

    def copy(self, *, as_backup: bool = False) -> None:
        """Copy the folder of the vault, or back it up."""
        place = self.folder / f"copy-{next(self._numbers)}.vault"
        Vault(self.path).backup(place, with_key=True) if as_backup else shutil.copytree(self.path, place)
        self.copies.append((place, deepcopy(self.lineage)))

    def use_copy(self, index: int, *, in_place: bool) -> None:
        """Continue with a copy, where it is, or put back in place of the vault, which becomes a copy itself."""
        place, lineage = self.copies[index]
        if in_place:
            moved = self.folder / f"moved-{next(self._numbers)}.vault"
            self.path.rename(moved)
            shutil.copytree(place, self.path)
            self.copies.append((moved, self.lineage))
            self.lineage = deepcopy(lineage)
        else:
            self.copies[index] = (self.path, self.lineage)
            self.path, self.lineage = place, lineage

    def adopt(self, crash_at: int = 0) -> None:
        """Adopt an old vault, perhaps after a crash. Files that it has forgotten must be reported."""
        for step in (crash_at, 0):
            if not self.is_old:
                return
            with Steps(step, crash).installed():
                run = partial(Vault(self.path).adopt, reason="test")
                Child(run).wait() if step else run()
            self.lineage.events += [next(EVENTS) for _ in self._read_events()[len(self.lineage.events) :]]
            self._move_stamp(must=not step)
            self.check_files()

    # What must always be true.

    def verify(self) -> None:
        """Compare the ledger with what must have happened."""
        lineage, vault = self.lineage, Vault(self.path)
        largest, budget, retired = dict[tuple[str, str], Decimal](), Decimal(0), set[str]()
        for number, event in enumerate(vault.events(), 1):
            assert event.number == number
            if isinstance(event, VaultCreated | BudgetRaised):
                budget = event.budget
            elif isinstance(event, ReleaseRetired):
                retired.add(event.name)
            elif isinstance(event, ReleaseCharged):
                for each in event.columns:
                    key = event.name, each.column
                    assert each.cost == max(Decimal(0), each.epsilon - largest.get(key, Decimal(0)))
                    largest[key] = max(largest.get(key, Decimal(0)), each.epsilon)
            assert sum(largest.values()) <= budget
        columns = {(name, key): known for name, each in lineage.names.items() for key, known in each.columns.items()}
        assert largest == {key: known.largest for key, known in columns.items()}
        assert (budget, retired) == (lineage.budget, {key for key, each in lineage.names.items() if each.retired})
        for output in lineage.outputs:
            for column in output.reports:
                assert output.epsilon <= largest[output.name, column], "a released level is not charged"
        if not self.is_old:
            assert (vault.budget, vault.spent) == (budget, lineage.spent)

    def check_files(self) -> None:
        """Let the vault check everything, also files that another copy has released."""
        found = Vault(self.path).check([each.file for each in self.outputs if each.file is not None])
        mine = {each.file for each in self.lineage.outputs}
        problems = set(found.problems)
        for output in self.outputs:
            if output.file is None:
                continue
            reported = {each for each in problems if each.startswith(f"{output.file}:")}
            problems -= reported
            assert not (reported and output.file in mine), reported
            assert reported or self.lineage.covers(output), "a file is not reported that the vault has forgotten"
        assert len(problems) == (1 if self.is_old else 0), problems

    def _read_events(self) -> list[Any]:
        return list(Vault(self.path).events())

    def _list_files(self) -> set[Path]:
        return {*(self.path / "snapshots").iterdir(), *(self.folder / "out").iterdir()}

    def _check_tidy(self, *, is_file: bool, is_there: bool = True) -> None:
        """Check that nothing is left of operations that crashed."""
        named: dict[tuple[str, str], str] = {}
        for event in self._read_events():
            if isinstance(event, ReleaseCharged):
                named |= {(event.name, each.column): each.snapshot for each in event.columns}
                if event.action == "release":
                    named.pop((event.name, ""), None)
                    named |= (
                        {} if event.passthrough_snapshot is None else {(event.name, ""): event.passthrough_snapshot}
                    )
        gone = {key for key, each in self.lineage.names.items() if each.retired}
        wanted = {f"{digest}.snapshot" for (name, _), digest in named.items() if name not in gone}
        found = {each.name for each in (self.path / "snapshots").iterdir()}
        assert found >= wanted if self._is_shared else found == wanted  # another machine may be at work there
        if is_file:
            files = [each.name for each in (self.folder / "out").iterdir()]
            assert not [each for each in files if each.startswith(".") or not is_there], files
