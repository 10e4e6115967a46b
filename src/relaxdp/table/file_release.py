"""Releases that end as a file: written aside, made durable, and renamed when they are paid for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from relaxdp.errors import TableFileError
from relaxdp.ledger.ledger import Charge
from relaxdp.table.description import FileDescription
from relaxdp.table.formats import Format, Input, Output, format_of, sidecar_of
from relaxdp.table.payer import Payer
from relaxdp.table.publication import Drawing, Plan, Progress, Staged
from relaxdp.table.refusals import check_ending, other_description, refuse_rowless, refuse_taken
from relaxdp.table.request import TableRequest, id_type_of
from relaxdp.table.temporary import aside, put_in_place, refuse_existing


class FileDrawing(Drawing):
    """A table in a file, and a file that is to be made of it."""

    request: TableRequest

    def __init__(self, request: TableRequest, progress: Progress | None = None) -> None:
        """Open the table, or refuse what cannot be released from it or written."""
        check_ending(request.target)
        self.request, self.table = request, Input(request.source)
        request.check_columns(self.table.names)
        request.check_kinds(self.table.schema)
        self.id_type = id_type_of(self.table.schema.field(request.id_column).type)
        self._progress, self._place = progress, request.target

    def refuse_taken(self, quoted: Callable[[], list[Charge]]) -> None:
        """Refuse a file that is there already."""
        refuse_taken(self.request.target, quoted)

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold a place beside the target."""
        with aside(self.request.target) as self._place:
            yield

    def write(self, plan: Plan, schema: Any, batches: Iterator[Any]) -> int:
        """Write released batches aside, wait for the disk, and return how many rows there were."""
        refuse_other(self.request, plan.description)
        output, rows = None, 0
        try:
            output = Output(self._place, format_of(self.request.target), schema, plan.description)
            for batch in batches:
                output.write(batch)
                rows += batch.num_rows
            refuse_rowless(rows)
            output.close()
            os.fsync(output.descriptor())
        except OSError as problem:
            if isinstance(problem, TableFileError):
                raise
            raise TableFileError(
                f"{str(self.request.target)!r} cannot be written: {problem.strerror or 'the disk may be full'}. "
                "Nothing was released."
            ) from None
        finally:
            if output is not None:
                output.abandon()
        return rows

    def publish(self, plan: Plan, staged: Staged) -> None:
        """Put a finished file, and the description beside a CSV file, under their names."""
        # First, so that no file ever stands without its description; a run that was killed may have come so far.
        if format_of(self.request.target) is Format.CSV:
            _put_beside(self.request, replace(plan.description, rows=staged.rows))
        put_in_place(staged.content, self.request.target)

    def advance(self, rows: int | None) -> None:
        """Tell of a batch that is done, or, with None, of a new beginning."""
        self._done = 0 if rows is None else self._done + rows
        if self._progress is not None:
            self._progress(self._done, self.table.rows)

    _done = 0


def _put_beside(request: TableRequest, description: FileDescription) -> None:
    """Write the description of a CSV file, also over one that a killed run left there, whose rows may be others."""
    sidecar, text = sidecar_of(request.target), description.dumps()
    if sidecar.exists() and sidecar.read_bytes() != text.encode():
        refuse_other(request, description)
        sidecar.unlink()
    if not sidecar.exists():
        with aside(sidecar) as beside:
            beside.write_text(text, "utf-8")
            put_in_place(beside, sidecar)


def refuse_other(request: TableRequest, description: FileDescription) -> None:
    """Refuse to write over a file, or beside a description of something else."""
    refuse_existing(request.target)
    sidecar = sidecar_of(request.target)
    if format_of(request.target) is not Format.CSV or not os.path.lexists(sidecar):
        return
    if not sidecar.is_file() or not description.is_said_by(sidecar.read_bytes()):
        raise other_description(sidecar)
