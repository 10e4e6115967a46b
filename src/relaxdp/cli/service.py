"""`relaxdp service backup|restore|token`: looking after a service's database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Back up, restore, and renew the token of a service.", no_args_is_help=True)

DatabaseOption = Annotated[str, typer.Option("--db", envvar="RELAXDP_DB", help="SQLite file or PostgreSQL URL.")]
DEFAULT = "sqlite:///relaxdp-service.db"


@app.command("backup")
def backup(
    target: Annotated[Path, typer.Argument(help="File for the copy; an existing one is replaced.")],
    db: DatabaseOption = DEFAULT,
) -> None:
    """Write a consistent copy of a SQLite database, also while the service runs."""
    from relaxdp.service.backup import back_up  # noqa: PLC0415

    back_up(db, target)
    typer.echo(f"wrote a copy of the database to {target}")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="A copy that `backup` wrote.")], db: DatabaseOption = DEFAULT
) -> None:
    """Make a SQLite database from a copy; there must be none yet."""
    from relaxdp.service.backup import restore as restore_copy  # noqa: PLC0415

    restore_copy(source, db)
    typer.echo(f"restored {source}; devices that withdrew after it was written must withdraw again,")
    typer.echo("and a market must not sell before the sales that it forgot are made again (docs/market.md)")


@app.command("token")
def token(
    db: DatabaseOption = DEFAULT,
    token_file: Annotated[
        Path | None, typer.Option(help="Write the token here instead of showing it; there must be no such file yet.")
    ] = None,
) -> None:
    """Replace the operator's token and show the new one, this once. The old one ends within seconds."""
    from relaxdp.service.prepare import renew_token  # noqa: PLC0415

    say_token(renew_token(db, token_file), token_file)


def say_token(made: str, token_file: Path | None) -> None:
    """Show a new token, or say where it was written."""
    if token_file is not None:
        typer.echo(f"operator token written to {token_file}")
        return
    typer.echo(f"operator token: {made}")
    typer.echo("It is shown this once; only its digest is kept.")
