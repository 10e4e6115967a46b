"""`relaxdp admin backup|restore|token`: looking after a service's database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaxdp.cli.main import CommandGroup
from relaxdp.cli.terminal import print_done
from relaxdp.lazy_imports import LazyModule

if TYPE_CHECKING:
    from relaxdp.service import maintenance
else:
    maintenance = LazyModule("relaxdp.service.maintenance")

app = CommandGroup(help="Back up, restore, and renew the token of a service.")

DatabaseOption = Annotated[str, typer.Option("--db", envvar="RELAXDP_DB", help="SQLite file or PostgreSQL URL.")]
DEFAULT = "sqlite:///relaxdp-service.db"


@app.command("backup")
def backup(
    target: Annotated[Path, typer.Argument(help="File for the copy; an existing one is replaced.")],
    db: DatabaseOption = DEFAULT,
) -> None:
    """Write a consistent copy of a SQLite database, also while the service runs."""
    maintenance.back_up(db, target)
    print_done(f"wrote a copy of the database to {target}")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="A copy that `backup` wrote.")], db: DatabaseOption = DEFAULT
) -> None:
    """Make a SQLite database from a copy; there must be none yet."""
    maintenance.restore(source, db)
    typer.echo(f"restored {source}; devices that withdrew after it was written must withdraw again,")
    typer.echo("sellers publish newer levels again, and buyers restore newer orders from receipts (docs/market.md)")


@app.command("token")
def token(
    db: DatabaseOption = DEFAULT,
    token_file: Annotated[
        Path | None, typer.Option(help="Write the token here instead of showing it; there must be no such file yet.")
    ] = None,
) -> None:
    """Replace the operator's token and show the new one, this once. The old one ends within seconds."""
    say_token(maintenance.renew_token(db, token_file), token_file)


def say_token(made: str, token_file: Path | None) -> None:
    """Show a new token, or say where it was written."""
    if token_file is not None:
        print_done(f"operator token written to {token_file}")
        return
    typer.echo(f"operator token: {made}")
    typer.echo("It is shown this once; only its digest is kept.")
