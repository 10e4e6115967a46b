"""`relaxdp budget show|raise|history`: the ledger, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from relaxdp.cli.commands import Commands
from relaxdp.cli.options import KEY_VARIABLE, LEDGER_VARIABLE
from relaxdp.cli.talk import closing
from relaxdp.errors import LedgerError, refusing
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import ledger_of

app = Commands(help="Show and raise privacy budgets.")

LedgerOption = Annotated[
    str | None, typer.Option("--ledger", envvar=LEDGER_VARIABLE, help="Ledger file or database URL.")
]
KeyOption = Annotated[
    Path | None, typer.Option("--key", envvar=KEY_VARIABLE, help="Key file, beside which the ledger lies.")
]
PopulationOption = Annotated[str, typer.Option("--population", help="Whose budget.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@contextmanager
def _open(ledger: str | None, key: Path | None, nothing: str = "") -> Iterator[Ledger]:
    """Open a ledger that is there; `nothing` says what does not happen where it refuses."""
    if ledger is None and key is None:
        raise LedgerError("say which ledger: --ledger FILE or URL, or --key KEY for the one beside a key.")
    place = ledger_of(key) if ledger is None and key is not None else str(ledger)
    with refusing(nothing), Ledger.open(place, create=False) as book:
        yield book


@app.command("show")
def show(
    ledger: LedgerOption = None,
    key: KeyOption = None,
    population: PopulationOption = "everyone",
    as_json: JsonOption = False,
) -> None:
    """Show the budget, what was spent, and every path that it was spent on."""
    with _open(ledger, key) as book:
        balance = book.balance(Subject.population(population))
    if as_json:
        answer = {
            "population": population,
            "budget": None if balance.budget is None else epsilon_text(balance.budget),
            "spent": epsilon_text(balance.spent),
            "left": epsilon_text(balance.left),
            "paths": [
                {
                    "release": path.path.release,
                    "attribute": path.path.attribute,
                    "epoch": path.path.epoch,
                    "sampler": path.facts.sampler.value,
                    "sha256": path.digest,
                    "epsilon": epsilon_text(path.largest),
                }
                for path in balance.paths
            ],
        }
        typer.echo(json.dumps(answer))
        return
    title = "no budget yet" if balance.budget is None else epsilon_text(balance.budget)
    table = Table(title=f"Budget of {population!r}: {title}")
    table.add_column("release")
    table.add_column("column")
    table.add_column("largest epsilon", justify="right")
    for path in balance.paths:
        epoch = "" if path.path.epoch == 1 else f", epoch {path.path.epoch}"
        table.add_row(path.path.release + epoch, path.path.attribute, epsilon_text(path.largest))
    table.add_section()
    table.add_row("spent", "", epsilon_text(balance.spent))
    table.add_row("left", "", epsilon_text(balance.left))
    Console().print(table)


@app.command("raise")
def raise_(
    budget: Annotated[str, typer.Argument(help="The new budget; it must be larger.")],
    reason: Annotated[str, typer.Option(help="Why: it is recorded.")],
    ledger: LedgerOption = None,
    key: KeyOption = None,
    population: PopulationOption = "everyone",
) -> None:
    """Raise a budget. It cannot be lowered again."""
    with _open(ledger, key, "Nothing was changed.") as book:
        book.raise_budget(Subject.population(population), budget, reason=reason)
        balance = book.balance(Subject.population(population))
    closing(f"the budget is now {budget}, {epsilon_text(balance.left)} of it left")


@app.command("history")
def history(
    ledger: LedgerOption = None,
    key: KeyOption = None,
    population: PopulationOption = "everyone",
) -> None:
    """Show everything that was ever recorded, oldest first."""
    with _open(ledger, key) as book:
        for event in book.history(Subject.population(population)):
            typer.echo(str(event))
