"""Operations that are killed at random moments, that race, or that lose PostgreSQL around the commit.

The short versions run with all tests. `RELAXDP_KILLS=200 pytest -m long -s` is a long campaign, and `RELAXDP_SEED`
repeats its choices.
"""

from __future__ import annotations

import os
import random
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.proxy import failing_network
from tests.faults.tables.jobs import Job, make_person
from tests.faults.tables.world import Result, World
from tests.servers.postgres import Server

LONG = int(os.environ.get("RELAXDP_KILLS", "200"))
BOTH = ("a", "b")
PEOPLE = [make_person(each) for each in range(3000)]


def sizes(short: int) -> list[Any]:
    return [short, pytest.param(LONG, marks=pytest.mark.long)]


@pytest.fixture
def chance() -> random.Random:
    """Random choices, from a seed that is printed."""
    seed = int(os.environ.get("RELAXDP_SEED") or secrets.randbits(32))
    print(f"RELAXDP_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with a folder of temporary files, which sorts spill to."""
    with tempfile.TemporaryDirectory() as made:  # on a disk, where the steps after the charge take their time
        (Path(made) / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(Path(made) / "temporary"))
        yield Path(made)


@pytest.mark.parametrize("kills", sizes(8))
@pytest.mark.parametrize(
    ("source", "sink"), [("parquet", "parquet"), ("csv", "csv"), ("frame", "memory"), ("parquet", "memory")]
)
def test_killed_at_random_moments(folder: Path, chance: random.Random, source: str, sink: str, kills: int) -> None:
    """After each kill the same call finishes it, and the oracle sees each report on its path, paid for once."""
    world, usual, number = World(folder, budget=10_000), {"release": 0.05, "relax": 0.03}, 0
    rows = PEOPLE[:2000]
    world.do(Job("release", "n1", "1", BOTH, tuple(rows), ("g",)))
    while world.stopped.total() < kills:
        number += 1
        assert number < 20 * kills
        level = f"{1 + number / 100:.2f}"
        job = Job("relax", "n1", level, sink=sink)
        if number % 2:
            rows = [*rows, PEOPLE[len(rows)]] if len(rows) < len(PEOPLE) else rows
            order = chance.sample(rows, len(rows)) if number % 4 == 1 else rows  # which is sorted by the release
            job = Job("release", "n1", level, BOTH, tuple(order), ("g",), source=source, sink=sink)
        before = world.stopped.total()
        moment = chance.uniform(*chance.choice([(0, 1.3), (0.7, 1.2)]))  # the steps after the charge are short
        world.do(job, kill_after=moment * usual[job.kind], again=True)
        usual[job.kind] *= 1.1 if world.stopped.total() > before else 0.85  # what else runs on this machine changes
        world.verify()
        assert sink == "memory" or not list((folder / "temporary").iterdir())
    world.check_files()
    print(
        f"{source} to {sink}: {kills} kills in {number} operations, {dict(world.stopped)}, {len(world.outputs)} outputs"
    )


def make_race(chance: random.Random, names: tuple[str, str]) -> list[Job]:
    """Two operations on tables that have gained and lost other rows, and may disagree on a new one."""
    jobs = []
    for name in names:
        rows = {row.person: row for row in PEOPLE[:36]}
        for new in chance.sample(range(36, 46), chance.randrange(3)):
            value = chance.choice(["x", "y"]) if new > 42 else PEOPLE[new].a  # two tables may say different things
            rows[new] = replace(PEOPLE[new], a=value)
        for gone in chance.sample(range(36), chance.randrange(2)):
            del rows[gone]
        level, columns = chance.choice(["1", "2", "3", "4"]), chance.choice([BOTH, ("a",), ("b",)])
        release = Job("release", name, level, columns, tuple(rows.values()), chance.choice([(), ("g",)]), accept=True)
        other = chance.choice([release, release, Job("relax", name, level, chance.choice([(), columns]))])
        jobs.append(replace(other, sink=chance.choice(["memory", "parquet", "csv"])))
    return jobs


@pytest.mark.parametrize("races", sizes(10))
@pytest.mark.parametrize("names", [("n1", "n1"), ("n1", "n2")], ids=["same", "different"])
def test_two_processes_race(tmp_path: Path, folder: Path, chance: random.Random, names: Any, races: int) -> None:
    """They happened one after the other, or one was rejected; each can be run again."""
    counts: Counter[str] = Counter()
    for number in range(races):
        if number % 8 == 0:
            place = folder / str(number)
            place.mkdir()
            world = World(place, budget=chance.choice([4, 8, 30]))
        jobs = make_race(chance, names)
        before = len(world.lineage.events)
        world.race(jobs, [chance.random() / 100, chance.random() / 100])
        counts[f"{len(world.lineage.events) - before} carried out"] += 1
        for job in jobs:
            world.do(job)
        world.check_files()
        world.verify()
    print(f"{names}: {races} races, {dict(counts)}")


@pytest.mark.parametrize("races", sizes(10))
def test_two_copies_race(folder: Path, chance: random.Random, races: int) -> None:
    """Only one copy of a vault is charged, and the other one is rejected from then on."""
    world = World(folder, budget=10_000)
    rows = tuple(PEOPLE[:40])
    world.do(Job("release", "n1", "1", BOTH, rows))
    for number in range(races):
        world.copy()
        levels = (f"{2 + (2 * number + step) / 100:.2f}" for step in (1, 2))  # below the planned level
        jobs = [Job("release", "n1", next(levels), BOTH, rows), Job("relax", "n1", next(levels))]
        world.race_with_copy(jobs, [chance.random() / 100, chance.random() / 100])
        world.verify()
        world.use_copy(-1, in_place=False)
        assert world.do(jobs[0]) == "OldVaultError"
        world.use_copy(-1, in_place=False)


@pytest.fixture
def database(folder: Path, postgres: Server, postgres_url: Callable[[], str]) -> tuple[World, str]:
    """A vault whose ledger is in PostgreSQL."""
    url = postgres_url()
    return World(folder, budget=30, ledger=url), url


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("sink", ["memory", "parquet", "csv"])
def test_the_answer_to_a_commit_is_lost(
    database: tuple[World, str], postgres: Server, when: str, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known whether it was charged. The same call again charges nothing twice, and hands it over."""
    world, url = database
    rows = tuple(PEOPLE[:40])
    world.do(Job("release", "n1", "2", BOTH, rows[:36], ("g",)))
    for kind, level in (("release", "3"), ("relax", "4")):

        def lose(action: Callable[[], Result]) -> tuple[Result, str]:
            settings = world.path / "vault.toml"
            text = settings.read_text()
            with failing_network(postgres, when) as port:
                there = url.replace(f":{postgres.port}/", f":{port}/")
                settings.write_text(text.replace(url, f"{there}?sslmode=disable&gssencmode=disable"))
                result = action()
            settings.write_text(text)
            assert result.error == "LedgerUncertainError"
            return result, "COMMIT"

        before = len(world.lineage.events)
        job = Job(
            kind, "n1", level, BOTH, rows, ("g",) if kind == "release" else (), sink=sink, output=f"{kind}.{sink}"
        )
        world.do_with_fault(job, lose)
        assert len(world.lineage.events) == before + (2 if when == "after" else 1)


@pytest.mark.parametrize("races", [5, pytest.param(LONG // 4, marks=pytest.mark.long)])
def test_two_processes_race_on_postgres(database: tuple[World, str], chance: random.Random, races: int) -> None:
    world, _ = database
    for number in range(races):
        world.race(make_race(chance, ("n1", ("n1", "n2")[number % 2])), [chance.random() / 100, chance.random() / 100])
        world.verify()
    world.check_files()
