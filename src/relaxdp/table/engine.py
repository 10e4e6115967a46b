"""The local engine: batches of a table in id order -> released batches, on one or more cores, with flat memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from relaxdp.draw.stream import Messages
from relaxdp.encodings.protocol import Truths
from relaxdp.encodings.release import Fingerprint, release_reports
from relaxdp.publication.plain import plain, plain_batch
from relaxdp.publication.request import Planned, ReleaseRequest
from relaxdp.publication.transaction import Seen
from relaxdp.table.order import IdOrder

Progress = Callable[[int], None]


class Part(Protocol):
    """Where what is drawn from is kept."""

    def seal(self, number: int, ids: Any, truths: Sequence[Truths], /) -> Any:
        """Return the rows of a batch as they are kept; any thread may ask."""

    def write(self, chunk: Any, /) -> None:
        """Keep the rows of the next batch."""


def read_ahead(batches: Generator[Any], threads: int) -> Generator[Any]:
    """Return the batches, read by a thread of its own where there is more than one core, a few ahead.

    The thread that writes would read in between otherwise, and a second core wait for it.
    """
    if threads == 1:
        yield from batches
        return
    with ThreadPoolExecutor(1) as reader, closing(batches):
        try:
            read = deque(reader.submit(next, batches, None) for _ in range(_AHEAD))
            while (batch := read.popleft().result()) is not None:
                read.append(reader.submit(next, batches, None))
                yield batch
        finally:
            reader.shutdown(cancel_futures=True)  # so that nobody reads while it is closed


_AHEAD = 3


class Engine:
    """Releases the batches of one request. Fingerprints are those of the table under the release's own name."""

    def __init__(
        self, request: ReleaseRequest, schema: Any, columns: Sequence[Planned], part: Part | None = None
    ) -> None:
        """Release these columns, each on its path and at its level, and seal what they are drawn from into `part`."""
        self._request, self._columns, self._part = request, columns, part
        self.schema = request.output_schema(schema)
        self.fingerprints = [Fingerprint.of(request.key, each.encoding, each.path) for each in columns]

    def seen(self) -> list[Seen]:
        """Return what the rows that were drawn tell of the table."""
        return [Seen(each.text()) for each in self.fingerprints]

    def run(self, batches: Iterable[Any], threads: int, progress: Progress, *, ordered: bool = True) -> Iterator[Any]:
        """Return released batches in the order of the input, a few of them under way at a time.

        Ids that do not ascend are refused, unless the order does not matter because nothing is written.
        """
        order, first_row, number = IdOrder(), 0, 0
        with ThreadPoolExecutor(threads) as pool:
            under_way: deque[Future[Any]] = deque()
            try:
                for batch in batches:
                    if not batch.num_rows:
                        continue
                    if ordered:
                        order.check(plain(batch.column(self._request.id_column)))
                    under_way.append(pool.submit(self._release, batch, first_row, number))
                    first_row, number = first_row + batch.num_rows, number + 1
                    if len(under_way) > 3 * threads:  # so many that no core waits while this thread writes
                        yield self._next(under_way, progress)
                while under_way:
                    yield self._next(under_way, progress)
            finally:
                for future in under_way:
                    future.cancel()

    def _next(self, under_way: deque[Future[Any]], progress: Progress) -> Any:
        batch, sealed = under_way.popleft().result()
        if self._part is not None:
            self._part.write(sealed)
        progress(batch.num_rows)
        return batch

    def _release(self, batch: Any, first_row: int, number: int) -> tuple[Any, Any]:
        """Return the released rows, and what they were drawn from where that is kept."""
        ids = plain(batch.column(self._request.id_column))
        columns, kept = [ids], []
        for each, fingerprint in zip(self._columns, self.fingerprints, strict=True):
            truths: list[Truths] = []
            column = batch.column(each.request.column)
            columns.append(self._column(each, fingerprint, column, ids, first_row, truths))
            kept.append(truths)
        columns += [plain(batch.column(name)) for name in self._request.keep]
        released, sealed = plain_batch(columns, self.schema), None
        if self._part is not None:  # with the ids as they are released: a sort may give them another type
            sealed = self._part.seal(number, released.column(0), [joined(each) for each in kept])
        return released, sealed

    def _column(
        self, each: Planned, fingerprint: Fingerprint, column: Any, ids: Any, first_row: int, kept: list[Truths]
    ) -> Any:
        def watch(messages: Messages, truths: Truths) -> None:
            fingerprint.add(messages, truths)
            if self._part is not None:
                kept.append(truths)

        return release_reports(
            each.encoding,
            each.request.truth(column, first_row),
            ids,
            key=self._request.key,
            level=each.level,
            path=each.path,
            first_row=first_row,
            watch=watch,
        )


def joined(truths: Sequence[Truths]) -> Truths:
    """Return the truths of one column of a batch."""
    if len(truths) == 1:
        return truths[0]
    index = np.concatenate([each.index for each in truths])
    suffixes = [each.suffix for each in truths if each.suffix is not None]
    return Truths(index, np.concatenate(suffixes, axis=1) if suffixes else None)
