"""`relaxdp release | relax`: release columns of a table, or relax an earlier release, and charge the vault."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.column_options import choose_mechanisms, declare_columns
from relaxdp.cli.messages import is_quiet, print_note, progress_bar
from relaxdp.cli.options import DryRun, JsonOption, VaultOption
from relaxdp.cli.results import print_json
from relaxdp.cli.vault import locate_vault
from relaxdp.errors import ArgumentError
from relaxdp.tables.release_plan import ReleaseRequest
from relaxdp.tables.table_source import open_source
from relaxdp.tables.vault import Release, Vault
from relaxdp.theory.epsilon import as_epsilon

Output = Annotated[Path, typer.Argument(metavar="OUT", help="Released table (.parquet or .csv); it must not exist.")]


def _panel_option(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel="Columns to release")


def release(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="Table: Parquet, CSV, TSV, a folder of Parquet files, or a cloud address of one."
        ),
    ],
    output: Output,
    id_column: Annotated[str, typer.Option("--id", help="Column that identifies the individuals; each id once.")],
    epsilon: Annotated[str, typer.Option(help="The level of each column, like 0.5. Costs of several columns add up.")],
    name: Annotated[str | None, typer.Option(help="Name of the release  [default: IN without its ending]")] = None,
    passthrough: Annotated[
        list[str] | None,
        typer.Option(help="Column that leaves unprotected; repeat it, or separate names by commas."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="Shape the table first, like 'SELECT id, hour(t) AS hour FROM input'."),
    ] = None,
    accept_new_rows: Annotated[
        bool, typer.Option("--accept-new-rows", help="Accept that many rows left and joined at once; it is recorded.")
    ] = False,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
    column: Annotated[
        list[str] | None,
        _panel_option(
            "NAME=VALUES",
            "Column to release: diagnosis=flu,covid,none or, for numbers, age=0..120. Repeat it for more.",
        ),
    ] = None,
    values_file: Annotated[
        list[str] | None,
        _panel_option(
            "NAME=FILE", "Column to release, with a file of its values, one a line; also for values with commas."
        ),
    ] = None,
    clip: Annotated[list[str] | None, _panel_option("NAME", "Move numbers outside of the range to its ends.")] = None,
    missing: Annotated[
        list[str] | None, _panel_option("NAME", "Values may be missing; that is reported under protection too.")
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        _panel_option(
            "NAME=MECHANISM",
            "k-ary, oue, sue, olh:buckets=16, numeric or wave:bins=64,window=32  [default: as before, or best]",
        ),
    ] = None,
    planned_epsilon: Annotated[
        str | None,
        _panel_option(
            "NUMBER", "The largest level that you plan; it decides the mechanism  [default: the remaining budget]"
        ),
    ] = None,
) -> None:
    r"""Release columns of a table at a level, and charge the vault.

    Epsilon is per column: two columns at 0.5 cost 1. The same level again gives identical reports for free, and a
    larger one costs the difference. Ids and pass-through columns leave as they are. Rows may join and leave between
    releases of one name; if a value has changed, the release is rejected.

    Example: relaxdp release patients.parquet out.parquet --id patient \
        --column diagnosis=flu,covid,none --epsilon 0.1
    """
    declared = declare_columns(column or [], values_file or [], clip or [], missing or [])
    level, planned = as_epsilon(epsilon), None if planned_epsilon is None else as_epsilon(planned_epsilon)
    opened = Vault(locate_vault(vault))
    with open_source(source, sql=sql) as table:
        found = table.default_name if name is None else name
        if not found:
            raise ArgumentError("The release has no name.", hint="Add --name, such as --name patients.")
        request = ReleaseRequest(
            name=found,
            epsilon=level,
            id=id_column,
            columns=choose_mechanisms(declared, mechanism or [], table, epsilon=level, planned_epsilon=planned),
            passthrough=tuple(each for text in passthrough or () for each in text.split(",")),
            planned_epsilon=planned,
            accept_new_rows=accept_new_rows,
            dry_run=dry_run,
        )
        with progress_bar("releasing", "rows") as progress:
            done = opened.release_source(table, request, output, progress)
    print_release(done, as_json)


def relax(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release.")],
    output: Output,
    epsilon: Annotated[str, typer.Option(help="The new level of each column, like 0.5.")],
    column: Annotated[
        list[str] | None, typer.Option(help="Column to relax; repeat it for more  [default: all of the release]")
    ] = None,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Relax an earlier release to a larger epsilon, without the table.

    A larger level costs the difference, for each column. An equal or lower one is free.

    Example: relaxdp relax patients better.parquet --epsilon 0.5
    """
    opened = Vault(locate_vault(vault))
    with progress_bar("relaxing", "rows") as progress:
        done = opened.relax_with_progress(
            name, epsilon, columns=column, output=output, dry_run=dry_run, progress=progress
        )
    print_release(done, as_json)


def print_release(done: Release, as_json: bool) -> None:
    """Print what was released and what it cost. How many rows joined and left is for a terminal only."""
    if as_json:
        print_json(done.to_json())
    elif not is_quiet() or done.is_dry_run:
        typer.echo(str(done))
    changes = done.describe_changes()
    if changes and is_interactive():
        print_note(f"{changes} Keep these numbers to yourself: they are about individuals.")


def is_interactive() -> bool:
    """Tell whether the command runs at a terminal, so that its messages end in no log."""
    return sys.stdin.isatty() and sys.stderr.isatty()
