"""The `relaxdp` command: every mistake is one sentence and exit status 2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from relaxdp import __version__
from relaxdp.cli.audit import audit
from relaxdp.cli.budget import app as budget
from relaxdp.cli.estimate import estimate
from relaxdp.cli.plan import plan
from relaxdp.cli.rappor import app as rappor
from relaxdp.cli.release import release
from relaxdp.cli.reproduce import reproduce
from relaxdp.draw.key import Key
from relaxdp.errors import RelaxdpError

app = typer.Typer(
    help="Local differential privacy whose budget is released gradually.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relaxdp {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Start very private, relax later, and pay only for the last level."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's files.")] = Path("relaxdp-demo"),
) -> None:
    """Release a real column at four levels, compare, crash, and overspend in vain; takes a few seconds."""
    from relaxdp.cli.demo import run  # noqa: PLC0415

    run(out)


@app.command()
def keygen(key: Annotated[Path, typer.Argument(help="Where the key file is written; it must not exist.")]) -> None:
    """Make a secret key file that only you can read.

    Keep a copy in a safe place: without the key nothing can be relaxed, and with it released reports can be undone.
    """
    made = Key.generate()
    made.save(key)
    typer.echo(f"wrote the key {made.fingerprint} to {key}")


app.command()(release)
app.add_typer(budget, name="budget")
app.command()(estimate)
app.command()(plan)
app.command()(audit)
app.add_typer(rappor, name="rappor")
app.command()(reproduce)


def main() -> None:
    """Run the command line; an error of ours becomes one sentence."""
    try:
        app()
    except RelaxdpError as problem:
        sys.stderr.write(f"{problem.message}\n")
        sys.exit(2)
