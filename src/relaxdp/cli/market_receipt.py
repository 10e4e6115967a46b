"""`relaxdp market receipt`: what was bought, proven by the market's signature; checked here, not believed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from relaxdp.cli.campaign_options import TokenFile
from relaxdp.cli.market_options import as_nobody, open_market, say
from relaxdp.cli.market_tables import receipt_table
from relaxdp.cli.options import CaFile, JsonOption
from relaxdp.errors import ArgumentError, TableFileError, add_consequence
from relaxdp.market.receipts import MOST_LETTERS, Receipt, VerifiableReceipt, check_data, read_signed, verify
from relaxdp.tables.atomic_files import make_unfinished_file, move_to_target

_HEX = re.compile("[0-9a-fA-F]{64}")


def receipt(
    number: Annotated[
        int | None, typer.Argument(metavar="NUMBER", help="Number of a purchase, whose receipt is shown.", min=1)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the signed receipt to this file, as JSON.")
    ] = None,
    check: Annotated[Path | None, typer.Option(help="Check the receipt in this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Check that this file is the one that was bought.")] = None,
    public_key: Annotated[
        str | None, typer.Option(help="The market's public key, 64 hexadecimal digits  [default: the market is asked]")
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", envvar="RELAXDP_SERVER", help="Address of the server.")
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Show the receipt of a purchase and check its signature, or check one that lies in a file.

    With a --public-key that you got from the market before, a file is checked without asking anybody.
    """
    with add_consequence("Nothing was checked."):
        if (number is None) == (check is None):
            raise ArgumentError("say which receipt: the NUMBER of a purchase, or --check FILE.")
        if number is not None and (data is not None or public_key is not None):
            raise ArgumentError("--data and --public-key go with --check FILE.")
        if number is None and out is not None:
            raise ArgumentError("--out goes with the NUMBER of a purchase.")
    if number is not None:
        signed = open_market(_needed(server), token_file, ca_file).receipt(number)
        if out is not None:
            save_receipt(signed, out)
    else:
        assert check is not None  # noqa: S101 (one of the two is there)
        signed = _read(check)
        verify(signed, _key(public_key, server, ca_file))
        if data is not None:
            check_data(signed.receipt, data)
    say(signed.to_json(), as_json, lambda: [receipt_table(signed.receipt), _verdict(signed.receipt, data, out)])


def receipt_beside(file: Path) -> Path:
    """Return where the receipt of a file that was bought lies."""
    return file.with_name(f"{file.name}.receipt.json")


@add_consequence("Nothing was written.")
def save_receipt(signed: VerifiableReceipt, target: Path) -> None:
    """Write a receipt to a file, which appears when it is whole and is never overwritten."""
    try:
        with make_unfinished_file(target) as place:
            place.write_text(json.dumps(signed.to_json(), indent=2) + "\n", "utf-8")
            move_to_target(place, target)
    except TableFileError:
        raise
    except OSError as problem:
        raise TableFileError("{path!r} cannot be written: {why}.", path=str(target), why=problem.strerror) from None


@add_consequence("Nothing was checked.")
def _read(file: Path) -> VerifiableReceipt:
    try:
        with file.open("rb") as content:
            return read_signed(content.read(MOST_LETTERS + 1))
    except OSError as problem:
        raise TableFileError("{path!r} cannot be read: {why}.", path=str(file), why=problem.strerror) from None


def _key(public_key: str | None, server: str | None, ca_file: Path | None) -> bytes:
    """Return the key to check with: one that the person brought along, or the market's own; never the receipt's."""
    if public_key is None:
        if server is None:
            with add_consequence("Nothing was checked."):
                raise ArgumentError("to check a receipt, give the market's --public-key or its --server.")
        return as_nobody(server, ca_file).public_key()
    if not _HEX.fullmatch(public_key):
        with add_consequence("Nothing was checked."):
            raise ArgumentError("the public key of a market is 64 hexadecimal digits.")
    return bytes.fromhex(public_key)


def _verdict(receipt: Receipt, data: Path | None, out: Path | None) -> str:
    file = "" if data is None else ", and the file is the one that was bought"
    written = "" if out is None else f"\nwrote {escape(str(out))}"
    return f"the signature is that of the market {receipt.market}{file}{written}"


@add_consequence("Nothing was asked.")
def _needed(server: str | None) -> str:
    if server is None:
        raise ArgumentError("say which market: --server or RELAXDP_SERVER.")
    return server
