"""Pools: many single sellers, each with one report, a limit and a least price of their own; the paper's market."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Subquery, func, insert, select, update

from relaxdp.market import purchases
from relaxdp.market.accounts import MOST_CREDITS, MarketAccount
from relaxdp.market.goods import Goods, draw_level, keep_file, level_file
from relaxdp.market.levels import Neighbours, check_delivery, level_on, neighbours
from relaxdp.market.listings import KeptLevel, StoredListing, change, origins
from relaxdp.market.purchases import StoredPurchase
from relaxdp.market.receipts import Signer
from relaxdp.market.sales import Deal, LevelOffer, level_of, pay, record
from relaxdp.market.schema import MEMBER_LEVELS, MEMBERS
from relaxdp.sampling.keys import Key, add_length_prefix
from relaxdp.server_errors import (
    DeliveryError,
    ListingStateError,
    MarketError,
    NotAuthorisedError,
    ReportOutsideEncodingError,
)
from relaxdp.service.codecs import Codec
from relaxdp.service.wire import WireLevel
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

MEMBER = "member"
ATTRIBUTE = "answer"
MOST_MEMBERS = 100_000


@dataclass(frozen=True, slots=True)
class KeptReport(KeptLevel):
    """One report of a member that is out: delivered, or drawn for buyers."""

    report: bytes


@dataclass(frozen=True, slots=True)
class Member:
    """A single seller in a pool."""

    account: int
    pseudonym: str
    minimum: int
    levels: dict[Level, KeptReport]

    @property
    def limit(self) -> Level:
        """The largest level that this person delivered."""
        return max(kept.level for kept in self.levels.values() if kept.delivered)


def members_of(connection: Connection, listing: StoredListing, account: int | None = None) -> list[Member]:
    """Return all members of a pool in the order of their pseudonyms, or one of them."""
    people = select(MEMBERS).where(MEMBERS.c.listing == listing.number).order_by(MEMBERS.c.pseudonym)
    kept = select(MEMBER_LEVELS).where(MEMBER_LEVELS.c.listing == listing.number)
    if account is not None:
        people, kept = people.where(MEMBERS.c.account == account), kept.where(MEMBER_LEVELS.c.account == account)
    levels: defaultdict[int, dict[Level, KeptReport]] = defaultdict(dict)
    rows = connection.execute(kept).all()
    for (level, between), row in zip(origins(listing, rows), rows, strict=True):
        levels[row.account][level] = KeptReport(level, between, bytes(row.report))
    return [
        Member(row.account, row.pseudonym, int(row.minimum), levels[row.account]) for row in connection.execute(people)
    ]


@dataclass(frozen=True, slots=True)
class Standing:
    """How many members have the same limit and the same least price: all that a price curve needs to know."""

    members: tuple[tuple[Level, int, int], ...]

    @property
    def authorised(self) -> Level | None:
        """The largest limit of anybody."""
        return max((limit for limit, _, _ in self.members), default=None)

    def willing(self, level: Level, price: int) -> int:
        """Return how many would be in a sale."""
        return sum(count for limit, minimum, count in self.members if limit >= level and minimum <= price)


def standing_of(connection: Connection, listing: StoredListing) -> Standing:
    """Return where the members of a pool stand, counted by the database: a pool may have many."""
    limits = _limits(listing)
    same = limits.c.epsilon, limits.c.threshold, limits.c.minimum
    rows = connection.execute(select(*same, func.count().label("members")).group_by(*same))
    return Standing(tuple(sorted((listing.level(row), int(row.minimum), int(row.members)) for row in rows)))


def _willing(connection: Connection, listing: StoredListing, level: Level, price: int) -> set[int]:
    """Return who would be in a sale."""
    limits = _limits(listing)
    return {
        row.account
        for row in connection.execute(select(limits).where(limits.c.minimum <= price))
        if listing.level(row) >= level
    }


def _limits(listing: StoredListing) -> Subquery:
    """Return a query of the largest level that each member delivered, and of their least price."""
    levels, people = MEMBER_LEVELS.c, MEMBERS.c
    top = (
        select(levels.account, func.max(levels.threshold).label("top"))
        .where(levels.listing == listing.number, levels.delivered)
        .group_by(levels.account)
        .subquery()
    )
    return (
        select(levels.account, levels.epsilon, levels.threshold, people.minimum)
        .select_from(MEMBER_LEVELS)
        .join(top, (top.c.account == levels.account) & (top.c.top == levels.threshold))
        .join(MEMBERS, (people.listing == levels.listing) & (people.account == levels.account))
        .where(levels.listing == listing.number)
        .subquery()
    )


def pools_of(connection: Connection, account: int) -> list[int]:
    """Return the numbers of the pools that somebody is a member of."""
    query = select(MEMBERS.c.listing).where(MEMBERS.c.account == account).order_by(MEMBERS.c.listing)
    return list(connection.execute(query).scalars())


def pseudonym_of(key: Key, listing: StoredListing, seller: MarketAccount) -> str:
    """Return under which name a member stands in files: it tells nothing, and is the same after a restored backup."""
    parts = ("market member", listing.id, seller.name)
    return key.derive(b"".join(add_length_prefix(part.encode()) for part in parts))[:16].hex()


def join(
    connection: Connection, listing: StoredListing, seller: MarketAccount, level: WireLevel, report: str | int | float,
    minimum: int, key: Key,
) -> StoredListing:  # fmt: skip
    """Take the report of a single seller: the first one, or one at a higher level. The market is held."""
    if listing.kind != "pool" or listing.state != "open":
        raise ListingStateError("this listing takes no single reports.")
    if type(minimum) is not int or not 0 <= minimum <= MOST_CREDITS:
        raise MarketError("the least price is a whole number of credits, 0 or more.")
    epsilon, encoding = as_epsilon(level.epsilon), listing.encoding
    limit = level_on(listing.grid, epsilon, encoding)
    if level.threshold != str(limit.threshold) or level.epsilon != format_epsilon(epsilon):
        raise DeliveryError("epsilon and threshold are not one level.")
    codec = Codec(encoding)
    kept = _kept(codec, report)
    known = members_of(connection, listing, seller.number)
    objects = listing.objects
    if known:
        _check_same_path(known[0], limit, kept, codec)
        connection.execute(
            update(MEMBERS)
            .where(MEMBERS.c.listing == listing.number, MEMBERS.c.account == seller.number)
            .values(minimum=minimum)
        )
        if limit in known[0].levels:  # the same report again, to change the least price
            return listing
    else:
        if objects >= MOST_MEMBERS:
            raise MarketError("a pool has at most {most:,} members.", most=MOST_MEMBERS)
        row = {"listing": listing.number, "account": seller.number, "pseudonym": pseudonym_of(key, listing, seller)}
        connection.execute(insert(MEMBERS).values(**row, minimum=minimum))
        objects += 1
    _keep(connection, listing, {seller.number: KeptReport(limit, None, kept)})
    return change(connection, listing, objects=objects)


def _check_same_path(member: Member, level: Level, kept: bytes, codec: Codec) -> None:
    top = member.levels[member.limit]
    if codec.fixed(kept) != codec.fixed(top.report):
        raise DeliveryError("this report has another seed than the one before: it is not of one path.")
    if level != top.level or kept != top.report:
        check_delivery(level, (each.level for each in member.levels.values() if each.delivered))


def _offer(listing: StoredListing, epsilon: Epsilon, most: Level | None) -> tuple[Level, int]:
    """Return the level that an epsilon means, and what one object of it costs."""
    level = level_of(listing, epsilon, most)
    return level, listing.price(level)


def pool_quote(connection: Connection, listing: StoredListing, buyer: MarketAccount, epsilon: Epsilon) -> Deal:
    """Return what a level of a pool means to a buyer, without looking at a report: anybody may ask, and often."""
    standing = standing_of(connection, listing)
    level, each = _offer(listing, epsilon, standing.authorised)
    objects = standing.willing(level, each)
    offer = LevelOffer(listing, level, each * objects, objects, each)
    owned = purchases.owned(connection, listing, buyer.number)
    paid = _paid_before(connection, owned)
    willing = _willing(connection, listing, level, each) if paid else set()
    return Deal(offer, offer.price - sum(price for account, price in paid.items() if account in willing), owned)


def pool_deal(
    connection: Connection, listing: StoredListing, buyer: MarketAccount, epsilon: Epsilon
) -> tuple[Deal, dict[int, int], list[Member]]:
    """Return what a level of a pool means to a buyer, and what each member would earn.

    A sale contains everybody who delivered at least that level, for at least their own price. For a member who was in
    a purchase that is upgraded the difference is due, for everybody else the whole price.
    """
    members = members_of(connection, listing)
    level, each = _offer(listing, epsilon, max((member.limit for member in members), default=None))
    willing = [member for member in members if member.limit >= level and member.minimum <= each]
    offer = LevelOffer(listing, level, each * len(willing), len(willing), each)
    owned = purchases.owned(connection, listing, buyer.number)
    paid = _paid_before(connection, owned)
    shares = {member.account: each - paid.get(member.account, 0) for member in willing}
    return Deal(offer, sum(shares.values()), owned), shares, willing


def _paid_before(connection: Connection, owned: StoredPurchase | None) -> dict[int, int]:
    """Return what a buyer paid for each member in what is owned and in what that upgraded."""
    paid: dict[int, int] = {}
    for earlier in [] if owned is None else reversed(purchases.chain(connection, owned)):
        paid |= purchases.members_of(connection, earlier.number)  # prices grow along a chain
    return paid


def sell(
    connection: Connection, deal: Deal, shares: dict[int, int], willing: list[Member], buyer: MarketAccount,
    *, key: Key, signer: Signer, now: float,
) -> StoredPurchase:  # fmt: skip
    """Draw what is missing, keep it, take and give the credits, and sign. The market is held throughout."""
    offer, listing = deal.offer, deal.offer.listing
    if not willing:
        raise NotAuthorisedError(
            "nobody in this pool sells at epsilon {epsilon} for {price:,} credits.",
            price=offer.each,
            epsilon=str(offer.level),
        )
    reports = _reports(connection, listing, offer, willing, key)
    ids = pa.array([member.pseudonym for member in willing], pa.string())
    column = Codec(listing.encoding).column([reports[member.account] for member in willing])
    digest = keep_file(connection, level_file(_goods(listing, offer.level, ids, column)))
    purchase = record(connection, deal, buyer, digest, signer, now)
    purchases.keep_members(connection, purchase.number, [member.account for member in willing], offer.each)
    pay(connection, purchase, shares)
    return purchase


def _reports(
    connection: Connection, listing: StoredListing, offer: LevelOffer, willing: list[Member], key: Key
) -> dict[int, bytes]:
    """Return everybody's report at a level: the one that is out, or a new one between each person's own neighbours."""
    found: dict[int, bytes] = {}
    groups: defaultdict[Neighbours, list[Member]] = defaultdict(list)
    for member in willing:
        between = neighbours(offer.level, member.levels)
        if between is None:
            found[member.account] = member.levels[offer.level].report
        else:
            groups[between].append(member)
    for between, group in groups.items():
        drawn = _drawn(listing, offer, group, between, key)
        new = {
            member.account: KeptReport(offer.level, between, report)
            for member, report in zip(group, drawn, strict=True)
        }
        _keep(connection, listing, new)
        found |= {account: kept.report for account, kept in new.items()}
    return found


def _drawn(
    listing: StoredListing, offer: LevelOffer, group: list[Member], between: Neighbours, key: Key
) -> list[bytes]:
    codec = Codec(listing.encoding)
    ids = pa.array([member.pseudonym for member in group], pa.string())

    def at(level: Level) -> Goods:
        return _goods(listing, level, ids, codec.column([member.levels[level].report for member in group]))

    lower = None if between.lower is None else at(between.lower)
    goods = draw_level(key, listing.id, offer.level, lower=lower, upper=at(between.upper))
    return codec.kept(goods.reports)


def _goods(listing: StoredListing, level: Level, ids: Any, column: Any) -> Goods:
    assert listing.described is not None  # noqa: S101
    return Goods(MEMBER, listing.described, listing.encoding, level, ids, column)


def _kept(codec: Codec, report: str | int | float) -> bytes:
    try:
        return codec.read(report, None)
    except ReportOutsideEncodingError:
        raise ReportOutsideEncodingError("this is no report of the pool's encoding.") from None


def _keep(connection: Connection, listing: StoredListing, new: Mapping[int, KeptReport]) -> None:
    """Keep one new report of each account, once and for good."""
    rows = [
        {"listing": listing.number, "account": account, **kept.columns(), "report": kept.report}
        for account, kept in new.items()
    ]
    connection.execute(insert(MEMBER_LEVELS), rows)
