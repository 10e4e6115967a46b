"""Plans of a vault: which mechanism, path and level each column has, and what that costs.

Everything that can be rejected without reading a row is rejected here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from relaxdp.errors import (
    ArgumentError,
    ColumnError,
    LedgerBusyError,
    MetadataError,
    PlanError,
    RelaxdpError,
    ReleaseChangedError,
    UselessReleaseError,
    VaultError,
)
from relaxdp.estimation.mechanism_choice import NumberRange, choose_mechanism
from relaxdp.estimation.planning import compute_max_margin, find_epsilon, find_margin
from relaxdp.ledger.account import Account, ColumnState, ReleaseState
from relaxdp.ledger.events import ColumnRequest
from relaxdp.ledger.ledger_rules import ChargeRequest, check_name, compute_charges, require_release
from relaxdp.mechanisms.base import Mechanism, TrueValues
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.declared import DeclaredMechanism, require_list
from relaxdp.mechanisms.keyed_reports import release_reports
from relaxdp.mechanisms.numeric import RangeMechanism
from relaxdp.mechanisms.report_arrays import get_report_type
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.metadata import ChainHead, ColumnDescription, FileDescription
from relaxdp.tables.snapshot import ChunkKind, Snapshot, TrueRowValues, parse_id_type
from relaxdp.tables.table_columns import (
    check_columns,
    convert_column_for_mechanism,
    convert_declared_values,
    get_id_type,
    get_plain_type,
)
from relaxdp.tables.vault_folder import VaultFolder
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.level import Level


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
    """One column: its mechanism, the path and the level at which it is drawn, and what that costs."""

    column: str
    mechanism: Mechanism
    why: str
    level: Level
    path: PathId
    cost: Decimal
    state: ColumnState | None
    """What the ledger has of it; None before its first release."""

    @property
    def output(self) -> str:
        """The name of the reports: a report of a number is not a number of the table, and is not called like it."""
        return f"{self.column}_report" if isinstance(self.mechanism, RangeMechanism) else self.column

    def make_fields(self) -> list[Any]:
        """Return the columns of the output."""
        if isinstance(self.mechanism, Bloom):
            return [pa.field("cohort", pa.uint32()), pa.field("report", get_report_type(self.mechanism))]
        return [pa.field(self.output, get_report_type(self.mechanism))]

    def draw(self, vault: VaultFolder, cells: Any, ids: Any, first_row: int) -> tuple[list[Any], TrueRowValues]:
        """Return the reports of some rows, and their true values as the stream takes them.

        `cells` are those of a table, or true values of a snapshot.
        """
        try:
            return self._draw_reports(vault, cells, ids, first_row)
        except RelaxdpError as problem:
            problem.fields["of_column"] = self.column
            raise

    def _draw_reports(
        self, vault: VaultFolder, cells: Any, ids: Any, first_row: int
    ) -> tuple[list[Any], TrueRowValues]:
        where: Any = {"key": vault.key, "level": self.level, "path": self.path, "first_row": first_row}
        if isinstance(self.mechanism, Bloom):
            return self.mechanism.release_text_column(cells, ids, **where)
        if not isinstance(cells, TrueValues):
            converted = convert_column_for_mechanism(cells, self.mechanism, first_row, self.column)
            cells = self.mechanism.read_true_values(converted, first_row)
        return [release_reports(self.mechanism, cells, ids, **where)], cells


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The columns to draw, their costs, and the account from which they were decided."""

    request: ReleaseRequest
    vault: VaultFolder
    account: Account
    state: ReleaseState | None
    columns: tuple[PlannedColumn, ...]
    id_column: str
    id_type: str
    passthrough: tuple[str, ...]
    schema: Any
    """The columns of the output."""
    is_relaxation: bool = False

    @property
    def description(self) -> FileDescription:
        """The description of the output."""
        head = ChainHead(self.vault.id, self.account.number, self.account.digest)
        described = {
            each.make_fields()[-1].name: ColumnDescription.from_level(
                each.mechanism,
                each.level,
                path=each.path,
                id_type=self.id_type,
                key_fingerprint=self.vault.key.fingerprint,
            )
            for each in self.columns
        }
        return FileDescription(self.id_column, described, head=head)

    def describe_snapshot(self, column: PlannedColumn) -> dict[str, Any]:
        """Return the description of a column's snapshot."""
        kind = get_plain_type(self.schema.field(self.id_column).type)
        is_uuid = getattr(kind, "extension_name", None) == "arrow.uuid"
        return {
            "release": self.request.name,
            "column": column.column,
            "labels": len(column.mechanism.labels) if isinstance(column.mechanism, DeclaredMechanism) else 2,
            "id": "uuid" if is_uuid else str(kind),
        }

    def make_charge_request(self, staged: StagedRelease) -> ChargeRequest:
        """Return what the ledger is asked to charge."""
        columns = tuple(
            ColumnRequest(
                column=each.column,
                epsilon=each.level.epsilon,
                mechanism=each.mechanism.name,
                params=each.mechanism.params.hex(),
                description=_describe_mechanism(each),
                why=each.why,
                **asdict(sealed),
            )
            for each, sealed in zip(self.columns, staged.columns, strict=True)
        )
        return ChargeRequest(
            name=self.request.name,
            action="relax" if self.is_relaxation else "release",
            id_column=self.id_column,
            id_type=self.id_type,
            columns=columns,
            passthrough=self.passthrough,
            passthrough_snapshot=staged.passthrough,
            rows=staged.rows,
            accept_new_rows=self.request.accept_new_rows,
            expected_event=0 if self.state is None else self.state.last_event,
            expected_snapshots={
                each.column: None if each.state is None else each.state.snapshot for each in self.columns
            },
        )


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """The snapshot of a column after a release, and how many rows it knows."""

    snapshot: str
    known: int
    joined: int
    """Rows that joined after the first release."""
    left: int
    """Known rows that are absent from the table."""
    exchanged: int
    """Rows that joined while others were absent, summed over releases, since this was last accepted."""


@dataclass(frozen=True, slots=True)
class StagedRelease:
    """Drawn and sealed rows: durable, and not charged yet."""

    rows: int
    columns: tuple[SealedColumn, ...]
    passthrough: str | None
    """The digest of the sealed pass-through columns."""
    joined: int = 0
    left: int = 0


def plan_release(vault: VaultFolder, request: ReleaseRequest, source: Any) -> ReleasePlan:
    """Decide mechanisms, levels and costs of a release."""
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
            "`planned_epsilon` is {planned}, and this release is at epsilon {epsilon} already.",
            hint="State the largest level that you plan, or leave it out.",
            planned=format_epsilon(request.planned_epsilon),
            epsilon=format_epsilon(request.epsilon),
        )
    check_columns(source.names, request.id, list(columns), request.passthrough)
    if source.report_description is not None:
        for name in columns:
            if name in source.report_description.columns:
                raise MetadataError(
                    "{column!r} of {label} holds reports, not true values: relaxdp released it.",
                    hint="To relax it, run vault.relax(...) or `relaxdp relax`, which needs no table.",
                    column=name,
                    label=source.label,
                )
    check_name(request.name, "release")
    account = vault.read_account()
    state = account.releases.get(request.name)
    schema = source.schema
    planned = [
        _plan_column(request, account, state, name, declared, schema.field(name).type)
        for name, declared in columns.items()
    ]
    fields = [pa.field(request.id, get_plain_type(schema.field(request.id).type))]
    for each in planned:
        fields += each.make_fields()
    fields += [pa.field(name, get_plain_type(schema.field(name).type)) for name in request.passthrough]
    _reject_duplicate_names([field.name for field in fields])
    id_type = get_id_type(schema.field(request.id).type)
    plan = ReleasePlan(
        request, vault, account, state, tuple(planned), request.id, id_type, request.passthrough, pa.schema(fields)
    )
    return _add_costs(plan)


def plan_relaxation(vault: VaultFolder, request: ReleaseRequest) -> ReleasePlan:
    """Decide what `relax` draws: the columns of a release, from their snapshots."""
    account = vault.read_account()
    state = require_release(account, request.name)
    names = list(state.columns) if request.columns is None else list(request.columns)
    for name in names:
        if name not in state.columns:
            raise ColumnError(
                "The release {name!r} has no column {column!r}.",
                hint="Its columns are: {listed}.",
                name=request.name,
                column=name,
                listed=", ".join(map(repr, state.columns)),
            )
    if not names or len(set(names)) < len(names):
        raise ArgumentError("`columns` is empty or names a column twice.", hint="Leave it out to relax all columns.")
    planned = tuple(_continue_column(request, state.columns[name]) for name in names)
    with detect_concurrent_release(vault, request.name, state):
        kind = Snapshot(vault.snapshots, planned[0].state.snapshot, vault.key).description["id"]  # type: ignore[union-attr]
        fields = [pa.field(state.id_column, parse_id_type(kind))]
        for each in planned:
            fields += each.make_fields()
        if state.passthrough_snapshot is not None:
            sealed = Snapshot(vault.snapshots, state.passthrough_snapshot, vault.key)
            with closing(sealed.read_batches(ChunkKind.PASSTHROUGH)) as batches:
                fields += [field for field in next(batches).schema if field.name in state.passthrough]
    plan = ReleasePlan(
        request, vault, account, state, planned, state.id_column, state.id_type, state.passthrough,
        pa.schema(fields), is_relaxation=True,
    )  # fmt: skip
    return _add_costs(plan)


@contextmanager
def detect_concurrent_release(vault: VaultFolder, name: str, state: ReleaseState | None) -> Iterator[None]:
    """Report a snapshot that is missing because another process has just released the same name."""
    try:
        yield
    except VaultError:
        found = vault.ledger.read_account().releases.get(name)
        if found is not None and (state is None or found.last_event != state.last_event):
            raise LedgerBusyError(
                "Another process released {name!r} while this release ran.",
                hint="Run the same call again.",
                name=name,
            ) from None
        raise


def _plan_column(
    request: ReleaseRequest, account: Account, state: ReleaseState | None, name: str, declared: Any, kind: Any
) -> PlannedColumn:
    known = None if state is None else state.columns.get(name)
    if not isinstance(declared, Mechanism | NumberRange):
        declared = convert_declared_values(require_list(declared), kind)
    if known is not None:
        found = _continue_column(request, known)
        if not _has_same_declaration(declared, found.mechanism):
            raise ReleaseChangedError(
                "{column!r} of the release {name!r} was declared differently at its first release: {before!r}.",
                hint="Declare it as before, or use a new name; its cost is added.",
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
    level = mechanism.level(request.epsilon)
    return PlannedColumn(name, mechanism, why, level, PathId(request.name, name), Decimal(0), None)


def _continue_column(request: ReleaseRequest, known: ColumnState) -> PlannedColumn:
    mechanism = ColumnDescription.from_json(known.description).mechanism()
    level = mechanism.level(request.epsilon)
    path = PathId(request.name, known.column)
    return PlannedColumn(known.column, mechanism, "as at the first release", level, path, Decimal(0), known)


def _has_same_declaration(declared: Any, mechanism: Mechanism) -> bool:
    if isinstance(declared, Mechanism):
        return (declared.name, declared.params) == (mechanism.name, mechanism.params)
    if isinstance(declared, NumberRange):
        return declared.matches(mechanism)
    return isinstance(mechanism, DeclaredMechanism) and tuple(declared) == tuple(mechanism.labels)


def _describe_mechanism(column: PlannedColumn) -> dict[str, Any]:
    return ColumnDescription.from_level(column.mechanism, column.level, path=column.path).to_json()


def _add_costs(plan: ReleasePlan) -> ReleasePlan:
    unsealed = SealedColumn("", 0, 0, 0, 0)
    staged = StagedRelease(0, tuple(unsealed for _ in plan.columns), None)
    charged = compute_charges(plan.account, plan.make_charge_request(staged))
    columns = (replace(each, cost=cost.cost) for each, cost in zip(plan.columns, charged, strict=True))
    return replace(plan, columns=tuple(columns))


def _reject_duplicate_names(names: Sequence[str]) -> None:
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ColumnError(
            "Two columns of the output would be called {column!r}.",
            hint="Rename a column of the table first. Reports of a number are called like the column, with _report.",
            column=double,
        )


MAX_USEFUL_MARGIN = 0.5
"""A margin of error of this part of the widest possible one tells next to nothing: a share between 25 and 75 %."""
_PRECISE = 0.2
"""A margin of error of this part of the widest one is worth having, and is what the hint looks for."""
_MAX_SENSIBLE = 10
"""An epsilon above this protects next to nothing, so it is never advised."""


def compute_margin(mechanism: Mechanism, epsilon: Decimal, rows: int | None) -> float | None:
    """Return the expected margin of error (95 %) of a share or a mean; None for words, or an unknown number of rows."""
    if not rows or isinstance(mechanism, Bloom):
        return None
    return find_margin(n=rows, values=mechanism, epsilon=epsilon)


def reject_useless_columns(columns: Sequence[PlannedColumn], rows: int, planned_epsilon: Decimal | None) -> None:
    """Reject a cost for what tells next to nothing, now and at the planned epsilon."""
    for each in columns:
        epsilon = max(each.level.epsilon, planned_epsilon or each.level.epsilon)
        margin = compute_margin(each.mechanism, epsilon, rows)
        if not each.cost or margin is None or margin < MAX_USEFUL_MARGIN * compute_max_margin(each.mechanism):
            continue
        enough = _find_sensible_epsilon(each.mechanism, rows)
        raise UselessReleaseError(
            "{rows:,} rows at epsilon {epsilon} estimate each {answer} of {column!r} with a margin of error of "
            "{margin:.2g}, which tells next to nothing.",
            hint="Release more rows."
            if enough is None
            else "Use epsilon {enough} or more, or state that you plan to: planned_epsilon={enough} "
            "(--planned-epsilon {enough}).",
            rows=rows,
            epsilon=format_epsilon(epsilon),
            answer="mean" if each.mechanism.mean_weights is not None else "share",
            column=each.column,
            margin=margin,
            enough=enough,
        )


def _find_sensible_epsilon(mechanism: Mechanism, rows: int) -> str | None:
    try:
        found = find_epsilon(_PRECISE * compute_max_margin(mechanism), n=rows, values=mechanism)
    except PlanError:
        return None
    return format_epsilon(found) if found <= _MAX_SENSIBLE else None
