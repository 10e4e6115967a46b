"""The one publication, with every source and sink: crashes at every point, random kills, races, a full disk.

The short campaign runs with the tests; `make faults` sets RELAXDP_FAULTS=500.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.faults.collector.campaign import sizes
from tests.faults.forking import Zygote
from tests.faults.table import releases
from tests.faults.table.releases import (
    EVERYONE,
    FILES,
    KEEPING,
    SNAPSHOTS,
    charged,
    drawing_of,
    is_kept,
    is_paid,
    prepare,
    target_of,
    wanted,
)
from tests.refusals import refused

from relaxdp.draw.key import Key
from relaxdp.errors import (
    LedgerUncertainError,
    LevelError,
    PathChangedError,
    RelaxdpError,
    TableFileError,
    WrongKeyError,
)
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication import transaction as publication
from relaxdp.publication.transaction import Drawing, Outcome, Plan, Staged
from relaxdp.rappor.release import RapporDrawing
from relaxdp.table import algorithm1

SMALL = 500
LONG = pytest.mark.long
KINDS = (*FILES, "frame")


class Killed(BaseException):
    """What stands for a crash: nobody catches it."""


@pytest.fixture(scope="module")
def forking() -> Iterator[Zygote]:
    one = Zygote("tests.faults.zygote")
    yield one
    one.close()


class Releases:
    """Releases in processes of their own, with the state folder of one test."""

    def __init__(self, forking: Zygote, state: Path) -> None:
        self._forking, self._state = forking, str(state)
        self.line = forking.line

    def start(self, *orders: dict[str, Any], **options: Any) -> list[int]:
        """Start them at once, and return their process numbers."""
        return self._forking.start(*({"order": order, "state": self._state, **options} for order in orders))


@pytest.fixture
def zygote(forking: Zygote, state: Path) -> Iterator[Releases]:
    yield Releases(forking, state)
    forking.settle()


def spent(folder: Path) -> Decimal:
    with Ledger.open(folder / "ledger") as ledger:
        ledger.verify()
        return ledger.account(EVERYONE).spent


# Crashes at every point


Point = tuple[str, str]
POINTS: list[Point] = [(step, when) for step in ("stage", "charge", "publish") for when in ("before", "after")]


def crashing(drawing: Drawing, point: Point, patch: pytest.MonkeyPatch) -> None:
    """Let a publication break off before or after one of its steps."""
    step, when = point
    owner: Any = Payer if step == "charge" else type(drawing)
    real = getattr(owner, step)

    def crash(*arguments: Any, **named: Any) -> Any:
        if when == "after":
            real(*arguments, **named)
        raise Killed

    patch.setattr(owner, step, crash)


Publish = Callable[[Drawing, Payer], Outcome]


def check_crash(kind: str, folder: Path, point: Point, publish: Publish = publication.publish) -> None:
    """Break a release off, look at what there is, and release again: as if nothing had happened, and for one price."""
    name = target_of(kind, "out")
    target, reference = folder / name, None if kind == "frame" else wanted(kind, folder, "2")
    with Ledger.open(folder / "ledger") as ledger:
        payer = Payer(ledger, EVERYONE, budget=5, accept=True, snapshots=folder / SNAPSHOTS)
        with pytest.MonkeyPatch.context() as patch:
            drawing = drawing_of(kind, folder, name, "2")
            crashing(drawing, point, patch)
            with pytest.raises(Killed):
                publish(drawing, payer)
        is_charged = POINTS.index(point) >= POINTS.index(("charge", "after"))
        is_there = point == ("publish", "after") and kind != "frame"
        assert ledger.account(EVERYONE).spent == (2 if is_charged else 0), "paid for what was not drawn, or the reverse"
        assert target.exists() == is_there, "it left before it was paid for"
        if is_there:
            is_paid(kind, folder, target, "2", reference)
            return
        again = publish(drawing_of(kind, folder, name, "2"), payer)
        assert ledger.account(EVERYONE).spent == 2
        assert [charge.cost for charge in again.charges] == [0 if is_charged else 2]
    kept = [*(folder / SNAPSHOTS).glob("*"), *(folder / SNAPSHOTS).glob(".*")]
    assert len(kept) == (1 if kind in KEEPING else 0), "something that was never paid for is kept, or the reverse"
    is_kept(kind, folder)
    if kind == "frame":
        fresh = publication.publish(drawing_of(kind, folder, name, "2"), None)
        assert again.result.equals(fresh.result)
        return
    is_paid(kind, folder, target, "2", reference)
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("point", POINTS, ids="-".join)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in ("file", "frame") else pytest.mark.long) for kind in KINDS]
)
def test_a_crash_at_any_point(tmp_path: Path, kind: str, point: Point) -> None:
    prepare(tmp_path, SMALL)
    check_crash(kind, tmp_path, point)


# Mistakes in the order of the steps, each of which a crash must show


def charge_before_stage(drawing: Drawing, payer: Payer) -> Outcome:
    columns = drawing.request.planned()
    with drawing.held(payer):
        plan, _ = publication._plan(drawing, columns, payer, payer.look())
        nothing = publication.Staged(0, [publication.Seen()] * len(columns))
        charges = payer.charge(publication._entries(drawing, plan.columns, payer, nothing))
        staged = drawing.stage(plan)
        return Outcome(staged.rows, charges, drawing.publish(plan, staged))


def publish_before_charge(drawing: Drawing, payer: Payer) -> Outcome:
    columns = drawing.request.planned()
    with drawing.held(payer):
        plan, _ = publication._plan(drawing, columns, payer, payer.look())
        staged = drawing.stage(plan)
        result = drawing.publish(plan, staged)
        charges = payer.charge(publication._entries(drawing, plan.columns, payer, staged))
        return Outcome(staged.rows, charges, result)


MUTANTS: list[tuple[Publish, Point]] = [
    (charge_before_stage, ("stage", "before")),
    (publish_before_charge, ("charge", "before")),
]


@pytest.mark.parametrize(("mutant", "point"), MUTANTS)
@pytest.mark.parametrize("kind", FILES)
def test_mutants_of_the_order_are_caught(tmp_path: Path, kind: str, mutant: Publish, point: Point) -> None:
    prepare(tmp_path, SMALL)
    with pytest.raises(AssertionError):
        check_crash(kind, tmp_path, point, mutant)


def test_mutant_that_draws_again_on_resume_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was charged is not what comes out, although nothing is charged twice."""
    prepare(tmp_path, SMALL)

    def drawn_again(drawing: Drawing, digest: str) -> Staged:
        columns = drawing.request.planned()
        with drawing.held(Payer(Ledger.open(tmp_path / "ledger"), EVERYONE)):
            staged = drawing.stage(Plan(columns, drawing.describe(columns)))
            copy = tmp_path / "drawn-again"
            copy.write_bytes(staged.content.read_bytes())
        return replace(staged, content=copy)

    drawing = drawing_of("algorithm-1", tmp_path, "out.parquet", "2")
    monkeypatch.setattr(type(drawing), "resume", drawn_again)
    with pytest.raises(AssertionError, match="what was drawn is not what was paid for"):
        check_crash("algorithm-1", tmp_path, ("charge", "after"))


# Answers of the ledger that are lost


@pytest.mark.parametrize("stands", [True, False])
@pytest.mark.parametrize("kind", FILES)
def test_an_answer_that_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, stands: bool) -> None:
    """Nobody knows whether the charge stands. The next run charges nothing twice, and gives what was paid for."""
    prepare(tmp_path, SMALL)
    name, real = target_of(kind, "out"), Ledger.charge_all
    reference = wanted(kind, tmp_path, "2")

    def lost(*arguments: Any, **named: Any) -> Any:
        if stands:
            real(*arguments, **named)
        raise LedgerUncertainError("the ledger was lost while it wrote.")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge_all", lost)
        with pytest.raises(LedgerUncertainError) as caught:
            releases.release(kind, tmp_path, name, "2", budget="5")
    assert caught.value.consequence == "Nothing was released, and running it again charges nothing twice."
    assert not (tmp_path / name).exists()
    again = releases.release(kind, tmp_path, name, "2", budget="5")
    assert [charge.cost for charge in again.charges] == [0 if stands else 2]
    is_paid(kind, tmp_path, tmp_path / name, "2", reference)
    assert spent(tmp_path) == 2


def test_fresh_randomness_whose_file_is_gone_is_not_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path, SMALL)
    with monkeypatch.context() as patch:
        crashing(drawing_of("algorithm-1", tmp_path, "out.parquet", "2"), ("publish", "before"), patch)
        with pytest.raises(Killed):
            releases.release("algorithm-1", tmp_path, "out.parquet", "2", budget="5")
    (kept,) = tmp_path.glob(".out.parquet.*")
    kept.unlink()
    with refused(LevelError, says="a second draw at one level would break the guarantee"):
        releases.release("algorithm-1", tmp_path, "out.parquet", "2", budget="5")
    assert not (tmp_path / "out.parquet").exists()


def test_what_was_drawn_and_never_paid_for_goes_although_the_level_was_drawn_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole file of reports at a level that was paid for with other bytes must not stay."""
    prepare(tmp_path, SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(algorithm1, "sweep_kept", lambda *_: None)  # killed: nothing is tidied up
        crashing(drawing_of("algorithm-1", tmp_path, "a.parquet", "2"), ("charge", "before"), patch)
        with pytest.raises(Killed):
            releases.release("algorithm-1", tmp_path, "a.parquet", "2", budget="5")
    assert list(tmp_path.glob(".a.parquet.*"))
    releases.release("algorithm-1", tmp_path, "b.parquet", "2", budget="5")
    with refused(LevelError, says="a second draw at one level"):
        releases.release("algorithm-1", tmp_path, "a.parquet", "2", budget="5")
    assert not list(tmp_path.glob(".a.parquet.*"))


def test_what_waits_for_its_name_stays_whatever_else_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another target whose name begins alike, and another ledger with the same target."""
    prepare(tmp_path, SMALL)
    with monkeypatch.context() as patch:
        crashing(drawing_of("algorithm-1", tmp_path, "out.parquet.2.parquet", "2"), ("publish", "before"), patch)
        with pytest.raises(Killed):
            releases.release("algorithm-1", tmp_path, "out.parquet.2.parquet", "2", budget="5")
    (kept,) = tmp_path.glob(".out*")
    for target in ("out.parquet", "out.parquet.2.parquet"):
        with Ledger.open(tmp_path / "other.ledger") as ledger:
            payer = Payer(ledger, EVERYONE, budget=5, accept=True, new_ledger="a test")
            with contextlib.suppress(RelaxdpError):
                publication.publish(drawing_of("algorithm-1", tmp_path, target, "2"), payer)
        assert kept.exists()
        (tmp_path / target).unlink(missing_ok=True)
    releases.release("algorithm-1", tmp_path, "out.parquet.2.parquet", "2", budget="5")
    is_paid("algorithm-1", tmp_path, tmp_path / "out.parquet.2.parquet", "2", None)


def test_a_resume_says_of_itself_what_was_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CSV file's description is written anew: with other values it would be one of something else."""
    prepare(tmp_path, SMALL)
    with monkeypatch.context() as patch:
        crashing(drawing_of("algorithm-1", tmp_path, "out.csv", "2"), ("publish", "before"), patch)
        with pytest.raises(Killed):
            releases.release("algorithm-1", tmp_path, "out.csv", "2", budget="5")
    other = drawing_of("algorithm-1", tmp_path, "out.csv", "2")
    changed = replace(other.request, key=Key.from_bytes(bytes(32)))
    monkeypatch.setattr(other, "request", changed)
    with Ledger.open(tmp_path / "ledger") as ledger, pytest.raises(WrongKeyError):
        publication.publish(other, Payer(ledger, EVERYONE))
    assert not list(tmp_path.glob("out.csv*"))
    releases.release("algorithm-1", tmp_path, "out.csv", "2", budget="5")
    is_paid("algorithm-1", tmp_path, tmp_path / "out.csv", "2", None)


@pytest.mark.long
def test_eight_steps_of_algorithm_1_race_for_one_name(zygote: Releases, tmp_path: Path) -> None:
    prepare(tmp_path, SMALL)
    order = {"kind": "algorithm-1", "folder": str(tmp_path), "budget": "5", "epsilon": "1", "target": "out.parquet"}
    zygote.start(*[order] * 8)
    assert sorted(zygote.line()) == [0] + [2] * 7
    is_paid("algorithm-1", tmp_path, tmp_path / "out.parquet", "1", None)
    assert not list(tmp_path.glob(".out*"))


def test_a_target_that_is_there_may_be_the_only_copy(tmp_path: Path) -> None:
    prepare(tmp_path, SMALL)
    releases.release("algorithm-1", tmp_path, "out.parquet", "2", budget="5")
    with pytest.raises(TableFileError) as found:
        releases.release("algorithm-1", tmp_path, "out.parquet", "3", budget="5")
    assert "remove" not in found.value.message


@pytest.mark.parametrize("options", [{"force": True}, {"growing": Path("tags")}])
def test_algorithm_1_is_neither_forced_nor_growing(tmp_path: Path, options: dict[str, Any]) -> None:
    prepare(tmp_path, SMALL)
    drawing = drawing_of("algorithm-1", tmp_path, "out.parquet", "2")
    with Ledger.open(tmp_path / "ledger") as ledger, pytest.raises(RelaxdpError):
        publication.publish(drawing, Payer(ledger, EVERYONE, budget=5, accept=True, **options))


# Last reports of RAPPOR


def rappor(folder: Path, target: str, epsilon: str, release: str, last: str | None = None) -> RapporDrawing:
    made = drawing_of("rappor", folder, target, epsilon, release)
    assert isinstance(made, RapporDrawing)
    return RapporDrawing(made._rappor, last=None if last is None else folder / last)


def test_last_reports_of_another_epoch_or_release(tmp_path: Path) -> None:
    """Another epoch has other noise: both reports together would cost the sum."""
    prepare(tmp_path, SMALL)
    with Ledger.open(tmp_path / "ledger") as ledger:
        payer = Payer(ledger, EVERYONE, budget=9, accept=True)
        publication.publish(rappor(tmp_path, "one.parquet", "1", "w"), payer)
        pa_parquet.write_table(pa.table({"id": [1, 2], "answer": ["flu", "none"]}), tmp_path / "in.parquet")
        publication.publish(rappor(tmp_path, "two.parquet", "1", "w"), replace(payer, force=True))
        assert ledger.account(EVERYONE).spent == 2
        for who in (None, replace(payer, subject=Subject.population("others"))):
            with pytest.raises(PathChangedError) as found:
                publication.publish(rappor(tmp_path, "more.parquet", "2", "w", last="two.parquet"), who)
            assert found.value.fields["epoch"] == 2
        with pytest.raises(PathChangedError):
            publication.publish(rappor(tmp_path, "more.parquet", "2", "v", last="two.parquet"), payer)
        publication.publish(rappor(tmp_path, "more.parquet", "2", "w", last="two.parquet"), payer)
        assert ledger.account(EVERYONE).spent == 3
        changed = rappor(tmp_path, "third.parquet", "3", "w", last="more.parquet")
        changed.id_type = "text"  # something differs, so that a third epoch is forced
        with refused(PathChangedError, here="'answer' of release 'w', epoch 3"):
            publication.publish(changed, replace(payer, force=True))
        assert ledger.account(EVERYONE).spent == 3


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    prepare(tmp_path, SMALL)
    for kind in FILES:
        with pytest.raises(TableFileError):
            releases.release(kind, tmp_path, target_of(kind, "absent/out"), "2", budget="5")


# Kills at random instants


@pytest.mark.long
@pytest.mark.parametrize("kills", sizes(6, 40))
@pytest.mark.parametrize(
    "kind", ["file", pytest.param("csv", marks=LONG), "algorithm-1", pytest.param("rappor", marks=LONG)]
)
def test_killed_at_random_instants(zygote: Releases, tmp_path: Path, kind: str, kills: int) -> None:
    """After every kill: no half-written file, the ledger shows at least what left; and the rerun is what was paid for.

    Algorithm 1 goes on from what came out last; what waits for its name after a kill is what comes out then.
    """
    prepare(tmp_path)
    rng = random.Random(7)
    order = {"kind": kind, "folder": str(tmp_path), "budget": "1000"}
    timings = []
    for number in range(4):  # the first one begins the ledger, and takes longer than those that are killed
        began, name = time.perf_counter(), target_of(kind, f"warm-{number}")
        zygote.start({**order, "target": name, "epsilon": f"0.00{number + 1}"})
        assert zygote.line() == [0]
        timings.append(time.perf_counter() - began)
        _go_on(kind, tmp_path, name)
    usual = min(timings[1:])
    died = appeared = paid = 0
    before = spent(tmp_path)
    for number in range(1, kills + 1):
        epsilon, name = f"{number * 0.01:.2f}", target_of(kind, f"out-{number}")
        target = tmp_path / name
        (child,) = zygote.start({**order, "target": name, "epsilon": epsilon})
        time.sleep(rng.random() * usual * 1.4)  # also when it is almost done
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        killed = zygote.line() == [-signal.SIGKILL]
        died += killed
        usual *= 1.1 if killed else 0.8  # what else runs on this machine changes
        reference, after = wanted(kind, tmp_path, epsilon), spent(tmp_path)
        assert after in (before, Decimal(epsilon))
        paid += after == Decimal(epsilon)
        if target.exists():
            appeared += 1
            is_paid(kind, tmp_path, target, epsilon, reference)
        else:
            zygote.start({**order, "target": name, "epsilon": epsilon})
            assert zygote.line() == [0]
            is_paid(kind, tmp_path, target, epsilon, reference)
        before = spent(tmp_path)
        assert before == Decimal(epsilon)
        _go_on(kind, tmp_path, name)
    assert died > kills / 3, "too few releases were killed while they ran"
    print(f"{kind}: {kills} kills, {died} while it ran; {paid} had paid, {appeared} of them had appeared")


def _go_on(kind: str, folder: Path, name: str) -> None:
    """Clear away what was released; Algorithm 1 goes on from it."""
    if kind == "algorithm-1":
        (folder / name).replace(folder / "last.parquet")
    for file in folder.iterdir():
        if file.name.startswith(("out-", "warm-")):
            file.unlink()


def test_what_a_kill_leaves_is_swept_away(zygote: Releases, tmp_path: Path) -> None:
    prepare(tmp_path)
    order = {"kind": "file", "folder": str(tmp_path), "budget": "10", "target": "out.parquet", "epsilon": "0.5"}
    for _ in range(50):
        (child,) = zygote.start(order)
        while not list(tmp_path.glob(".out.parquet.*")) and not (tmp_path / "out.parquet").exists():
            time.sleep(0.0005)
        with contextlib.suppress(ProcessLookupError):  # it may have been faster
            os.kill(child, signal.SIGKILL)
        zygote.line()
        if list(tmp_path.glob(".out.parquet.*")) and not (tmp_path / "out.parquet").exists():
            break
        (tmp_path / "out.parquet").unlink(missing_ok=True)
    assert list(tmp_path.glob(".out.parquet.*"))
    zygote.start(order)
    assert zygote.line() == [0]
    assert not list(tmp_path.glob(".out.parquet.*"))
    is_paid("file", tmp_path, tmp_path / "out.parquet", "0.5", wanted("file", tmp_path, "0.5"))


# Races


@pytest.mark.long
@pytest.mark.parametrize("kind", ["file", pytest.param("csv", marks=LONG), pytest.param("rappor", marks=LONG)])
def test_sixteen_releases_race_for_the_last_of_a_budget(zygote: Releases, tmp_path: Path, kind: str) -> None:
    """Sixteen paths at 0.1 each, and a budget of 0.5: exactly five are granted, and exactly five files appear."""
    prepare(tmp_path, SMALL)
    orders = [
        {"kind": kind, "folder": str(tmp_path), "budget": "0.5", "target": target_of(kind, f"r{n}"), "epsilon": "0.1",
         "release": f"r{n}"}
        for n in range(16)
    ]  # fmt: skip
    zygote.start(*orders)
    assert sorted(zygote.line()) == [0] * 5 + [2] * 11
    assert len([file for file in tmp_path.iterdir() if file.name in {each["target"] for each in orders}]) == 5
    assert spent(tmp_path) == Decimal("0.5")


def test_eight_steps_of_algorithm_1_race_for_one_level(zygote: Releases, tmp_path: Path) -> None:
    """One of them draws and pays; what the others drew is thrown away unseen."""
    prepare(tmp_path, SMALL)
    order = {"kind": "algorithm-1", "folder": str(tmp_path), "budget": "5", "epsilon": "1"}
    zygote.start(*({**order, "target": f"r{number}.parquet"} for number in range(8)))
    statuses = zygote.line()
    assert sorted(statuses) == [0] + [2] * 7
    (winner,) = tmp_path.glob("r*.parquet")
    assert winner.name == f"r{statuses.index(0)}.parquet"
    is_paid("algorithm-1", tmp_path, winner, "1", None)
    assert len(charged(tmp_path, "1")) == 1
    assert not list(tmp_path.glob(".r*"))


# A full disk


@pytest.mark.parametrize("limit", [0, 1_000])
@pytest.mark.parametrize("kind", FILES)
def test_a_full_disk(zygote: Releases, state: Path, tmp_path: Path, kind: str, limit: int) -> None:
    """The system refuses to let the output grow: one sentence, nothing written, nothing charged."""
    prepare(tmp_path)
    order = {"kind": kind, "folder": str(tmp_path), "target": target_of(kind, "full"), "epsilon": "1", "budget": "2"}
    before, says = sorted(tmp_path.iterdir()), state / "says"
    state.mkdir(exist_ok=True)
    zygote.start(order, disk=limit, says=str(says))
    assert zygote.line() == [2], says.read_text("utf-8")
    (said,) = says.read_text("utf-8").splitlines()
    assert said.endswith("Nothing was released.")
    assert sorted(tmp_path.iterdir()) == before


# One look at everything


@pytest.mark.parametrize("kind", KINDS)
def test_one_look_at_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The input is opened once, each level asked for once, the account read once before and once under the lock."""
    prepare(tmp_path, SMALL)
    releases.release(kind, tmp_path, target_of(kind, "first"), "1", budget="5")
    if kind == "algorithm-1":
        (tmp_path / "first.parquet").replace(tmp_path / "last.parquet")
    counted: dict[str, int] = {}

    def count(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            counted[name] = counted.get(name, 0) + 1
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, counting)

    from relaxdp.encodings.protocol import Encoding  # noqa: PLC0415
    from relaxdp.ledger import rows  # noqa: PLC0415
    from relaxdp.table import release  # noqa: PLC0415

    count(rows, "read_account")
    count(release, "Input")
    count(Encoding, "level")
    count(type(drawing_of(kind, tmp_path, target_of(kind, "looked"), "2")), "describe")
    counted.clear()
    releases.release(kind, tmp_path, target_of(kind, "second"), "2", budget="5")
    assert counted["read_account"] == 2
    assert counted.get("Input", 0) == (0 if kind == "frame" else 1)
    assert counted["level"] <= (3 if kind == "algorithm-1" else 1)  # the old reports have a level too
    assert counted["describe"] == 1


def test_a_release_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    for kind in FILES:
        folder = tmp_path / kind
        folder.mkdir()
        prepare(folder, SMALL)
        before = sorted(folder.iterdir())
        with pytest.raises(RelaxdpError):
            releases.release(kind, folder, target_of(kind, "out"), "2", budget="1")
        assert sorted(folder.iterdir()) == before
