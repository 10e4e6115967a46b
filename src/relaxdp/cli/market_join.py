"""`relaxdp market join`: a single seller's answer becomes a report on this machine, and only the report leaves."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.market_options import ServerOption, TokenFile, afterwards, open_market, say
from relaxdp.cli.market_tables import credits_text, text
from relaxdp.cli.options import CaFile, JsonOption, KeyCommand, KeyOption, key_of
from relaxdp.device.client import tidy
from relaxdp.draw.private_file import PrivateFileError, read_private
from relaxdp.errors import OptionError, refusing
from relaxdp.law.epsilon import as_epsilon
from relaxdp.market.client import understood
from relaxdp.market.client_pool import Pool, remember

_LONGEST_ANSWER = 10_000
_MOST_SHOWN = 20


def join(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="Name of the pool.", show_default=False)],
    epsilon: Annotated[
        str,
        typer.Option(help="Your limit, one of the pool's levels: nothing above it is ever sold.", show_default=False),
    ],
    server: ServerOption,
    key: KeyOption = None,
    key_command: KeyCommand = None,
    minimum: Annotated[int, typer.Option(help="Be in no sale that pays you less.", min=0)] = 0,
    answer_file: Annotated[
        Path | None, typer.Option(help="Private file with your answer  [default: you are asked for it]")
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Join a pool with one report, or raise your limit there with the same key and the same answer.

    Your answer and your key stay on this machine; keep the key as long as you may want to raise your limit. Choose the
    limit before you think of the answer: a limit that depends on the answer tells of it.
    """
    asked = as_epsilon(epsilon)
    secret = key_of(key, key_command)
    market = open_market(server, token_file, ca_file)
    with understood():
        role = market.me()["role"]
    if role != "seller":
        with refusing("Nothing was sent."):
            raise OptionError(
                "a pool is joined with a seller's token, and this one is of a {role}.", role=tidy(str(role))
            )
    joined = Pool.of(market.listing(pool), pool)
    answer = joined.answer(_asked(joined) if answer_file is None else _read(answer_file))
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


@refusing("Nothing was sent.")
def _asked(pool: Pool) -> str:
    """Ask for the answer, without showing it while it is typed."""
    if not sys.stdin.isatty():
        raise OptionError("there is no terminal to ask for the answer: name a private file with --answer-file.")
    choices = pool.choices
    shown = f" ({', '.join(choices)})" if 0 < len(choices) <= _MOST_SHOWN else ""
    return getpass.getpass(f"{tidy(pool.title)}{tidy(shown)}\nyour answer, which stays here and is not shown: ")


@refusing("Nothing was sent.")
def _read(file: Path) -> str:
    try:
        content = read_private(file, _LONGEST_ANSWER)
    except PrivateFileError as problem:
        raise OptionError("the answer file {path!r} {why}.", path=str(file), why=problem) from None
    if content is None:
        raise OptionError("there is no answer file {path!r}.", path=str(file))
    return content.decode("utf-8", "replace")
