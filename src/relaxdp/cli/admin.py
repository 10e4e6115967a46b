"""`relaxdp admin backup|restore|recover|token`: looking after a service's database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaxdp.cli.main import CommandGroup
from relaxdp.cli.terminal import print_done
from relaxdp.lazy_imports import LazyModule
from relaxdp.service.settings import Settings

if TYPE_CHECKING:
    from relaxdp.market import recovery
    from relaxdp.service import maintenance
else:
    maintenance, recovery = LazyModule("relaxdp.service.maintenance"), LazyModule("relaxdp.market.recovery")

app = CommandGroup(help="Back up, restore, recover, and renew the token of a service.")

DatabaseOption = Annotated[str, typer.Option("--db", envvar="RELAXDP_DB", help="SQLite file or PostgreSQL URL.")]
DEFAULT = "sqlite:///relaxdp-service.db"
MarketKey = Annotated[
    Path | None, typer.Option("--market-key", help="Key file of the market.", show_default="beside a SQLite database")
]
MarketJournal = Annotated[
    Path | None,
    typer.Option("--market-journal", help="Folder in which the market writes down what it sold.",
                 show_default="beside its key"),
]  # fmt: skip


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
    typer.echo("and a market makes the sales that it forgot again: relaxdp admin recover (docs/market.md)")


@app.command("recover")
def recover(
    db: DatabaseOption = DEFAULT,
    market_key: MarketKey = None,
    market_journal: MarketJournal = None,
    begin_journal: Annotated[
        bool, typer.Option("--begin-journal", help="The journal is lost: begin it anew from a database that is whole.")
    ] = False,
) -> None:
    """Make the market's sales again that a restored database forgot, from the journal beside the market's key.

    Until then nothing else is sold of their releases. Deliver again first what sellers delivered since the copy was
    made, and make the accounts and credits again that came since.
    """
    settings = Settings(database=db, market_key=market_key, market_journal=market_journal)
    if begin_journal:
        print_done(f"began the journal anew; listings in it: {recovery.begin_anew(settings):,}")
        return
    made, missing = 0, 0
    for each in recovery.recover(settings):
        if each.problem is None:
            made += 1
            continue
        missing, sold = missing + 1, each.forgotten.sold
        what = f"path {each.forgotten.path}"
        if sold is not None:
            what = f"{sold.listing} at epsilon {sold.epsilon} for {sold.buyer} (purchase {sold.number})"
        typer.echo(f"not made again: {what}: {each.problem}", err=True)
    counted = f"forgotten sales made again: {made:,}; missing: {missing:,}"
    typer.echo(counted if made or missing else "nothing was forgotten")
    if missing:
        raise typer.Exit(1)


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
