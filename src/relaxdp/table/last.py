"""Relaxing released reports by Algorithm 1: old reports and the truth in, new reports out, with fresh randomness.

Fresh randomness must be drawn once: two draws at one level would together reveal more than the level allows. So the new
file is whole and durable under a name of its own, made from its digest, before the ledger records that digest; only
then it gets its name. A run that was killed in between is finished by the next one, which draws nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import file_digest
from pathlib import Path
from typing import Any

from relaxdp.draw.bridge_arrays import fresh_bridges
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.draw.private_file import sync_folder
from relaxdp.encode.release import code_dtype
from relaxdp.errors import LedgerUncertainError, TableFileError, UndeclaredValueError
from relaxdp.law.bridge import TRUTH
from relaxdp.law.threshold import ONE
from relaxdp.ledger.account import PathState
from relaxdp.ledger.events import LevelReleased
from relaxdp.ledger.ledger import Charge
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.spending import refuse_second, spending
from relaxdp.ledger.step import already_released, stepped
from relaxdp.table.charging import Account, epoch_names, path_states
from relaxdp.table.description import FileDescription
from relaxdp.table.fingerprint import Fingerprint
from relaxdp.table.formats import Input
from relaxdp.table.old_reports import OldReports
from relaxdp.table.order import counted_by_id
from relaxdp.table.pairs import in_order, paired
from relaxdp.table.plain import plain, plain_batch
from relaxdp.table.release import Outcome, Progress, finish, open_table, progress_of, refuse_other, write_rows
from relaxdp.table.request import TableRequest
from relaxdp.table.temporary import aside, kept_aside, sweep_kept

_DIGEST = re.compile(r"sha256 ([0-9a-f]{64})$")


@dataclass(frozen=True, slots=True)
class _Step:
    """Everything that a step needs to know before it looks at a row."""

    request: TableRequest
    account: Account
    table: Input
    old: OldReports
    id_type: str
    state: PathState | None

    @property
    def identity(self) -> PathIdentity:
        return PathIdentity(self.request.release, self.request.columns[0].column)

    @property
    def epoch(self) -> int:
        return 1 if self.state is None else self.state.epoch

    def facts(self, fingerprint: str | None) -> PathFacts:
        encoding = self.request.columns[0].mechanism.encoding
        return PathFacts(
            stepped(encoding.name), encoding.params.hex(), self.request.key.fingerprint, self.id_type, fingerprint
        )

    def description(self) -> FileDescription:
        plain_one = self.request.description(self.id_type, epoch_names(self.request.release, [self.epoch]))
        columns = {
            name: replace(column, encoding=stepped(column.encoding)) for name, column in plain_one.columns.items()
        }
        return replace(plain_one, columns=columns)

    def quote(self) -> Charge:
        refuse_second(self.account.ledger, self.request.key.fingerprint, self.account.new_ledger)
        return self._step(None, "", dry=True)

    def charge(self, fingerprint: str | None, reason: str) -> Charge:
        with spending(self.account.ledger, self.request.key.fingerprint, self.account.new_ledger) as anew:
            return self._step(fingerprint, reason, anew=anew)

    def _step(self, fingerprint: str | None, reason: str, **options: Any) -> Charge:
        return self.account.ledger.step(
            self.account.subject,
            self.identity,
            self.facts(fingerprint),
            self.old.epsilon,
            self.request.epsilon,
            budget=self.account.budget,
            reason=reason,
            **options,
        )

    def is_charged(self) -> bool:
        """Return whether this very level was drawn by Algorithm 1 before."""
        if self.state is None or self.state.largest != self.request.epsilon:
            return False
        return self.state.facts.encoding == self.facts(None).encoding

    def recorded(self) -> set[str]:
        """Return the digests of all files that were ever charged to this ledger, of whatever path."""
        events = [event for event in self.account.ledger.history() if isinstance(event, LevelReleased)]
        return {match[1] for event in events if (match := _DIGEST.search(event.reason))}

    def recorded_here(self) -> set[str]:
        """Return the digests of what was charged at this level of this path."""
        return {
            match[1]
            for event in self.account.ledger.history(self.account.subject)
            if isinstance(event, LevelReleased)
            and (event.identity, event.epoch, event.epsilon) == (self.identity, self.epoch, self.request.epsilon)
            and (match := _DIGEST.search(event.reason))
        }


def relax_table(
    request: TableRequest,
    last: Path,
    account: Account,
    *,
    last_epsilon: Decimal | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    entropy: Entropy | None = None,
) -> Outcome:
    """Relax the reports of a file by one step of Algorithm 1, once. `entropy` is for tests; it must never repeat.

    The same call after a crash finishes what was charged, from the file that was kept aside; after a success it is
    refused. The ids of the table and of the reports must be the same.

    Claim: each new report has the law of `next_report_law` given the truth and the old one, and nothing is drawn
    twice; tests/unit/test_release_last.py.
    """
    step = _prepare(request, last, account, last_epsilon)
    refuse_other(request, step.description())
    sweep_kept(request.target, step.recorded)
    if step.is_charged():
        return _resume(step)
    step.quote()
    try:
        with aside(request.target) as place:
            fingerprint, rows = _write(step, place, threads, progress, entropy or SystemEntropy())
            digest = _digest(place)
            kept = place.rename(kept_aside(request.target, digest))
            sync_folder(kept.parent)
            charge = step.charge(fingerprint, f"{account.reason}; kept as {kept.name}, sha256 {digest}".lstrip("; "))
            finish(request, kept, step.description())
    except LedgerUncertainError:
        raise  # what was drawn may be charged any moment: it stays where the next run looks for it
    except BaseException:
        sweep_kept(request.target, step.recorded)
        raise
    sweep_kept(request.target, step.recorded)
    return Outcome(rows, [charge])


def quote_step(
    request: TableRequest, last: Path, account: Account, *, last_epsilon: Decimal | None = None
) -> list[Charge]:
    """Return what a step would cost, from the ledger and what the files say about themselves."""
    return [_prepare(request, last, account, last_epsilon).quote()]


def _prepare(request: TableRequest, last: Path, account: Account, last_epsilon: Decimal | None) -> _Step:
    table, id_type = open_table(request)
    old = OldReports.open(request, last, last_epsilon, id_type)
    identity = PathIdentity(request.release, request.columns[0].column)
    state = path_states(account.ledger, account.subject).get(identity)
    old.check_path(request, epoch_names(request.release, [1 if state is None else state.epoch])[0], state)
    return _Step(request, account, table, old, id_type, state)


def _resume(step: _Step) -> Outcome:
    """Give the file of a run that was killed after it was charged its name. Nothing is drawn."""
    request, ledger = step.request, step.account.ledger
    for digest in step.recorded_here():
        kept = kept_aside(request.target, digest)
        if not kept.exists():
            continue
        if _digest(kept) != digest:
            raise TableFileError(
                f"{kept.name!r}, which waits to become {request.target.name!r}, is damaged, and a second draw at one "
                "level would break the guarantee. Nothing was released.",
                path=str(kept),
            )
        finish(request, kept, step.description())
        rows = sum(batch.num_rows for batch in Input(request.target).batches([request.id_column]))
        balance = ledger.balance(step.account.subject)
        spent, level = balance.spent, request.epsilon
        return Outcome(
            rows, [Charge(step.identity, Decimal(0), step.epoch, level, spent, spent, balance.budget, False)]
        )
    raise already_released(step.identity, request.epsilon)


def _write(step: _Step, place: Path, threads: int, progress: Progress | None, entropy: Entropy) -> tuple[str, int]:
    """Write the new reports aside; return the fingerprint of the table and how many rows it has."""
    request, each = step.request, step.request.columns[0]
    prints = Fingerprint(request.key, each.mechanism.encoding.path_name(request.release, each.column))
    here = in_order(step.table, request.input_columns(), request.id_column, threads)
    there = in_order(step.old.table, [step.old.id_column, each.column], step.old.id_column, threads)
    schema = request.output_schema(step.table.schema)
    with counted_by_id(here.were_sorted or there.were_sorted), closing(here), closing(there):
        pairs = paired(here, request.id_column, there, step.old.id_column)
        batches = _relaxed(step, pairs, schema, prints, progress_of(progress, step.table), entropy)
        rows = write_rows(request, place, schema, step.description(), batches)
    return prints.text(), rows


def _relaxed(
    step: _Step, pairs: Iterator[tuple[Any, Any]], schema: Any, prints: Fingerprint, advance: Any, entropy: Entropy
) -> Iterator[Any]:
    request, each, first_row = step.request, step.request.columns[0], 0
    encoding = each.mechanism.encoding
    dtype = code_dtype(encoding.alphabet)
    for batch, reports in pairs:
        ids = plain(batch.column(request.id_column))
        truth = each.truth(batch.column(each.column), first_row)
        prints.add_rows(encoding, truth, ids, first_row)
        codes = fresh_bridges(
            encoding.alphabet,
            Fraction(step.old.threshold, ONE),
            Fraction(encoding.threshold(request.epsilon), ONE),
            TRUTH,
            lower_reports=_codes(encoding, reports.column(each.column), first_row).astype(dtype),
            upper_reports=encoding.truths(truth, first_row).index.astype(dtype),
            entropy=entropy,
        )
        columns = [ids, encoding.column(codes[:, None])]
        columns += [plain(batch.column(name)) for name in request.keep]
        yield plain_batch(columns, schema)
        first_row += batch.num_rows
        advance(batch.num_rows)


def _codes(encoding: Any, column: Any, first_row: int) -> Any:
    try:
        return encoding.truths(column, first_row).index
    except UndeclaredValueError as problem:
        fields = {name: field for name, field in problem.fields.items() if name != "missing"}  # no value is missing
        raise UndeclaredValueError(problem.message.replace("the value", "the last report", 1), **fields) from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
