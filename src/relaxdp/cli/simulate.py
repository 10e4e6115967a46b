"""`relaxdp simulate`: a campaign with many simulated devices, on a server of its own or on a running one."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from relaxdp.cli.options import JsonOption
from relaxdp.cli.talk import aside_console
from relaxdp.device.address import Server
from relaxdp.device.client import Client
from relaxdp.device.operator import Operator, operator_token
from relaxdp.device.server import own_server
from relaxdp.device.simulate import Outcome, Simulation
from relaxdp.device.simulate import simulate as run
from relaxdp.errors import OptionError
from relaxdp.estimation.schedules import Explicit
from relaxdp.law.epsilon import epsilon_text
from relaxdp.mechanisms import mechanism


def simulate(
    devices: Annotated[int, typer.Option(help="How many devices report.")] = 100_000,
    values: Annotated[int, typer.Option(help="How many values an answer can have.", min=2, max=10_000)] = 5,
    levels: Annotated[str, typer.Option(help="Epsilons of the levels.")] = "0.1,0.2,0.5,1,2",
    half_width: Annotated[float, typer.Option(help="The campaign ends by itself when it is so precise.")] = 0.012,
    encoding: Annotated[str, typer.Option(help="How values become reports.")] = "categorical",
    batch: Annotated[int, typer.Option(help="Reports in one request.")] = 500,
    connections: Annotated[int, typer.Option(help="Connections that send at the same time.")] = 4,
    seed: Annotated[
        int, typer.Option(help="Decides truths, pseudonyms and, on a server of its own, reports.", min=0)
    ] = 1,
    folder: Annotated[
        Path | None, typer.Option(help="Keep the server's database here  [default: a folder that is removed]")
    ] = None,
    server: Annotated[str | None, typer.Option(help="A running collector, instead of one of its own.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with that collector's token  [default: RELAXDP_TOKEN is read]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign with simulated devices: level by level, until the answer is precise enough.

    Starts a server with an empty database on this machine, unless --server names a running one.
    """
    if server is not None and folder is not None:
        raise OptionError("--folder is for a server of its own: it does not go with --server.")
    exact = tuple(Explicit([level.strip() for level in levels.split(",")]))
    mechanism(["a", "b"], encoding=encoding, epsilon=exact[-1])  # a name that nobody knows is refused here
    # On a server of its own the campaign has a name of its own, so that the seed decides everything.
    name = f"simulation-{seed}" if server is None else None
    simulation = Simulation(devices, exact, half_width, values, encoding, seed, batch, connections, name)
    console = aside_console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        if server is not None:
            where, token = Server.parse(server), operator_token(token_file, os.environ)
        else:
            place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relaxdp-simulate-")))
            running = stack.enter_context(own_server(_made(place)))
            where, token = running.server, running.token
        bar = stack.enter_context(Progress(*columns, console=console, transient=True, disable=not console.is_terminal))
        task = bar.add_task("reports", total=devices * len(exact))
        client = Client(attempts=3)
        outcome = run(simulation, Operator(where, token, client), client, lambda done: bar.advance(task, done))
    if as_json:
        typer.echo(json.dumps(_as_json(simulation, outcome)))
    else:
        _show(simulation, outcome)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise OptionError(
            "the folder {path!r} cannot be made: {why}.", path=str(folder), why=problem.strerror
        ) from None
    return folder


def _show(simulation: Simulation, outcome: Outcome) -> None:
    console = Console()
    table = Table(title=f"{simulation.devices:,} devices, {simulation.values} values, seed {simulation.seed}")
    table.add_column("value")
    for heading in ("truth", "estimate", "95 % interval", "holds"):
        table.add_column(heading, justify="right")
    for row, truth in list(zip(outcome.rows, outcome.truth, strict=True))[:20]:
        interval, holds = f"{row['low']:.4f} .. {row['high']:.4f}", row["low"] <= truth <= row["high"]
        table.add_row(str(row["value"]), f"{truth:.4f}", f"{row['estimate']:.4f}", interval, "yes" if holds else "no")
    console.print(table)
    counts = Table()
    for heading in ("epsilon", "devices whose highest level this is"):
        counts.add_column(heading, justify="right")
    for level, reached in zip(simulation.levels, outcome.per_level, strict=True):
        counts.add_row(epsilon_text(level), f"{reached:,}")
    console.print(counts)
    typer.echo(_ending(simulation, outcome))
    sent = sum(outcome.answers.values())
    typer.echo(
        f"{outcome.covered} of {len(outcome.rows)} intervals hold the truth; each does in 95 of 100 campaigns.\n"
        f"{sent:,} reports were sent and {outcome.accepted:,} accepted, in {outcome.requests:,} requests: "
        f"{outcome.requests / outcome.seconds:,.0f} requests/s, {sent / outcome.seconds:,.0f} reports/s."
    )


def _ending(simulation: Simulation, outcome: Outcome) -> str:
    at, wanted = epsilon_text(outcome.stopped_at), f"a half-width of {simulation.half_width:g}"
    if outcome.state != "finished":
        return f"The campaign is at its last level, epsilon {at}, and has not reached {wanted}."
    there = outcome.per_level[simulation.levels.index(outcome.stopped_at)]
    middle = ""
    if there < simulation.devices:
        middle = (
            f"\nIt was precise enough in the middle of the level: {there:,} of the {simulation.devices:,} devices had "
            "reported there."
        )
    if outcome.planned_stop == outcome.stopped_at:
        return f"The campaign stopped by itself at epsilon {at}, the smallest level that gives {wanted}.{middle}"
    return f"The campaign stopped by itself at epsilon {at}, with {wanted}.{middle}"


def _as_json(simulation: Simulation, outcome: Outcome) -> dict[str, object]:
    rows = [{**row, "truth": truth} for row, truth in zip(outcome.rows, outcome.truth, strict=True)]
    return {
        "campaign": outcome.campaign,
        "state": outcome.state,
        "stopped_at": epsilon_text(outcome.stopped_at),
        "planned_stop": None if outcome.planned_stop is None else epsilon_text(outcome.planned_stop),
        "target_met": outcome.target_met,
        "levels": [epsilon_text(level) for level in simulation.levels],
        "devices_per_level": outcome.per_level,
        "rows": rows,
        "covered": outcome.covered,
        "answers": dict(outcome.answers),
        "accepted": outcome.accepted,
        "requests": outcome.requests,
        "seconds": outcome.seconds,
    }
