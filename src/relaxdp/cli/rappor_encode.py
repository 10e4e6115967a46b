"""`relaxdp rappor encode` and `relax`: a table of clients and words becomes reports, level after level."""

from __future__ import annotations

from contextlib import ExitStack
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.options import LEDGER_VARIABLE, JsonOption, KeyCommand, KeyOption, key_of
from relaxdp.cli.release_options import NewLedger
from relaxdp.cli.render import progress_bar, show_released
from relaxdp.errors import DescriptionError, OptionError, ScheduleError, refusing
from relaxdp.estimation.schedules import Linear, NoisySampling
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer, ledger_beside, refuse_other_name
from relaxdp.publication.transaction import publish, quote
from relaxdp.rappor.files import Parameters
from relaxdp.rappor.filter import BloomShape, epsilon_of, whole_epsilon
from relaxdp.rappor.release import RapporDrawing, RapporRequest
from relaxdp.rappor.reports import ReportsDescription
from relaxdp.table.calls import Released

Source = Annotated[Path, typer.Argument(metavar="IN", help="Table of clients and words: Parquet or CSV.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="File of reports; it must not exist.")]
Params = Annotated[Path, typer.Option(help="Parameter file: k,h,m,f and their numbers.", show_default=False)]
IdColumn = Annotated[str, typer.Option("--id", help="Column that holds the clients.")]
Column = Annotated[str, typer.Option(help="Column that holds the words.")]
Population = Annotated[str, typer.Option(help="Whose budget is charged; all its tables add up.")]
LedgerPlace = Annotated[
    str | None, typer.Option(envvar=LEDGER_VARIABLE, help="Ledger file or database URL  [default: KEY.ledger]")
]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Release without accounting. Your risk.")]
Budget = Annotated[str | None, typer.Option(help="Budget of the population; the first release needs it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and do nothing.")]


class PaceChoice(StrEnum):
    """How a device goes from level to level."""

    LINEAR = "linear"
    NOISY_SAMPLING = "noisy-sampling"


@refusing("Nothing was released.")
def encode(
    source: Source,
    target: Target,
    params: Params,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    epsilon: Annotated[
        str | None, typer.Option(help="The level of a whole report  [default: that of the parameters' f]")
    ] = None,
    id_column: IdColumn = "client",
    column: Column = "value",
    name: Annotated[str | None, typer.Option("--release", help="Name of the release  [default: IN's name]")] = None,
    population: Population = "everyone",
    ledger: LedgerPlace = None,
    no_ledger: NoLedger = False,
    new_ledger: NewLedger = "",
    budget: Budget = None,
    again: Annotated[bool, typer.Option("--again", help="Allow a level below the last one; it costs nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Another key, other parameters or changed words: a new path, charged.")
    ] = False,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Make the reports of a table: client, cohort and bits. The same level again gives the identical reports.

    A cohort is drawn from the client alone. Only the permanent response leaves, at the level that is asked for.
    """
    parameters = Parameters.read(params)
    level = epsilon_of(parameters.shape, parameters.noise) if epsilon is None else as_epsilon(epsilon)
    request = RapporRequest.make(
        parameters.shape, source, target, id_column=id_column, column=column, epsilon=level,
        key=key_of(key, key_command), release=source.stem if name is None else name,
    )  # fmt: skip
    _run(
        request, None, ledger, no_ledger, population, budget, dry_run, as_json,
        again=again, force=force, named=name is not None, new_ledger=new_ledger,
    )  # fmt: skip


@refusing("Nothing was released.")
def relax(
    source: Source,
    target: Target,
    last: Annotated[Path, typer.Option(metavar="OLD", help="The last reports, of the same table.", show_default=False)],
    params: Params,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    epsilon: Annotated[str | None, typer.Option(help="The new level of a whole report.")] = None,
    pace: Annotated[PaceChoice | None, typer.Option(help="Take the next level of a schedule instead.")] = None,
    first: Annotated[str | None, typer.Option(help="linear: the first level.")] = None,
    limit: Annotated[str | None, typer.Option(help="linear: the last level.")] = None,
    alpha: Annotated[str | None, typer.Option(help="noisy-sampling: epsilon of a bit's permanent response.")] = None,
    beta: Annotated[str | None, typer.Option(help="noisy-sampling: epsilon of a bit's sample.")] = None,
    steps: Annotated[int | None, typer.Option(help="How many levels the schedule has.")] = None,
    id_column: IdColumn = "client",
    column: Column = "value",
    population: Population = "everyone",
    ledger: LedgerPlace = None,
    no_ledger: NoLedger = False,
    new_ledger: NewLedger = "",
    budget: Budget = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Take the reports of a table to a higher level; all reports together cost the higher level alone.

    The level is --epsilon, or the next one of a schedule: linear in a whole report, or at the rate at which noisy
    sampling would spend (the paper's equation, for each bit).
    """
    parameters = Parameters.read(params)
    description = ReportsDescription.of(last)
    if description is None:
        raise DescriptionError("{last!r} does not say its level: it is no file of reports made here.", last=str(last))
    if (epsilon is None) == (pace is None):
        raise OptionError("give --epsilon, or --pace with its levels.")
    given = {"first": first, "limit": limit, "alpha": alpha, "beta": beta, "steps": steps}
    level = (
        as_epsilon(epsilon)
        if epsilon is not None
        else _next_level(pace or PaceChoice.LINEAR, given, parameters.shape, description.report.epsilon)
    )
    request = RapporRequest.make(
        parameters.shape, source, target, id_column=id_column, column=column, epsilon=level,
        key=key_of(key, key_command), release=description.report.path.release,
    )  # fmt: skip
    _run(request, last, ledger, no_ledger, population, budget, dry_run, as_json, named=True, new_ledger=new_ledger)


def _next_level(pace: PaceChoice, given: dict[str, Any], shape: BloomShape, last: Decimal) -> Decimal:
    needed = ("first", "limit", "steps") if pace is PaceChoice.LINEAR else ("alpha", "beta", "steps")
    wrong = [name for name in given if (given[name] is not None) != (name in needed)]
    if wrong:
        listed = " and ".join(f"--{name}" for name in needed)
        raise OptionError("--pace {pace} needs {listed}, and nothing else of its kind.", pace=pace.value, listed=listed)
    if pace is PaceChoice.LINEAR:
        levels = list(Linear(given["first"], given["limit"], given["steps"]))
    else:
        levels = [whole_epsilon(shape, level) for level in NoisySampling(given["alpha"], given["beta"], given["steps"])]
    found = next((level for level in levels if level > last), None)
    if found is None:
        raise ScheduleError(
            "the last reports are at {last}, and the schedule ends at {end}.",
            last=epsilon_text(last),
            end=epsilon_text(levels[-1]),
        )
    return found


def _run(
    request: RapporRequest,
    last: Path | None,
    ledger: str | None,
    no_ledger: bool,
    population: str,
    budget: str | None,
    dry_run: bool,
    as_json: bool,
    *,
    again: bool = False,
    force: bool = False,
    named: bool = False,
    new_ledger: str = "",
) -> None:
    if no_ledger and dry_run:
        raise OptionError("--dry-run asks the ledger, so it needs one.")
    with ExitStack() as stack:
        payer = known = None
        if not no_ledger:
            book = stack.enter_context(Ledger.open(ledger or ledger_beside(request.table.key)))
            subject = Subject.population(population)
            known = book.account(subject)
            if not named:
                refuse_other_name(known, request.table.release, [each.column for each in request.table.columns])
            reason = f"rappor to {request.table.target.name}"
            payer = Payer(book, subject, budget, reason, again, force, new_ledger=new_ledger)
        rows, charges = None, []
        if dry_run and payer is not None:
            charges = quote(RapporDrawing(request), payer, known)
        else:
            with progress_bar("encoding", "rows") as progress:
                outcome = publish(RapporDrawing(request, last=last, progress=progress), payer, known)
            rows, charges = outcome.rows, outcome.charges
    asked = request.table
    names = tuple(each.column for each in asked.columns)
    show_released(Released(asked.release, names, asked.epsilon, asked.target, rows, tuple(charges)), as_json)
