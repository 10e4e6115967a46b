"""`relaxdp market deliver|sales|budget|close|join`: what a seller does.

A single seller's answer becomes a report on this machine, and only the report leaves.
"""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.campaign_options import ServerOption, TokenFile
from relaxdp.cli.campaign_tables import text
from relaxdp.cli.market_options import (
    FormulaOption,
    Listing,
    PricesOption,
    afterwards,
    level,
    levels_of,
    open_market,
    prices_of,
    say,
    waiting,
)
from relaxdp.cli.market_tables import credits_text, sales_tables, seller_text
from relaxdp.cli.options import CaFile, JsonOption, KeyCommand, KeyOption, load_key
from relaxdp.device.client import tidy
from relaxdp.errors import ArgumentError, add_consequence
from relaxdp.market.client import Content, MarketClient, understood
from relaxdp.market.client_files import sendable
from relaxdp.market.client_pool import Pool, remember
from relaxdp.market.prices import prices_from_json
from relaxdp.sampling.private_file import PrivateFileError, read_private_file
from relaxdp.server_errors import PriceError
from relaxdp.theory.epsilon import as_epsilon, format_epsilon


@dataclass(frozen=True, slots=True)
class Terms:
    """What a listing is sold for: prices, which levels, what will be delivered at most; and what it says of itself."""

    prices: Content
    levels: list[str] | None
    budget: str | None
    details: Content | None


def put_up(
    market: MarketClient,
    file: Path,
    title: str,
    terms: Terms,
    *,
    name: str | None,
    column: str | None,
) -> Content:
    """Make a listing and its first delivery."""
    with sendable(file, column) as (place, released, epsilon):
        _check_terms(terms, epsilon)
        more: Any = {"levels": terms.levels, "budget": terms.budget, "details": terms.details}
        made = market.create_listing(title, terms.prices, name=name, **more)
        with understood():
            listing = str(made["listing"]["id"])
        words = [listing, str(file)] if column is None else [listing, str(file), "--column", column]
        again = f"`relaxdp market deliver {shlex.join(words)}` continues it."
        draft = f"The listing {listing!r} remains a draft: {again}"
        with afterwards(f"The listing {listing!r} was made; if it is still a draft, {again}", refused=draft):
            return _delivered(market, listing, place, released)


@add_consequence("Nothing was sent.")
def _check_terms(terms: Terms, epsilon: Decimal) -> None:
    """Refuse what the market would refuse after the listing was made, and leave a draft behind."""
    shown, budget = format_epsilon(epsilon), terms.budget
    if not prices_from_json(terms.prices).reaches(epsilon):
        raise PriceError("the file is at epsilon {epsilon}, and the prices do not reach it.", epsilon=shown)
    if budget is not None and epsilon > as_epsilon(budget):
        raise ArgumentError(
            "the file is at epsilon {epsilon}, which is more than the budget {budget}.", epsilon=shown, budget=budget
        )


def _delivered(market: MarketClient, listing: str, place: Path, column: str) -> Content:
    with waiting("delivering", place.stat().st_size) as moved:
        return market.deliver(listing, place, column=column, moved=moved)


def deliver(
    listing: Listing,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The relaxed release, a Parquet file.")],
    server: ServerOption,
    prices: PricesOption = None,
    formula: FormulaOption = None,
    levels: Annotated[
        str | None, typer.Option(help="More levels above those delivered, like 1.5,2  [default: round ones]")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The released column, where the file has several.")] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Deliver a relaxed release, which authorises sales up to its epsilon. It cannot be taken back.

    Prices may be extended on the way, and levels stated with them; they are sent first. What is on sale already stays
    as it is.
    """
    asked, more = prices_of(prices, formula), levels_of(levels)
    if more is not None and asked is None:
        with add_consequence("Nothing was sent."):
            raise ArgumentError("--levels goes with the prices that reach them: --prices or --formula.")
    market = open_market(server, token_file, ca_file)
    with sendable(file, column) as (place, released, _):
        if asked is not None:
            market.extend_prices(listing, asked, more)
        with afterwards("The prices were extended.") if asked is not None else nullcontext():
            found = _delivered(market, listing, place, released)
    say(found, as_json, lambda: [seller_text(found)])


def sales(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """Show what you sell: levels, income, and the privacy loss against buyers and against the platform."""
    found = open_market(server, token_file, ca_file).sales()
    say(found, as_json, lambda: sales_tables(found))


def budget(
    listing: Listing,
    epsilon: Annotated[str, typer.Argument(metavar="EPSILON", help="The new budget; it must be larger.")],
    server: ServerOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Raise the largest epsilon that you will ever deliver. It cannot be lowered again."""
    found = open_market(server, token_file, ca_file).raise_budget(listing, level(epsilon))
    say(found, as_json, lambda: [seller_text(found)])


def close(
    listing: Listing,
    server: ServerOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Sell no more of your listing, or (operator) of any: a pool, a seller's release. What was bought stays bought.

    It is for good. The path stays taken, unless nothing was ever sold of it: then it may be listed again.
    """
    market = open_market(server, token_file, ca_file)
    operator = market.me().get("role") == "operator"
    found = market.close_any(listing) if operator else market.close(listing)
    say(found, as_json, lambda: [f"{text(listing)} is closed: nothing more is sold, and what was bought stays bought"])


_LONGEST_ANSWER = 10_000


def join(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="Name of the pool.", show_default=False)],
    epsilon: Annotated[
        str,
        typer.Option(help="Your limit, one of the pool's levels: nothing above it is ever sold.", show_default=False),
    ],
    answer_file: Annotated[Path, typer.Option(help="Private file with your answer.", show_default=False)],
    server: ServerOption,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    minimum: Annotated[int, typer.Option(help="Be in no sale that pays you less.", min=0)] = 0,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Join a pool with one report, or raise your limit there with the same key and the same answer.

    Your answer and your key stay on this machine; keep the key as long as you may want to raise your limit. Choose the
    limit before you think of the answer: a limit that depends on the answer tells of it.
    """
    asked = as_epsilon(epsilon)
    secret = load_key(key, key_command)
    market = open_market(server, token_file, ca_file)
    with understood():
        role = market.me()["role"]
    if role != "seller":
        with add_consequence("Nothing was sent."):
            raise ArgumentError(
                "a pool is joined with a seller's token, and this one is of a {role}.", role=tidy(str(role))
            )
    joined = Pool.of(market.listing(pool), pool)
    answer = joined.answer(_read(answer_file))
    body: dict[str, Any] = {**joined.report(answer, key=secret, epsilon=asked), "minimum": minimum}
    remember(joined, answer, key=secret)
    with afterwards("If you ask again, use the same key and the same answer."):
        found = market.report(pool, body)
    limit = body["level"]["epsilon"]
    words = (
        f"joined {text(pool)} at epsilon {limit}, for at least {credits_text(minimum)} in each sale\n"
        f"all that was sent of your answer: {text(body['report'])}"
    )
    say(found, as_json, lambda: [words])


@add_consequence("Nothing was sent.")
def _read(file: Path) -> str:
    try:
        content = read_private_file(file, _LONGEST_ANSWER)
    except PrivateFileError as problem:
        raise ArgumentError("the answer file {path!r} {why}.", path=str(file), why=problem) from None
    if content is None:
        raise ArgumentError("there is no answer file {path!r}.", path=str(file))
    return content.decode("utf-8", "replace")
