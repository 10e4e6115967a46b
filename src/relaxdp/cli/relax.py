"""`relaxdp relax`: the next level of what was released before, from its snapshot or from reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.options import JsonOption, KeyCommand, KeyOption, key_of
from relaxdp.cli.release import declared_columns
from relaxdp.cli.release_options import (
    Bins,
    Budget,
    Date,
    DryRun,
    Keep,
    LedgerPlace,
    Level,
    MissingAs,
    Name,
    NewLedger,
    NullValue,
    Population,
    Separator,
    Snapshots,
    Target,
    Threads,
    ValueMap,
    Values,
    ValuesFile,
    Yes,
)
from relaxdp.cli.render import progress_bar, show_released
from relaxdp.errors import OptionError
from relaxdp.table.calls import BESIDE_KEY, relax_reports
from relaxdp.table.calls import relax as relax_release

_REPORTS = "From reports, by Algorithm 1"


def relax(
    source: Annotated[
        str, typer.Argument(metavar="RELEASE|TABLE", help="Name of the release; with --from-reports, the table.")
    ],
    target: Target,
    epsilon: Level,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Column to relax; several times  [default: all of the release]")
    ] = None,
    date: Date = "",
    again: Annotated[bool, typer.Option("--again", help="Allow a level below the last one; it costs nothing.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: JsonOption = False,
    population: Population = "everyone",
    ledger: LedgerPlace = None,
    snapshots: Snapshots = None,
    reports: Annotated[
        Path | None,
        typer.Option(
            "--from-reports",
            metavar="OLD",
            help="The last reports: plain randomized responses of the table.",
            rich_help_panel=_REPORTS,
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that holds the ids.", rich_help_panel=_REPORTS)
    ] = None,
    old_epsilon: Annotated[
        str | None,
        typer.Option(help="The level of OLD, where that file does not say it itself.", rich_help_panel=_REPORTS),
    ] = None,
    name: Name = None,
    keep: Keep = None,
    separator: Separator = None,
    values: Values = None,
    values_file: ValuesFile = None,
    bins: Bins = None,
    value_map: ValueMap = None,
    nulls: NullValue = None,
    missing_as: MissingAs = None,
    budget: Budget = None,
    new_ledger: NewLedger = "",
    threads: Threads = None,
) -> None:
    """Relax what was released before to a larger epsilon, from its snapshot: the table is not needed any more.

    It gives what the table of that day would give, and costs the difference. With --from-reports it goes on from a file
    of reports and the table that they are of, by the paper's Algorithm 1, for reports that were not drawn from a key:
    the randomness is fresh, so each level is drawn once, and after a crash the same command finishes it.
    """
    call: Any
    common: Any = {
        "to": target, "epsilon": epsilon, "key": key_of(key, key_command), "ledger": ledger or BESIDE_KEY,
        "population": population, "reason": f"release to {target.name}", "dry_run": dry_run, "threads": threads,
        "accept": yes,
    }  # fmt: skip
    said: Any = {"bins": bins, "map": value_map, "nulls": nulls, "missing_as": missing_as}
    if reports is None:
        alone = {
            "--id": id_column, "--old-epsilon": old_epsilon, "--release": name, "--keep": keep, "--values": values,
            "--values-file": values_file, "--bins": bins, "--map": value_map,
            "--nulls": nulls, "--missing-as": missing_as, "--separator": separator, "--budget": budget,
            "--new-ledger": new_ledger,
        }  # fmt: skip
        given = [option for option, what in alone.items() if what]
        if given:
            raise OptionError(
                "a snapshot says this itself: {options} goes with --from-reports.", options=" ".join(given)
            )

        def call(**more: Any) -> Any:
            return relax_release(source, columns=column, date=date, snapshots=snapshots, again=again, **common, **more)

    else:
        if id_column is None or not column or len(column) != 1:
            raise OptionError("--from-reports goes with --id and one --column.")
        if date or again or snapshots is not None:
            raise OptionError("--date, --again and --snapshots are for a release from its snapshot.")
        columns = declared_columns(column, values, values_file, **said)

        def call(**more: Any) -> Any:
            return relax_reports(
                source, columns, reports=reports, id=id_column, reports_epsilon=old_epsilon, release=name,
                keep=keep or (), budget=budget, new_ledger=new_ledger, separator=separator, **common, **more,
            )  # fmt: skip

    with progress_bar("relaxing", "rows") as progress:
        done = call(progress=progress)
    show_released(done, as_json)
