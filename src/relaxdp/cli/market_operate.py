"""`relaxdp market account|accounts|credit|pool|books|refund|statement`: the operator, and everybody's account."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from relaxdp.cli.campaign_options import ServerOption, TokenFile
from relaxdp.cli.campaign_tables import text
from relaxdp.cli.market_options import (
    CollectedOption,
    DescriptionOption,
    FormulaOption,
    LevelsOption,
    LicenceOption,
    MethodOption,
    Number,
    PricesOption,
    SourceOption,
    afterwards,
    details_of,
    level,
    levels_of,
    needed_prices,
    open_market,
    say,
)
from relaxdp.cli.market_tables import accounts_table, credits_text, heading, levels_text, statement_table
from relaxdp.cli.options import CaFile, JsonOption, parse_mechanism, read_values_file
from relaxdp.errors import ArgumentError, add_consequence
from relaxdp.sampling.private_file import PrivateFileError, write_private_file
from relaxdp.server_errors import ServerAnswerError, TokenError

ReasonOption = Annotated[str, typer.Option("--reason", help="Why: it is recorded.", show_default=False)]
AccountName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.", show_default=False)]


class RoleChoice(StrEnum):
    """What an account may do."""

    SELLER = "seller"
    BUYER = "buyer"


def account(
    name: AccountName,
    server: ServerOption,
    role: Annotated[RoleChoice | None, typer.Option(help="What the account may do.")] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Make a new token for an account that exists; the old one ends.")
    ] = False,
    token_out: Annotated[
        Path | None, typer.Option(help="Write the token to this private file instead of showing it.")
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Make an account and its token, which is shown this once (operator)."""
    if (role is None) != renew:
        with add_consequence("Nothing was done."):
            raise ArgumentError("a new account needs a --role, and a token is renewed without one.")
    market = open_market(server, token_file, ca_file)
    if token_out is not None:  # the place is taken before the token exists, which could not be asked for again
        with add_consequence("Nothing was done."):
            _write_token(token_out, "", replace=False)
    try:
        made = market.renew_token(name) if role is None else market.create_account(name, role.value)
        token = _taken(made)
    except BaseException:
        if token_out is not None:
            token_out.unlink(missing_ok=True)
        raise
    if token_out is not None:
        with afterwards(f"The account was made; `relaxdp market account {name} --renew` makes another token."):
            _write_token(token_out, f"{token}\n", replace=True)
        say(made, as_json, lambda: [f"{_account(made)}; its token is in {escape(str(token_out))}"])
        return
    say(
        {**made, "token": token}, as_json, lambda: [_account(made), f"token: {escape(token)}", "It is shown this once."]
    )


def accounts(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """List all accounts (operator)."""
    found = open_market(server, token_file, ca_file).accounts()
    say({"accounts": found}, as_json, lambda: [accounts_table(found)])


def credit(
    name: AccountName,
    amount: Annotated[int, typer.Argument(metavar="AMOUNT", help="How many new credits.", min=1)],
    server: ServerOption,
    reason: ReasonOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Give an account new credits (operator)."""
    found = open_market(server, token_file, ca_file).credit(name, amount, reason)
    say(found, as_json, lambda: [_account(found)])


def pool(
    server: ServerOption,
    title: Annotated[str, typer.Option(help="What it is about, as everybody reads it first.", show_default=False)],
    values: Annotated[str | None, typer.Option(help="Values to choose from, like a,b,c.")] = None,
    values_file: Annotated[Path | None, typer.Option(help="File of values, one a line.")] = None,
    number_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="Answers are numbers from LOW to HIGH.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="How answers become reports  [default: categorical, or numeric]")
    ] = None,
    prices: PricesOption = None,
    formula: FormulaOption = None,
    levels: LevelsOption = None,
    question: Annotated[
        str | None, typer.Option(help="What is asked; members read it after their limit  [default: the title]")
    ] = None,
    suggested: Annotated[
        str | None, typer.Option(help="A limit that you suggest to members, one of the levels.")
    ] = None,
    description: DescriptionOption = None,
    source: SourceOption = None,
    collected: CollectedOption = None,
    method: MethodOption = None,
    licence: LicenceOption = None,
    name: Annotated[str | None, typer.Option("--id", help="Name of the pool  [default: a random one]")] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Make a pool, which single sellers join with one report each; the price is for each object (operator)."""
    answers = _encoding(values, values_file, number_range, encoding)
    asked, chosen = needed_prices(prices, formula), levels_of(levels)
    said: dict[str, Any] = {
        "question": question,
        "suggested": None if suggested is None else level(suggested),
        "details": details_of(
            description=description, source=source, collected=collected, method=method, licence=licence
        ),
    }
    market = open_market(server, token_file, ca_file)
    made = market.create_pool(title, answers, asked, levels=chosen, name=name, **said)
    say(made, as_json, lambda: [heading(made), levels_text(made), _invited(made)])


def books(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """Say whether the books balance (operator)."""
    found = open_market(server, token_file, ca_file).books()
    say(found, as_json, lambda: [_books(found)])


def refund(
    number: Number,
    server: ServerOption,
    reason: ReasonOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Give a buyer's credits back (seller or operator). What was learned stays learned: the level counts as sold."""
    found = open_market(server, token_file, ca_file).refund(number, reason)
    what = "The level still counts as sold: privacy does not come back."
    say(found, as_json, lambda: [f"purchase {int(found['number'])} is {text(found['state'])}. {what}"])


def statement(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """Show the entries of your account, the newest first."""
    market = open_market(server, token_file, ca_file)
    entries = market.statement()
    say({"entries": entries}, as_json, lambda: [_account(market.me()), statement_table(entries)])


def _invited(made: dict[str, Any]) -> str:
    return f"sellers join it: relaxdp market join {text(made['id'])} --key KEY --epsilon E --answer-file FILE"


def _taken(made: dict[str, Any]) -> str:
    """Take the token out of an answer; one that cannot be used as a token is none."""
    token = made.pop("token", None)
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise ServerAnswerError("the server's answer has no token in it. Is the address right?")
    return token


@add_consequence("Nothing was sent.")
def _encoding(
    values: str | None, file: Path | None, ends: tuple[float, float] | None, written: str | None
) -> dict[str, Any]:
    if sum(each is not None for each in (values, file, ends)) != 1:
        raise ArgumentError("say what can be answered: one of --values, --values-file and --range.")
    name, options = parse_mechanism(written or ("categorical" if ends is None else "numeric"))
    if ends is not None:
        return {"name": name, "options": options, "range": list(ends)}
    declared = read_values_file(file) if file is not None else str(values).split(",")
    return {"name": name, "options": options, "values": declared}


def _account(found: dict[str, Any]) -> str:
    return f"{text(found['name'])} ({text(found['role'])}): {credits_text(found['balance'])}"


def _books(found: dict[str, Any]) -> str:
    balanced = "balance" if found["balanced"] is True else "do NOT balance"
    return (
        f"the books {balanced}: {int(found['transactions']):,} transactions, {credits_text(found['credits'])} in "
        "circulation"
    )


def _write_token(file: Path, content: str, *, replace: bool) -> None:
    try:
        write_private_file(file, content.encode(), replace=replace)
    except FileExistsError:
        raise TokenError("{path!r} exists already.", path=str(file)) from None
    except PrivateFileError as problem:
        raise TokenError("the token file {path!r} {why}.", path=str(file), why=problem) from None
