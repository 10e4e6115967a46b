"""What sellers, buyers and the operator ask of a market, over HTTP. Nothing here knows a truth or a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

from relaxdp.device.address import Server
from relaxdp.device.client import Answer, Client, FileBody, refusal
from relaxdp.errors import RelaxdpError, add_consequence
from relaxdp.market.client_files import save
from relaxdp.market.receipts import VerifiableReceipt, signed_of, verify
from relaxdp.server_errors import (
    AddressError,
    ReceiptForgedError,
    RefusedByServerError,
    ServerAnswerError,
    UnreachableError,
)

Content = dict[str, Any]
Moved = Callable[[int], None] | None

PARQUET = "application/vnd.apache.parquet"
_MARKET = "/v1/market"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_SENTENCE = 600
_LONGEST = 3600.0
_PATIENCE = 600.0
"""A level of many objects that nobody has bought before is drawn while the buyer waits."""


class MarketClient:
    """A market, as somebody with a token (or without one) sees it. The `repr` does not show the token."""

    def __init__(self, server: Server, token: str | None = None, client: Client | None = None) -> None:
        self.server, self._client = server, client or Client(attempts=3)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    # For everybody.

    def about(self) -> Content:
        """Return the market's public key, its fingerprint, and how many listings there are."""
        return self._ask("GET")

    def public_key(self) -> bytes:
        """Return the key that this market's receipts are checked with."""
        with understood():
            return bytes.fromhex(self.about()["public_key"])

    def listings(self) -> list[Content]:
        """Return what is for sale."""
        return self._list("listings", self._ask("GET", "listings"))

    def listing(self, name: str) -> Content:
        """Return one listing, with its prices."""
        return self._ask("GET", *_listing(name))

    def quote(self, name: str, epsilon: str) -> Content:
        """Return what a level costs; with a buyer's token, what is still due."""
        return self._ask("GET", *_listing(name), f"quote?{urlencode({'epsilon': epsilon})}")

    def verify(self, signed: VerifiableReceipt) -> Content:
        """Let the market check a receipt, which also tells the state of its purchase."""
        body = {"receipt": signed.receipt.to_json(), "signature": signed.signature}
        return self._ask("POST", "receipts", "verify", body=body, again=True)

    # For whoever has a token.

    def me(self) -> Content:
        """Return whose token this is."""
        return self._ask("GET", "me")

    def statement(self) -> list[Content]:
        """Return the entries of the account, newest first."""
        return self._list("entries", self._ask("GET", "statement"))

    # For sellers.

    def create_listing(
        self,
        title: str,
        prices: Content,
        *,
        levels: list[str] | None = None,
        name: str | None = None,
        budget: str | None = None,
        details: Content | None = None,
    ) -> Content:
        """Make a listing, which is a draft until the first delivery; where no levels are stated, that brings them."""
        body = {"id": name, "title": title, "prices": prices, "levels": levels, "budget": budget}
        return self._ask("POST", "listings", body={**body, "details": details})

    def deliver(self, name: str, file: Path, *, column: str | None = None, moved: Moved = None) -> Content:
        """Deliver a released Parquet file. What else it holds is sent too, so look at it before."""
        query = "" if column is None else f"?{urlencode({'column': column})}"
        return self._ask("POST", *_listing(name), f"deliveries{query}", body=FileBody(file, PARQUET, moved))

    def extend_prices(self, name: str, prices: Content, levels: list[str] | None = None) -> Content:
        """Extend prices to levels that are not on sale yet, and state which those are."""
        return self._ask("POST", *_listing(name), "prices", body={"prices": prices, "levels": levels})

    def raise_budget(self, name: str, budget: str) -> Content:
        """Raise the budget of a listing."""
        return self._ask("POST", *_listing(name), "budget", body={"budget": budget})

    def close(self, name: str) -> Content:
        """Sell no more of one's own listing."""
        return self._ask("POST", *_listing(name), "close")

    def close_any(self, name: str) -> Content:
        """Sell no more from a pool, or of a seller's release (operator)."""
        return self._ask("POST", "pools", _listing(name)[-1], "close")

    def report(self, pool: str, body: Content) -> Content:
        """Join a pool with one report, or deliver a higher level to it. The same report again changes nothing."""
        return self._ask("POST", *_listing(pool), "reports", body=body, again=True)

    def sales(self) -> Content:
        """Return what a seller sells, and the balance."""
        found = self._ask("GET", "sales")
        self._list("listings", found)
        return found

    # For buyers.

    def buy(self, name: str, epsilon: str, most: int | None = None) -> Content:
        """Buy a level. Whoever has it already gets the same purchase and pays nothing, so this may be asked again."""
        return self._ask("POST", *_listing(name), "buy", body={"epsilon": epsilon, "most": most}, again=True)

    def upgrade(self, name: str, epsilon: str, most: int | None = None) -> Content:
        """Buy a higher level for the difference, which may be asked again, too."""
        return self._ask("POST", *_listing(name), "upgrade", body={"epsilon": epsilon, "most": most}, again=True)

    def purchases(self) -> Content:
        """Return what a buyer has, and the balance."""
        found = self._ask("GET", "purchases")
        self._list("purchases", found)
        return found

    def receipt(self, number: int) -> VerifiableReceipt:
        """Return the receipt of a purchase, after its signature was checked with the market's public key."""
        signed = signed_of(self._ask("GET", "purchases", str(number), "receipt"))
        if verify(signed, self.public_key()).number != number:
            raise ReceiptForgedError("the market sent the receipt of another purchase.", number=number)
        return signed

    def download(self, number: int, target: Path, *, moved: Moved = None) -> VerifiableReceipt:
        """Write what was bought to a Parquet file, and return the receipt that it was checked against.

        The file appears when it is whole, and only if it is the one that the receipt names.
        """
        signed = self.receipt(number)
        path = "/".join((_MARKET, "purchases", str(number), "data"))

        def ask(receive: Callable[[Any], None]) -> None:
            with self._sentences(again=True):
                answer = self._client.ask(
                    self.server, "GET", path, headers=self._headers, receive=receive, longest=_LONGEST,
                    patience=_PATIENCE,
                )  # fmt: skip
                if answer.status != 200:
                    self._refuse(answer)

        save(ask, target, signed.receipt.digest, moved)
        return signed

    def told(self, number: int) -> Content:
        """Return what a purchase tells: shares or a mean with intervals, from the reports that were bought."""
        return self._ask("GET", "purchases", str(number), "told")

    def refund(self, number: int, reason: str) -> Content:
        """Give a buyer's credits back. What was learned stays learned: the level still counts as sold."""
        return self._ask("POST", "purchases", str(number), "refund", body={"reason": reason})

    # For the operator.

    def create_account(self, name: str, role: str) -> Content:
        """Make an account; its token is in this answer and nowhere else."""
        return self._ask("POST", "accounts", body={"name": name, "role": role})

    def renew_token(self, name: str) -> Content:
        """Return a new token for an account; the old one ends."""
        return self._ask("POST", "accounts", _account(name), "token")

    def accounts(self) -> list[Content]:
        """Return all accounts."""
        return self._list("accounts", self._ask("GET", "accounts"))

    def credit(self, account: str, amount: int, reason: str) -> Content:
        """Give an account new credits."""
        return self._ask("POST", "credits", body={"account": account, "amount": amount, "reason": reason})

    def create_pool(
        self,
        title: str,
        encoding: Content,
        prices: Content,
        *,
        levels: list[str] | None = None,
        name: str | None = None,
        **said: Any,
    ) -> Content:
        """Make a pool, which single sellers may join; where no levels are stated, they go up to the last price.

        `said` may be its `details`, its `question` where the title does not ask it, and the limit that is `suggested`.
        """
        body = {"id": name, "title": title, "encoding": encoding, "prices": prices, "levels": levels, **said}
        return self._ask("POST", "pools", body=body)

    def books(self) -> Content:
        """Return whether the books balance."""
        return self._ask("GET", "books")

    def _ask(self, method: str, *words: str, body: Any = None, again: bool = False) -> Content:
        again = again or method == "GET"
        with self._sentences(again=again):
            answer = self._client.ask(
                self.server, method, "/".join((_MARKET, *words)), body, headers=self._headers, again=again,
                longest=_LONGEST, patience=_PATIENCE,
            )  # fmt: skip
            if not 200 <= answer.status < 300:
                self._refuse(answer)
            found = self._client.checked(answer, self.server)
        if not isinstance(found, dict):
            _unexpected()
        return found

    @contextmanager
    def _sentences(self, *, again: bool) -> Iterator[None]:
        """Pass the market's sentences on as they are, and say where it is not known what the market did."""
        try:
            yield
        except RefusedByServerError as problem:
            if problem.fields.get("said") is None:
                raise
            raise RefusedByServerError("{said}", **problem.fields) from None
        except UnreachableError as problem:
            if problem.fields.get("asked") and not again:
                problem.consequence = "Whether it was done is not known: look before you ask again."
            raise

    def _refuse(self, answer: Answer) -> None:
        code, sentence = refusal(answer, _SENTENCE)
        if sentence:
            raise RefusedByServerError("{said}", host=self.server.host, said=sentence, status=answer.status, error=code)
        self._client.checked(answer, self.server)

    def _list(self, name: str, found: Content) -> list[Content]:
        content = found.get(name)
        if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
            _unexpected()
        return content

    def __repr__(self) -> str:
        return f"<MarketClient of {self.server}>"


@contextmanager
def understood() -> Iterator[None]:
    """Read a market's answer; one that is something else is a sentence, not a traceback."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        if isinstance(problem, RelaxdpError):  # many of ours are values that are wrong, too
            raise
        _unexpected()


@add_consequence("Nothing was asked.")
def _listing(name: str) -> tuple[str, str]:
    """Return the words of a listing's address, or refuse a name that would not fit into one."""
    if not _NAME.fullmatch(name):
        raise AddressError("the name of a listing has 1 to 64 letters, digits and hyphens.")
    return "listings", name


@add_consequence("Nothing was asked.")
def _account(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise AddressError("the name of an account has 1 to 64 letters, digits and hyphens.")
    return name


def _unexpected() -> NoReturn:
    raise ServerAnswerError("the server's answer is not what a market answers. Is the address right?")
