"""The market: sellers deliver, buyers buy and upgrade; every method is one transaction, or the sentence why not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, insert, select

from relaxdp.errors import add_consequence
from relaxdp.market import accounts, deliveries, listings, pools, purchases, sales
from relaxdp.market.accounts import OPERATOR, MarketAccount, Role, time_text
from relaxdp.market.deliveries import read_delivery
from relaxdp.market.details import NOTHING_SAID, Details
from relaxdp.market.goods import level_file
from relaxdp.market.journal import Journal
from relaxdp.market.levels import level_on, of_pool, stated
from relaxdp.market.listings import StoredListing
from relaxdp.market.prices import PriceCurve
from relaxdp.market.purchases import StoredPurchase, receipt_of
from relaxdp.market.receipts import Receipt, Signer, VerifiableReceipt, verify
from relaxdp.market.sales import Deal, check
from relaxdp.market.schema import SETUP
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.sampling.keys import Key
from relaxdp.server_errors import (
    ListingStateError,
    MarketError,
    MarketKeyError,
    ReceiptForgedError,
    UnknownListingError,
)
from relaxdp.service.wire import EncodingRequest, WireLevel
from relaxdp.service.wire import encoding_of as campaign_encoding
from relaxdp.storage.database import Database
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import Epsilon, as_epsilon

_ATTEMPTS = 4
_HOLD = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxmkt')})"
NOBODY = MarketAccount(-2, "nobody", "buyer", 0)


class Market:
    """A market in a database that was prepared. Its key draws the levels that are sold, and signs receipts.

    The market's key is as secret as what was delivered: with it, a buyer could undo the blur of what was bought.
    Without a journal it is not noticed that the database was restored from an older copy.
    """

    def __init__(
        self, database: Database, key: Key, *, journal: Journal | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._database, self._key, self.journal, self._clock = database, key, journal, clock
        self.signer = Signer(key)
        self._turns = [Lock() for _ in range(64)]

    @add_consequence("Nothing was started.")
    def open(self) -> None:
        """Open the books, or refuse a key that is not the one that this market was opened with."""
        with self.writing() as connection:
            known = connection.execute(select(SETUP.c.key_fingerprint)).scalar()
            if known is None:
                row = {"key_fingerprint": self._key.fingerprint, "public_key": self.signer.public_key}
                connection.execute(insert(SETUP).values(**row))
                accounts.open_books(connection)
            elif known != self._key.fingerprint:
                raise self._other_key(known)

    def check_key(self) -> None:
        """Refuse a key that is not the one that this market was opened with."""
        with self.reading() as connection:
            known = connection.execute(select(SETUP.c.key_fingerprint)).scalar()
        if known != self._key.fingerprint:
            raise self._other_key(known)

    def _other_key(self, known: str | None) -> MarketKeyError:
        return MarketKeyError(
            "the market of this database was opened with the key {fingerprint}, and this key is {given}.",
            fingerprint=known,
            given=self._key.fingerprint,
        )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Look at one snapshot."""
        with self._database.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Change the market, alone, until the transaction ends.

        Money, goods and levels change together, and sales are rare beside reports: so there is one lock and no order of
        locks to get wrong. SQLite's writers wait for one another anyway.
        """
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(_HOLD)
            yield connection

    # Accounts and credits.

    @add_consequence("Nothing was created.")
    def create_account(self, name: str, role: Role) -> str:
        """Make an account and return its token, which is not kept."""
        with self.writing() as connection:
            return accounts.create(connection, name, role)

    @add_consequence("Nothing was done.")
    def renew_token(self, name: str) -> str:
        """Replace the token of an account; the old one ends."""
        with self.writing() as connection:
            return accounts.renew_token(connection, accounts.named(connection, name))

    @add_consequence("Nothing was issued.")
    def issue(self, name: str, amount: int, reason: str) -> MarketAccount:
        """Give an account new credits."""
        with self.writing() as connection:
            account = accounts.named(connection, name)
            accounts.issue(connection, account.number, amount, reason=reason, issued=self._now())
            return accounts.named(connection, name)

    def account(self, name: str) -> MarketAccount:
        """Return an account."""
        with self.reading() as connection:
            return accounts.named(connection, name)

    # Sellers.

    @add_consequence("Nothing was listed.")
    def list_release(
        self,
        seller: str,
        title: str,
        prices: PriceCurve,
        *,
        levels: Iterable[Epsilon] | None = None,
        listing_id: str | None = None,
        budget: Epsilon | None = None,
        details: Details = NOTHING_SAID,
    ) -> StoredListing:
        """Make a listing, which is a draft until its first delivery; where no levels are stated, that brings them."""
        limit = None if budget is None else as_epsilon(budget)
        terms: Any = {"prices": prices, "grid": () if levels is None else stated(levels, prices), "details": details}
        with self.writing() as connection:
            account = self._seller(connection, seller)
            made = listings.create(
                connection, listing_id, kind="release", title=title, seller=account.number, budget=limit, **terms
            )
            return listings.find(connection, made)

    @add_consequence("Nothing was delivered.")
    def deliver(self, seller: str, listing_id: str, path: Path, column: str | None = None) -> StoredListing:
        """Take a released file as the next level of a listing: above every level that was delivered before."""
        goods = read_delivery(path, column)
        file = level_file(goods)
        with self.writing() as connection:
            listing = deliveries.own(connection, listing_id, self._seller(connection, seller))
            return deliveries.deliver(connection, listing, goods, file)

    @add_consequence("Nothing was changed.")
    def change_listing(
        self, seller: str, listing_id: str, step: Callable[[Connection, StoredListing], StoredListing]
    ) -> StoredListing:
        """Extend prices, raise the budget or close: a step of `deliveries` on one's own listing."""
        with self.writing() as connection:
            return step(connection, deliveries.own(connection, listing_id, self._seller(connection, seller)))

    def extend_prices(
        self, seller: str, listing_id: str, prices: PriceCurve, levels: Iterable[Epsilon] | None = None
    ) -> StoredListing:
        """Let prices reach further up, and state more levels there; what is on sale stays as it is."""
        return self.change_listing(
            seller,
            listing_id,
            lambda connection, listing: deliveries.extend_prices(connection, listing, prices, levels),
        )

    @add_consequence("Nothing was changed.")
    def raise_budget(self, seller: str, listing_id: str, budget: Epsilon) -> StoredListing:
        """Raise the largest epsilon that may ever be delivered."""
        limit = as_epsilon(budget)
        return self.change_listing(
            seller, listing_id, lambda connection, listing: deliveries.raise_budget(connection, listing, limit)
        )

    def close_listing(self, seller: str, listing_id: str) -> StoredListing:
        """Sell no more of a listing."""
        return self.change_listing(seller, listing_id, self._close)

    @add_consequence("Nothing was listed.")
    def create_pool(
        self,
        title: str,
        encoding: EncodingRequest,
        prices: PriceCurve,
        *,
        levels: Iterable[Epsilon] | None = None,
        listing_id: str | None = None,
        details: Details = NOTHING_SAID,
        question: str | None = None,
        suggested: Epsilon | None = None,
    ) -> StoredListing:
        """Make a pool, in which single sellers offer one report each; prices are for each of them."""
        made = campaign_encoding(encoding)
        if isinstance(made, Bloom):
            raise MarketError("a pool is of declared values or of numbers.")
        grid = of_pool(levels, prices, made)
        terms: Any = {"prices": prices, "grid": grid, "details": details, "question": question}
        if suggested is not None:
            terms["suggested"] = level_on(grid, as_epsilon(suggested), made).epsilon
        # Each sale puts its own level in the place of this one; every member has a key of their own.
        template = ColumnDescription.from_level(made, made.level(1), path=PathId("", pools.ATTRIBUTE), id_type="text")
        with self.writing() as connection:
            chosen = listings.create(connection, listing_id, kind="pool", title=title, described=template, **terms)
            named = replace(template, path=PathId(chosen, pools.ATTRIBUTE))
            listing = listings.describe(connection, listings.find(connection, chosen), named)
            # What was bought from a pool says whose path it is of: nobody lists it here once more as a release.
            return listings.change(connection, listing, path=listings.claim_path(connection, listing, named))

    @add_consequence("Nothing was changed.")
    def close_any(self, listing_id: str) -> StoredListing:
        """Sell no more from a pool, or of whichever seller's release: the operator closes what should not be there."""
        with self.writing() as connection:
            return self._close(connection, listings.find(connection, listing_id))

    @add_consequence("Nothing was delivered.")
    def join_pool(
        self, seller: str, listing_id: str, level: WireLevel, report: str | int | float, minimum: int
    ) -> StoredListing:
        """Take one report of a single seller, with the least price for it."""
        with self.writing() as connection:
            listing = listings.find(connection, listing_id)
            account = self._seller(connection, seller)
            return pools.join(connection, listing, account, level, report, minimum, self._key)

    # Buyers.

    @add_consequence("Nothing was sold.")
    def quote(self, listing_id: str, epsilon: Epsilon, buyer: str | None = None) -> Deal:
        """Return what a level costs, and what is due for whoever asks."""
        with self.reading() as connection:
            return self.quoted(connection, listing_id, epsilon, buyer)

    @add_consequence("Nothing was sold.")
    def quoted(self, connection: Connection, listing_id: str, epsilon: Epsilon, buyer: str | None) -> Deal:
        """Return the same within a transaction."""
        account = NOBODY if buyer is None else accounts.named(connection, buyer)
        listing = self.visible(connection, listing_id, None)
        if listing.kind == "pool":
            return pools.pool_quote(connection, listing, account, epsilon)
        return sales.release_deal(connection, listing, account, epsilon, listings.authorised(connection, listing))

    @add_consequence("Nothing was sold.")
    def buy(
        self, buyer: str, listing_id: str, epsilon: Epsilon, *, most: int | None = None, upgrade: bool = False
    ) -> tuple[StoredPurchase, bool]:
        """Sell a level, and say whether that is new: a level that is owned already is not charged again."""
        order = sales.Order(buyer, listing_id, epsilon, upgrade, most)
        for is_last in (*[False] * (_ATTEMPTS - 1), True):
            sold = self._sold(order, is_last=is_last)
            if sold is not None:
                break
        else:
            raise AssertionError("whoever holds the market sells")  # pragma: no cover
        with self.reading() as connection:
            self.write_down(connection, sold[0].listing)
        return sold

    def upgrade(
        self, buyer: str, listing_id: str, epsilon: Epsilon, *, most: int | None = None
    ) -> tuple[StoredPurchase, bool]:
        """Sell a higher level of what is owned, for the difference."""
        return self.buy(buyer, listing_id, epsilon, most=most, upgrade=True)

    @add_consequence("Nothing was refunded.")
    def refund(self, who: MarketAccount, number: int, reason: str) -> StoredPurchase:
        """Give back what was paid for a purchase and what it upgraded. The privacy does not come back."""
        with self.writing() as connection:
            purchase = purchases.find(connection, number)
            seller = purchase.listing.seller
            if who.role != "operator" and (seller is None or who.number != seller):
                raise purchases.unknown()
            if purchase.state != purchases.OWNED:
                raise ListingStateError("this purchase is {state} already.", state=purchase.state)
            for each in purchases.chain(connection, purchase):
                back = {account: -amount for account, amount in accounts.paid_in(connection, each.number).items()}
                words = f"refund of {number}: {reason}"
                accounts.post(connection, back, reason=words, issued=self._now(), purchase=each.number)
                purchases.set_state(connection, each.number, purchases.REFUNDED)
            return purchases.find(connection, number)

    def purchase_of(self, connection: Connection, buyer: MarketAccount, number: int) -> StoredPurchase:
        """Return a purchase of one's own."""
        purchase = purchases.find(connection, number)
        if purchase.buyer != buyer.number:
            raise purchases.unknown()
        return purchase

    def receipt(self, buyer: MarketAccount, number: int) -> VerifiableReceipt:
        """Return the receipt of a purchase, as it was signed."""
        with self.reading() as connection:
            purchase = self.purchase_of(connection, buyer, number)
            self.write_down(connection, purchase.listing)
            receipt = receipt_of(purchase, buyer, self.signer.fingerprint)
        return VerifiableReceipt(receipt, purchase.signature, self.signer.public_key.hex())

    def verified(self, signed: VerifiableReceipt) -> tuple[Receipt, StoredPurchase]:
        """Return a receipt that this market signed, and what became of its purchase; refuse any other."""
        receipt = verify(signed, self.signer.public_key)
        with self.reading() as connection:
            purchase = purchases.find(connection, receipt.number)
        if purchase.signature != signed.signature:
            raise ReceiptForgedError(
                "the market signed this receipt, and knows no such purchase: its database was restored from "
                "an older copy, and has forgotten it."
            )
        return receipt, purchase

    # What several of them need.

    def write_down(self, connection: Connection, listing: StoredListing) -> None:
        """Write what was sold of a listing into the journal: nothing of it leaves before."""
        if self.journal is not None:
            self.journal.keep(connection, listing)

    def _check_journal(self, connection: Connection, listing: StoredListing) -> None:
        if self.journal is not None:
            self.journal.check(connection, listing)

    def _close(self, connection: Connection, listing: StoredListing) -> StoredListing:
        return deliveries.close(connection, listing, sold=self.journal is not None and self.journal.knows(listing))

    def visible(self, connection: Connection, listing_id: str, who: MarketAccount | None) -> StoredListing:
        """Return a listing; a draft is there for its seller only."""
        listing = listings.find(connection, listing_id)
        if listing.state == "draft" and (who is None or who.number != listing.seller) and who is not OPERATOR:
            raise UnknownListingError("there is no listing with this id.")
        return listing

    def _sold(self, order: sales.Order, *, is_last: bool) -> tuple[StoredPurchase, bool] | None:
        """Try to sell; None where somebody else was faster.

        A level is drawn before the market is held. If another one was kept meanwhile that is nearer, the draw is thrown
        away and made again; the last time while the market is held, so that it comes to an end.
        """
        # One draw of a listing at a time in this process: two at once would make one of them useless.
        turn = self._turns[hash(order.listing) % len(self._turns)]
        with turn:
            with self.reading() as connection:
                listing, buyer = self._parties(connection, order)
                self.write_down(connection, listing)  # where that cannot be done, nobody is charged
                is_pool, wanted = listing.kind == "pool", None
                if not is_pool and not is_last:
                    wanted = sales.prepare(connection, sales.agree(connection, order, listing, buyer))
            drawn = sales.draw(wanted, self._key)
            with self.writing() as connection:
                sold: tuple[StoredPurchase, bool] | None
                listing, buyer = self._parties(connection, order)
                if is_pool:
                    sold = self._sold_from_pool(connection, order, listing, buyer)
                else:
                    sale = sales.agree(connection, order, listing, buyer)
                    if is_last:
                        drawn = sales.draw(sales.prepare(connection, sale), self._key)
                    sold = sales.sell(connection, sale, buyer, drawn, self.signer, self._clock())
                self._check_journal(connection, listing)
        return sold

    def _sold_from_pool(
        self, connection: Connection, order: sales.Order, listing: StoredListing, buyer: MarketAccount
    ) -> tuple[StoredPurchase, bool]:
        deal, shares, willing = pools.pool_deal(connection, listing, buyer, order.epsilon)
        check(deal, buyer, upgrade=order.upgrade, most=order.most)
        if deal.is_owned and deal.owned is not None:
            return deal.owned, False
        options: Any = {"key": self._key, "signer": self.signer, "now": self._clock()}
        return pools.sell(connection, deal, shares, willing, buyer, **options), True

    def _parties(self, connection: Connection, order: sales.Order) -> tuple[StoredListing, MarketAccount]:
        """Look up what is sold and who buys it, which a transaction does once."""
        buyer = accounts.named(connection, order.buyer)
        buyer.check("buyer")
        return self.visible(connection, order.listing, None), buyer

    def _seller(self, connection: Connection, name: str) -> MarketAccount:
        account = accounts.named(connection, name)
        account.check("seller")
        return account

    def _now(self) -> str:
        return time_text(self._clock())
