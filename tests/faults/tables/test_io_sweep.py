"""The n-th write, fsync, rename or commit of an operation fails, for every n; and files that really cannot grow.

Afterwards nothing is charged, unless the same call gives the output for free. Nothing is left behind.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.faults.tables.jobs import Job, make_person
from tests.faults.tables.oracle import KEY
from tests.faults.tables.steps import MEMORY, Child, Steps, fail
from tests.faults.tables.world import Result, World

from relaxdp.errors import RelaxdpError
from relaxdp.sampling.keys import Key
from relaxdp.tables.vault import Vault

pytestmark = pytest.mark.filterwarnings("ignore::relaxdp.errors.StateFolderWarning")
LONG = pytest.mark.long
ROWS = tuple(make_person(each) for each in range(40))
FIRST = Job("release", "n1", "2", ("a", "b"), ROWS[:36], ("g",))
JOBS = {
    "release": replace(FIRST, epsilon="3", rows=ROWS),
    "relax": Job("relax", "n1", "3", ("a", "b")),
    "retire": Job("retire", "n1"),
    "raise": Job("raise", epsilon="20"),
}
CASES = [
    *((kind, sink) for kind in ("release", "relax") for sink in ("memory", "parquet", "csv")),
    ("retire", "memory"), ("raise", "memory"),
]  # fmt: skip


def run_with_fault(
    kind: str, sink: str, run: Callable[[Callable[..., Result]], tuple[Result, str | None]]
) -> str | None:
    """Run an operation after a first release, with a fault, and check everything."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        world = World(Path(folder))
        world.do(FIRST)
        return world.do_with_fault(replace(JOBS[kind], sink=sink, output=f"out.{sink}"), run)


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=LONG)], ids=["instead", "after"])
@pytest.mark.parametrize(("kind", "sink"), CASES)
def test_every_step_fails_once(kind: str, sink: str, after: bool) -> None:
    failed: list[str] = []

    def fail_next(action: Callable[..., Result]) -> tuple[Result, str | None]:
        steps = Steps(len(failed) + 1, fail, after=after)
        result, step = action(steps=steps), steps.reached
        return result, "uncertain" if after and step in ("create", "mkdir", "rename", "replace") else step

    while (step := run_with_fault(kind, sink, fail_next)) is not None:
        failed.append(step)
    assert {"fsync", "write", "COMMIT"} <= set(failed)
    print(f"{kind} {sink}: {len(failed)} steps")


@pytest.mark.parametrize(("kind", "sink"), [case for case in CASES if case[0] in ("release", "relax")])
def test_files_cannot_grow(kind: str, sink: str) -> None:
    """The system rejects what exceeds a limit, wherever it is written: snapshots, output, ledger, journal, stamp."""

    def limit_files(limit: int, action: Callable[..., Result]) -> tuple[Result, str | None]:
        def act() -> Result:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return action()

        result: Result = Child(act).wait()
        return result, "COMMIT" if result.error else None

    limits = [*range(0, 4096, 256), *range(4096, 32768, 2048), 1 << 20]
    failed = [limit for limit in limits if run_with_fault(kind, sink, partial(limit_files, limit)) is not None]
    assert len(failed) > 5


@pytest.mark.parametrize("after", [False, True], ids=["instead", "after"])
def test_every_step_of_creating_a_vault_fails_once(after: bool, tmp_path: Path) -> None:
    for number in range(1, 1000):
        steps, place = Steps(number, fail, after=after), tmp_path / str(number) / "study.vault"
        place.parent.mkdir()
        error = None
        state = patch.dict(os.environ, XDG_STATE_HOME=str(tmp_path / str(number) / "state"))
        with patch.object(Key, "generate", lambda: KEY), state:
            with steps.installed():
                try:
                    Vault.create(place, budget=1)
                except RelaxdpError as problem:
                    error = problem
            if error is not None and not place.exists():
                assert [each.name for each in place.parent.iterdir() if each.name != "state"] == []
                Vault.create(place, budget=1)
            assert not Vault(place).check().problems
        if steps.reached is None:
            break
    assert number > 20
