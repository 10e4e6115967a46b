"""`relaxdp registry`: the record of a deployment, for the public registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.campaign_request import described_in
from relaxdp.cli.options import KeyCommand, KeyOption, LedgerOption, ledger_place
from relaxdp.cli.talk import hint
from relaxdp.errors import TableFileError
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.publication.deployment import deployment_of_campaign, deployment_of_ledger


def registry(
    campaign: Annotated[
        Path | None,
        typer.Option(help="A campaign in place of a ledger: its JSON file, or what `campaign show --json` prints."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, which must not exist  [default: print it]")
    ] = None,
    ledger: LedgerOption = None,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    population: Annotated[str, typer.Option("--population", help="Whose releases.")] = "everyone",
) -> None:
    """Write the YAML record that the public registry of deployments asks for, from a ledger or a campaign.

    What only a person knows is left empty, with a remark. Names of releases and columns, or the question, stand in it:
    read it before you send it.
    """
    if campaign is not None:
        made = deployment_of_campaign(described_in(campaign, "campaign"))
    else:
        with Ledger.open(ledger_place(ledger, key, key_command), create=False) as book:
            made = deployment_of_ledger(book, Subject.population(population))
    if output is None:
        typer.echo(made.to_yaml(), nl=False)
    else:
        try:
            with output.open("x", encoding="utf-8", newline="\n") as file:
                file.write(made.to_yaml())
        except OSError as problem:
            raise TableFileError("{path!r} cannot be written: {why}.", path=str(output), why=problem.strerror) from None
    hint(f"{len(made.left)} fields are left for you: {', '.join(each.rpartition('.')[2] for each in made.left)}")
