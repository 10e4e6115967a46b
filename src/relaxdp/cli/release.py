"""`relaxdp release`: columns of a table leave at a level, and the ledger knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relaxdp.cli.accounts import NewLedger, ledger_beside, ledger_of, refuse_other_name, report_release
from relaxdp.cli.release_options import WAYS_OUT, Encodings, Spoken, edges, load_key
from relaxdp.cli.spark import SparkPlace
from relaxdp.errors import OptionError
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.subject import Subject
from relaxdp.table.algorithm1 import Algorithm1Drawing
from relaxdp.table.declare import Declaration
from relaxdp.table.derive import way_out
from relaxdp.table.formats import Input
from relaxdp.table.growing import tags_folder
from relaxdp.table.payer import Payer
from relaxdp.table.publication import Drawing, publish, quote
from relaxdp.table.ragged import row_named
from relaxdp.table.refusals import check_ending
from relaxdp.table.release import TableDrawing
from relaxdp.table.request import TableRequest


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
    if engine is EngineChoice.SPARK:
        if last is not None or growing:
            raise OptionError("--last and --growing are for the local engine only. Nothing was released.")
        spark = SparkPlace(source, target, master, worker_key, partitions)
    elif master is not None or worker_key is not None or partitions is not None:
        raise OptionError("--master, --worker-key and --partitions need --engine spark. Nothing was released.")
    if last is None and last_epsilon is not None:
        raise OptionError("--last-epsilon is the level of --last OLD, which is not there. Nothing was released.")
    if last is not None and (no_ledger or growing or force or again):
        raise OptionError(
            "--last draws once from what was released before, so it needs the ledger, and neither --growing, --force "
            "nor --again go with it. Nothing was released."
        )
    if no_ledger and growing:
        raise OptionError("--growing keeps tags of the rows beside the ledger, so it needs one. Nothing was released.")
    if spark is None:
        check_ending(target)
    secret, exact = load_key(key), as_epsilon(epsilon)
    table: Any = Input(Path(source)) if spark is None else spark.table
    subject = Subject.population(population)
    with ExitStack() as stack:
        stack.enter_context(row_named(Path(source)))
        stack.enter_context(way_out(**WAYS_OUT))
        place = None if no_ledger else ledger or str(ledger_beside(key))
        book = None if place is None else stack.enter_context(Ledger.open(place))
        release_name = Path(source).stem if name is None else name
        known = None if book is None else book.account(subject)
        if known is not None and name is None:
            refuse_other_name(known, release_name, column)
        spoken = Spoken(column, values or [], values_file or [])
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
        with _progress("rows" if spark is None else "tasks") as progress:
            options: Any = {} if spark is not None else {"threads": threads or os.cpu_count() or 1}
            outcome = publish(make(progress=progress, **options), payer, known)
        report_release(request, outcome.rows, outcome.charges, as_json)


@contextmanager
def _progress(unit: str) -> Iterator[Callable[[int, int | None], None]]:
    columns = (TextColumn("releasing"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
