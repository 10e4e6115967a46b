"""Every kind of release that can be made in a folder, so that faults drive the one publication with all of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from tests.patience import PATIENCE

from relaxdp.draw.key import Key
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.events import LevelReleased
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.mechanisms import Categorical
from relaxdp.publication.request import ColumnRequest, TableRequest
from relaxdp.publication.snapshot import SnapshotTable
from relaxdp.publication.snapshot_folder import find
from relaxdp.publication.transaction import Drawing, Outcome, publish
from relaxdp.rappor.filter import BloomShape
from relaxdp.rappor.release import RapporDrawing, RapporRequest
from relaxdp.table.algorithm1 import Algorithm1Drawing
from relaxdp.table.frame_release import FrameDrawing, FrameTable
from relaxdp.table.release import TableDrawing

VALUES = ["flu", "covid", "none"]
ROWS = 30_000
TRUTH = np.random.default_rng(1).choice(VALUES, ROWS)
KEY = Key.from_bytes(bytes(range(32)))
EVERYONE = Subject.population("everyone")
SHAPE = BloomShape(bits=16, hashes=2, cohorts=8)
FIRST = "0.0001"
"""The level of the reports from which Algorithm 1 begins."""

SNAPSHOTS = "ledger.snapshots"
KEEPING = ("file", "csv", "frame")
"""The kinds of which what was drawn from is kept."""

FILES = ("file", "csv", "algorithm-1", "rappor")
"""The kinds that end as a file."""


def prepare(folder: Path, rows: int = ROWS) -> None:
    """Lay out a table, a key and, for Algorithm 1, reports of it; the ledger is not begun."""
    table = pa.table({"id": np.arange(rows), "answer": TRUTH[:rows]})
    pa_parquet.write_table(table, folder / "in.parquet")
    KEY.save(folder / "key")
    publish(TableDrawing(request_of(folder, "last.parquet", FIRST)), None)


def request_of(folder: Path, target: str, epsilon: str, release: str = "faults") -> TableRequest:
    """Return a request for the table in a folder."""
    return TableRequest(
        source=folder / "in.parquet",
        target=folder / target,
        id_column="id",
        columns=[ColumnRequest("answer", Categorical(VALUES))],
        epsilon=as_epsilon(epsilon),
        key=Key.load(folder / "key"),
        release=release,
        as_of="2026-01-31",  # what is released without a ledger says the same
    )


def drawing_of(kind: str, folder: Path, target: str, epsilon: str, release: str = "faults") -> Drawing:
    """Return the drawing of a kind. Algorithm 1 goes on from `last.parquet`."""
    request = request_of(folder, target, epsilon, release)
    makers: dict[str, Callable[[], Drawing]] = {
        "file": lambda: TableDrawing(request),
        "csv": lambda: TableDrawing(request),
        "algorithm-1": lambda: Algorithm1Drawing(request, folder / "last.parquet"),
        "rappor": lambda: RapporDrawing(
            RapporRequest.make(
                SHAPE, request.source, request.target, id_column="id", column="answer", epsilon=request.epsilon,
                key=request.key, release=release,
            )
        ),
        "frame": lambda: FrameDrawing(frame_table(request), request, 1),
    }  # fmt: skip
    return makers[kind]()


def frame_table(request: TableRequest) -> FrameTable:
    """The table of a request as a frame."""
    names = [each.column for each in request.columns]
    return FrameTable(pa_parquet.read_table(request.source), request.id_column, names, request.keep)


def target_of(kind: str, name: str) -> str:
    """Return a name that a release of this kind can have."""
    return f"{name}.csv" if kind == "csv" else f"{name}.parquet"


def release(kind: str, folder: Path, target: str, epsilon: str, budget: str, release: str = "faults") -> Outcome:
    """Release, and charge the folder's ledger."""
    with Ledger.open(folder / "ledger", timeout=PATIENCE) as ledger:
        payer = Payer(ledger, EVERYONE, budget=budget, accept=True, snapshots=folder / SNAPSHOTS)
        return publish(drawing_of(kind, folder, target, epsilon, release), payer)


def wanted(kind: str, folder: Path, epsilon: str) -> bytes | None:
    """Return the very bytes that a release must give; None where fresh randomness decides."""
    if kind == "algorithm-1":
        return None
    target = folder / "reference" / target_of(kind, "out")
    target.parent.mkdir(exist_ok=True)
    publish(drawing_of(kind, folder, f"reference/{target.name}", epsilon), None)
    found = target.read_bytes()
    for file in target.parent.iterdir():
        file.unlink()
    return found


def charged(folder: Path, epsilon: str) -> list[LevelReleased]:
    """Return what the ledger says of a level: it must add up."""
    with Ledger.open(folder / "ledger") as ledger:
        ledger.verify()
        events = ledger.history(EVERYONE)
    return [each for each in events if isinstance(each, LevelReleased) and each.epsilon == Decimal(epsilon)]


def is_kept(kind: str, folder: Path) -> None:
    """Check that what the ledger names as kept is there, and whole."""
    with Ledger.open(folder / "ledger") as ledger:
        digests = ledger.snapshots()
    assert bool(digests) == (kind in KEEPING)
    for digest in digests:
        place = find(folder / SNAPSHOTS, digest)
        assert place is not None, "charged, and not kept"
        for _ in SnapshotTable(place, Key.load(folder / "key"), digest).batches(()):
            pass


def is_paid(kind: str, folder: Path, target: Path, epsilon: str, reference: bytes | None) -> None:
    """Check a file that appeared: it was paid for once, and is what was paid for."""
    found, entries = target.read_bytes(), charged(folder, epsilon)
    assert [each for each in entries if each.cost]  # somebody paid
    is_kept(kind, folder)
    if reference is not None:
        assert found == reference
        return
    assert len(entries) == 1, "a level of fresh randomness is charged once"
    assert entries[0].digest == sha256(found).hexdigest(), "what was drawn is not what was paid for"
