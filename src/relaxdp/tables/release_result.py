"""The result of a release: its rows, its cost, and its unprotected columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp.errors import ArgumentError
from relaxdp.estimation.display import describe_risk, format_html_table, format_risk, format_table
from relaxdp.ledger.account import Account
from relaxdp.ledger.events import add_amounts, subtract_amounts
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.registry import get_mechanism_title
from relaxdp.tables.data_frames import convert_table, make_template
from relaxdp.tables.metadata import FileDescription, attach_description
from relaxdp.tables.release_plan import ReleasePlan, StagedRelease, compute_margin
from relaxdp.theory.epsilon import format_epsilon

_WHOLE = 100
"""A margin of error from here on is printed without decimals."""


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """One released column."""

    column: str
    """Its name in the table."""
    output: str
    """The name of its reports in the output: that of a number ends in `_report`."""
    mechanism: Mechanism
    why: str
    """Why it has this mechanism."""
    epsilon: Decimal
    cost: Decimal
    margin: float | None
    """The expected margin of error (95 %) of each share, or of the mean; None where it is unknown."""

    @property
    def answers(self) -> int:
        """How many answers are possible; 2 for numbers, which are in one half of their range or in the other."""
        encoding = self.mechanism
        return 2 if encoding.mean_weights is not None or isinstance(encoding, Bloom) else len(encoding.labels)

    def to_row(self, spent: Decimal) -> list[str]:
        """Return the column as a row of the printed table.

        Columns may depend on one another, so the risk follows from everything that was spent on the individuals.
        """
        margin = "" if self.margin is None else f"\N{PLUS-MINUS SIGN}{_format_margin(self.margin)}"
        return [
            self.column if self.output == self.column else f"{self.column} as {self.output}",
            f"{get_mechanism_title(self.mechanism.name)} ({self.why})",
            format_epsilon(self.cost),
            margin,
            format_risk(spent, self.answers),
        ]


_HEADINGS = ("column", "mechanism", "cost", "margin of error", "a guess is right")


def _format_margin(margin: float) -> str:
    return f"{margin:,.0f}" if margin >= _WHOLE else f"{margin:.2g}"


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """Released rows and their cost, or in a dry run the cost that they would have.

    `rx.estimate(release)` estimates from it. `to_frame()` returns the rows as a data frame of the library that the data
    came in. Anything that reads Arrow streams reads it directly. It prints as a table with the risk of each column.

    Example:
        >>> release = vault.relax("patients", epsilon=1)  # doctest: +SKIP
        >>> release.cost, release.columns[0].margin, release.to_frame()  # doctest: +SKIP
    """

    name: str
    epsilon: Decimal
    id: str
    columns: tuple[ReleasedColumn, ...]
    passthrough: tuple[str, ...]
    rows: int | None
    """None in a dry run."""
    joined: int
    """Rows that no earlier release of this name had."""
    left: int
    """Rows of the last release of this name that this one does not have."""
    spent: Decimal
    budget: Decimal
    vault: str
    output: Path | None
    description: FileDescription
    is_dry_run: bool = False
    table: Any = field(default=None, compare=False)
    """The rows in memory: an Arrow table, or a Spark DataFrame; None where they are in the file `output`."""
    library: str = field(default="pyarrow", compare=False)
    template: Any = field(default=None, compare=False)
    """The data frame that the rows came from, without its rows."""

    @classmethod
    def from_plan(
        cls, plan: ReleasePlan, source: Any, staged: StagedRelease | None = None, account: Account | None = None, *,
        output: Path | None = None, table: Any = None,
    ) -> Release:  # fmt: skip
        """Return the result of a plan; nothing is staged and charged in a dry run."""
        known = plan.state if source is None else source
        rows = None if staged is None else staged.rows
        expected = known.rows if rows is None and known is not None else rows
        columns = tuple(
            ReleasedColumn(
                each.column, each.output_name, each.mechanism, each.why, each.level.epsilon, each.cost,
                compute_margin(each.mechanism, each.level.epsilon, expected),
            )
            for each in plan.columns
        )  # fmt: skip
        costs = [each.cost for each in columns]
        library = "file" if source is None else source.library
        return cls(
            name=plan.request.name,
            epsilon=plan.request.epsilon,
            id=plan.id_column,
            columns=columns,
            passthrough=plan.passthrough,
            rows=rows,
            joined=0 if staged is None else staged.joined,
            left=0 if staged is None else staged.left,
            spent=add_amounts([plan.account.spent, *costs]) if account is None else account.spent,
            budget=(account or plan.account).budget,
            vault=plan.vault.path.name,
            output=output,
            description=replace(plan.description, rows=rows),
            is_dry_run=staged is None,
            table=table,
            library="pyarrow" if library == "file" else library,
            template=None if source is None else make_template(library, source.native, table),
        )

    @property
    def cost(self) -> Decimal:
        """The cost of all columns together."""
        return add_amounts(each.cost for each in self.columns)

    @property
    def remaining(self) -> Decimal:
        """The rest of the budget afterwards."""
        return subtract_amounts(self.budget, self.spent)

    def to_frame(self) -> Any:
        """Return the released rows as a data frame.

        Returns:
            A data frame of the library of the data; for a file, or after `relax`, a pyarrow table.

        Raises:
            ArgumentError: A dry run has no rows.
        """
        if self.is_dry_run:
            raise ArgumentError(
                "A dry run has no rows, because it releases nothing.", hint="Release without dry_run=True."
            )
        if self.library == "spark":
            return self.table
        frame = convert_table(self._read_arrow_table(), self.library, self.template)
        return attach_description(frame, self.description)

    def _read_arrow_table(self) -> Any:
        if self.table is not None:
            return self.table
        from relaxdp.tables.files import TableFile  # noqa: PLC0415

        table = TableFile(Path(str(self.output)))
        return pa.Table.from_batches(table.batches(table.schema.names), table.schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if self.is_dry_run or self.library == "spark":
            raise ArgumentError(
                "The rows of this release are not in memory.", hint="Call release.to_frame(). A dry run has no rows."
            )
        return self._read_arrow_table().__arrow_c_stream__(requested_schema)

    @property
    def summary(self) -> str:
        """The release in one line, for logs: without the number of rows that joined or left."""
        names = ", ".join(each.column for each in self.columns)
        cost, spent, budget = map(format_epsilon, (self.cost, self.spent, self.budget))
        return (
            f"released {names} as {self.name!r} from {self.vault} at epsilon {format_epsilon(self.epsilon)}: "
            f"cost {cost}, spent {spent} of {budget}, unprotected {', '.join([self.id, *self.passthrough])}"
        )

    def _format_parts(self) -> tuple[str, list[str]]:
        """Return the parts of the printed text: the line above the table, and those below it."""
        each = " each" if len(self.columns) > 1 else ""
        what = f"as {self.name!r} at epsilon {format_epsilon(self.epsilon)}{each}"
        cost, spent, budget, left = map(format_epsilon, (self.cost, self.spent, self.budget, self.remaining))
        last = f"Cost {cost}. Spent {spent} of the budget {budget}, {left} remaining."
        if self.is_dry_run:
            first = f"Dry run {what}, from {self.vault}. Nothing was released."
            last = f"It would cost {cost}. Then {spent} of the budget {budget} would be spent, and {left} would remain."
        else:
            where = "" if self.output is None else f" to {self.output}"
            first = f"Released {self.rows:,} rows {what}{where}, from {self.vault}."
        unprotected = f"unprotected columns: {', '.join([f'{self.id} (id)', *self.passthrough])}"
        return first, [unprotected, last, describe_risk(self.spent, subject=" of all releases together")]

    def __repr__(self) -> str:
        first, rest = self._format_parts()
        table = format_table(_HEADINGS, [each.to_row(self.spent) for each in self.columns], left=(0, 1))
        return "\n".join([first, table, *rest])

    def describe_joined_and_left(self) -> str:
        """Return how many rows joined and left, for the data holder's own screen; empty where none did."""
        if not self.joined and not self.left:
            return ""
        return f"{self.joined:,} rows joined and {self.left:,} left since the last release of {self.name!r}."

    def _repr_html_(self) -> str:
        first, rest = self._format_parts()
        table = format_html_table(_HEADINGS, [each.to_row(self.spent) for each in self.columns], rest)
        return f"<p>{escape(first)}</p>{table}"

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain JSON. It does not say how many rows joined or left."""
        return {
            "vault": self.vault,
            "name": self.name,
            "epsilon": format_epsilon(self.epsilon),
            "dry_run": self.is_dry_run,
            "rows": self.rows,
            "output": None if self.output is None else str(self.output),
            "columns": {
                each.column: {
                    "output": each.output,
                    "mechanism": each.mechanism.name,
                    "why": each.why,
                    "cost": format_epsilon(each.cost),
                    "margin": each.margin,
                }
                for each in self.columns
            },
            "unprotected": [self.id, *self.passthrough],
            "cost": format_epsilon(self.cost),
            "spent": format_epsilon(self.spent),
            "budget": format_epsilon(self.budget),
            "remaining": format_epsilon(self.remaining),
        }


def make_data_frame(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    """Return rows as a data frame: of pandas where that is installed, else of pyarrow."""
    columns = {name: [row[name] for row in rows] for name in names}
    try:
        import pandas  # noqa: PLC0415 (it may be missing)
    except ImportError:
        return pa.table(columns)
    return pandas.DataFrame(columns, columns=list(names))
