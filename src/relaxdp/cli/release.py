"""`relaxdp release`: columns of a table leave at a level, and the ledger knows."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relaxdp.cli.accounts import NewLedger, ledger_beside, ledger_of, refuse_other_name, report_release
from relaxdp.cli.spark import SparkPlace
from relaxdp.draw.key import Key
from relaxdp.errors import KeyFileError, OptionError, ValuesError
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.account import Account
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.table.algorithm1 import Algorithm1Drawing
from relaxdp.table.columns import way_out
from relaxdp.table.formats import Input, row_named
from relaxdp.table.growing import tags_folder
from relaxdp.table.publication import Drawing, publish, quote
from relaxdp.table.release import TableDrawing, check_ending
from relaxdp.table.request import Declaration, TableRequest, values_from_file, values_from_text

# Encodings of numbers and of words that nobody declares.
_NOT_OF_VALUES = ("numeric", "bloom")

WAYS_OUT: dict[str, Any] = {
    "value": "--nulls NAME makes it a value of its own.",
    "number": "--bins with --nulls NAME makes classes of numbers, and one of what is missing.",
    "kinds": {
        "true and false": "--map FILE with the lines true,yes and false,no gives them other names.",
        "dates": "--map FILE with lines like 2026-01-31,winter gives them other names.",
        "numbers": "--range and --bins are for numbers, and --map FILE says what each value becomes.",
    },
}
"""What the command line offers where something is refused, see `relaxdp.table.columns.way_out`."""


def load_key(path: Path) -> Key:
    """Return the key of a file; where there is none, say how one is made."""
    try:
        return Key.load(path)
    except KeyFileError as problem:
        if "path" not in problem.fields or path.exists():  # a key in the place of its name needs no new one
            raise
        raise KeyFileError(
            f"{problem.message} `relaxdp keygen {shlex.quote(str(path))}` makes one; what was released before needs "
            "its own key. Nothing was released.",
            **problem.fields,
        ) from None


class Encodings:
    """How columns are encoded: as it is said, else as their path was opened, else as one of the declared values."""

    def __init__(self, known: Account | None, release: str, said: str | None, planned: str) -> None:
        self._known, self._said, self._planned, self._release = known, said, as_epsilon(planned), release

    def of(self, column: str) -> dict[str, Any]:
        """Return name and options of a column's encoding."""
        state = None if self._known is None else self._known.last_epoch(self._release, column)
        if state is not None and self._said in (None, "auto", state.facts.encoding):
            name = state.facts.encoding
            if name not in _NOT_OF_VALUES:  # else the ledger will say that the encoding is another one
                return {"encoding": name, "options": state.facts.options}
        return {"encoding": self._said or "categorical", "planned": self._planned}


class Spoken:
    """Declared values by column: plain ones are for the only column, `COLUMN=...` for the one named."""

    def __init__(self, columns: list[str], values: list[str], files: list[str]) -> None:
        self._found: dict[str, list[str]] = {}
        for texts, read in ((values, values_from_text), (files, lambda text: values_from_file(Path(text)))):
            for text in texts:
                named = next((each for each in columns if text.startswith(f"{each}=")), None)
                if named is None and len(columns) > 1:
                    raise ValuesError(
                        "with several columns, write COLUMN=... so that it is clear whose values these are."
                    )
                owner = columns[0] if named is None else named
                self._found[owner] = read(text if named is None else text[len(named) + 1 :])

    def of(self, column: str) -> list[str] | None:
        """Return the values of a column, None where none are said."""
        return self._found.get(column)


def edges(text: str) -> list[float]:
    """Return the edges of bins."""
    try:
        return [float(edge) for edge in text.split(",")]
    except ValueError:
        raise ValuesError("bins are numbers separated by commas, like 18,30,65.") from None


class EngineChoice(StrEnum):
    """Where the rows are drawn."""

    LOCAL = "local"
    SPARK = "spark"


def release(
    source: Annotated[str, typer.Argument(metavar="IN", help="Table: Parquet, a folder of it, CSV or Arrow IPC.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Released table; it must not exist.")],
    column: Annotated[list[str], typer.Option(help="Column to release; may be given several times.")],
    id_column: Annotated[str, typer.Option("--id", help="Column that holds the ids; one id is one person.")],
    epsilon: Annotated[str, typer.Option(help="The level, like 0.5.")],
    key: Annotated[Path, typer.Option(help="Key file, from `relaxdp keygen`.")],
    values: Annotated[
        list[str] | None,
        typer.Option(help="Declared values, like a,b,c; COLUMN=a,b,c where there are several columns."),
    ] = None,
    values_file: Annotated[
        list[str] | None, typer.Option(help="File of declared values, one a line; or COLUMN=FILE.")
    ] = None,
    public_values: Annotated[
        bool, typer.Option("--public-values", help="The values are public: take them from the column.")
    ] = False,
    number_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="Numbers from LOW to HIGH, for means.")
    ] = None,
    bins: Annotated[str | None, typer.Option(help="Numbers become bins with these edges, like 18,30,65.")] = None,
    value_map: Annotated[
        Path | None, typer.Option("--map", help="CSV of two columns: value, what it becomes before it is released.")
    ] = None,
    nulls: Annotated[
        str | None, typer.Option(help="A missing value becomes this value, added to the declared.")
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="auto, categorical, unary-symmetric, unary-optimised, local-hash  [default: as before, or categorical]"
        ),
    ] = None,
    planned_epsilon: Annotated[
        str | None, typer.Option(help="The last level that is planned, for which auto chooses  [default: --epsilon]")
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to copy as it is; it is not protected.")] = None,
    name: Annotated[str | None, typer.Option("--release", help="Name of the release  [default: IN's name]")] = None,
    population: Annotated[str, typer.Option(help="Whose budget is charged; all its tables add up.")] = "everyone",
    ledger: Annotated[str | None, typer.Option(help="Ledger file or database URL  [default: KEY.ledger]")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Release without accounting. Your risk.")] = False,
    new_ledger: NewLedger = "",
    budget: Annotated[str | None, typer.Option(help="Budget of the population; the first release needs it.")] = None,
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
    last: Annotated[
        Path | None,
        typer.Option(
            metavar="OLD",
            help="Relax the reports in this file by Algorithm 1: fresh randomness, so once. Same ids as IN.",
        ),
    ] = None,
    last_epsilon: Annotated[
        str | None, typer.Option(help="The level of OLD, where that file does not say it itself.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost. No row is read, so none is checked.")
    ] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Cores to use  [default: all]")] = None,
    engine: Annotated[EngineChoice, typer.Option(help="Where the rows are drawn.")] = EngineChoice.LOCAL,
    master: Annotated[
        str | None, typer.Option(help="Spark's address, like spark://host:7077  [default: as Spark is set up, or here]")
    ] = None,
    worker_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where Spark's workers find the key  [default: KEY]")
    ] = None,
    partitions: Annotated[int | None, typer.Option(min=1, help="Spark tasks  [default: Spark decides]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Release columns of a table at a level, or relax an earlier release to a larger one.

    Only ids and released columns are written, in the order of the ids. The same level again gives the identical reports
    and costs nothing; a larger one costs the difference.
    """
    spark = None
    is_spark, on_spark = (
        engine is EngineChoice.SPARK,
        any(each is not None for each in (master, worker_key, partitions)),
    )
    _refuse_together(is_spark, on_spark, last, last_epsilon, growing, no_ledger=no_ledger, forces=force or again)
    if is_spark:
        spark = SparkPlace(source, target, master, worker_key, partitions)
    bar = _bar("rows" if spark is None else "tasks")
    secret, exact = load_key(key), as_epsilon(epsilon)
    place = None if no_ledger else ledger or str(ledger_beside(key))
    spoken = Spoken(column, values or [], values_file or [])
    if spark is None:
        check_ending(target)
    with ExitStack() as stack:
        table: Any = Input(Path(source)) if spark is None else spark.table
        stack.enter_context(row_named(Path(source)))
        stack.enter_context(way_out(**WAYS_OUT))
        subject = Subject.population(population)
        book = None if place is None else stack.enter_context(Ledger.open(place))
        release_name = Path(source).stem if name is None else name
        known = None if book is None else book.account(subject)
        if known is not None and name is None:
            refuse_other_name(known, release_name, column)
        encodings = Encodings(known, release_name, encoding, planned_epsilon or epsilon)
        request = TableRequest(
            source=Path(source),
            target=target,
            id_column=id_column,
            columns=[
                Declaration(
                    column=each,
                    values=spoken.of(each),
                    public=public_values and spoken.of(each) is None,
                    range=number_range if spoken.of(each) is None and not public_values else None,
                    bins=None if bins is None else edges(bins),
                    map=value_map,
                    nulls=nulls,
                    **encodings.of(each),
                ).request(table)
                for each in column
            ],
            epsilon=exact,
            key=secret,
            release=release_name,
            keep=keep or [],
        )
        payer = None
        if book is not None and place is not None:
            # A database has no folder beside it; the key has.
            beside = Path(place) if "://" not in place else ledger_of(key)
            tags = tags_folder(beside) if growing else None
            payer = Payer(book, subject, budget, f"release to {target.name}", again, force, tags, new_ledger)
        make: Callable[..., Drawing] = partial(TableDrawing, request)
        if spark is not None:
            make = spark.drawing(request)
        elif last is not None:
            level = None if last_epsilon is None else as_epsilon(last_epsilon)
            make = partial(Algorithm1Drawing, request, last, last_epsilon=level)
        if dry_run and payer is not None:
            report_release(request, None, quote(make(), payer, known), as_json)
            return
        stack.enter_context(nullcontext() if spark is None else spark.logged())
        with bar:
            task = bar.add_task("", total=None)
            options: Any = {"progress": lambda done, total: bar.update(task, completed=done, total=total)}
            if spark is None:
                options["threads"] = threads or os.cpu_count() or 1
            outcome = publish(make(**options), payer, known)
        report_release(request, outcome.rows, outcome.charges, as_json)


def _refuse_together(
    is_spark: bool,
    on_spark: bool,
    last: Path | None,
    last_epsilon: str | None,
    growing: bool,
    *,
    no_ledger: bool,
    forces: bool,
) -> None:
    """Refuse options that contradict each other."""
    if is_spark and (last is not None or growing):
        raise OptionError("--last and --growing are for the local engine only. Nothing was released.")
    if on_spark and not is_spark:
        raise OptionError("--master, --worker-key and --partitions need --engine spark. Nothing was released.")
    if last is None and last_epsilon is not None:
        raise OptionError("--last-epsilon is the level of --last OLD, which is not there. Nothing was released.")
    if last is not None and (no_ledger or growing or forces):
        raise OptionError(
            "--last draws once from what was released before, so it needs the ledger, and neither --growing, --force "
            "nor --again go with it. Nothing was released."
        )
    if no_ledger and growing:
        raise OptionError("--growing keeps tags of the rows beside the ledger, so it needs one. Nothing was released.")


def _bar(unit: str) -> Progress:
    columns = (TextColumn("releasing"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
