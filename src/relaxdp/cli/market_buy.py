"""`relaxdp market buy|upgrade|owned|download`: what a buyer does."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from relaxdp.cli.campaign_options import ServerOption, TokenFile
from relaxdp.cli.campaign_tables import text
from relaxdp.cli.market_options import Listing, Number, afterwards, level, open_market, say, waiting
from relaxdp.cli.market_receipt import receipt_beside, save_receipt
from relaxdp.cli.market_tables import credits_text, is_enough, purchases_table, tells
from relaxdp.cli.options import CaFile, JsonOption
from relaxdp.errors import TableFileError, add_consequence
from relaxdp.market.client import MarketClient, understood
from relaxdp.tables.atomic_files import reject_existing

EpsilonOption = Annotated[str, typer.Option("--epsilon", help="The level to buy.", show_default=False)]
Most = Annotated[int | None, typer.Option("--most", help="Refuse to pay more credits than these.", min=0)]
Out = Annotated[
    Path | None, typer.Argument(metavar="OUT", help="Where the Parquet file goes; its receipt goes beside it.")
]


def buy(
    listing: Listing,
    epsilon: EpsilonOption,
    server: ServerOption,
    out: Out = None,
    most: Most = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Buy a level of a listing. Buying the same one again costs nothing."""
    market = open_market(server, token_file, ca_file)
    _trade(market, "bought", listing, level(epsilon), most, out, as_json)


def upgrade(
    listing: Listing,
    epsilon: EpsilonOption,
    server: ServerOption,
    out: Out = None,
    most: Most = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Buy a higher level of what you own, for the difference in price."""
    market = open_market(server, token_file, ca_file)
    _trade(market, "upgraded", listing, level(epsilon), most, out, as_json)


def owned(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """Show what you bought, and how far it can be upgraded."""
    found = open_market(server, token_file, ca_file).purchases()
    say(found, as_json, lambda: [purchases_table(found)])


def download(
    number: Number,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where the Parquet file goes.")],
    server: ServerOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Download what was bought, check it against its receipt, and write the receipt beside it."""
    market = open_market(server, token_file, ca_file)
    with add_consequence("Nothing was asked for."):
        _check_free(out)
    files = _fetch(market, number, out)
    say({"number": number, **files}, as_json, lambda: [_fetched(out)])


def _trade(
    market: MarketClient, verb: str, listing: str, epsilon: str, most: int | None, out: Path | None, as_json: bool
) -> None:
    if out is not None:
        with add_consequence("Nothing was bought."):
            _check_free(out)
    with waiting("the market draws and sells"):
        ask = market.buy if verb == "bought" else market.upgrade
        found = ask(listing, epsilon, most)
    files: dict[str, str] = {}
    with understood():
        number, words = int(found["number"]), _deal(verb, found)
    if out is not None:
        again = f"`relaxdp market download {number} {shlex.quote(str(out))}`"
        with afterwards(f"Purchase {number} is made and yours: {again} fetches it."):
            files = _fetch(market, number, out)
    else:
        words += f"\nnext: relaxdp market download {number} OUT.parquet"
    say(
        {**found, **files}, as_json, lambda: [words, *([] if out is None else [_fetched(out, enough=is_enough(found))])]
    )


def _deal(verb: str, found: dict[str, Any]) -> str:
    to = "to" if verb == "upgraded" else "at"
    what = f"{text(found['listing'])} {to if found['new'] else 'at'} epsilon {text(found['epsilon'])}"
    if found["new"]:
        said = f"{verb} {what} for {credits_text(found['paid'])} (purchase {int(found['number'])})"
    else:
        said = f"{what} is yours already (purchase {int(found['number'])}); nothing was charged"
    return f"{said}\n{tells(found)}"


def _fetch(market: MarketClient, number: int, out: Path) -> dict[str, str]:
    with waiting("downloading") as moved:
        signed = market.download(number, out, moved=moved)
    beside = receipt_beside(out)
    save_receipt(signed, beside)
    return {"file": str(out), "receipt": str(beside)}


def _fetched(out: Path, *, enough: bool = True) -> str:
    following = f"; next: relaxdp estimate {shlex.quote(str(out))}" if enough else ""
    return escape(f"wrote {out} and its receipt {receipt_beside(out).name}{following}")


def _check_free(out: Path) -> None:
    """Refuse places that cannot be written to before anything is paid."""
    for place in (out, receipt_beside(out)):
        reject_existing(place)
    if not out.absolute().parent.is_dir():
        raise TableFileError("the folder of {path!r} does not exist.", path=str(out))
    if out.suffix.lower() not in (".parquet", ".pq"):
        raise TableFileError("{path!r}: what is bought is a Parquet file, so its name ends in .parquet.", path=str(out))
