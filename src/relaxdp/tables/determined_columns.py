"""Notice pass-through columns that give away a protected column, such as a code of the diagnosis.

A pass-through column determines a protected one if each of its values occurs with one protected value. That is a danger
if it is a copy, or if its values repeat so often that chance does not explain it: a reader needs the meaning of few
values, and reports of equal true values can be averaged. A nearly unique column, such as a name, determines everything
and shows nothing without a second table. Relaxations are not examined, because their columns have left already.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from math import lgamma, log
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import DeterminedColumnWarning
from relaxdp.tables.release_plan import InputBatch, ReleasePlan
from relaxdp.tables.table_columns import get_storage_column, remove_hidden_values

MAX_EXAMINED_ROWS = 100_000
_MAX_CHANCE = 0.01
_FEW_ROWS = 1_000


class PassthroughCheck:
    """Keeps the first rows of a release, and warns of pass-through columns that determine a protected one in them."""

    def __init__(self, plan: ReleasePlan) -> None:
        self._plan, self._batches, self._rows = plan, list[InputBatch](), 0

    def examine(self, batches: Iterator[InputBatch]) -> Iterator[InputBatch]:
        """Yield the batches unchanged, and examine the first rows of them."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add(self, batch: InputBatch) -> bool:
        """Keep some rows, and tell whether more are needed."""
        rest = MAX_EXAMINED_ROWS - self._rows
        if self._plan.passthrough and rest > 0:
            cells, passthrough = ([each[:rest] for each in side] for side in (batch.cells, batch.passthrough))
            self._batches.append(InputBatch(batch.ids[:rest], cells, passthrough))
            self._rows += min(rest, len(batch.ids))
        return bool(self._plan.passthrough) and rest > len(batch.ids)

    def warn(self) -> None:
        """Warn of each pass-through column that determines a protected one."""
        for place, planned in enumerate(self._plan.columns):
            for other, name in enumerate(self._plan.passthrough):
                with suppress(pa.ArrowException):  # a type that cannot be compared, such as a list
                    protected = _join_cells([batch.cells[place] for batch in self._batches])
                    if does_determine(_join_cells([batch.passthrough[other] for batch in self._batches]), protected):
                        warnings.warn(
                            f"The pass-through column {name!r} determines the protected column {planned.column!r} of "
                            f"{planned.path.release!r}: each of its values occurs with one true value. It leaves "
                            "unprotected, so it may show the true values. Leave it out of the pass-through columns, or "
                            "release it with protection.",
                            DeterminedColumnWarning,
                            stacklevel=2,
                        )


def _join_cells(parts: list[Any]) -> pa.ChunkedArray:
    return pa.chunked_array([get_storage_column(remove_hidden_values(part)) for part in parts])


def does_determine(passthrough: pa.ChunkedArray, protected: pa.ChunkedArray) -> bool:
    """Tell whether a column is a copy of another, or determines it with few values, which chance does not explain.

    There are n! / (n_1! n_2! ...) ways to spread the protected values over the rows. In at most k^d of them, each of d
    values goes with one of k protected values.

    >>> codes, names = pa.chunked_array([[1, 2, 2] * 40]), pa.chunked_array([["flu", "none", "none"] * 40])
    >>> does_determine(codes, names), does_determine(pa.chunked_array([range(120)]), names)
    (True, False)
    """
    if _count_determined_values(passthrough[:_FEW_ROWS], protected[:_FEW_ROWS]) is None:
        return False  # most columns show in a few rows that they do not
    rows, values = len(passthrough), pc.count_distinct(passthrough, mode="all").as_py()
    if 2 * values > rows:
        return all(_is_copy(passthrough[:end], protected[:end]) for end in (_FEW_ROWS, rows))
    counts = _count_determined_values(passthrough, protected)
    if counts is None or len(counts) < 2:
        return False
    ways = lgamma(rows + 1) - sum(lgamma(count + 1) for count in counts)
    return values * log(len(counts)) - ways < log(_MAX_CHANCE) or _is_copy(passthrough, protected)


def _count_determined_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> list[int] | None:
    """Count the values of a column that another one determines; None if it does not determine them."""
    pairs = pa.table({"one": one, "other": other}).group_by(["one", "other"]).aggregate([([], "count_all")])
    if len(pairs) > pc.count_distinct(one, mode="all").as_py():
        return None
    counts: list[int] = pairs.group_by("other").aggregate([("count_all", "sum")])["count_all_sum"].to_pylist()
    return counts


def _is_copy(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    is_number = all(pa.types.is_integer(each.type) or pa.types.is_floating(each.type) for each in (one, other))
    kind = pa.float64() if is_number else pa.string()
    return bool(one.cast(kind).equals(other.cast(kind)))
