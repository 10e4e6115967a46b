"""Listings and their levels: who sells what, at which prices, and how accurate each level is."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from relaxdp.market.level_file import (
    LevelReports,
    compute_level_digest,
    compute_path_digest,
    describe_path,
    require_tradable_mechanism,
    write_level_file,
)
from relaxdp.market.schema import FILES, LEVELS, LISTINGS, MAX_LEVELS, POOL_REPORTS
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import (
    LevelDiffersError,
    LevelFileError,
    ListingExistsError,
    MarketError,
    UnknownLevelError,
    UnknownListingError,
)
from relaxdp.service.precision import DEFAULT, Precision
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import Epsilon
from relaxdp.theory.randomized_response import Level

MAX_TITLE = 200
PART_BYTES = 256 << 10  # so much of a file is in memory for each buyer who downloads it
_PRICE = re.compile(r"[0-9]{1,12}([.][0-9]{1,4})?")


def parse_price(text: str) -> Decimal:
    """Return an amount of money that is written with at most four decimals.

    >>> parse_price("9.50"), parse_price("60")
    (Decimal('9.50'), Decimal('60'))
    """
    try:
        if _PRICE.fullmatch(text):
            return Decimal(text)
    except InvalidOperation:
        pass
    raise MarketError("The price {text!r} is not an amount such as 60 or 9.50.", text=text)


@dataclass(frozen=True)
class Listing:
    """A column of a release that is for sale, or a pool whose members sell one report each."""

    id: str
    kind: str
    seller: str
    """The member who sells it; empty for a pool, which the operator runs."""
    described: str
    column: str
    """The column of reports in the files of its levels."""
    id_column: str
    title: str
    about: str
    currency: str
    approval: str

    @cached_property
    def description(self) -> ColumnDescription:
        """The path: release, attribute, mechanism and key fingerprint, without a level."""
        return ColumnDescription.from_dict(json.loads(self.described))

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism of all its levels."""
        return require_tradable_mechanism(self.description)

    def parse_level(self, epsilon: Epsilon) -> Level:
        """Return the level at an epsilon."""
        return self.mechanism.level(epsilon)


@dataclass(frozen=True, slots=True)
class ListedLevel:
    """A level that is for sale."""

    level: Level
    price: Decimal
    rows: Mapping[str, int]
    """The number of rows at each level: rows with a lower limit are at that."""
    digest: str | None
    """None for a level of a pool, whose file is made for each order."""

    @property
    def key(self) -> str:
        """The level as tables store it."""
        return format_threshold(self.level)


def format_threshold(level: Level) -> str:
    """Return the threshold in 20 digits.

    >>> from relaxdp.mechanisms.categorical import Categorical
    >>> format_threshold(Categorical(["no", "yes"]).level("1e-18"))
    '00000000000000000009'
    """
    return f"{level.threshold:020d}"


# Listings.


def create_listing(
    connection: Connection, *, listing_id: str, kind: str, seller: str, description: ColumnDescription, column: str,
    id_column: str, currency: str, title: str | None, about: str | None, approval: str | None,
    limits: str | None = None,
) -> Listing:  # fmt: skip
    """Create a listing, or confirm the one that exists. Only title, text and approval may change."""
    path, described = compute_path_digest(description), describe_path(description)
    if description.level_column is not None:  # the levels of all its files are limited, or those of none
        described = replace(described, level_column=description.level_column, row_epsilons=(described.epsilon,))
    fixed = {
        "kind": kind, "seller": seller, "path": path, "column": column, "id_column": id_column, "currency": currency,
        "description": json.dumps(described.to_dict(), sort_keys=True), "limits": limits or "",
    }  # fmt: skip
    given = {
        name: text for name, text in (("title", title), ("about", about), ("approval", approval)) if text is not None
    }
    name = f"{description.path.release}: {description.path.attribute}"
    free = {"title": name[:MAX_TITLE], "about": "", "approval": "seller"} | given
    known = connection.execute(
        select(LISTINGS).where(
            (LISTINGS.c.id == listing_id) | ((LISTINGS.c.path == path) & (LISTINGS.c.seller == seller))
        )
    ).all()
    if not known:
        connection.execute(insert(LISTINGS).values(id=listing_id, **fixed, **free))
    for row in known:
        if row.id != listing_id:
            raise ListingExistsError(
                "This column is listed already, as {listing!r}. A path has one listing.",
                hint="Publish its levels there: --listing {listing}.",
                listing=row.id,
            )
        _require_same_terms(row, fixed)
        if given:
            connection.execute(update(LISTINGS).where(LISTINGS.c.id == listing_id).values(**given))
    return find_listing(connection, listing_id)


def _require_same_terms(row: Row[Any], fixed: Mapping[str, str]) -> None:
    if row.seller != fixed["seller"]:
        raise ListingExistsError(
            "Another seller has a listing {listing!r}.", hint="Choose another name: --listing NAME.", listing=row.id
        )
    if row.limits != fixed["limits"]:
        raise ListingExistsError(
            "All levels of the listing {listing!r} have {limits}.",
            hint="{change}, or choose another name: --listing NAME.",
            listing=row.id,
            limits=f"the limits of the column {row.limits!r}" if row.limits else "no limits",
            change=f"Repeat --limits {row.limits}" if row.limits else "Leave out --limits",
        )
    if row.currency != fixed["currency"]:
        raise ListingExistsError(
            "The prices of the listing {listing!r} are in {currency}.",
            hint="Repeat --currency {currency}.",
            listing=row.id,
            currency=row.currency,
        )
    if any(getattr(row, name) != value for name, value in fixed.items()):
        raise ListingExistsError(
            "The listing {listing!r} has another release, column, mechanism or key.",
            hint="Choose another name: --listing NAME.",
            listing=row.id,
        )


def find_listing(connection: Connection, listing_id: str) -> Listing:
    """Return a listing."""
    # PostgreSQL has no null character in a text, and would fail instead of finding nothing.
    query = select(LISTINGS).where(LISTINGS.c.id == listing_id)
    row = None if "\0" in listing_id else connection.execute(query).first()
    if row is None:
        raise UnknownListingError(
            "There is no listing {listing!r}.", hint="List what is for sale: relaxdp market list.", listing=listing_id
        )
    return _read_listing(row)


def list_listings(connection: Connection, seller: str | None = None) -> list[Listing]:
    """Return all listings, or those of a seller, by name."""
    query = select(LISTINGS).order_by(LISTINGS.c.id)
    rows = connection.execute(query if seller is None else query.where(LISTINGS.c.seller == seller))
    return [_read_listing(row) for row in rows]


def _read_listing(row: Row[Any]) -> Listing:
    return Listing(
        row.id, row.kind, row.seller, row.description, row.column, row.id_column, row.title, row.about, row.currency,
        row.approval,
    )  # fmt: skip


# Levels.


def list_levels(connection: Connection, listing: Listing) -> list[ListedLevel]:
    """Return the levels of a listing, ascending."""
    query = select(LEVELS).where(LEVELS.c.listing == listing.id).order_by(LEVELS.c.threshold)
    rows = connection.execute(query).all()
    counts = {row.threshold: json.loads(row.rows) for row in rows}
    if listing.kind == "pool":
        limits, epsilons = _count_limits(connection, listing), {row.threshold: row.epsilon for row in rows}
        counts = {row.threshold: count_pool_rows(limits, epsilons, row.threshold) for row in rows}
    return [
        ListedLevel(
            listing.mechanism.level(row.epsilon, int(row.threshold)), Decimal(row.price), counts[row.threshold],
            row.digest,
        )
        for row in rows
    ]  # fmt: skip


def _count_limits(connection: Connection, listing: Listing) -> dict[str, int]:
    """Return how many members have each limit, by the text that tables have of a level."""
    columns = POOL_REPORTS.c
    tops = (
        select(func.max(columns.threshold).label("top"))
        .where(columns.listing == listing.id)
        .group_by(columns.member)
        .subquery()
    )
    return {
        row.top: row.n for row in connection.execute(select(tops.c.top, func.count().label("n")).group_by(tops.c.top))
    }


def count_pool_rows(limits: Mapping[str, int], epsilons: Mapping[str, str], threshold: str) -> dict[str, int]:
    """Return the number of rows at each epsilon of a level's file: those of members at min(level, own limit).

    >>> count_pool_rows({"01": 3, "05": 2, "09": 1}, {"01": "0.1", "05": "0.5", "09": "1"}, "05")
    {'0.1': 3, '0.5': 3}
    """
    rows: Counter[str] = Counter()
    for limit, n in sorted(limits.items()):
        rows[epsilons[min(limit, threshold)]] += n
    return dict(rows)


def find_level(connection: Connection, listing: Listing, epsilon: Epsilon) -> ListedLevel:
    """Return a level that is for sale."""
    level, known = listing.parse_level(epsilon), list_levels(connection, listing)
    for each in known:
        if each.level == level:
            return each
    raise UnknownLevelError(
        "The listing {listing!r} does not sell epsilon {epsilon}. Its levels are {levels}.",
        hint="Choose one of its levels: relaxdp market list {listing}.",
        listing=listing.id,
        epsilon=level,
        levels=", ".join(str(each.level) for each in known) or "not published yet",
    )


def check_prices(levels: Sequence[tuple[Level, Decimal]]) -> None:
    """Reject prices that fall as epsilon grows: an upgrade costs the difference."""
    ordered = sorted(levels, key=lambda each: each[0])
    for (low, cheap), (high, dear) in pairwise(ordered):
        if cheap > dear:
            raise MarketError(
                "Epsilon {high} costs {dear}, which is less than the price of epsilon {low}, {cheap}.",
                hint="Let prices grow with epsilon, or stay the same.",
                low=low,
                cheap=cheap,
                high=high,
                dear=dear,
            )


def plan_levels(
    connection: Connection, listing: Listing, prices: Mapping[str, str]
) -> list[tuple[Level, Decimal, ListedLevel | None]]:
    """Return levels with their prices and what is published at them, or reject them before anything is drawn."""
    known = list_levels(connection, listing)
    asked = [(listing.parse_level(epsilon), parse_price(price)) for epsilon, price in prices.items()]
    found = {each.level: each for each in known}
    if len(dict(asked)) < len(asked):
        raise MarketError("Two of the levels are equal.", hint="Name each level once.")
    for level, price in asked:
        if level in found and found[level].price != price:
            raise MarketError(
                "Epsilon {epsilon} of {listing!r} costs {price}. The price of a published level does not change.",
                hint="State the published price for this level, or leave the level out.",
                epsilon=level,
                listing=listing.id,
                price=found[level].price,
            )
    merged = {**{each.level: each.price for each in known}, **dict(asked)}
    if len(merged) > MAX_LEVELS:
        raise MarketError(
            "The listing would have {levels} levels. The maximum is {maximum}.",
            hint="Choose fewer levels.",
            levels=len(merged),
            maximum=MAX_LEVELS,
        )
    check_prices(list(merged.items()))
    return [(level, price, found.get(level)) for level, price in sorted(asked)]


@dataclass(frozen=True, slots=True)
class PreparedLevel:
    """A level as it is stored: its digest, the rows at each level, and the bytes of its file."""

    reports: LevelReports
    digest: str
    content: bytes

    @classmethod
    def create(cls, reports: LevelReports, folder: Path) -> PreparedLevel:
        """Compute the digest, and write the file into a private folder."""
        place = folder / "level.parquet"
        write_level_file(reports, place)
        return cls(reports, compute_level_digest(reports), place.read_bytes())


def add_level(connection: Connection, listing: Listing, prepared: PreparedLevel, price: str) -> bool:
    """Publish a level, and return whether it is new. A published level is accepted again only if it is the same."""
    reports = prepared.reports
    is_path = compute_path_digest(reports.description) == compute_path_digest(listing.description)
    names = (listing.column, listing.id_column, listing.description.level_column)
    if not is_path or (reports.column, reports.id_column, reports.description.level_column) != names:
        raise LevelFileError(
            "The file is not a level of the listing {listing!r}: its release, columns, mechanism or key differ.",
            hint="Publish it as another listing: --listing NAME.",
            listing=listing.id,
        )
    ((level, amount, known),) = plan_levels(connection, listing, {str(reports.level): price})
    if known is not None:
        if known.digest != prepared.digest:
            raise LevelDiffersError(
                "Epsilon {epsilon} of {listing!r} is published with other ids or reports, and is never replaced.",
                hint="If rows joined or left, leave this level out. Release corrected data under a new name.",
                epsilon=level,
                listing=listing.id,
            )
        return False
    keep_file(connection, prepared.digest, prepared.content)
    insert_level(connection, listing, level, amount, reports.count_rows(), prepared.digest)
    return True


def insert_level(
    connection: Connection, listing: Listing, level: Level, price: Decimal, rows: Mapping[str, int], digest: str | None
) -> None:
    """Store a level; the database allows each only once, and at most 100 of them."""
    place = connection.execute(select(func.count()).where(LEVELS.c.listing == listing.id)).scalar_one() + 1
    connection.execute(
        insert(LEVELS).values(
            listing=listing.id, threshold=format_threshold(level), epsilon=str(level), price=str(price), place=place,
            rows=json.dumps(rows), digest=digest,
        )
    )  # fmt: skip


def keep_file(connection: Connection, digest: str, content: bytes) -> None:
    """Store a file, unless it is stored already."""
    if connection.execute(select(FILES.c.part).where(FILES.c.digest == digest).limit(1)).first() is None:
        for place, start in enumerate(range(0, len(content), PART_BYTES)):
            part = content[start : start + PART_BYTES]
            connection.execute(insert(FILES).values(digest=digest, part=place, content=part))


def read_file_part(connection: Connection, digest: str, place: int) -> bytes | None:
    """Return one part of a file; None after the last."""
    query = select(FILES.c.content).where(FILES.c.digest == digest, FILES.c.part == place)
    found = connection.execute(query).scalar()
    return None if found is None else bytes(found)


def count_file_bytes(connection: Connection, digest: str) -> int:
    """Return how many bytes a file has."""
    query = select(func.coalesce(func.sum(func.length(FILES.c.content)), 0)).where(FILES.c.digest == digest)
    return int(connection.execute(query).scalar_one())


# What buyers see before they order.


@dataclass(frozen=True, slots=True)
class LevelOffer:
    """A level with its expected margin of error, which depends on its rows and levels, never on a report."""

    level: Level
    price: Decimal
    rows: Mapping[str, int]
    margin: float | None
    is_useful: bool
    """Whether the margin is at most a tenth of what could be known either way."""
    is_dominated: bool
    """Whether another level costs no more and is more accurate."""


def make_offers(listing: Listing, levels: Iterable[ListedLevel]) -> list[LevelOffer]:
    """Return the levels with their margins of error."""
    found = list(_compute_margins(listing, levels))

    def is_dominated(price: Decimal, margin: float | None) -> bool:
        return any(
            other.price <= price and other_margin is not None and (margin is None or other_margin < margin)
            for other, other_margin, _ in found
        )

    return [
        LevelOffer(each.level, each.price, each.rows, margin, is_useful, is_dominated(each.price, margin))
        for each, margin, is_useful in found
    ]


def _compute_margins(
    listing: Listing, levels: Iterable[ListedLevel]
) -> Iterator[tuple[ListedLevel, float | None, bool]]:
    for each in levels:
        precision = Precision(listing.mechanism, list(each.rows), DEFAULT)
        margin = precision.half_width(list(each.rows.values()))
        yield each, margin, margin is not None and margin <= precision.readable


def recommend_level(offers: Sequence[LevelOffer]) -> Level | None:
    """Return the cheapest useful level that no other dominates; None where no level is useful."""
    useful = [each for each in offers if each.is_useful and not each.is_dominated]
    return min(useful, key=lambda each: (each.price, each.level)).level if useful else None
