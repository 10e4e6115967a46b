"""Relaxing released reports by Algorithm 1: old reports and the truth in, new reports out, with fresh randomness.

Fresh randomness must be drawn once: two draws at one level would together reveal more than the level allows. So the new
file is whole and durable under a name of its own, made from its digest, before the ledger records that digest; only
then it gets its name. A run that was killed in between is finished by the next one, which draws nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from hashlib import file_digest
from pathlib import Path
from typing import Any, ClassVar

from relaxdp.draw.bridge_arrays import fresh_bridges
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.draw.private_file import sync_folder
from relaxdp.draw.stream import PathId
from relaxdp.encodings.protocol import Encoding, code_dtype
from relaxdp.encodings.release import Fingerprint
from relaxdp.errors import (
    DescriptionError,
    LedgerUncertainError,
    LevelError,
    LevelMismatchError,
    OptionError,
    PathChangedError,
    TableFileError,
    UndeclaredValueError,
    UnknownColumnError,
)
from relaxdp.law.bridge import TRUTH
from relaxdp.law.epsilon import epsilon_text
from relaxdp.law.level import Level
from relaxdp.ledger.account import Account
from relaxdp.ledger.entries import Entry, Sampler
from relaxdp.ledger.ledger import Charge
from relaxdp.ledger.payer import Payer
from relaxdp.publication.description import ColumnDescription
from relaxdp.publication.plain import plain, plain_batch
from relaxdp.publication.request import Planned, TableRequest, id_type_of
from relaxdp.publication.staging import kept_aside, refuse_existing, sweep_kept, waiting
from relaxdp.publication.transaction import Plan, Progress, Seen, Staged
from relaxdp.table.formats import Input, rows_of
from relaxdp.table.kinds import kind_of
from relaxdp.table.order import counted_by_id, in_order, paired
from relaxdp.table.release import FileDrawing


@dataclass(frozen=True, slots=True)
class OldReports:
    """A table of plain randomized responses, and its level. The threshold is what the step is computed from."""

    table: Input
    id_column: str
    level: Level
    described: ColumnDescription | None

    @classmethod
    def open(cls, request: TableRequest, path: Path, epsilon: Decimal | None, id_type: str) -> OldReports:
        """Open the file, or refuse it: it must hold the same values under the same name, at a lower level."""
        if len(request.columns) != 1 or not request.columns[0].mechanism.encoding.goes_on_from_reports:
            raise OptionError("Algorithm 1 goes on from one column of declared values at a time.")
        column, encoding = request.columns[0].column, request.columns[0].mechanism.encoding
        table = Input(path)
        file = table.description()
        described = None if file is None else file.columns.get(column)
        id_column = request.id_column if file is None else file.id_column
        for name in (id_column, column):
            if name not in table.schema.names:
                raise UnknownColumnError("{path!r} has no column {column!r}.", path=str(path), column=name)
        if id_type_of(table.schema.field(id_column).type) != id_type:
            raise PathChangedError("the ids of {path!r} are of another type than those of the table.", path=str(path))
        if described is None:
            if epsilon is None:
                raise OptionError("{path!r} does not say its level.", remedy="last_epsilon", path=str(path))
            level = encoding.level(epsilon)
        else:
            if epsilon is not None:
                raise OptionError("{path!r} says its level itself: none is to be given.", path=str(path))
            if described.encoding != encoding.name:
                raise PathChangedError("{path!r} holds no plain randomized responses.", path=str(path))
            if described.mechanism().encoding.params != encoding.params:
                raise PathChangedError("{path!r} has other values, or in another order.", path=str(path))
            level = _level(encoding, described, path)
        if encoding.level(request.epsilon) <= level:
            raise LevelError(
                "epsilon may only grow: the last reports are at {previous} and {epsilon} was asked for.",
                previous=str(level),
                epsilon=epsilon_text(request.epsilon),
            )
        return cls(table, id_column, level, described)

    def check_path(self, request: TableRequest, known: Account) -> None:
        """Refuse a file of another path: under another name, what it has cost already would not be seen."""
        if self.described is None:
            return
        given, name = self.described.path, PathId(request.release, request.columns[0].column)
        state = known.last_epoch(name)
        here = name if state is None else state.path
        if (given.release, given.attribute) != (name.release, name.attribute):
            raise PathChangedError(
                "the last reports are {given}, and must go on under that name.",
                remedy="release",
                given=given,
                release=given.release,
                attribute=given.attribute,
            )
        if given != here:
            raise PathChangedError(
                "the last reports are {given}, and since a new path was forced it is {here}: only its reports go on.",
                given=given,
                here=here,
                release=given.release,
                attribute=given.attribute,
                epoch=given.epoch,
            )
        if state is not None and self.described.key_fingerprint != state.facts.key_fingerprint:
            raise PathChangedError("the last reports were made with another key than the path.")


def _level(encoding: Encoding, described: ColumnDescription, path: Path) -> Level:
    try:
        return encoding.level(described.epsilon, described.threshold)
    except LevelMismatchError:
        raise DescriptionError("{path!r} says a level and a threshold that do not agree.", path=str(path)) from None


class Algorithm1Drawing(FileDrawing):
    """A table and the last reports of it, to a file of reports at a higher level, once. `entropy` must never repeat.

    After a crash the same again finishes what was charged, from the file that was kept aside; after a success it is
    refused. The ids of the table and of the reports must be the same.

    Claim: each new report has the law of `next_report_law` given the truth and the old one, and nothing is drawn
    twice; tests/unit/table/test_algorithm1.py, tests/faults/table/test_publication.py.
    """

    sampler: ClassVar[Sampler] = Sampler.ALGORITHM_1

    def __init__(
        self,
        request: TableRequest,
        last: Path,
        *,
        last_epsilon: Decimal | None = None,
        threads: int = 1,
        progress: Progress | None = None,
        entropy: Entropy | None = None,
        table: Input | None = None,
    ) -> None:
        super().__init__(request, progress, table)
        self._threads, self._entropy = threads, entropy or SystemEntropy()
        self._old = OldReports.open(request, last, last_epsilon, self.id_type)
        self.last_epsilon = self._old.level.epsilon

    def check_known(self, known: Account | None) -> None:
        """Refuse reports of another path: under another name, what they have cost already would not be seen."""
        if known is None:
            raise OptionError("Algorithm 1 draws once, so somebody must keep account: it needs a ledger.")
        self._old.check_path(self.request, known)

    def refuse_taken(self, quoted: Callable[[], list[Charge]]) -> None:
        """Refuse a file that is there already. It may hold reports that nobody can draw again: nobody is told to go."""
        refuse_existing(self.request.target)

    def sweep(self, payer: Payer) -> None:
        """Remove what was drawn and never charged; what was waits for its name."""
        sweep_kept(self.request.target, payer.ledger.address, payer.ledger.digests)

    @contextmanager
    def held(self, payer: Payer | None) -> Iterator[None]:
        """Hold a place beside the target. What was drawn and never charged is swept; what may be charged stays."""
        assert payer is not None  # noqa: S101 (see `check_known`)
        self._ledger, is_uncertain = payer.ledger.address, False
        try:
            with super().held(payer):
                yield
        except LedgerUncertainError:
            is_uncertain = True  # the charge may be committed any moment: the next run looks for the file
            raise
        finally:
            if not is_uncertain:
                self.sweep(payer)

    def look(self, entries: Sequence[Entry], payer: Payer) -> Sequence[Seen]:
        """Refuse what asks for it: old reports go on with their own table, and with no other."""
        raise OptionError("old reports go on with the table that they are of: neither growing nor forcing go with it.")

    def stage(self, plan: Plan) -> Staged:
        """Draw, wait for the disk, and keep the file under a name that its digest makes."""
        (column,), request = plan.columns, self.request
        fingerprint = Fingerprint.of(request.key, column.encoding, column.path)
        here = in_order(self.table, self.columns, request.id_column, self._threads)
        there = in_order(
            self._old.table, [self._old.id_column, column.request.column], self._old.id_column, self._threads
        )
        schema = request.output_schema(self.table.schema)
        with counted_by_id(here.were_sorted or there.were_sorted), closing(here), closing(there):
            pairs = paired(here, request.id_column, there, self._old.id_column)
            rows = self.write(plan, schema, self._relaxed(column, pairs, schema, fingerprint))
        digest = _digest(self._place)
        kept = self._place.rename(kept_aside(request.target, digest, self._ledger))
        sync_folder(kept.parent)
        return Staged(rows, [Seen(fingerprint.text())], kept, digest)

    def resume(self, digest: str) -> Staged | None:
        """Return the file of a run that was killed after it was charged."""
        kept = waiting(self.request.target, digest)
        if kept is None:
            return None
        if _digest(kept) != digest:
            raise TableFileError(
                "{file!r}, which waits to become {target!r}, is damaged, and a second draw at one level would "
                "break the guarantee.",
                file=kept.name,
                target=self.request.target.name,
                path=str(kept),
            )
        return Staged(rows_of(kept, kind_of(self.request.target)), [], kept, digest)

    def _relaxed(
        self, column: Planned, pairs: Iterator[tuple[Any, Any]], schema: Any, fingerprint: Fingerprint
    ) -> Iterator[Any]:
        encoding, first_row = column.encoding, 0
        dtype = code_dtype(encoding.alphabet)
        for batch, reports in pairs:
            ids = plain(batch.column(self.request.id_column))
            truth = column.request.truth(batch.column(column.request.column), first_row)
            fingerprint.add_rows(encoding, truth, ids, first_row)
            codes = fresh_bridges(
                encoding.alphabet,
                self._old.level.retention,
                column.level.retention,
                TRUTH,
                lower_reports=_codes(encoding, reports.column(column.request.column), first_row).astype(dtype),
                upper_reports=encoding.truths(truth, first_row).index.astype(dtype),
                entropy=self._entropy,
            )
            columns = [ids, encoding.column(codes[:, None])]
            columns += [plain(batch.column(name)) for name in self.request.keep]
            yield plain_batch(columns, schema)
            first_row += batch.num_rows
            self.advance(batch.num_rows)


def _codes(encoding: Any, column: Any, first_row: int) -> Any:
    try:
        return encoding.truths(column, first_row).index
    except UndeclaredValueError as problem:
        fields = {name: field for name, field in problem.fields.items() if name != "missing"}  # no value is missing
        raise UndeclaredValueError(problem.template, **{**fields, "what": "last report"}) from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
