"""Pools: many single sellers, each with one report, a limit and a least price of their own; the paper's market."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Subquery, func, insert, select, update

from relaxdp.collector.codecs import Codec, codec_of
from relaxdp.collector.wire import WireLevel
from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.key import Key
from relaxdp.encode.packed import PackedEncoding, packed_matrix
from relaxdp.encode.protocol import Encoding
from relaxdp.errors import DeliveryError, ListingStateError, MarketError, NotAuthorisedError, ReportOutsideEncodingError
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.law.threshold import ONE
from relaxdp.market import purchases
from relaxdp.market.accounts import MOST_CREDITS, Account
from relaxdp.market.goods import Goods, draw_level, write_level
from relaxdp.market.levels import check_delivery, level_on, neighbours
from relaxdp.market.listings import Listing, change
from relaxdp.market.purchases import Purchase
from relaxdp.market.receipts import Signer
from relaxdp.market.sales import Deal, Offer, Order, level_of, pay, record
from relaxdp.market.schema import MEMBER_LEVELS, MEMBERS
from relaxdp.market.store import digest_of, end_of, end_text, keep_file, level_text

MEMBER = "member"
ATTRIBUTE = "answer"
MOST_MEMBERS = 100_000
_NOTHING = "Nothing was delivered."


@dataclass(frozen=True, slots=True)
class Kept:
    """One report of a member that is out: delivered, or drawn for buyers."""

    threshold: int
    epsilon: Decimal
    delivered: bool
    report: bytes
    lower: int | None = None
    upper: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A single seller in a pool."""

    account: int
    pseudonym: str
    minimum: int
    levels: dict[int, Kept]

    @property
    def limit(self) -> Decimal:
        """The largest epsilon that this person delivered."""
        return max(level.epsilon for level in self.levels.values() if level.delivered)


def members_of(connection: Connection, listing: Listing, account: int | None = None) -> list[Member]:
    """Return all members of a pool in the order of their pseudonyms, or one of them."""
    people = select(MEMBERS).where(MEMBERS.c.listing == listing.number).order_by(MEMBERS.c.pseudonym)
    kept = select(MEMBER_LEVELS).where(MEMBER_LEVELS.c.listing == listing.number)
    if account is not None:
        people, kept = people.where(MEMBERS.c.account == account), kept.where(MEMBER_LEVELS.c.account == account)
    levels: defaultdict[int, dict[int, Kept]] = defaultdict(dict)
    for row in connection.execute(kept):
        threshold = int(row.threshold)
        levels[row.account][threshold] = Kept(
            threshold,
            Decimal(row.epsilon),
            bool(row.delivered),
            bytes(row.report),
            end_of(row.lower),
            end_of(row.upper),
        )
    return [
        Member(row.account, row.pseudonym, int(row.minimum), levels[row.account]) for row in connection.execute(people)
    ]


@dataclass(frozen=True, slots=True)
class Standing:
    """How many members have the same limit and the same least price: all that a price curve needs to know."""

    members: tuple[tuple[Decimal, int, int], ...]

    @property
    def authorised(self) -> Decimal | None:
        """The largest limit of anybody."""
        return max((limit for limit, _, _ in self.members), default=None)

    def willing(self, epsilon: Decimal, price: int) -> int:
        """Return how many would be in a sale."""
        return sum(count for limit, minimum, count in self.members if limit >= epsilon and minimum <= price)


def standing_of(connection: Connection, listing: Listing) -> Standing:
    """Return where the members of a pool stand, counted by the database: a pool may have many."""
    limits = _limits(listing)
    query = select(limits.c.epsilon, limits.c.minimum, func.count()).group_by(limits.c.epsilon, limits.c.minimum)
    found = ((Decimal(limit), int(least), int(count)) for limit, least, count in connection.execute(query))
    return Standing(tuple(sorted(found)))


def _willing(connection: Connection, listing: Listing, epsilon: Decimal, price: int) -> set[int]:
    """Return who would be in a sale."""
    limits = _limits(listing)
    query = select(limits.c.account, limits.c.epsilon).where(limits.c.minimum <= price)
    return {account for account, limit in connection.execute(query) if Decimal(limit) >= epsilon}


def _limits(listing: Listing) -> Subquery:
    """Return a query of the largest level that each member delivered, and of their least price."""
    levels, people = MEMBER_LEVELS.c, MEMBERS.c
    top = (
        select(levels.account, func.max(levels.threshold).label("top"))
        .where(levels.listing == listing.number, levels.delivered)
        .group_by(levels.account)
        .subquery()
    )
    return (
        select(levels.account, levels.epsilon, people.minimum)
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


def pseudonym_of(key: Key, listing: Listing, seller: Account) -> str:
    """Return under which name a member stands in files: it tells nothing, and is the same after a restored backup."""
    parts = ("market member", listing.id, seller.name)
    return key.derive(b"".join(length_prefixed(part.encode()) for part in parts))[:16].hex()


def join(
    connection: Connection, listing: Listing, seller: Account, level: WireLevel, report: str | int | float,
    minimum: int, key: Key,
) -> Listing:  # fmt: skip
    """Take the report of a single seller: the first one, or one at a higher level. The market is held."""
    if listing.kind != "pool" or listing.state != "open":
        raise ListingStateError(f"this listing takes no single reports. {_NOTHING}")
    if type(minimum) is not int or not 0 <= minimum <= MOST_CREDITS:
        raise MarketError(f"the least price is a whole number of credits, 0 or more. {_NOTHING}")
    epsilon, encoding = as_epsilon(level.epsilon), listing.encoding
    limit, threshold = level_on(listing.grid, epsilon, encoding, _NOTHING)
    if level.threshold != str(threshold) or level.epsilon != epsilon_text(epsilon):
        raise DeliveryError(f"epsilon and threshold are not one level. {_NOTHING}")
    codec = codec_of(encoding)
    kept = _kept(codec, report)
    known = members_of(connection, listing, seller.number)
    objects = listing.objects
    if known:
        _check_same_path(known[0], threshold, kept, codec)
        connection.execute(
            update(MEMBERS)
            .where(MEMBERS.c.listing == listing.number, MEMBERS.c.account == seller.number)
            .values(minimum=minimum)
        )
        if threshold in known[0].levels:  # the same report again, to change the least price
            return listing
    else:
        if objects >= MOST_MEMBERS:
            raise MarketError(f"a pool has at most {MOST_MEMBERS:,} members. {_NOTHING}")
        row = {"listing": listing.number, "account": seller.number, "pseudonym": pseudonym_of(key, listing, seller)}
        connection.execute(insert(MEMBERS).values(**row, minimum=minimum))
        objects += 1
    _keep(connection, listing, {seller.number: Kept(threshold, limit, True, kept)})
    return change(connection, listing, objects=objects)


def _check_same_path(member: Member, threshold: int, kept: bytes, codec: Codec) -> None:
    delivered = [level.threshold for level in member.levels.values() if level.delivered]
    top = member.levels[max(delivered)]
    if kept[: codec.fixed] != top.report[: codec.fixed]:
        raise DeliveryError(f"this report has another seed than the one before: it is not of one path. {_NOTHING}")
    if threshold != top.threshold or kept != top.report:
        check_delivery(threshold, delivered)


def _offer(listing: Listing, epsilon: Decimal, most: Decimal | None) -> tuple[Decimal, int, int]:
    """Return the level that an epsilon means, its threshold, and what one object of it costs."""
    level, threshold = level_of(listing, epsilon, most)
    return level, threshold, listing.prices.price(level, Fraction(threshold, ONE))


def pool_quote(connection: Connection, listing: Listing, buyer: Account, epsilon: Decimal) -> Deal:
    """Return what a level of a pool means to a buyer, without looking at a report: anybody may ask, and often."""
    standing = standing_of(connection, listing)
    level, threshold, each = _offer(listing, epsilon, standing.authorised)
    objects = standing.willing(level, each)
    offer = Offer(listing, level, threshold, each * objects, objects, each)
    owned = purchases.owned(connection, listing, buyer.number)
    paid = _paid_before(connection, owned)
    willing = _willing(connection, listing, level, each) if paid else set()
    return Deal(offer, offer.price - sum(price for account, price in paid.items() if account in willing), owned)


def pool_deal(
    connection: Connection, listing: Listing, buyer: Account, epsilon: Decimal
) -> tuple[Deal, dict[int, int], list[Member]]:
    """Return what a level of a pool means to a buyer, and what each member would earn.

    A sale contains everybody who delivered at least that level, for at least their own price. For a member who was in
    a purchase that is upgraded the difference is due, for everybody else the whole price.
    """
    members = members_of(connection, listing)
    level, threshold, each = _offer(listing, epsilon, max((member.limit for member in members), default=None))
    willing = [member for member in members if member.limit >= level and member.minimum <= each]
    offer = Offer(listing, level, threshold, each * len(willing), len(willing), each)
    owned = purchases.owned(connection, listing, buyer.number)
    paid = _paid_before(connection, owned)
    shares = {member.account: each - paid.get(member.account, 0) for member in willing}
    return Deal(offer, sum(shares.values()), owned), shares, willing


def _paid_before(connection: Connection, owned: Purchase | None) -> dict[int, int]:
    """Return what a buyer paid for each member in what is owned and in what that upgraded."""
    paid: dict[int, int] = {}
    for earlier in [] if owned is None else reversed(purchases.chain(connection, owned)):
        paid |= purchases.members_of(connection, earlier.number)  # prices grow along a chain
    return paid


def sell(
    connection: Connection, order: Order, deal: Deal, shares: dict[int, int], willing: list[Member], buyer: Account,
    *, key: Key, signer: Signer, now: float, folder: Path,
) -> Purchase:  # fmt: skip
    """Draw what is missing, keep it, take and give the credits, and sign. The market is held throughout."""
    offer, listing = deal.offer, deal.offer.listing
    if not willing:
        raise NotAuthorisedError(
            f"nobody in this pool sells at epsilon {epsilon_text(offer.epsilon)} for {offer.each:,} credits. "
            "Nothing was sold.",
            epsilon=epsilon_text(offer.epsilon),
        )
    reports = _reports(connection, listing, offer, willing, key)
    ids = pa.array([member.pseudonym for member in willing], pa.string())
    column = codec_of(listing.encoding).column([reports[member.account] for member in willing])
    path = folder / "pool.parquet"
    write_level(_goods(listing, offer.epsilon, offer.threshold, ids, column), path)
    digest = digest_of(path)
    keep_file(connection, path, digest)
    purchase = record(connection, deal, buyer, digest, signer, now)
    purchases.keep_members(connection, purchase.number, [member.account for member in willing], offer.each)
    pay(connection, purchase, listing, shares)
    return purchase


def _reports(
    connection: Connection, listing: Listing, offer: Offer, willing: list[Member], key: Key
) -> dict[int, bytes]:
    """Return everybody's report at a level: the one that is out, or a new one between each person's own neighbours."""
    found: dict[int, bytes] = {}
    groups: defaultdict[tuple[int | None, int], list[Member]] = defaultdict(list)
    for member in willing:
        between = neighbours(offer.threshold, member.levels)
        if between is None:
            found[member.account] = member.levels[offer.threshold].report
        else:
            groups[between.lower, between.upper].append(member)
    for (lower, upper), group in groups.items():
        drawn = _drawn(listing, offer, group, lower, upper, key)
        new = {
            member.account: Kept(offer.threshold, offer.epsilon, False, report, lower, upper)
            for member, report in zip(group, drawn, strict=True)
        }
        _keep(connection, listing, new)
        found |= {account: kept.report for account, kept in new.items()}
    return found


def _drawn(listing: Listing, offer: Offer, group: list[Member], lower: int | None, upper: int, key: Key) -> list[bytes]:
    codec = codec_of(listing.encoding)
    ids = pa.array([member.pseudonym for member in group], pa.string())

    def at(threshold: int) -> Goods:
        epsilon = group[0].levels[threshold].epsilon
        column = codec.column([member.levels[threshold].report for member in group])
        return _goods(listing, epsilon, threshold, ids, column)

    goods = draw_level(
        key, listing.id, offer.epsilon, offer.threshold, lower=None if lower is None else at(lower), upper=at(upper)
    )
    return kept_reports(listing.encoding, goods.reports)


def kept_reports(encoding: Encoding, column: Any) -> list[bytes]:
    """Return a column of reports as the bytes in which single ones are kept: the inverse of a codec's `column`."""
    if isinstance(encoding, PackedEncoding):
        return [row.tobytes() for row in packed_matrix(column, encoding.report_width)]
    width = codec_of(encoding).width
    return [int(code).to_bytes(width, "little") for code in encoding.codes(column).reshape(-1)]


def _goods(listing: Listing, epsilon: Decimal, threshold: int, ids: Any, column: Any) -> Goods:
    assert listing.described is not None  # noqa: S101
    return Goods(MEMBER, replace(listing.described, epsilon=epsilon, threshold=threshold), ids, column)


def _kept(codec: Codec, report: str | int | float) -> bytes:
    try:
        return codec.read(report, None)
    except ReportOutsideEncodingError:
        raise ReportOutsideEncodingError(f"this is no report of the pool's encoding. {_NOTHING}") from None


def _keep(connection: Connection, listing: Listing, new: Mapping[int, Kept]) -> None:
    """Keep one new report of each account, once and for good."""
    rows = [
        {
            "listing": listing.number,
            "account": account,
            "threshold": level_text(kept.threshold),
            "epsilon": epsilon_text(kept.epsilon),
            "delivered": kept.delivered,
            "lower": end_text(kept.lower),
            "upper": end_text(kept.upper),
            "report": kept.report,
        }
        for account, kept in new.items()
    ]
    connection.execute(insert(MEMBER_LEVELS), rows)
