"""What commands that release have in common: which ledger, under which name, and what they say at the end."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.errors import OptionError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import Account, difference, total
from relaxdp.ledger.ledger import Charge
from relaxdp.ledger.marks import mark_of
from relaxdp.table.request import TableRequest

NewLedger = Annotated[
    str,
    typer.Option(
        metavar="REASON", help="Begin one more ledger for a key that has spent in another; the reason is recorded."
    ),
]


def ledger_of(key: Path) -> Path:
    """Return where the ledger of a key lies: beside the file itself, whatever links lead to it."""
    real = key.resolve()
    return real.with_name(f"{real.name}.ledger")


def ledger_beside(key: Path) -> Path:
    """Return the ledger of a key; where only those of other keys lie there, a new one would forget what was spent."""
    place = ledger_of(key)
    others = sorted(other.name for other in place.parent.glob("*.ledger"))
    if others and not place.exists() and not mark_of(place).exists():
        raise OptionError(
            f"this key has no ledger yet, and {others[0]!r} lies beside it. Say --ledger {others[0]} to go on with its "
            f"accounts, or --ledger {place.name} to begin new ones. Nothing was released."
        )
    return place


def refuse_other_name(known: Account, release: str, columns: list[str]) -> None:
    """Refuse to open a second path of a column only because its file has another name this year."""
    for column in columns:
        releases = {state.path.release for state in known.paths if state.path.attribute == column}
        if releases and release not in releases:
            other = sorted(releases)[0]
            raise OptionError(
                f"{column!r} was released before, as release {other!r}. Say --release {shlex.quote(other)} to "
                "relax that one, or --release NAME for a new path, whose cost is added. Nothing was released."
            )


def report_release(request: TableRequest, rows: int | None, charges: list[Charge], as_json: bool) -> None:
    """Say what was released and what it cost; without rows, what it would cost."""
    level = epsilon_text(request.epsilon)
    if as_json:
        answer: dict[str, Any] = {"rows": rows, "epsilon": level, "release": request.release, "columns": {}}
        for each, charge in zip(request.columns, charges, strict=False):
            answer["columns"][each.column] = {"cost": epsilon_text(charge.cost), "epoch": charge.path.epoch}
        if charges:
            answer |= {"spent": epsilon_text(charges[-1].spent_after), "budget": epsilon_text(charges[-1].budget)}
        typer.echo(json.dumps(answer))
        return
    names = ", ".join(repr(each.column) for each in request.columns)
    if rows is None:
        typer.echo(f"dry run: {names} at epsilon {level} would cost {_total(charges)}")
    else:
        typer.echo(f"released {names} of {rows:,} rows at epsilon {level} to {request.target}{_history(charges)}")
    if charges:
        last = charges[-1]
        left = difference(last.budget, last.spent_after)
        spent, budget, rest = map(epsilon_text, (last.spent_after, last.budget, left))
        verb = "would have spent" if rows is None else "spent"
        typer.echo(f"cost {_total(charges)}; {verb} {spent} of the budget {budget}, {rest} left")
    else:
        typer.echo("no ledger: nobody keeps account of what this cost")


def _history(charges: list[Charge]) -> str:
    if not charges:
        return ""
    previous = charges[-1].previous
    return " (a new path)" if previous is None else f" (the level before: {epsilon_text(previous)})"


def _total(charges: list[Charge]) -> str:
    return epsilon_text(total(charge.cost for charge in charges))
