"""`relaxdp init | budget | retire | check | backup`: make and keep a vault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.main import CommandGroup, add_verbosity_options
from relaxdp.cli.options import CsvOption, JsonOption, VaultOption, locate_vault
from relaxdp.cli.results import OutputOptions, PrintableResult, TableRow, print_result
from relaxdp.cli.terminal import print_done, print_json
from relaxdp.errors import ArgumentError
from relaxdp.mechanisms.registry import get_mechanism_title
from relaxdp.tables.vault import Vault
from relaxdp.tables.vault_folder import VaultFolder
from relaxdp.theory.epsilon import format_epsilon

Reason = Annotated[str, typer.Option(help="The reason, which is recorded in the ledger.")]


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder to create, like study.vault.")],
    budget: Annotated[str, typer.Option(help="Largest total epsilon that may be spent on any individual, like 2.")],
    key_file: Annotated[
        Path | None, typer.Option(help="Write the key to this file, outside of the vault  [default: in the vault]")
    ] = None,
    key_command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Command that prints the key, like 'pass show study'; no shell reads it."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="PostgreSQL ledger that several machines share  [default: a file in the vault]"
        ),
    ] = None,
    worker_key_file: Annotated[
        Path | None, typer.Option(help="Where Spark's workers find the key  [default: where the vault does]")
    ] = None,
    reason: Reason = "",
) -> None:
    """Create a vault: the key, the ledger and the snapshots about a group of people.

    Example: relaxdp init study.vault --budget 2
    """
    places: Any = {"key_file": key_file, "key_command": key_command, "worker_key_file": worker_key_file}
    made = Vault.create(path, budget=budget, ledger=ledger, reason=reason, **places)
    place = "in the vault" if key_file is None else f"in {key_file}"
    print_done(
        f"Created the vault {str(path)!r} with a budget of {format_epsilon(made.budget)}. "
        f"Its key {made.key_fingerprint} " + ("comes from the command." if key_command is not None else f"is {place}.")
    )
    print_done(
        "The folder with its key is the data: it holds all true values. Keep it private, and back it up after each "
        "release (`relaxdp backup FOLDER`).\n"
        "Costs add up within this vault only. Use one vault for everything about the same people."
    )


budget = CommandGroup(
    help="Show the budget of a vault, what was spent, and on which columns.\n\n"
    "Example: relaxdp budget\nrelaxdp budget raise 3 --reason 'board decision of March'",
    no_args_is_help=False,
    invoke_without_command=True,
)


def show_budget(
    ctx: typer.Context, vault: VaultOption = None, as_json: JsonOption = False, as_csv: CsvOption = False
) -> None:
    """Show the budget of a vault, what was spent, and on which columns."""
    if ctx.invoked_subcommand is not None:
        if as_json or as_csv or ctx.get_parameter_source("vault").name == "COMMANDLINE":  # type: ignore[union-attr]
            raise ArgumentError(
                "An option is in front of {command!r}. Options of `relaxdp budget {command}` belong after it.",
                hint="Write the options last: relaxdp budget {command} ... --vault study.vault",
                command=ctx.invoked_subcommand,
            )
        return
    folder = VaultFolder(locate_vault(vault))
    account = folder.read_account()
    totals = {name: format_epsilon(getattr(account, name)) for name in ("budget", "spent", "remaining")}
    records: list[dict[str, Any]] = [
        {
            "name": release.name, "column": column.column, "mechanism": get_mechanism_title(column.mechanism),
            "epsilon": format_epsilon(column.largest), "retired": release.retired,
        }
        for release in account.releases.values()
        for column in release.columns.values()
    ]  # fmt: skip
    rows = [
        TableRow((each["name"] + " (retired)" * each["retired"], each["column"], each["mechanism"]), (each["epsilon"],))
        for each in records
    ]
    view = PrintableResult(
        f"Budget of {folder.path.name}: {totals['budget']}; spent: {totals['spent']}; remaining: {totals['remaining']}",
        ("release", "column", "mechanism"),
        ("largest epsilon",),
        rows,
        {"vault": str(folder.path), **totals, "releases": records},
        records,
    )
    print_result(view, OutputOptions(as_json, as_csv))


budget.callback()(add_verbosity_options(show_budget))


@budget.command("raise")
def raise_budget(
    budget: Annotated[str, typer.Argument(metavar="NUMBER", help="The new budget; it must be larger.")],
    reason: Reason,
    vault: VaultOption = None,
) -> None:
    """Raise the budget. It can never be lowered again."""
    opened = Vault(locate_vault(vault))
    opened.raise_budget(budget, reason=reason)
    now, left = format_epsilon(opened.budget), format_epsilon(opened.remaining)
    print_done(f"The budget of {opened.path.name!r} is now {now}, {left} of it remaining.")


@budget.command("history")
def show_history(vault: VaultOption = None, as_json: JsonOption = False) -> None:
    """Show every event of the ledger, oldest first."""
    opened = Vault(locate_vault(vault))
    events = opened.events()
    if as_json:
        shown = [json.loads(event.to_json(), object_hook=_remove_row_counts) for event in events]
        print_json({"vault": str(opened.path), "events": shown})
        return
    typer.echo("\n".join([f"Vault {opened.path.name}:", *map(str, events)]))


def _remove_row_counts(event: dict[str, Any]) -> dict[str, Any]:
    """Remove the row counts of an event, those that joined and left, which no log may contain."""
    return {name: each for name, each in event.items() if name not in ("known", "joined", "left", "exchanged")}


def retire(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release.")],
    reason: Reason,
    vault: VaultOption = None,
) -> None:
    """Erase the snapshots of a release, which can never be relaxed again.

    Its name cannot be used again, and its cost stays.

    Example: relaxdp retire patients --reason 'end of the study'
    """
    opened = Vault(locate_vault(vault))
    opened.retire(name, reason=reason)
    print_done(f"Retired the release {name!r} of {opened.path.name!r}. Its cost stays.")


def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="Released files, to compare with the vault.")
    ] = None,
    adopt: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="First accept this copy of the vault as the newest one; it is recorded."),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a vault: its events, snapshots, file modes, and released files.

    The exit status is 1 if there is a problem.

    Example: relaxdp check out.parquet better.parquet
    """
    opened = Vault(locate_vault(vault))
    if adopt is not None:
        opened.adopt(reason=adopt)
    found = opened.check(files or [])
    if as_json:
        print_json({"vault": str(opened.path), "verified": found.lines, "problems": found.problems})
    else:
        for line in (f"Vault {opened.path.name}:", *found.lines):
            print_done(line)
        for problem in found.problems:
            typer.echo(f"Problem: {problem}")
    if found.problems:
        raise typer.Exit(1)


def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder for the copy; it must not exist.")],
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Copy the key too. The copy then reveals the true values.")
    ] = False,
    vault: VaultOption = None,
) -> None:
    """Copy a vault into a new folder, without its key.

    Releases may run meanwhile. Make a copy after each release: an older one does not contain what was spent since.

    Example: relaxdp backup /mnt/backup/study-2026-03
    """
    opened = Vault(locate_vault(vault))
    made = opened.backup(folder, with_key=with_key)
    key = "with its key. Keep the copy private." if with_key else "without its key. Keep a copy of the key elsewhere."
    print_done(f"Copied the vault {opened.path.name!r} to {str(made)!r}, {key}")
