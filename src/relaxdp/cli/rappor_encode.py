"""`relaxdp rappor encode` and `relax`: a table of clients and words becomes reports, level after level."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.options import DryRun, JsonOption, VaultOption
from relaxdp.cli.release import show_release
from relaxdp.cli.render import progress_bar
from relaxdp.errors import OptionError, RapporError, ScheduleError, refusing
from relaxdp.estimation.schedules import Linear, NoisySampling
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.ledger.rules import require_release
from relaxdp.mechanisms import Mechanism
from relaxdp.rappor.encoding import BloomEncoding
from relaxdp.rappor.files import Parameters
from relaxdp.rappor.filter import epsilon_of, whole_epsilon
from relaxdp.tables.folder import VaultFolder
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.tables.plan import Request
from relaxdp.tables.source import open_source
from relaxdp.tables.vault import Vault, find_vault

Output = Annotated[Path, typer.Argument(metavar="OUT", help="File of reports; it must not exist.")]


class PaceChoice(StrEnum):
    """How a device goes from level to level."""

    LINEAR = "linear"
    NOISY_SAMPLING = "noisy-sampling"


@refusing("Nothing was released.")
def encode(
    source: Annotated[str, typer.Argument(metavar="IN", help="Table of clients and words: Parquet or CSV.")],
    output: Output,
    params: Annotated[Path, typer.Option(help="Parameter file: k,h,m,f and their numbers.", show_default=False)],
    epsilon: Annotated[
        str | None, typer.Option(help="The level of a whole report  [default: that of the parameters' f]")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", help="Column that holds the clients; each once.")] = "client",
    column: Annotated[str, typer.Option(help="Column that holds the words.")] = "value",
    name: Annotated[str | None, typer.Option(help="Name of the release  [default: IN without its ending]")] = None,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the reports of a table: client, cohort and bits. The same level again gives identical reports.

    A cohort is drawn from the client alone. Only the permanent response leaves, at the level that you choose.
    """
    parameters = Parameters.read(params)
    level = epsilon_of(parameters.shape, parameters.noise) if epsilon is None else as_epsilon(epsilon)
    opened = Vault(find_vault(vault))
    with open_source(source) as table, progress_bar("encoding", "rows") as progress:
        request = Request(
            name=name or table.default_name or "",
            epsilon=level,
            id=id_column,
            columns={column: Mechanism(BloomEncoding(parameters.shape))},
            dry_run=dry_run,
        )
        done = opened.release_source(table, request, output, progress)
    show_release(done, as_json)


@refusing("Nothing was released.")
def relax(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release.")],
    output: Output,
    epsilon: Annotated[str | None, typer.Option(help="The new level of a whole report.")] = None,
    pace: Annotated[PaceChoice | None, typer.Option(help="Take the next level of a schedule instead.")] = None,
    first: Annotated[str | None, typer.Option(help="linear: the first level.")] = None,
    limit: Annotated[str | None, typer.Option(help="linear: the last level.")] = None,
    alpha: Annotated[str | None, typer.Option(help="noisy-sampling: epsilon of a bit's permanent response.")] = None,
    beta: Annotated[str | None, typer.Option(help="noisy-sampling: epsilon of a bit's sample.")] = None,
    steps: Annotated[int | None, typer.Option(help="How many levels the schedule has.")] = None,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Relax the reports of an earlier release; all reports together cost the largest level. No table is needed.

    The level is --epsilon, or the next one of a schedule: linear in a whole report, or at the rate at which noisy
    sampling would spend (the paper's equation, for each bit).
    """
    place = find_vault(vault)
    if epsilon is not None and pace is None:
        level = as_epsilon(epsilon)
    elif pace is not None and epsilon is None:
        given = {"first": first, "limit": limit, "alpha": alpha, "beta": beta, "steps": steps}
        level = _find_level(place, name, pace, given)
    else:
        raise OptionError("The next level is missing, or is given twice.", hint="Pass either --epsilon or --pace.")
    with progress_bar("relaxing", "rows") as progress:
        done = Vault(place).relax_with(name, level, output=output, dry_run=dry_run, progress=progress)
    show_release(done, as_json)


def _find_level(vault: Path, name: str, pace: PaceChoice, given: dict[str, Any]) -> Decimal:
    """Return the first level of a schedule above the largest one of a release."""
    needed = ("first", "limit", "steps") if pace is PaceChoice.LINEAR else ("alpha", "beta", "steps")
    if any((given[option] is not None) != (option in needed) for option in given):
        raise OptionError(
            "--pace {pace} takes {listed}, and no option of another schedule.",
            hint="Pass all three of them.",
            pace=pace.value,
            listed=", ".join(f"--{option}" for option in needed),
        )
    columns = require_release(VaultFolder(vault).read_account(), name).columns.values()
    encodings: list[Any] = [ColumnDescription.from_json(each.description).made_encoding() for each in columns]
    if any(each.domain != "words" for each in encodings):
        raise RapporError(
            "The release {name!r} holds no RAPPOR reports.", hint="Relax it with `relaxdp relax`.", name=name
        )
    if pace is PaceChoice.LINEAR:
        levels = list(Linear(given["first"], given["limit"], given["steps"]))
    else:
        bits = NoisySampling(given["alpha"], given["beta"], given["steps"])
        levels = [whole_epsilon(encodings[0].shape, each) for each in bits]
    last = max(each.largest for each in columns)
    found = next((level for level in levels if level > last), None)
    if found is None:
        raise ScheduleError(
            "The release {name!r} is at epsilon {last}, and the schedule ends at {end}.",
            hint="Pass a longer schedule, or --epsilon.",
            name=name,
            last=epsilon_text(last),
            end=epsilon_text(levels[-1]),
        )
    return found
