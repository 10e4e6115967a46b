"""`relaxdp market`: sell a release at several levels, order levels, and verify what was delivered."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from relaxdp.cli.campaign_options import ServerOption, TokenFile, client_of, say
from relaxdp.cli.main import CommandGroup
from relaxdp.cli.market_tables import (
    describe_approved,
    describe_listing,
    describe_order,
    describe_published,
    describe_sales,
    make_listings_table,
    make_orders_table,
)
from relaxdp.cli.options import (
    CaFile,
    JsonOption,
    KeyCommand,
    KeyOption,
    VaultOption,
    load_key,
    locate_vault,
    parse_mechanism,
)
from relaxdp.cli.terminal import print_done, print_note, show_progress
from relaxdp.device.address import Server
from relaxdp.device.operator import VARIABLE, operator_token
from relaxdp.errors import ArgumentError, TableFileError, add_consequence
from relaxdp.market.client import MarketClient, understood
from relaxdp.market.receipts import MAX_LETTERS, SignedReceipt, parse_receipt, verify_file, verify_receipt
from relaxdp.sampling.private_file import PrivateFileError, read_private_file, write_private_file
from relaxdp.server_errors import LevelFileError
from relaxdp.tables.atomic_files import make_unfinished_file, move_to_target
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

app = CommandGroup(
    help="Sell a release at several levels, and order levels of others.\n\n"
    "Example: relaxdp market publish patients --levels 0.1=10,0.5=60,1=160 --currency EUR"
)

Listing = Annotated[str, typer.Argument(metavar="LISTING", help="Name of the listing.", show_default=False)]
OrderId = Annotated[str, typer.Argument(metavar="ORDER", help="The order, such as 3f9a2c71d0.", show_default=False)]
EpsilonOption = Annotated[str, typer.Option("--epsilon", help="The level, such as 0.5.", show_default=False)]
LevelsOption = Annotated[
    str,
    typer.Option(
        "--levels", metavar="LEVELS", help="Levels and their prices, like 0.1=10,0.5=60,1=160.", show_default=False
    ),
]
CurrencyOption = Annotated[str, typer.Option(help="The currency of the prices, such as EUR.", show_default=False)]
TitleOption = Annotated[str | None, typer.Option(help="The title that buyers read  [default: release and column]")]
AboutOption = Annotated[str | None, typer.Option(help="Source, time and method of the data, and its licence.")]
ApprovalOption = Annotated[
    Literal["seller", "automatic"] | None,
    typer.Option(help="Approve each order yourself, or let the market approve orders at once."),
]


Answer = tuple[Any, Callable[[], list[Any]]]
"""What a command returns: the answer for programs, and a function that returns its sentences and tables."""


def _add_command(
    name: str, consequence: str = "", *, needs_token: bool = True
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Add a command whose first argument is the market. It gets the options of a connection, and prints its answer."""

    def add(command: Callable[..., Answer]) -> Callable[..., Answer]:
        @wraps(command)
        def run(*, server: str, token_file: Path | None, ca_file: Path | None, as_json: bool, **arguments: Any) -> None:
            with add_consequence(consequence):
                market = open_market(server, token_file, ca_file, needs_token=needs_token)
                answer, words = command(market, **arguments)
            say(answer, as_json, words, understood)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        added = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for option, kind, default in _CONNECTION
        ]
        wrapped: Any = run
        wrapped.__signature__ = inspect.Signature([*own, *added])
        wrapped.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
        app.command(name)(wrapped)
        return command

    return add


_CONNECTION: tuple[tuple[str, Any, Any], ...] = (
    ("server", ServerOption, inspect.Parameter.empty),
    ("token_file", TokenFile, None),
    ("ca_file", CaFile, None),
    ("as_json", JsonOption, False),
)


def open_market(
    server: str, token_file: Path | None, ca_file: Path | None, *, needs_token: bool = True
) -> MarketClient:
    """Return the market at an address, with the token of the caller."""
    has_token = needs_token or token_file is not None or bool(os.environ.get(VARIABLE))
    token = operator_token(token_file, os.environ) if has_token else None
    return MarketClient(Server.parse(server), token, client_of(ca_file))


def parse_levels(text: str) -> dict[str, str]:
    """Return the prices of levels that are written like 0.1=10,0.5=60.

    >>> parse_levels("0.1=10, 0.50=60")
    {'0.1': '10', '0.5': '60'}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        epsilon, mark, price = part.partition("=")
        if not mark or not price.strip():
            raise ArgumentError(
                "The level {part!r} has no price.", hint="Write levels as --levels 0.1=10,0.5=60,1=160.", part=part
            )
        level = format_epsilon(as_epsilon(epsilon.strip()))
        if level in found:
            raise ArgumentError("The level {level} is there twice.", hint="Name each level once.", level=level)
        found[level] = price.strip()
    return found


@_add_command("publish", "Nothing was published.")
def publish(
    market: MarketClient,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release in the vault.", show_default=False)],
    levels: LevelsOption,
    currency: CurrencyOption,
    column: Annotated[str | None, typer.Option(help="The released column, if there are several.")] = None,
    limits: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Pass-through column with the limit of each row: the row carries no larger epsilon."
        ),
    ] = None,
    listing: Annotated[str | None, typer.Option(help="Name of the listing  [default: NAME]")] = None,
    title: TitleOption = None,
    about: AboutOption = None,
    approval: ApprovalOption = None,
    vault: VaultOption = None,
) -> Answer:
    """Make and publish one file for each level. The vault is charged for the largest level.

    A published level is never replaced. To add levels later, run the same command with more of them. Title, text and
    approval then stay as they are, unless you state them. At first you approve each order.

    Example: relaxdp market publish patients --levels 0.1=10,0.5=60,1=160 --currency EUR
    """
    from relaxdp.market.publish import Terms, publish  # noqa: PLC0415 (buyers need no vault)
    from relaxdp.tables.vault import Vault  # noqa: PLC0415

    prices = parse_levels(levels)
    terms = Terms(currency=currency, title=title, about=about, approval=approval)
    opened = Vault(locate_vault(vault))
    with show_progress("publishing", "levels") as progress:
        done = 0

        def report(_: str) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, len(prices))

        found = publish(
            opened, name, market, prices, terms, column=column, limits=limits, listing=listing, progress=report
        )
    costs = {"cost": format_epsilon(found.cost) if found.cost else "0", "vault": opened.path.name}
    answer = {"listing": found.listing, "new": list(found.new), **costs}
    return answer, lambda: describe_published(found, opened.path.name)


@_add_command("list", needs_token=False)
def list_(
    market: MarketClient,
    listing: Annotated[
        str | None, typer.Argument(metavar="LISTING", help="Show the levels of this listing.", show_default=False)
    ] = None,
) -> Answer:
    """List what is for sale, or the levels of one listing with prices and margins of error."""
    if listing is not None:
        found = market.listing(listing)
        return found, lambda: describe_listing(found)
    every, key = market.listings(), market.public_key().hex()
    answer = {"listings": every, "public_key": key}
    return answer, lambda: [make_listings_table(every), f"public key of the receipts: {key}"]


@_add_command("order", "Nothing was ordered.")
def order(market: MarketClient, listing: Listing, epsilon: EpsilonOption) -> Answer:
    """Request a level. The seller approves it, unless the listing approves automatically.

    Example: relaxdp market order patients --epsilon 0.5
    """
    return _order(market, listing, epsilon, upgrade=False)


@_add_command("upgrade", "Nothing was ordered.")
def upgrade(market: MarketClient, listing: Listing, epsilon: EpsilonOption) -> Answer:
    """Request a higher level of a listing for the difference in price."""
    return _order(market, listing, epsilon, upgrade=True)


def _order(market: MarketClient, listing: str, epsilon: str, *, upgrade: bool) -> Answer:
    found = market.order(listing, format_epsilon(as_epsilon(epsilon)), upgrade=upgrade)
    return found, lambda: [describe_order(found)]


@_add_command("orders")
def orders(market: MarketClient) -> Answer:
    """List your orders, or the orders of your listings."""
    found = market.orders()
    return {"orders": found}, lambda: [make_orders_table(found)]


@_add_command("approve", "Nothing was approved.")
def approve(market: MarketClient, order_id: OrderId) -> Answer:
    """Approve an order of your listing: the market signs a receipt, and the buyer can download."""
    found = market.approve(order_id)
    return found, lambda: [describe_approved(found)]


@_add_command("withdraw", "Nothing was withdrawn.")
def withdraw(market: MarketClient, order_id: OrderId) -> Answer:
    """Withdraw a request that is not approved yet, as its buyer or its seller."""
    found = market.withdraw(order_id)
    return found, lambda: [describe_order(found)]


@_add_command("download", "Nothing was downloaded.")
def download(
    market: MarketClient,
    order_id: OrderId,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="New Parquet file.", show_default=False)],
) -> Answer:
    """Download an approved order, check it against its receipt, and keep the receipt next to it."""
    if output.suffix.lower() not in (".parquet", ".pq"):
        raise TableFileError(
            "{path!r} does not end in .parquet.", hint="Name a file such as patients.parquet.", path=str(output)
        )
    receipt_file = get_receipt_path(output)
    if receipt_file.exists():
        raise TableFileError("{path!r} exists.", hint="Choose another name, or move the file.", path=str(receipt_file))
    signed = market.download(order_id, output)
    _write_receipt(signed, receipt_file)
    answer = {"order": order_id, "file": str(output), "receipt": str(receipt_file)}
    text = f"Downloaded {signed.receipt.rows:,} rows to {output}. The receipt is {receipt_file.name}."
    return answer, lambda: [text, f"next: relaxdp estimate {output}"]


@app.command("verify")
@add_consequence("Nothing was verified.")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The downloaded Parquet file.", show_default=False)],
    receipt: Annotated[Path | None, typer.Option(help="The receipt of the file  [default: FILE.receipt.json]")] = None,
    public_key: Annotated[
        str | None, typer.Option(help="Public key of the market, as `relaxdp market list` shows it. Needs no network.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option("--server", envvar="RELAXDP_SERVER", help="Without --public-key: ask this market for its key."),
    ] = None,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Also send the receipt to a market that lost the order when it was restored."),
    ] = False,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Verify that the market signed a receipt for exactly the ids and reports of a downloaded file.

    Example: relaxdp market verify patients.parquet --server https://market.example
    """
    if public_key is None and server is None:
        raise ArgumentError(
            "The public key of the market is missing.",
            hint="Pass --public-key as `relaxdp market list` printed it, or --server to ask the market.",
        )
    place = get_receipt_path(file) if receipt is None else receipt
    try:
        signed = parse_receipt(place.read_bytes()[: MAX_LETTERS + 1])
    except OSError as problem:
        raise TableFileError(
            "The receipt {path!r} cannot be read: {why}.",
            hint="Name it: --receipt FILE.",
            path=str(place),
            why=problem.strerror,
        ) from None
    key = _parse_public_key(public_key) if public_key else _ask_public_key(str(server), ca_file)
    verified = verify_receipt(signed, key)
    try:
        verify_file(verified, file)
    except LevelFileError as problem:  # its own hint is for sellers
        problem.hint_template = "Pass the file as it was downloaded with this receipt."
        raise
    if restore:
        open_market(_require_server(server), token_file, ca_file).restore(signed)
    text = (
        f"Valid: the market {verified.market} delivered these {verified.rows:,} rows: {verified.listing} at epsilon "
        f"{verified.epsilon} to {verified.buyer}, for {verified.due} {verified.currency} (order {verified.order})."
    )
    answer = {**signed.to_json(), "valid": True}
    say(answer, as_json, lambda: [text, *(["The market has this order again."] if restore else [])], understood)


@_add_command("sales")
def sales(market: MarketClient) -> Answer:
    """Show the largest level sold of each of your columns, and their sum: the privacy loss towards all buyers."""
    found = market.sales()
    return found, lambda: describe_sales(found)


@app.command("token")
@add_consequence("No token was made.")
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the seller or buyer.", show_default=False)],
    role: Annotated[Literal["seller", "buyer"], typer.Option(help="The role.", show_default=False)],
    server: ServerOption,
    renew: Annotated[bool, typer.Option("--renew", help="Replace the token of an existing seller or buyer.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the token to this private file.")] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
) -> None:
    """Make the token of a seller or a buyer (operator). It is shown once.

    Example: relaxdp market token acme --role buyer --output acme.token
    """
    if output is not None and output.exists():
        raise TableFileError("{path!r} exists.", hint="Choose another --output.", path=str(output))
    made = open_market(server, token_file, ca_file).create_token(name, role, renew=renew)
    if output is None:
        print_note(f"The token of the {role} {name} is shown once:")
        typer.echo(made)
        return
    try:
        write_private_file(output, f"{made}\n".encode(), replace=False)
    except (PrivateFileError, FileExistsError):
        raise TableFileError(
            "{path!r} cannot be written. The token was made and is lost.",
            hint="Make another one: relaxdp market token {name} --role {role} --renew.",
            path=str(output),
            name=name,
            role=role,
        ) from None
    print_done(f"The token of the {role} {name} is in {output}.")


@_add_command("pool", "Nothing was listed.")
def pool(
    market: MarketClient,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the pool.", show_default=False)],
    levels: LevelsOption,
    currency: CurrencyOption,
    title: Annotated[str, typer.Option(help="The question, as members and buyers read it.", show_default=False)],
    values: Annotated[str | None, typer.Option(help="The possible answers, like no,yes.")] = None,
    value_range: Annotated[
        str | None, typer.Option("--range", metavar="LOW..HIGH", help="Or the range of a number, like 0..120.")
    ] = None,
    mechanism: Annotated[str, typer.Option(help="The mechanism, such as unary-optimised. auto chooses one.")] = "auto",
    about: AboutOption = None,
    approval: ApprovalOption = "automatic",
) -> Answer:
    """Create a pool, whose members sell one report each up to their own limit (operator)."""
    if (values is None) == (value_range is None):
        raise ArgumentError("A pool needs --values or --range.", hint="Pass one of them, such as --values no,yes.")
    chosen, options = parse_mechanism(mechanism) if mechanism != "auto" else ("auto", {})
    encoding: dict[str, Any] = {"name": chosen, "options": options}
    if values is not None:
        encoding["values"] = [each.strip() for each in values.split(",")]
    else:
        encoding["range"] = _parse_range(str(value_range))
    found = market.create_pool(
        name, title=title, about=about or "", currency=currency, prices=parse_levels(levels), approval=approval,
        encoding=encoding,
    )  # fmt: skip
    return found, lambda: describe_listing(found)


@_add_command("join", "Nothing was sent.")
def join(
    market: MarketClient,
    pool: Annotated[str, typer.Argument(metavar="POOL", help="Name of the pool.", show_default=False)],
    limit: Annotated[
        str, typer.Option(metavar="NUMBER", help="Your limit: no report above this level is sent.", show_default=False)
    ],
    answer_file: Annotated[Path, typer.Option(help="Private file with your answer.", show_default=False)],
    key: KeyOption = None,
    key_command: KeyCommand = None,
) -> Answer:
    """Join a pool with one answer. To raise your limit, run it again with the same key and answer.

    Your answer and your key stay on this machine. Choose the limit before you think of the answer.
    """
    from relaxdp.market.pool_member import join_pool  # noqa: PLC0415 (few commands need it)

    secret = load_key(key, key_command)
    found = join_pool(market, pool, _read_answer(answer_file), key=secret, limit=limit)
    text = f"Joined {pool} with the limit {format_epsilon(as_epsilon(limit))}. Use the same key and answer to raise it."
    return found, lambda: [text]


def get_receipt_path(file: Path) -> Path:
    """Return where the receipt of a downloaded file is.

    >>> get_receipt_path(Path("a.parquet")).name
    'a.parquet.receipt.json'
    """
    return file.with_name(f"{file.name}.receipt.json")


def _write_receipt(signed: SignedReceipt, target: Path) -> None:
    try:
        with make_unfinished_file(target) as place:
            place.write_text(json.dumps(signed.to_json(), indent=2) + "\n", "utf-8")
            move_to_target(place, target)
    except OSError as problem:
        if isinstance(problem, TableFileError):
            raise
        raise TableFileError(
            "{path!r} cannot be written: {why}.", hint="Free some space.", path=str(target), why=problem.strerror
        ) from None


def _parse_public_key(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise ArgumentError(
            "The public key of a market has 64 hexadecimal digits.", hint="Copy it from `relaxdp market list`."
        )
    return found


def _ask_public_key(server: str, ca_file: Path | None) -> bytes:
    return MarketClient(Server.parse(server), None, client_of(ca_file)).public_key()


def _require_server(server: str | None) -> str:
    if server is None:
        raise ArgumentError("--restore needs the market.", hint="Name it: --server URL.")
    return server


def _parse_range(text: str) -> list[float]:
    low, mark, high = text.partition("..")
    try:
        if mark:
            return [float(low), float(high)]
    except ValueError:
        pass
    raise ArgumentError("The range {text!r} is not two numbers.", hint="Write it like --range 0..120.", text=text)


def _read_answer(file: Path) -> str:
    try:
        content = read_private_file(file, 10_000)
    except PrivateFileError as problem:
        raise ArgumentError(
            "The answer file {path!r} {why}.", hint="Make it private: chmod 600 FILE.", path=str(file), why=problem
        ) from None
    if content is None:
        raise ArgumentError(
            "There is no answer file {path!r}.", hint="Write your answer into a private file first.", path=str(file)
        )
    return content.decode("utf-8", "replace")
