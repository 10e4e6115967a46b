"""`relaxdp budget show|raise|series|history|check`: the ledger, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from relaxdp.cli.commands import Commands
from relaxdp.cli.options import JsonOption, KeyCommand, KeyOption, LedgerOption, ledger_place
from relaxdp.cli.talk import closing
from relaxdp.errors import DateError, OptionError, refusing
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import ZERO, Account, PathState, total
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger

app = Commands(help="Show, raise and check privacy budgets.")

PopulationOption = Annotated[str, typer.Option("--population", help="Whose budget.")]


@contextmanager
def _open(
    ledger: str | None, key: str | None, command: str | None, nothing: str = "", *, create: bool = False
) -> Iterator[Ledger]:
    """Open a ledger that is there, or may begin; `nothing` says what does not happen where it refuses."""
    with refusing(nothing), Ledger.open(ledger_place(ledger, key, command), create=create) as book:
        yield book


@app.command("show")
def show(
    ledger: LedgerOption = None,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    population: PopulationOption = "everyone",
    as_json: JsonOption = False,
) -> None:
    """Show the budget, what was spent, and every path that it was spent on."""
    with _open(ledger, key, key_command) as book:
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
                    "date": path.path.date or None,
                    "epoch": path.path.epoch,
                    "as_of": path.facts.as_of,
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
        date = f" of {path.path.date}" if path.path.date else ""
        table.add_row(path.path.release + date + epoch, path.path.attribute, epsilon_text(path.largest))
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
    key_command: KeyCommand = None,
    population: PopulationOption = "everyone",
) -> None:
    """Raise a budget. It cannot be lowered again."""
    with _open(ledger, key, key_command, "Nothing was changed.") as book:
        book.raise_budget(Subject.population(population), budget, reason=reason)
        balance = book.balance(Subject.population(population))
    closing(f"the budget is now {budget}, {epsilon_text(balance.left)} of it left")


@app.command("series")
def series(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Name of the release that has dates.")],
    dates: Annotated[
        str | None,
        typer.Option(metavar="DATES", help="Dates to declare, like 2026,2027,2028  [default: none, just show]"),
    ] = None,
    each: Annotated[str | None, typer.Option(metavar="EPSILON", help="What each of these dates may cost.")] = None,
    reason: Annotated[str, typer.Option(help="Why: it is recorded.")] = "",
    budget: Annotated[str | None, typer.Option(help="Budget of the population, where it has none yet.")] = None,
    ledger: LedgerOption = None,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    population: PopulationOption = "everyone",
    as_json: JsonOption = False,
) -> None:
    """Declare the dates of a series of releases, and show what whoever is in all of them pays.

    A table that changes is released anew each year, under one name and a date: `relaxdp release --date 2027`. Every
    date is a path of its own, so that their costs add up, and it is declared before how far.
    """
    if (dates is None) != (each is None):
        raise OptionError("--dates and --each go together.")
    if dates is None and (budget is not None or reason):
        raise OptionError("--budget and --reason go with --dates: without them nothing is declared.")
    subject, begins = Subject.population(population), dates is not None
    with _open(ledger, key, key_command, "Nothing was declared." if begins else "", create=begins) as book:
        if dates is not None and each is not None:
            said = dict.fromkeys(filter(None, (date.strip() for date in dates.split(","))), each)
            why = reason or f"the series {release}"
            account = book.declare_series(subject, release, said, reason=why, budget=budget)
        else:
            account = book.account(subject)
    _show_series(account, release, as_json)


def _show_series(account: Account, release: str, as_json: bool) -> None:
    declared = account.series(release)
    if not declared:
        raise DateError("{release!r} has no dates.", remedy="series", release=release, date="DATE")
    read: dict[str, list[PathState]] = {dated.date: [] for dated in declared}
    costs: dict[str, dict[str, Decimal]] = {dated.date: {} for dated in declared}
    for state in account.paths:
        if state.path.release == release:
            read[state.path.date].append(state)
            cost = costs[state.path.date]  # of all its epochs
            cost[state.path.attribute] = total([cost.get(state.path.attribute, ZERO), state.largest])
    whole = total(dated.budget for dated in declared)
    if as_json:
        found = [
            {
                "date": dated.date,
                "budget": epsilon_text(dated.budget),
                "as_of": next((state.facts.as_of for state in read[dated.date]), None),
                "columns": {name: epsilon_text(cost) for name, cost in costs[dated.date].items()},
            }
            for dated in declared
        ]
        typer.echo(json.dumps({"release": release, "dates": found, "all": epsilon_text(whole)}))
        return
    table = Table(title=f"Series {release!r}")
    for name in ("date", "may cost", "as of", "released"):
        table.add_column(name, justify="right" if name == "may cost" else "left")
    for dated in declared:
        out = ", ".join(f"{name} for {epsilon_text(cost)}" for name, cost in costs[dated.date].items())
        day = next((state.facts.as_of or "" for state in read[dated.date]), "")
        table.add_row(dated.date, epsilon_text(dated.budget), day, out)
    Console().print(table)
    left = "" if account.budget is None else f", of a budget of {epsilon_text(account.budget)}"
    closing(f"a person who is in all of them pays {epsilon_text(whole)} for one column{left}")


@app.command("history")
def history(
    ledger: LedgerOption = None,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    population: PopulationOption = "everyone",
) -> None:
    """Show everything that was ever recorded, oldest first."""
    with _open(ledger, key, key_command) as book:
        for event in book.history(Subject.population(population)):
            typer.echo(str(event))


@app.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(help="Released files, or folders of them.")],
    ledger: LedgerOption = None,
    key: KeyOption = None,
    key_command: KeyCommand = None,
) -> None:
    """Compare a ledger with released files: one that does not know a level that left is old, and is refused."""
    from relaxdp.table.ledger_check import check_ledger  # noqa: PLC0415 (slow to import)

    with _open(ledger, key, key_command) as book:
        compared = check_ledger(book, files)
    closing(f"compared with released columns: {compared:,}; the ledger knows them all")
