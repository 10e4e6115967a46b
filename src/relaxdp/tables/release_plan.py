"""Plans of a vault: which mechanism, path and level each column has, and what that costs.

Everything that can be rejected without reading a row is rejected here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from relaxdp.errors import (
    ArgumentError,
    ColumnError,
    LedgerBusyError,
    MechanismError,
    MetadataError,
    PlanError,
    RelaxdpError,
    ReleaseChangedError,
    UselessReleaseError,
    VaultError,
)
from relaxdp.estimation.mechanism_choice import NumberRange, choose_mechanism
from relaxdp.estimation.planning import compute_max_margin, find_epsilon, find_margin
from relaxdp.ledger.account import (
    Account,
    ColumnState,
    ReleaseState,
    check_name,
    make_release_event,
    require_active_release,
)
from relaxdp.ledger.events import ColumnCharge, ReleaseCharged, SnapshotSummary
from relaxdp.mechanisms.base import Mechanism, TrueValues
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.declared_values import DeclaredMechanism, require_ordered_values
from relaxdp.mechanisms.keyed_reports import release_reports
from relaxdp.mechanisms.numeric import RangeMechanism
from relaxdp.mechanisms.report_arrays import get_report_arrow_type
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import ChainHead, ColumnDescription, FileDescription
from relaxdp.tables.snapshot import (
    ChunkKind,
    PartSealer,
    Snapshot,
    TrueRows,
    TrueRowValues,
    normalize_ids,
    parse_id_type,
)
from relaxdp.tables.table_columns import (
    check_columns,
    convert_column_for_mechanism,
    convert_declared_values,
    get_id_type,
    get_plain_type,
    make_record_batch,
    remove_hidden_values,
)
from relaxdp.tables.vault_folder import VaultFolder
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """A release or a relaxation, as the caller asks for it."""

    name: str
    epsilon: Decimal
    id: str = ""
    columns: Mapping[str, Any] | Sequence[str] | None = None
    """What each column can be; for a relaxation the names, and None is all of them."""
    passthrough: tuple[str, ...] = ()
    planned_epsilon: Decimal | None = None
    accept_new_rows: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """The plan of one column: its mechanism, the path and the level at which it is drawn, and what that costs."""

    column: str
    mechanism: Mechanism
    why: str
    level: Level
    path: PathId
    cost: Decimal = Decimal(0)
    state: ColumnState | None = None
    """What the ledger has of it; None before its first release."""

    @property
    def output_name(self) -> str:
        """The name of the reports: a report of a number is not a number of the table, and is not called like it."""
        if isinstance(self.mechanism, Bloom):
            return "report"
        return f"{self.column}_report" if isinstance(self.mechanism, RangeMechanism) else self.column

    def make_fields(self) -> list[Any]:
        """Return the Arrow fields of the column in the output."""
        reports = pa.field(self.output_name, get_report_arrow_type(self.mechanism))
        return [pa.field("cohort", pa.uint32()), reports] if isinstance(self.mechanism, Bloom) else [reports]

    def draw(self, key: Key, cells: Any, ids: Any, first_row: int) -> tuple[list[Any], TrueRowValues]:
        """Draw the reports of some rows, and return them with their true values as the stream takes them.

        `cells` are those of a table, or true values of a snapshot.
        """
        mechanism = self.mechanism
        where: Any = {"key": key, "level": self.level, "path": self.path, "first_row": first_row}
        try:
            if isinstance(mechanism, Bloom):
                return mechanism.release_text_column(cells, ids, **where)
            if not isinstance(cells, TrueValues):
                converted = convert_column_for_mechanism(cells, mechanism, first_row, self.column)
                cells = mechanism.read_true_values(converted, first_row)
            return [release_reports(mechanism, cells, ids, **where)], cells
        except RelaxdpError as problem:
            problem.fields["of_column"] = self.column
            raise

    def make_description(self, **known: Any) -> ColumnDescription:
        """Return what a released file and the ledger state about the column."""
        return ColumnDescription.from_level(self.mechanism, self.level, path=self.path, **known)


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Some rows in the order of their ids: cells of a table, or true values of a snapshot."""

    ids: Any
    cells: list[Any]
    passthrough: list[Any]


@dataclass(frozen=True, slots=True)
class DrawnBatch:
    """Released rows, what they were drawn from, and that sealed: for each column, then for all pass-through columns."""

    released: Any
    rows: list[TrueRows]
    sealed: list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawingPlan:
    """A plan of what to draw: the columns, and those of the output."""

    columns: tuple[PlannedColumn, ...]
    id_column: str
    passthrough: tuple[str, ...]
    schema: Any
    """The columns of the output."""

    @property
    def input_columns(self) -> list[str]:
        """The input: the columns of the table that are read."""
        return [self.id_column, *(each.column for each in self.columns), *self.passthrough]

    def read_batch(self, batch: Any) -> InputBatch:
        """Read a record batch of a table."""
        return InputBatch(
            remove_hidden_values(batch.column(self.id_column)),
            [batch.column(each.column) for each in self.columns],
            [remove_hidden_values(batch.column(name)) for name in self.passthrough],
        )

    def describe_snapshots(self) -> list[dict[str, Any]]:
        """Return the description of each column's snapshot, then of that of all pass-through columns."""
        kind = get_plain_type(self.schema.field(self.id_column).type)
        id_type = "uuid" if kind == pa.uuid() else str(kind)
        described: list[dict[str, Any]] = [
            {
                "release": each.path.release,
                "column": each.column,
                # The width of a stored value depends on this alone, so the length of a snapshot shows no true value.
                "labels": 2 if isinstance(each.mechanism, RangeMechanism | Bloom) else len(each.mechanism.labels),
                "id": id_type,
            }
            for each in self.columns
        ]
        if self.passthrough:
            described.append({"release": self.columns[0].path.release})
        return described

    def draw_batch(
        self, key: Key, batch: InputBatch, first_row: int, number: int, parts: Sequence[PartSealer]
    ) -> DrawnBatch:
        """Draw some rows, and seal what they are drawn from as the chunks with this number of all parts."""
        ids, arrays, rows = normalize_ids(batch.ids), [batch.ids], []
        for planned, cells in zip(self.columns, batch.cells, strict=True):
            reports, values = planned.draw(key, cells, batch.ids, first_row)
            arrays += reports
            rows.append(TrueRows(ids, values))
        released = make_record_batch([*arrays, *batch.passthrough], self.schema)
        sealed = [part.seal_rows(ChunkKind.PRESENT, number, each) for part, each in zip(parts, rows, strict=False)]
        if parts and self.passthrough:
            # With the ids, to compare them later.
            fields = [pa.field("", ids.type), *(self.schema.field(name) for name in self.passthrough)]
            columns = [ids, *(released.column(name) for name in self.passthrough)]
            through = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
            sealed.append(parts[-1].seal_batch(ChunkKind.PASSTHROUGH, number, through))
        return DrawnBatch(released, rows, sealed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan(DrawingPlan):
    """A plan of a release: the columns to draw, their costs, and the account from which they were decided."""

    request: ReleaseRequest
    vault: VaultFolder
    account: Account
    state: ReleaseState | None
    id_type: str
    is_relaxation: bool

    @property
    def description(self) -> FileDescription:
        """The description of the output."""
        known = {"id_type": self.id_type, "key_fingerprint": self.vault.key.fingerprint}
        described = {each.output_name: each.make_description(**known) for each in self.columns}
        head = ChainHead(self.vault.id, self.account.number, self.account.digest)
        return FileDescription(self.id_column, described, head=head)

    def draft_event(self, staged: StagedRelease) -> ReleaseCharged:
        """Return the event that charges the release, without its number and its costs."""
        columns = tuple(
            ColumnCharge(
                *astuple(sealed),
                column=each.column,
                epsilon=each.level.epsilon,
                mechanism=each.mechanism.name,
                params=each.mechanism.params.hex(),
                description=each.make_description().to_dict(),
                why=each.why,
            )
            for each, sealed in zip(self.columns, staged.columns, strict=True)
        )
        return ReleaseCharged(
            0,
            datetime.now(UTC),
            name=self.request.name,
            action="relax" if self.is_relaxation else "release",
            id_column=self.id_column,
            id_type=self.id_type,
            columns=columns,
            passthrough=self.passthrough,
            passthrough_snapshot=staged.passthrough,
            rows=staged.rows,
            accepted_new_rows=self.request.accept_new_rows,
        )


@dataclass(frozen=True, slots=True)
class StagedRelease:
    """Drawn and sealed rows: durable, and not charged yet."""

    rows: int
    columns: tuple[SnapshotSummary, ...]
    passthrough: str | None
    """The digest of the sealed pass-through columns."""
    joined: int = 0
    left: int = 0


def plan_release(vault: VaultFolder, request: ReleaseRequest, source: Any) -> ReleasePlan:
    """Plan a release: decide its mechanisms, levels and costs."""
    columns = request.columns
    if not isinstance(columns, Mapping) or not columns:
        raise ArgumentError(
            "`columns` is empty."
            if isinstance(columns, Mapping)
            else "`columns` must state the possible values of each column.",
            hint='Pass a mapping such as {{"diagnosis": ["flu", "covid", "none"]}}.',
        )
    if request.planned_epsilon is not None and request.planned_epsilon < request.epsilon:
        raise ArgumentError(
            "`planned_epsilon` is {planned}, which is below {epsilon}, the epsilon of this release.",
            hint="Pass planned_epsilon={epsilon} (--planned-epsilon {epsilon}) or more, or leave it out.",
            planned=format_epsilon(request.planned_epsilon),
            epsilon=format_epsilon(request.epsilon),
        )
    check_columns(source.names, request.id, list(columns), request.passthrough)
    if source.report_description is not None:
        for name in columns:
            if name in source.report_description.columns:
                raise MetadataError(
                    "{column!r} of {label} holds reports, not true values: relaxdp released it.",
                    hint="To raise its epsilon, run vault.relax(...) or `relaxdp relax`, which needs no table.",
                    column=name,
                    label=source.label,
                )
    check_name(request.name, "release")
    account, schema = vault.read_account(), source.schema
    state = account.releases.get(request.name)
    planned = [
        _plan_column(request, account, state, name, declared, schema.field(name).type)
        for name, declared in columns.items()
    ]
    fields = {
        name: pa.field(name, get_plain_type(schema.field(name).type)) for name in (request.id, *request.passthrough)
    }
    id_field, *passthrough = fields.values()
    id_type = get_id_type(schema.field(request.id).type)
    return _make_plan(request, vault, account, state, planned, id_field, passthrough, id_type=id_type)


def plan_relaxation(vault: VaultFolder, request: ReleaseRequest) -> ReleasePlan:
    """Plan a relaxation: the columns of a release, which are drawn from their snapshots."""
    account = vault.read_account()
    state = require_active_release(account, request.name)
    names = list(state.columns) if request.columns is None else list(request.columns)
    for name in names:
        if name not in state.columns:
            raise ColumnError(
                "The release {name!r} has no column {column!r}.",
                hint="Name one of its columns: {listed}.",
                name=request.name,
                column=name,
                listed=", ".join(map(repr, state.columns)),
            )
    if not names or len(set(names)) < len(names):
        raise ArgumentError(
            "`columns` is empty or names a column twice.",
            hint="Name each column once, or leave out columns= (--column) to relax all columns.",
        )
    planned = [_continue_column(request, state.columns[name]) for name in names]
    passthrough: list[Any] = []
    with reject_concurrent_release(vault, request.name, state):
        kind = Snapshot(vault.snapshots, state.columns[names[0]].snapshot, vault.key).read_description()["id"]
        if state.passthrough_snapshot is not None:
            sealed = Snapshot(vault.snapshots, state.passthrough_snapshot, vault.key)
            with closing(sealed.read_batches(ChunkKind.PASSTHROUGH)) as batches:
                passthrough = list(next(batches).schema)[1:]
    id_field = pa.field(state.id_column, parse_id_type(kind))
    return _make_plan(
        request, vault, account, state, planned, id_field, passthrough, id_type=state.id_type, is_relaxation=True
    )


def _make_plan(
    request: ReleaseRequest, vault: VaultFolder, account: Account, state: ReleaseState | None,
    columns: Sequence[PlannedColumn], id_field: Any, passthrough: Sequence[Any], *, id_type: str,
    is_relaxation: bool = False,
) -> ReleasePlan:  # fmt: skip
    """Return the plan with the costs of all columns."""
    fields = [id_field, *(field for each in columns for field in each.make_fields()), *passthrough]
    names = [field.name for field in fields]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ColumnError(
            "Two columns of the output would be called {column!r}.",
            hint="Rename a column of the table first. Reports of numbers in 'age' are called 'age_report'.",
            column=double,
        )
    for each in columns:
        _require_known_mechanism(each)
    plan = ReleasePlan(
        request=request, vault=vault, account=account, state=state, columns=tuple(columns), id_column=id_field.name,
        id_type=id_type, passthrough=tuple(field.name for field in passthrough), schema=pa.schema(fields),
        is_relaxation=is_relaxation,
    )  # fmt: skip
    unsealed = StagedRelease(0, (SnapshotSummary("", 0, 0, 0, 0),) * len(columns), None)
    charged = make_release_event(account, plan.draft_event(unsealed), state).columns
    return replace(plan, columns=tuple(replace(each, cost=to.cost) for each, to in zip(columns, charged, strict=True)))


def _require_known_mechanism(column: PlannedColumn) -> None:
    """Reject a mechanism that cannot be made again from its description: its release could never be relaxed."""
    mechanism = column.mechanism
    with suppress(MechanismError, MetadataError, KeyError, AttributeError):
        again = column.make_description().mechanism()
        if (again.name, again.params) == (mechanism.name, mechanism.params):
            return
    raise MechanismError(
        "The mechanism {mechanism!r} of {column!r} cannot be created again, so its release could never be relaxed.",
        hint="Register it with all its options: relaxdp.mechanisms.registry.register_mechanism(...).",
        mechanism=mechanism.name,
        column=column.column,
    )


@contextmanager
def reject_concurrent_release(vault: VaultFolder, name: str, state: ReleaseState | None) -> Iterator[None]:
    """Reject a release if its snapshot is missing because another process has just released the same name."""
    try:
        yield
    except VaultError:
        found = vault.ledger.read_account().releases.get(name)
        if found is not None and (state is None or found.last_event != state.last_event):
            raise LedgerBusyError(
                "Another process released {name!r} while this release ran.",
                hint="Run the same call or command again.",
                name=name,
            ) from None
        raise


def _plan_column(
    request: ReleaseRequest, account: Account, state: ReleaseState | None, name: str, declared: Any, arrow_type: Any
) -> PlannedColumn:
    known = None if state is None else state.columns.get(name)
    if not isinstance(declared, Mechanism | NumberRange):
        declared = convert_declared_values(require_ordered_values(declared), arrow_type)
    if known is not None:
        found = _continue_column(request, known)
        if not _has_same_declaration(declared, found.mechanism):
            raise ReleaseChangedError(
                "{column!r} of the release {name!r} was declared differently at its first release: {before!r}.",
                hint="Declare it as before, or choose a new release name, which is charged in full.",
                column=name,
                name=request.name,
                before=found.mechanism,
            )
        return found
    if isinstance(declared, Mechanism):
        mechanism, why = declared, "given"
    else:
        new = [each for each in request.columns or () if state is None or each not in state.columns]
        # What is left for each new column once this release is paid for.
        share = max(Decimal(0), account.remaining / len(new) - request.epsilon)
        choice = choose_mechanism(
            declared, epsilon=request.epsilon, remaining_share=share, planned_epsilon=request.planned_epsilon
        )
        mechanism, why = choice.mechanism, choice.reason
    return PlannedColumn(name, mechanism, why, mechanism.level(request.epsilon), PathId(request.name, name))


def _continue_column(request: ReleaseRequest, state: ColumnState) -> PlannedColumn:
    mechanism = ColumnDescription.from_dict(state.description).mechanism()
    level, path = mechanism.level(request.epsilon), PathId(request.name, state.column)
    return PlannedColumn(state.column, mechanism, "as at the first release", level, path, state=state)


def _has_same_declaration(declared: Any, mechanism: Mechanism) -> bool:
    if isinstance(declared, Mechanism):
        return (declared.name, declared.params) == (mechanism.name, mechanism.params)
    if isinstance(declared, NumberRange):
        return declared.is_range_of(mechanism)
    return isinstance(mechanism, DeclaredMechanism) and tuple(declared) == tuple(mechanism.labels)


MAX_USEFUL_MARGIN = 0.5
"""A margin of error of this part of the widest possible one tells next to nothing: a share between 25 and 75 %."""
_PRECISE = 0.2
"""A margin of error of this part of the widest one is worth having, and is what the hint looks for."""
_MAX_SENSIBLE = 10
"""An epsilon above this protects next to nothing, so it is never advised."""


def compute_margin(mechanism: Mechanism, epsilon: Decimal, n_rows: int | None) -> float | None:
    """Return the expected margin of error (95 %) of a share or a mean; None for words, or an unknown number of rows."""
    if not n_rows or isinstance(mechanism, Bloom):
        return None
    return find_margin(n=n_rows, planned_values=mechanism, epsilon=epsilon)


def reject_useless_columns(columns: Sequence[PlannedColumn], n_rows: int, planned_epsilon: Decimal | None) -> None:
    """Reject columns whose reports cost epsilon and are useless, now and at the planned epsilon."""
    for each in columns:
        epsilon = max(each.level.epsilon, planned_epsilon or each.level.epsilon)
        margin = compute_margin(each.mechanism, epsilon, n_rows)
        if not each.cost or margin is None or margin < MAX_USEFUL_MARGIN * compute_max_margin(each.mechanism):
            continue
        enough = _find_sensible_epsilon(each.mechanism, n_rows)
        raise UselessReleaseError(
            "With {rows:,} rows at epsilon {epsilon}, each {answer} of {column!r} would have a margin of error of "
            "{margin:.2g}. This is too imprecise to be useful.",
            hint="Release more rows."
            if enough is None
            else "Use epsilon {enough} or more, or state that you plan to: planned_epsilon={enough} "
            "(--planned-epsilon {enough}).",
            rows=n_rows,
            epsilon=format_epsilon(epsilon),
            answer="mean" if each.mechanism.mean_weights is not None else "share",
            column=each.column,
            margin=margin,
            enough=enough,
        )


def _find_sensible_epsilon(mechanism: Mechanism, n_rows: int) -> str | None:
    try:
        found = find_epsilon(_PRECISE * compute_max_margin(mechanism), n=n_rows, planned_values=mechanism)
    except PlanError:
        return None
    return format_epsilon(found) if found <= _MAX_SENSIBLE else None
