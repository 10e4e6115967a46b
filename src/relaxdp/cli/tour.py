"""`relaxdp tour`: a service with a campaign and a market to look at, on this machine and for a while."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from relaxdp.cli.terminal import get_stderr_console
from relaxdp.device.operator import Operator
from relaxdp.device.server import own_server
from relaxdp.device.tour import OWN, SEVERAL, campaigns, run, several_questions
from relaxdp.market.tour import furnish_market


def tour(
    devices: Annotated[int, typer.Option(help="How many simulated devices answer.", min=1, max=1_000_000)] = 5000,
    half_width: Annotated[float, typer.Option(help="The campaign ends by itself when it is so precise.")] = 0.025,
    pace: Annotated[float, typer.Option(help="Seconds that the devices take for a level.", min=0)] = 8.0,
    seed: Annotated[int, typer.Option(help="Decides what the devices answer.", min=0)] = 1,
    stay: Annotated[bool, typer.Option(help="Keep the service running until Ctrl-C.")] = True,
) -> None:
    """Start a service with an empty database, let simulated people answer and trade, and show where to look."""
    signal.signal(signal.SIGTERM, _interrupt)  # so that the service ends with us, whoever ends us
    try:
        with tempfile.TemporaryDirectory(prefix="relaxdp-tour-") as folder, own_server(Path(folder)) as running:
            os.environ["XDG_STATE_HOME"] = folder  # so that the seller's vault leaves no stamp behind
            operator = Operator(running.server, running.token)
            for each in campaigns(devices, half_width):
                operator.create(each)
            operator.create_survey(several_questions())
            typer.echo(f"dashboard       {running.server}/")
            typer.echo(f"operator token  {running.token}")
            typer.echo(f"a survey        {running.server}/survey/{OWN}   (answer it, and relax it on the dashboard)")
            typer.echo(
                f"three questions {running.server}/surveys/{SEVERAL}   (one limit for all; two are counted together)"
            )
            traders = furnish_market(running.server, running.token, Path(folder), seed=seed)
            typer.echo(
                f"the market      {running.server}/market   (sign in with one of these tokens, or the operator's)"
            )
            for role, (name, token) in [("seller", traders.seller), *(("buyer", each) for each in traders.buyers)]:
                typer.echo(f"{f'{role} {name}':<20}  {token}")
            typer.echo("")
            sys.stdout.flush()
            _watch(operator, devices=devices, seed=seed, pace=pace)
            if stay:
                typer.echo("The service runs until you press Ctrl-C; then everything is removed.")
                sys.stdout.flush()
                while True:
                    time.sleep(3600)
    except KeyboardInterrupt:
        typer.echo("\nStopped, and everything removed.")


def _watch(operator: Any, **options: Any) -> None:
    typer.echo(f"{options['devices']:,} simulated devices answer “How did you get to work today?”")
    console = get_stderr_console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    last = None
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reports", total=options["devices"])
        for last in run(operator, moved=lambda done: bar.advance(task, done), **options):
            typer.echo(f"  epsilon {last.epsilon:<5} {last.devices:,} devices so far, ± {100 * last.half_width:.1f} %")
            bar.reset(task)
    if last is not None and last.state == "finished":
        typer.echo("It is precise enough, so it finished by itself and asks for no more.")
    else:
        typer.echo("It is at its last level, and not as precise as was wanted.")


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
