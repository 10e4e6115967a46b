"""What the commands of the market have in common: options, how prices are written, and how an error goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from relaxdp.cli.campaign_options import client_of
from relaxdp.cli.campaign_options import say as print_answer
from relaxdp.cli.terminal import get_stderr_console
from relaxdp.device.address import Server
from relaxdp.device.operator import VARIABLE, operator_token
from relaxdp.errors import ArgumentError, EpsilonError, RelaxdpError, add_consequence
from relaxdp.market.client import MarketClient, understood
from relaxdp.server_errors import RefusedByServerError, TokenError
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

Listing = Annotated[str, typer.Argument(metavar="LISTING", help="Name of the listing.", show_default=False)]
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the purchase.", min=1, show_default=False)]
PricesOption = Annotated[
    str | None, typer.Option("--prices", help="Points of the price curve, like 0.1:10,0.5:40,1:100.")
]
FormulaOption = Annotated[
    str | None, typer.Option("--formula", help='The price as a formula, like "10 + 90*epsilon" or "200*precision".')
]
LevelsOption = Annotated[
    str | None,
    typer.Option("--levels", help="The levels on sale, like 0.1,0.5,1: at most 100  [default: round ones]"),
]
DescriptionOption = Annotated[str | None, typer.Option("--description", help="What it is about, for buyers.")]
SourceOption = Annotated[str | None, typer.Option("--source", help="Who collected it.")]
CollectedOption = Annotated[str | None, typer.Option("--collected", help='When, like "March to May 2026".')]
MethodOption = Annotated[str | None, typer.Option("--method", help="How it was collected, and from whom.")]
LicenceOption = Annotated[
    str | None, typer.Option("--licence", help="What buyers may do with it: its name, or an https address.")
]

say = partial(print_answer, reading=understood)
_POINTS = "prices are points such as 0.1:10,0.5:40,1:100: an epsilon, a colon, whole credits."


def open_market(server: str, token_file: Path | None, ca_file: Path | None, *, token: bool = True) -> MarketClient:
    """Return the market at an address, with the token of whoever asks; `token` says whether one is needed."""
    found = None
    if token_file is not None or os.environ.get(VARIABLE):
        found = operator_token(token_file, os.environ)
    elif token:
        raise TokenError("a token is needed: set {variable}, or name a file with --token-file.", variable=VARIABLE)
    return MarketClient(Server.parse(server), found, client_of(ca_file))


def as_nobody(server: str, ca_file: Path | None) -> MarketClient:
    """Return the market as it is asked by somebody who need not say who they are."""
    return MarketClient(Server.parse(server), None, client_of(ca_file))


@add_consequence("Nothing was sent.")
def prices_of(points: str | None, formula: str | None) -> dict[str, Any] | None:
    """Return prices as the market takes them; None where none were given."""
    if points is not None and formula is not None:
        raise ArgumentError("prices are given as --prices or as a --formula, not as both.")
    if points is None:
        return None if formula is None else {"formula": formula}
    return {"points": [_point(part) for part in points.split(",")]}


@add_consequence("Nothing was sent.")
def needed_prices(points: str | None, formula: str | None) -> dict[str, Any]:
    """Return prices, or say how they are given."""
    prices = prices_of(points, formula)
    if prices is None:
        raise ArgumentError("say what it costs: --prices 0.1:10,1:100 or --formula '10 + 90*epsilon'.")
    return prices


def levels_of(levels: str | None) -> list[str] | None:
    """Return stated levels; None where none were given."""
    return None if levels is None else [level(part.strip()) for part in levels.split(",")]


def details_of(**said: str | None) -> dict[str, str] | None:
    """Return what a listing says of itself; None where that is nothing."""
    return {name: text for name, text in said.items() if text is not None} or None


def level(epsilon: str) -> str:
    """Return the one spelling of an epsilon."""
    return format_epsilon(as_epsilon(epsilon))


@contextmanager
def afterwards(sentence: str, *, refused: str | None = None) -> Iterator[None]:
    """Say with an error what had happened before it, and how to go on; `refused` where the market has refused."""
    try:
        yield
    except RelaxdpError as problem:
        said = refused if refused is not None and isinstance(problem, RefusedByServerError) else sentence
        problem.consequence = f"{problem.consequence} {said}".lstrip()
        raise


@contextmanager
def waiting(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show that something goes on, where there is a terminal; gives a function that is told how many bytes went by."""
    console = get_stderr_console()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda moved: bar.advance(task, moved)
    sys.stderr.flush()


def _point(part: str) -> list[Any]:
    epsilon, _, price = part.strip().partition(":")
    if not price.strip().isascii() or not price.strip().isdigit() or len(price) > 30:
        raise ArgumentError(_POINTS)
    try:
        return [level(epsilon), int(price)]
    except EpsilonError:
        raise ArgumentError(_POINTS) from None
