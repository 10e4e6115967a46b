"""`relaxdp market list|show`: what is for sale and what it costs; with a file, a release that is put up for sale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.campaign_options import ServerOption, TokenFile
from relaxdp.cli.market_options import (
    CollectedOption,
    DescriptionOption,
    FormulaOption,
    LevelsOption,
    LicenceOption,
    Listing,
    MethodOption,
    PricesOption,
    SourceOption,
    details_of,
    level,
    levels_of,
    needed_prices,
    open_market,
    say,
)
from relaxdp.cli.market_sell import Terms, put_up
from relaxdp.cli.market_tables import heading, levels_table, listings_table, quote_text, seller_text
from relaxdp.cli.options import CaFile, JsonOption
from relaxdp.errors import ArgumentError, add_consequence


def list_(
    server: ServerOption,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A released Parquet file to put up for sale.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="What is sold, as buyers read it.")] = None,
    name: Annotated[str | None, typer.Option("--id", help="Name of the listing  [default: a random one]")] = None,
    prices: PricesOption = None,
    formula: FormulaOption = None,
    levels: LevelsOption = None,
    budget: Annotated[
        str | None, typer.Option(help="The largest epsilon that you will ever deliver; it may be raised later.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The released column, where the file has several.")] = None,
    description: DescriptionOption = None,
    source: SourceOption = None,
    collected: CollectedOption = None,
    method: MethodOption = None,
    licence: LicenceOption = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """List what is for sale; or, with a FILE, put a release up for sale.

    The market gets the file's reports and never a truth or a key. It sells the levels of the listing up to the one that
    it got.
    """
    said = details_of(description=description, source=source, collected=collected, method=method, licence=licence)
    if file is None:
        given = {"--title": title, "--id": name, "--prices": prices, "--formula": formula}
        more = {"--levels": levels, "--budget": budget, "--column": column}
        told = {f"--{name}": content for name, content in (said or {}).items()}
        for option, content in {**given, **more, **told}.items():
            if content is not None:
                with add_consequence("Nothing was sent."):
                    raise ArgumentError("{option} goes with a FILE that is put up for sale.", option=option)
        found = open_market(server, token_file, ca_file, token=False).listings()
        say({"listings": found}, as_json, lambda: [listings_table(found)])
        return
    if title is None:
        with add_consequence("Nothing was sent."):
            raise ArgumentError("what is put up for sale needs a --title.")
    limit = None if budget is None else level(budget)
    terms = Terms(needed_prices(prices, formula), levels_of(levels), limit, said)
    market = open_market(server, token_file, ca_file)
    made = put_up(market, file, title, terms, name=name, column=column)
    say(made, as_json, lambda: [seller_text(made)])


def show(
    listing: Listing,
    server: ServerOption,
    epsilon: Annotated[str | None, typer.Option(help="Ask for the price of this level.")] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Show a listing: the price and the precision of each of its levels, or a quote for one of them."""
    market = open_market(server, token_file, ca_file, token=False)
    if epsilon is not None:
        quote = market.quote(listing, level(epsilon))
        say(quote, as_json, lambda: [quote_text(quote)])
        return
    found = market.listing(listing)
    say(found, as_json, lambda: [heading(found), levels_table(found)])
