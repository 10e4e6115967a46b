"""Data frames: `release` and `estimate` for pandas, polars, pyarrow and DuckDB, with the ledger's protection.

What is slow to import (databases, narwhals) is imported when a frame is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from relaxdp.draw.key import Key, as_key
from relaxdp.errors import CountsError
from relaxdp.estimation.counts import Method
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.mechanisms import Mechanism

if TYPE_CHECKING:
    from relaxdp.ledger.ledger import Ledger
    from relaxdp.table.description import FileDescription

AnyFrame = TypeVar("AnyFrame")


def release(
    frame: AnyFrame,
    columns: Mapping[str, Mechanism],
    *,
    id: str,
    epsilon: Epsilon,
    key: Key,
    release: str,
    ledger: str | os.PathLike[str] | Ledger | None,
    population: str = "everyone",
    budget: Epsilon | None = None,
    keep: Sequence[str] = (),
    again: bool = False,
    force: bool = False,
    reason: str = "",
    new_ledger: str = "",
    threads: int | None = None,
    worker_key: str | None = None,
) -> AnyFrame:
    """Return a frame of the same kind with the ids, the reports of `columns` at a level, and what is to be kept.

    Rows come in the order of the ids, without the index, attributes, metadata and dictionaries of the input: these
    could betray an answer. The ledger (its file, its URL or an open `Ledger`; None says that nobody keeps account) is
    charged before the frame is returned: the same call again gives the same reports and costs nothing, a larger
    epsilon costs the difference, and another key, other values, a changed table or an overdrawn budget are refused.
    So is a ledger that does not know a key which has spent in another one, unless `new_ledger` says why.
    On Spark the workers read the key themselves, from the file that `key` was loaded from or from `worker_key`.

    >>> import pyarrow as pa
    >>> import relaxdp as rx
    >>> table = pa.table({"person": [18, 17], "diagnosis": ["flu", "covid"]})
    >>> released = rx.release(
    ...     table, {"diagnosis": rx.Categorical(["flu", "covid", "none"])}, id="person", epsilon=0.5,
    ...     key=Key.from_bytes(bytes(range(32))), release="survey-2026", ledger=None,
    ... )
    >>> released.column("person").to_pylist(), released.column("diagnosis").to_pylist()
    ([17, 18], ['covid', 'flu'])
    """
    from relaxdp.table.frame_release import FrameDrawing, payer_of, requested  # noqa: PLC0415
    from relaxdp.table.publication import Drawing, publish  # noqa: PLC0415

    request = requested(columns, id=id, epsilon=as_epsilon(epsilon), key=as_key(key), release=release, keep=keep)
    with payer_of(ledger, population, budget, reason, again, force, new_ledger) as payer:
        if _is_spark(frame):
            from relaxdp.table.spark import SparkFrameDrawing  # noqa: PLC0415

            drawing: Drawing = SparkFrameDrawing(frame, request, worker_key=worker_key)
        else:
            drawing = FrameDrawing(frame, request, threads or os.cpu_count() or 1)
        released: AnyFrame = publish(drawing, payer).result
    return released


def estimate(
    frame: Any,
    column: str | None = None,
    *,
    by: str | None = None,
    cross: str | None = None,
    method: Method = "average",
    description: Any = None,
    mechanism: Mechanism | None = None,
    epsilon: Epsilon | None = None,
) -> Any:
    """Return what a released frame says: an estimate, or a dictionary of them for the groups of a kept column `by`.

    A list of frames holds the same release at several levels: each object counts once, at its highest. `cross` is a
    second released column, for a two-way table. A released frame knows its values and level; where it was changed
    since, say `description` (the frame or file that it came from; for a list, a list) or `mechanism` and `epsilon`.
    """
    from relaxdp.table.columns import check_name  # noqa: PLC0415
    from relaxdp.table.frame_estimate import estimate_frames, told  # noqa: PLC0415

    for name in (column, by, cross):
        if name is not None:
            check_name(name)
    frames = list(frame) if isinstance(frame, list | tuple) else [frame]
    said = told(len(frames), column, description, mechanism, epsilon)
    if frames and all(map(_is_spark, frames)):
        from relaxdp.table.spark_estimate import estimate_spark  # noqa: PLC0415

        if cross is not None:
            raise CountsError("cross= is not offered on Spark: write the frame, and read it as a file.")
        return estimate_spark(frames, said, column=column, by=by, method=method)
    return estimate_frames(frames, said, column=column, by=by, cross=cross, method=method)


def _is_spark(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql")


def description(source: Any) -> FileDescription:
    """Return what a released frame, or a released file, says about itself: values, levels, release and key.

    It is what `estimate` asks for where a frame was joined, filtered or read back and does not say it any more.
    """
    from relaxdp.table.frame_description import description_of  # noqa: PLC0415

    return description_of(source)
