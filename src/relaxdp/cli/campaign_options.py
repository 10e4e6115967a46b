"""Options of all commands that call a server, and how its answers are shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from relaxdp.cli.campaign_tables import expected
from relaxdp.device.address import Server
from relaxdp.device.client import Client, tidy
from relaxdp.device.operator import Operator, operator_token

ServerOption = Annotated[
    str, typer.Option("--server", envvar="RELAXDP_SERVER", help="Address of the server.", show_default=False)
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File with your token  [default: RELAXDP_TOKEN is read]")
]
Method = Annotated[str, typer.Option(help="average, or precision where levels do not depend on answers.")]
Confidence = Annotated[float, typer.Option(help="The confidence level of the intervals.")]
About = Annotated[str, typer.Option(help="objects: these devices. population: those that they are a sample of.")]
Invitations = Annotated[int, typer.Option(help="How many invitations.")]


def operator_of(server: str, token_file: Path | None, ca_file: Path | None) -> Operator:
    """Return the collector as whoever holds the token sees it."""
    return Operator(Server.parse(server), operator_token(token_file, os.environ), client_of(ca_file))


def client_of(ca_file: Path | None) -> Client:
    """Return a client that trusts the certificates of a file, or those of the system."""
    return Client(attempts=3, ca_file=None if ca_file is None else str(ca_file))


def say(
    answer: Any,
    as_json: bool,
    words: Callable[[], list[Any]],
    reading: Callable[[], AbstractContextManager[None]] = expected,
) -> None:
    """Print an answer: as JSON for programs, otherwise in sentences and tables, of which some may be empty."""
    if as_json:
        typer.echo(json.dumps(answer))
        return
    with reading():
        parts = words()
    for part in filter(None, parts):
        Console().print(part, highlight=False, soft_wrap=isinstance(part, str))


def say_invitations(made: list[str], as_json: bool) -> None:
    """Print invitations, one a line."""
    typer.echo(json.dumps({"invitations": made}) if as_json else "\n".join(map(tidy, made)))
