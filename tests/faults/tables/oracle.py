"""What a vault must know and do: the oracle of its histories, which knows the people however their ids are spelled.

`Lineage` predicts which operations are rejected, and what every report is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from tests.faults.tables.jobs import GROUPS, OUTPUTS, VALUES, Id, Job, Row, fold

from relaxdp.estimation.planning import compute_max_margin
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keys import Key
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.tables.release_plan import MAX_USEFUL_MARGIN, compute_margin

KEY = Key.from_bytes(bytes(range(32)))
EVENTS = count(1)
"""Gives each event a number that no other has, also in another copy of the vault."""


@dataclass(slots=True)
class Known:
    """What a vault must know of one column of one name."""

    is_unary: bool
    mechanism: Mechanism | None = None
    largest: Decimal = Decimal(0)
    rows: dict[Id, Row] = field(default_factory=dict)
    """All rows ever released, as they were at first."""
    present: tuple[Id, ...] = ()
    exchanged: int = 0
    """Rows that joined while others were absent, since this was last accepted."""
    accepted: int = 0

    def count_exchanged(self, ids: Iterable[Id]) -> tuple[int, int]:
        """Return how many rows would have left and joined in exchange, and how many rows would be known then."""
        new = set(ids) - set(self.rows)
        total = len(self.rows) + len(new)
        return self.exchanged + (min(len(new), total - len(set(ids))) if self.rows else 0), total

    def draw(self, name: str, column: str, ids: Iterable[Id], epsilon: Decimal) -> list[Any]:
        """Return the only reports that these ids may ever have at this level."""
        ids, mechanism = list(ids), self.mechanism
        assert mechanism is not None
        values = [getattr(self.rows[each], column) for each in ids]
        drawn: list[Any] = mechanism.release(values, ids, key=KEY, epsilon=epsilon, name=name, column=column)
        return drawn


@dataclass(slots=True)
class Name:
    """What a vault must know of one name."""

    id_type: str
    retired: bool = False
    columns: dict[str, Known] = field(default_factory=dict)
    passthrough: tuple[str, ...] = ()
    clear: dict[Id, Row] | None = None
    """The rows whose pass-through columns left with the last table."""


@dataclass(frozen=True, slots=True)
class Output:
    """Reports that have left, and the file that they are in."""

    name: str
    epsilon: Decimal
    ids: tuple[Id, ...]
    reports: dict[str, list[Any]]
    mechanisms: dict[str, str]
    file: Path | None


@dataclass(slots=True)
class Lineage:
    """What the vault in one folder must know. A copy of the folder comes with a copy of this."""

    budget: Decimal
    names: dict[str, Name] = field(default_factory=dict)
    unprotected: set[str] = field(default_factory=set)
    events: list[int] = field(default_factory=list)
    """A unique number for each event, also across copies."""
    outputs: list[Output] = field(default_factory=list)

    @property
    def spent(self) -> Decimal:
        """The largest level of each column, summed."""
        return sum((known.largest for name in self.names.values() for known in name.columns.values()), Decimal(0))

    def compute_costs(self, job: Job) -> list[Decimal]:
        """Return what each column costs."""
        name, epsilon = self.names.get(job.name), Decimal(job.epsilon)
        known = {} if name is None else {column: each.largest for column, each in name.columns.items()}
        return [max(Decimal(0), epsilon - known.get(each, Decimal(0))) for each in job.columns or tuple(known)]

    def find_rejections(self, job: Job) -> set[str]:
        """Return the errors by which an operation must be rejected; none where it must be carried out."""
        name, found = self.names.get(job.name), set[str]()
        if job.kind == "raise":
            return {"BudgetError"} if Decimal(job.epsilon) <= self.budget else set()
        if name is None and job.kind != "release":
            return {"UnknownReleaseError"}
        if name is not None and name.retired:
            found.add("UnknownReleaseError")
        if job.kind == "retire":
            return found
        if sum(self.compute_costs(job)) > self.budget - self.spent:
            found.add("BudgetExceededError")
        return found | (self._reject_relaxation(job) if job.kind == "relax" else self._reject_release(job))

    def _reject_relaxation(self, job: Job) -> set[str]:
        name, found = self.names[job.name], set[str]()
        columns = job.columns or tuple(name.columns)
        if not set(columns) <= set(name.columns):
            return {"ColumnError"}
        rows = {name.columns[each].present for each in columns}
        rows |= set() if name.clear is None else {tuple(sorted(name.clear))}
        if len(rows) > 1:
            found.add("RowsChangedError")
        for column, cost in zip(columns, self.compute_costs(job), strict=True):
            known = name.columns[column]
            if cost and _tells_nothing(known.mechanism, Decimal(job.epsilon), len(known.present)):
                found.add("UselessReleaseError")
        return found

    def _reject_release(self, job: Job) -> set[str]:
        name, found, ids = self.names.get(job.name), set[str](), job.list_ids()
        protected = {column for each in self.names.values() for column in each.columns}
        if set(job.columns) & self.unprotected or {"id", *job.passthrough} & protected:
            found.add("ReleaseChangedError")
        if name is not None and name.id_type != job.id_type:
            found.add("ReleaseChangedError")
        for column in job.columns:
            known = None if name is None else name.columns.get(column)
            if known is None:
                continue
            if column == "a" and job.unary and not known.is_unary:  # a list of values continues any mechanism
                found.add("ReleaseChangedError")
            same = [
                getattr(known.rows[each], column) == getattr(ids[each], column) for each in ids if each in known.rows
            ]
            folded = {fold(each) for each in known.rows}
            exchanged, total = known.count_exchanged(ids)
            is_exchanged = exchanged > total / 100 and not job.accept
            if not all(same) or is_exchanged or any(fold(each) in folded for each in ids if each not in known.rows):
                found.add("RowsChangedError")
        return found

    def apply(self, job: Job, event: Any) -> None:
        """Take note of an operation that the ledger has recorded."""
        self.events.append(next(EVENTS))
        if job.kind == "raise":
            self.budget = Decimal(job.epsilon)
        elif job.kind == "retire":
            self.names[job.name].retired = True
        else:
            charges = {each.column: each for each in event.columns}
            columns = job.columns or tuple(self.names[job.name].columns)
            assert set(charges) == set(columns), "other columns were charged"
            costs = [charges[each].cost for each in columns]
            assert costs == self.compute_costs(job), "it was charged with another cost"
            if job.kind == "release":
                self._apply_release(job, charges)
            name = self.names[job.name]
            for column in job.columns or tuple(name.columns):
                name.columns[column].largest = max(name.columns[column].largest, Decimal(job.epsilon))
        assert self.spent <= self.budget

    def _apply_release(self, job: Job, charges: dict[str, Any]) -> None:
        name, ids = self.names.setdefault(job.name, Name(job.id_type)), job.list_ids()
        for column in job.columns:
            known = name.columns.setdefault(column, Known(job.unary))
            mechanism = ColumnDescription.from_dict(charges[column].description).mechanism()
            assert known.mechanism is None or repr(known.mechanism) == repr(mechanism)
            exchanged, total = known.count_exchanged(ids)
            known.exchanged = exchanged
            if exchanged > total / 100:
                assert job.accept, "too many ids were exchanged"
                known.accepted, known.exchanged = known.accepted + exchanged, 0
            for each, row in ids.items():
                first = known.rows.setdefault(each, row)
                assert getattr(first, column) == getattr(row, column), "one individual is on two paths"
            known.mechanism, known.present = mechanism, tuple(sorted(ids))
            self._check_people(known)
        name.passthrough, name.clear = job.passthrough, ids if job.passthrough else None
        self.unprotected |= {"id", *job.passthrough}

    @staticmethod
    def _check_people(known: Known) -> None:
        people = {row.person for row in known.rows.values()}
        assert len(known.rows) - len(people) <= known.accepted + len(known.rows) / 100, "people were drawn twice"
        assert len({fold(each) for each in known.rows}) == len(known.rows), "an id was respelled"

    def check_output(self, job: Job, table: Any, file: Path | None) -> Output:
        """Compare a released table, which has just been charged, with what it must be."""
        name, epsilon = self.names[job.name], Decimal(job.epsilon)
        columns = job.columns or tuple(name.columns)
        ids = name.columns[columns[0]].present
        assert [type(each)(found) for each, found in zip(ids, table["id"].to_pylist(), strict=True)] == list(ids)
        assert table.schema.names == ["id", *(OUTPUTS[each] for each in columns), *name.passthrough]
        reports = {each: _read_reports(table[OUTPUTS[each]]) for each in columns}
        for column in columns:
            known = name.columns[column]
            assert reports[column] == known.draw(job.name, column, ids, epsilon), "a report is not on its path"
            assert epsilon <= known.largest, "a level was never paid for"
        for column in name.passthrough:
            assert name.clear is not None
            clear = [getattr(name.clear[each], column) for each in ids]
            assert [type(each)(found) for each, found in zip(clear, table[column].to_pylist(), strict=True)] == clear
        mechanisms = {each: repr(name.columns[each].mechanism) for each in columns}
        return Output(job.name, epsilon, ids, reports, mechanisms, file)

    def covers(self, output: Output) -> bool:
        """Return whether this vault has paid for an output, which another copy may have released."""
        name = self.names.get(output.name)
        for column, reports in output.reports.items():
            known = None if name is None else name.columns.get(column)
            if known is None or output.epsilon > known.largest or repr(known.mechanism) != output.mechanisms[column]:
                return False
            if name is None or name.retired:
                continue  # nothing is left to compare with
            if not set(output.ids) <= set(known.rows):
                return False
            if known.draw(output.name, column, output.ids, output.epsilon) != reports:
                return False
        return True


def _tells_nothing(mechanism: Mechanism | None, epsilon: Decimal, rows: int) -> bool:
    assert mechanism is not None
    margin = compute_margin(mechanism, epsilon, rows)
    return margin is not None and margin >= MAX_USEFUL_MARGIN * compute_max_margin(mechanism)


def _read_reports(column: Any) -> list[Any]:
    """Return reports as Python values, also the hexadecimal ones of a text file."""
    found: list[Any] = column.to_pylist()
    is_hex = pa.types.is_string(column.type) and set(found) and not set(found) <= {*VALUES, *GROUPS}
    return [bytes.fromhex(each) for each in found] if is_hex else found


def read_output(file: Path) -> Any:
    """Read a released file; in a text file all ids are text."""
    if file.suffix == ".parquet":
        return pa_parquet.read_table(file)
    kinds = {"id": pa.string(), "a": pa.string(), "b_report": pa.float64()}
    return pa_csv.read_csv(file, convert_options=pa_csv.ConvertOptions(column_types=kinds))
