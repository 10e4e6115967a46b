"""Random histories of a vault: whatever happens, each individual is on one path that was paid for.

The short version runs with all tests. `RELAXDP_HISTORIES=2000 pytest -m long -s` explores as many histories as asked,
from `RELAXDP_SEED` or from a seed that is printed. A history that fails is printed with what reproduces it.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.faults.tables.jobs import GROUPS, SPELLINGS, VALUES, Job, Row, make_person
from tests.faults.tables.steps import MEMORY
from tests.faults.tables.world import World

PEOPLE, EXTRA = 40, 100
"""How many people there are, and how many more in every table of some histories: 1 % of them may be respelled."""
STEPS = 18

names = st.sampled_from(["n1", "n1", "n2"])
levels = st.sampled_from(["0.5", "1", "2", "2.5", "3", "4", "5"])
sinks = st.sampled_from(["memory", "memory", "parquet", "csv"])
crashes = st.one_of(st.integers(1, 60), st.integers(-22, -1))
few = st.integers(-9, 12)
edits = st.tuples(
    st.sampled_from(["join", "join", "leave", "leave", "change", "respell", "group", "exchange"]),
    st.integers(0, PEOPLE - 1),
    st.integers(0, SPELLINGS - 1),
)


def edit_table(table: dict[int, Row], edit: tuple[str, int, int]) -> None:
    """Change a table like the world does between two releases."""
    what, who, how = edit
    row = table.get(who) or make_person(who)
    if what == "leave" and who in table and len(table) > PEOPLE - 12:
        del table[who]
    elif what == "join":
        table.setdefault(who, row)
    elif what == "exchange":  # many people get other ids
        table.update({each: replace(found, spelling=6 + how % 2) for each, found in table.items() if each <= who})
    elif who in table:
        changed = {
            "change": {"a": VALUES[how % 3]} if how % 2 else {"b": float(how)},
            "respell": {"spelling": how},
            "group": {"g": GROUPS[how % 2]},
        }
        table[who] = replace(row, **changed.get(what, {}))


@st.composite
def releases(draw: st.DrawFn) -> tuple[Job, list[tuple[str, int, int]], bool, int]:
    """A release whose rows are not known yet, edits of the table, whether a rejection undoes them, and an order."""
    columns = draw(st.sampled_from([("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b"), ("a", "g")]))
    passthrough = draw(st.sampled_from([(), (), ("g",), ("b",)]))
    job = Job(
        "release", draw(names), draw(levels), columns,
        passthrough=tuple(each for each in passthrough if each not in columns),
        accept=draw(st.integers(0, 4)) == 0, unary=draw(st.integers(0, 9)) == 0, sink=draw(sinks),
        source=draw(st.sampled_from(["frame", "frame", "parquet", "csv"])),
        ids=draw(st.sampled_from([*[""] * 16, "other", *["uint64", "int32"] * 3])),
    )  # fmt: skip
    return job, draw(st.lists(edits, max_size=4)), draw(st.integers(0, 3)) > 0, draw(st.integers(0, 3))


relaxations = st.builds(
    Job, st.just("relax"), names, levels, st.sampled_from([(), (), (), ("a",), ("b",), ("a", "b")]), sink=sinks
)


others = st.sampled_from([Job("raise", epsilon="40"), Job("raise", epsilon="50"), Job("retire", "n2")])


class Histories(RuleBasedStateMachine):
    """Everything that can happen to a vault."""

    @initialize(
        ids=st.sampled_from(["text", "text", "int64"]), extra=st.booleans(), budget=st.integers(6, 30), first=releases()
    )
    def begin(self, ids: str, extra: bool, budget: int, first: Any) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relaxdp-history-", dir=MEMORY))
        self.world = World(self.folder, budget)
        self.ids = ids
        self.table = {each: make_person(each) for each in range(PEOPLE - 5)}
        self.extra = [make_person(each) for each in range(500, 500 + EXTRA)] if extra else []
        self.world.do(self.build(first)[0])

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def build(self, drawn: Any) -> tuple[Job, dict[int, Row]]:
        """Return the release of the table as it is after some edits."""
        job, changes, _, order = drawn
        table = dict(self.table)
        for each in changes:
            edit_table(table, each)
        rows = [*table.values(), *self.extra]
        if order:
            random.Random(order).shuffle(rows)
        kinds = {"": self.ids, "other": "int64" if self.ids == "text" else "text"}
        ids = kinds.get(job.ids, job.ids if self.ids != "text" else "text")
        source = "parquet" if job.source == "csv" and ids != "text" else job.source  # a text file has text ids
        return replace(job, rows=tuple(rows), ids=ids, source=source), table

    @rule(drawn=releases(), at=st.one_of(st.just(0), crashes), after=st.booleans(), again=st.booleans())
    def release(self, drawn: Any, at: int, after: bool, again: bool) -> None:
        job, table = self.build(drawn)
        error = self.world.do(job, crash_at=at, after=after, again=again)
        if error is None or not drawn[2]:
            self.table = table

    @rule(drawn=releases())
    def release_twice(self, drawn: Any) -> None:
        self.release(drawn, 0, False, False)
        self.release(drawn, 0, False, False)

    @rule(job=relaxations, at=st.one_of(st.just(0), crashes), after=st.booleans(), again=st.booleans())
    def relax(self, job: Job, at: int, after: bool, again: bool) -> None:
        self.world.do(job, crash_at=at, after=after, again=again)

    @rule(
        what=st.sampled_from(["raise", "raise", "raise", "retire", "move"]), name=names, more=st.integers(-1, 6), at=few
    )
    def manage(self, what: str, name: str, more: int, at: int) -> None:
        if what == "move":
            self.world.use_new_machine()
        else:
            budget = str(max(1, self.world.lineage.budget + more))
            self.world.do(Job(what, name, budget), crash_at=at)

    @rule(
        drawn=releases(), other=st.one_of(releases(), relaxations, others),
        delays=st.tuples(st.floats(0, 0.01), st.floats(0, 0.01)), at=st.one_of(st.just(0), crashes),
    )  # fmt: skip
    def race(self, drawn: Any, other: Any, delays: tuple[float, float], at: int) -> None:
        jobs = [self.build(drawn)[0], other if isinstance(other, Job) else self.build(other)[0]]
        self.world.race(jobs, list(delays), at)

    @precondition(lambda self: len(self.world.copies) < 3)
    @rule(as_backup=st.booleans())
    def copy(self, as_backup: bool) -> None:
        self.world.copy(as_backup=as_backup)

    @precondition(lambda self: self.world.copies)
    @rule(which=st.integers(0, 9), in_place=st.booleans(), drawn=releases(), adopts=st.booleans(), at=few)
    def use_copy(self, which: int, in_place: bool, drawn: Any, adopts: bool, at: int) -> None:
        self.world.use_copy(which % len(self.world.copies), in_place=in_place)
        self.world.do(self.build(drawn)[0])  # which is rejected, if another copy was used since
        if adopts:
            self.world.adopt(at)

    @rule(at=few)
    def adopt(self, at: int) -> None:
        # Without a precondition: whether a race left the stamp behind differs from run to run.
        self.world.adopt(at)

    @rule()
    def check_files(self) -> None:
        self.world.check_files()

    @invariant()
    def is_true(self) -> None:
        if hasattr(self, "world"):
            self.world.verify()


def explore(machine: type[Histories], examples: int, chosen: int, *, shrink: bool = True) -> None:
    """Explore histories from a seed. The same seed gives the same ones."""
    print(f"RELAXDP_SEED={chosen} RELAXDP_HISTORIES={examples}")
    options = settings(
        max_examples=examples, stateful_step_count=STEPS, deadline=None, database=None, print_blob=True,
        report_multiple_bugs=False, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
    )  # fmt: skip
    run_state_machine_as_test(seed(chosen)(machine), settings=options)


def test_histories() -> None:
    explore(Histories, 25, 1)


@pytest.mark.long
def test_many_histories() -> None:
    given = os.environ.get("RELAXDP_SEED")
    explore(Histories, int(os.environ.get("RELAXDP_HISTORIES", "300")), int(given or secrets.randbits(32)))
