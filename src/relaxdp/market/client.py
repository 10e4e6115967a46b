"""The market over HTTP, as a seller, a buyer or the operator sees it. It needs nothing beyond the library."""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

from relaxdp.device.address import Server
from relaxdp.device.client import Answer, Client, FileBody, refusal
from relaxdp.errors import RelaxdpError, TableFileError, add_consequence
from relaxdp.market.receipts import SignedReceipt, read_receipt, verify_file, verify_receipt
from relaxdp.server_errors import AddressError, ReceiptError, RefusedByServerError, ServerAnswerError, UnreachableError
from relaxdp.tables.atomic_files import make_unfinished_file, move_to_target

Content = dict[str, Any]
Progress = Callable[[int], None] | None
PARQUET = "application/vnd.apache.parquet"
_MARKET = "/v1/market"
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_LONGEST = 3600.0
_PATIENCE = 600.0
"""A level of many rows is checked for minutes before the market answers."""
_SENTENCE = 2000
_PART = 1 << 20


class MarketClient:
    """The market of a server. Its `repr` does not show the token."""

    def __init__(self, server: Server, token: str | None = None, client: Client | None = None) -> None:
        self.server, self._client = server, client or Client(attempts=3)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def public_key(self) -> bytes:
        """Return the public key of the market's receipts."""
        with understood():
            return bytes.fromhex(self._ask("GET")["public_key"])

    def member(self) -> Content:
        """Return name and role of whose token this is."""
        return self._ask("GET", "me")

    def create_token(self, name: str, role: str, *, renew: bool = False) -> str:
        """Make the token of a seller or a buyer (operator)."""
        with understood():
            return str(self._ask("POST", "tokens", body={"name": name, "role": role, "renew": renew})["token"])

    # Listings.

    def listings(self) -> list[Content]:
        """Return what is for sale."""
        return self._list("listings", self._ask("GET", "listings"))

    def listing(self, listing: str) -> Content:
        """Return a listing with its levels; with a buyer's token also what is due."""
        return self._ask("GET", "listings", _check_name(listing))

    def create_listing(self, listing: str, **terms: Any) -> Content:
        """Create or confirm a listing (seller)."""
        return self._ask("POST", "listings", body={"id": _check_name(listing), **terms}, again=True)

    def add_level(self, listing: str, file: Path, price: str, *, progress: Progress = None) -> Content:
        """Publish the file of a level (seller). The same file again changes nothing."""
        last = f"levels?{urlencode({'price': price})}"
        return self._ask(
            "POST", "listings", _check_name(listing), last, body=FileBody(file, PARQUET, progress), again=True
        )

    def sales(self) -> Content:
        """Return the largest levels that were sold, and their sum (seller)."""
        return self._ask("GET", "sales")

    def create_pool(self, pool: str, **terms: Any) -> Content:
        """Create a pool (operator)."""
        return self._ask("POST", "pools", body={"id": _check_name(pool), **terms})

    def join_pool(self, pool: str, reports: Mapping[str, Any]) -> Content:
        """Send reports of one individual to a pool. The same reports again change nothing."""
        return self._ask("POST", "pools", _check_name(pool), "reports", body={"reports": dict(reports)}, again=True)

    # Orders.

    def order(self, listing: str, epsilon: str, *, upgrade: bool = False) -> Content:
        """Order a level (buyer). The same request again returns the same order."""
        body = {"epsilon": epsilon, "upgrade": upgrade}
        return self._ask("POST", "listings", _check_name(listing), "orders", body=body, again=True)

    def orders(self) -> list[Content]:
        """Return the orders of a buyer, or of a seller's listings."""
        return self._list("orders", self._ask("GET", "orders"))

    def approve(self, order: str) -> Content:
        """Approve an order (seller)."""
        return self._ask("POST", "orders", _check_name(order), "approve", again=True)

    def withdraw(self, order: str) -> Content:
        """Withdraw a request that is not approved."""
        return self._ask("POST", "orders", _check_name(order), "withdraw", again=True)

    def restore(self, signed: SignedReceipt) -> Content:
        """Restore an order that the market lost with its database (buyer)."""
        return self._ask("POST", "receipts", body=signed.to_json(), again=True)

    def receipt(self, order: str) -> SignedReceipt:
        """Return the receipt of an order, checked with the market's public key (buyer)."""
        signed = read_receipt(self._ask("GET", "orders", _check_name(order), "receipt"))
        if verify_receipt(signed, self.public_key()).order != order:
            raise ReceiptError("The market sent the receipt of another order.")
        return signed

    def download(self, order: str, output: Path, *, progress: Progress = None) -> SignedReceipt:
        """Write the file of an order, and return its receipt (buyer).

        The file appears when it is complete, and only if its rows are those that the receipt names.
        """
        signed = self.receipt(order)
        with make_unfinished_file(output) as place:
            self._receive(f"{_MARKET}/orders/{order}/file", place, output, progress)
            with add_consequence("Nothing was written."):
                verify_file(signed.receipt, place)
                move_to_target(place, output)
        return signed

    def _receive(self, path: str, place: Path, output: Path, progress: Progress) -> None:
        def write(response: http.client.HTTPResponse) -> None:
            with _replace_disk_errors(output), place.open("wb") as file:
                while part := response.read(_PART):
                    file.write(part)
                    if progress is not None:
                        progress(len(part))
                file.flush()
                os.fsync(file.fileno())
            if response.length:  # an answer that is shorter than announced is asked for again
                raise http.client.IncompleteRead(b"", response.length)

        with self._show_sentences(again=True):
            answer = self._client.ask(
                self.server, "GET", path, headers=self._headers, receive=write, longest=_LONGEST, patience=_PATIENCE
            )
            if answer.status != 200:
                self._refuse(answer)

    def _ask(self, method: str, *words: str, body: Any = None, again: bool = False) -> Content:
        again = again or method == "GET"
        with self._show_sentences(again=again):
            answer = self._client.ask(
                self.server, method, "/".join((_MARKET, *words)), body, headers=self._headers, again=again,
                longest=_LONGEST, patience=_PATIENCE,
            )  # fmt: skip
            if not 200 <= answer.status < 300:
                self._refuse(answer)
            found = self._client.checked(answer, self.server)
        if not isinstance(found, dict):
            _raise_unexpected()
        return found

    @contextmanager
    def _show_sentences(self, *, again: bool) -> Iterator[None]:
        """Show the market's own sentences, and say where it is unknown what the market did."""
        try:
            yield
        except UnreachableError as problem:
            if problem.fields.get("asked") and not again:
                problem.consequence = "It is unknown whether the market did it. Look before you ask again."
            raise

    def _refuse(self, answer: Answer) -> None:
        said = refusal(answer, _SENTENCE)
        if said.message:
            problem = RefusedByServerError(
                "{said}", hint="{advice}" if said.hint else "", host=self.server.host, advice=said.hint,
                said=said.sentence or said.message, status=answer.status, error=said.code,
            )  # fmt: skip
            # A command knows better than this general one what it did not do.
            problem.consequence = said.consequence if said.consequence != "Nothing was done." else ""
            raise problem
        self._client.checked(answer, self.server)

    def _list(self, name: str, found: Content) -> list[Content]:
        content = found.get(name)
        if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
            _raise_unexpected()
        return content

    def __repr__(self) -> str:
        return f"<MarketClient of {self.server}>"


@contextmanager
def _replace_disk_errors(output: Path) -> Iterator[None]:
    try:
        yield
    except http.client.HTTPException:
        raise
    except OSError as problem:
        if isinstance(problem, ConnectionError | TimeoutError):
            raise
        raise TableFileError(
            "{path!r} cannot be written: {why}.", hint="Choose another place.", path=str(output), why=problem.strerror
        ) from None


@contextmanager
def understood() -> Iterator[None]:
    """Read a market's answer; an answer of another form is a sentence, not a traceback."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        if isinstance(problem, RelaxdpError):  # many of ours are values that are wrong, too
            raise
        _raise_unexpected()


@add_consequence("Nothing was sent.")
def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise AddressError(
            "{name!r} is not the name of a listing or an order: 1 to 64 letters, digits and hyphens.",
            hint="List them: relaxdp market list, relaxdp market orders.",
            name=name,
        )
    return name


def _raise_unexpected() -> NoReturn:
    raise ServerAnswerError("The server's answer is not that of a market.", hint="Check the address (--server).")
