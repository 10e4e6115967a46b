"""`relaxdp release`: columns of a table leave at a level, and the ledger knows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaxdp.cli.options import JsonOption, KeyCommand, KeyOption, encoding_and_options, key_of
from relaxdp.cli.release_options import (
    LEDGER,
    WHAT,
    WHERE,
    Bins,
    Budget,
    Date,
    DryRun,
    IdColumn,
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
    Source,
    Target,
    Threads,
    ValueMap,
    Values,
    ValuesFile,
    Yes,
)
from relaxdp.cli.render import progress_bar, show_released
from relaxdp.errors import OptionError, RelaxdpError, TableChangedError, ValuesError
from relaxdp.publication.column import Column, values_from_file
from relaxdp.table.calls import BESIDE_KEY, changes
from relaxdp.table.calls import release as release_table

if TYPE_CHECKING:
    from relaxdp.table.snapshots import Changes


class PartChoice(StrEnum):
    """What of a time is released."""

    DATE = "date"
    HOUR = "hour"
    WEEKDAY = "weekday"
    MONTH = "month"


class EngineChoice(StrEnum):
    """Where the rows are drawn."""

    LOCAL = "local"
    SPARK = "spark"


def release(
    source: Source,
    target: Target,
    column: Annotated[list[str], typer.Option(help="Column to release; may be given several times.")],
    id_column: IdColumn,
    epsilon: Level,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    name: Name = None,
    date: Date = "",
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="DAY",
            help="The day whose table it is, like 2026-01-31; not with --growing  [default: that of the release]",
        ),
    ] = None,
    keep: Keep = None,
    again: Annotated[bool, typer.Option("--again", help="Allow a level below the last one; it costs nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Another key, other values or a changed table: a new path, charged in full.")
    ] = False,
    growing: Annotated[
        bool,
        typer.Option(
            "--growing", help="Rows may join and leave between releases; rows that changed are counted and refused."
        ),
    ] = False,
    separator: Separator = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: JsonOption = False,
    values: Values = None,
    values_file: ValuesFile = None,
    number_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", help="Numbers from LOW to HIGH, for means and quantiles.", rich_help_panel=WHAT),
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Put numbers outside of --range into it.", rich_help_panel=WHAT)
    ] = False,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Numbers in --range may be missing: a report of its own, and the mean is that of the others.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    bins: Bins = None,
    part: Annotated[
        PartChoice | None,
        typer.Option(help="Times become their date (declare --values), hour, weekday or month.", rich_help_panel=WHAT),
    ] = None,
    value_map: ValueMap = None,
    nulls: NullValue = None,
    missing_as: MissingAs = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="auto, categorical, unary-symmetric, unary-optimised, local-hash, numeric, wave, or one that is "
            "installed; with options like local-hash:buckets=16  [default: as before, or auto]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    planned_epsilon: Annotated[
        str | None,
        typer.Option(
            help="The last level that is planned, for which auto chooses  [default: what is left of the budget]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    population: Population = "everyone",
    budget: Budget = None,
    ledger: LedgerPlace = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Release without accounting. Your risk.", rich_help_panel=LEDGER)
    ] = False,
    new_ledger: NewLedger = "",
    snapshots: Snapshots = None,
    no_snapshot: Annotated[
        bool,
        typer.Option(
            "--no-snapshot", help="Keep nothing: the next level needs this very table.", rich_help_panel=LEDGER
        ),
    ] = False,
    threads: Threads = None,
    engine: Annotated[
        EngineChoice, typer.Option(help="Where the rows are drawn.", rich_help_panel=WHERE)
    ] = EngineChoice.LOCAL,
    master: Annotated[
        str | None,
        typer.Option(
            help="Spark's address, like spark://host:7077  [default: as Spark is set up, or here]",
            rich_help_panel=WHERE,
        ),
    ] = None,
    worker_key: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where Spark's workers find the key  [default: KEY]", rich_help_panel=WHERE),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Spark tasks  [default: Spark decides]", rich_help_panel=WHERE)
    ] = None,
) -> None:
    """Release columns of a table at a level, or relax an earlier release to a larger one.

    Only ids and released columns are written, in the order of the ids. The same level again gives the identical reports
    and costs nothing; a larger one costs the difference, and `relaxdp relax` needs no table for it: ids and truths are
    kept beside the ledger, sealed with the key.
    """
    chosen, options = (None, {}) if encoding is None else encoding_and_options(encoding)
    said: Any = {
        "range": number_range, "clip": clip, "missing": missing, "bins": bins, "map": value_map, "nulls": nulls,
        "missing_as": missing_as,
        "part": None if part is None else part.value, "encoding": chosen, "options": options,
    }  # fmt: skip
    if snapshots is not None and no_snapshot:
        raise OptionError("--snapshots and --no-snapshot do not go together.")
    unit = "rows" if engine is EngineChoice.LOCAL else "tasks"
    declared = declared_columns(column, values, values_file, **said)
    secret = key_of(key, key_command)

    call = partial(
        release_table,
        source,
        declared,
        to=target,
        id=id_column,
        epsilon=epsilon,
        planned_epsilon=planned_epsilon,
        key=secret,
        release=name,
        date=date,
        as_of=as_of,
        snapshots=snapshots or not no_snapshot,
        keep=keep or (),
        again=again,
        force=force,
        growing=growing,
        ledger=None if no_ledger else ledger or BESIDE_KEY,
        population=population,
        new_ledger=new_ledger,
        reason=f"release to {target.name}",
        threads=threads,
        engine=engine.value,
        master=master,
        worker_key=worker_key,
        partitions=partitions,
        separator=separator,
        budget=budget,
        dry_run=dry_run,
        accept=yes,
    )
    look = partial(
        changes, source, declared, to=target, id=id_column, epsilon=epsilon, key=secret, release=name, date=date,
        ledger=ledger or BESIDE_KEY, population=population, snapshots=snapshots or True, separator=separator,
    )  # fmt: skip
    with _changes_shown(look), progress_bar("releasing", unit) as progress:
        done = call(progress=progress)
    # The command that prints the key is not repeated, because it may contain a password.
    places = {"--key": key, "--key-command": key_command and "COMMAND", "--ledger": ledger, "--snapshots": snapshots}
    places["--population"] = None if population == "everyone" else population
    account = [word for name, place in places.items() if place is not None for word in (name, str(place))]
    show_released(done, as_json, account)


_YOURS = "That is for your eyes: it tells of people."


def is_interactive() -> bool:
    """Tell whether the command runs at a terminal, so that its messages end in no log."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def _changes_shown(look: Callable[[], list[Changes]]) -> Iterator[None]:
    """Where a table has changed, say how much to a person who sits there, and to nobody else: it is a truth."""
    try:
        yield
    except TableChangedError as problem:
        if is_interactive() and problem.changed_rows is not None:
            typer.echo(f"{problem.changed_rows:,} rows changed. {_YOURS}", err=True)
        elif is_interactive():
            with suppress(RelaxdpError):  # without a snapshot nobody can tell
                for each in look():
                    typer.echo(
                        f"{each.column!r} since {each.as_of}: {each.changed:,} rows changed, {each.joined:,} joined, "
                        f"{each.left:,} left. {_YOURS}",
                        err=True,
                    )
        raise


def declared_columns(
    columns: list[str], values: list[str] | None, files: list[str] | None, **said: Any
) -> dict[str, Column]:
    """Return what is said about each column: plain values are for the only one, `COLUMN=...` for the one named.

    A range, bins, a map or a part of a time are said once, so that at most one column may need them.
    """
    found: dict[str, list[str]] = {}
    for texts, read in ((values, values_from_text), (files, lambda text: values_from_file(Path(text)))):
        for text in texts or ():
            named, rest = _whose(text, columns, "values these are")
            found[named] = read(rest)
    nulls = dict(_whose(text, columns, "this is") for text in said.pop("nulls", None) or ())
    edges, missing_as = said.pop("bins"), tuple(said.pop("missing_as", None) or ())
    said["bins"] = None if edges is None else _edges(edges)
    once = {name: said.pop(name, None) for name in ("range", "bins", "map", "part", "clip", "missing")}
    once = {name: what for name, what in once.items() if what}
    takes = columns if len(columns) == 1 else [each for each in columns if each not in found]
    if once and len(takes) != 1:
        raise ValuesError(
            "a range, bins, a map or a part of times are those of one column, the only one without --values: release "
            "others by a command each.",
        )
    return {
        each: Column(
            values=found.get(each),
            nulls=nulls.get(each),
            missing_as=missing_as,
            **(once if each in takes else {}),
            **said,
        )
        for each in columns
    }


def _whose(text: str, columns: list[str], what: str) -> tuple[str, str]:
    """Return the column that a text like COLUMN=... speaks of, and what it says."""
    named = next((each for each in columns if text.startswith(f"{each}=")), None)
    if named is not None:
        return named, text[len(named) + 1 :]
    if len(columns) > 1:
        listed = " or ".join(f"{each}=..." for each in columns)
        raise ValuesError(
            "with several columns, write {listed}, so that it is clear whose {what}.",
            listed=listed,
            what=what,
        )
    return columns[0], text


def _edges(text: str) -> list[float]:
    try:
        return [float(edge) for edge in text.split(",")]
    except ValueError:
        raise ValuesError("bins are numbers separated by commas, like 18,30,65.") from None


def values_from_text(text: str) -> list[str]:
    """Return declared values from a text like a,b,c; what looks like a mistake is refused, a file takes it as it is."""
    values = text.split(",")
    for value in values:
        if value[:1] == '"' or value[-1:] == '"':
            raise ValuesError(
                "--values is cut at every comma and takes quotation marks as they are, so that {value!r} would be one "
                "of the values. --values-file FILE takes such values, one a line.",
                value=value,
            )
        if value != value.strip():
            raise ValuesError(
                "--values would declare {value!r}, with a blank at one end: write {without} without blanks. "
                "--values-file FILE takes values as they are, one a line.",
                value=value,
                without=",".join(each.strip() for each in values),
            )
    return values
