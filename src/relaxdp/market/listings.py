"""Listings in the database: what is for sale, at which levels, and what it is drawn from."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import Connection, Row, insert, select, update

from relaxdp.market.accounts import NAME_PATTERN, OPERATOR, MarketAccount, next_number
from relaxdp.market.details import NOTHING_SAID, Details, details_text, read_details
from relaxdp.market.levels import Grid, Neighbours
from relaxdp.market.prices import PriceCurve, prices_from_json
from relaxdp.market.schema import LEVELS, LISTINGS, PURCHASES
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import ListingExistsError, MarketError, UnknownListingError
from relaxdp.service.precision import DEFAULT, Precision
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level

Kind = Literal["release", "pool"]
ID_PATTERN = NAME_PATTERN
_ID = re.compile(ID_PATTERN)
MOST_TITLE = 200


@dataclass(frozen=True)
class StoredListing:
    """One listing. What it holds is known from the first delivery on; of a pool, from the beginning."""

    number: int
    id: str
    kind: Kind
    seller: int | None
    title: str
    state: str
    budget: Decimal | None
    path: str | None
    """The name under which what it holds is sold here and nowhere else; see `claim_path`."""
    id_column: str | None
    objects: int
    terms: tuple[str, str, str | None]
    """Prices, levels and description as they are kept: read when they are needed."""
    said: str = "{}"
    question: str | None = None
    """What a pool asks, where its title does not say it: read by whoever joins, after the limit."""
    suggested: Decimal | None = None
    """The limit that a pool suggests to whoever joins."""

    @cached_property
    def details(self) -> Details:
        """What it says of itself."""
        return read_details(self.said)

    @cached_property
    def prices(self) -> PriceCurve:
        """What its levels cost."""
        return prices_from_json(json.loads(self.terms[0]))

    @cached_property
    def grid(self) -> Grid:
        """The levels that it sells, or will sell; of a draft, those that were stated."""
        return tuple(Decimal(level) for level in json.loads(self.terms[1]))

    @cached_property
    def described(self) -> ColumnDescription | None:
        """What it holds."""
        text = self.terms[2]
        return None if text is None else ColumnDescription.from_dict(json.loads(text))

    @cached_property
    def encoding(self) -> Mechanism:
        """The encoding of what is sold."""
        assert self.described is not None  # noqa: S101 (nobody asks before the first delivery)
        return self.described.mechanism()

    @cached_property
    def _known(self) -> dict[tuple[str, str], Level]:
        return {}

    def level(self, row: Row[Any]) -> Level:
        """Return the level that a row keeps as two texts: here they are read back, and nowhere else."""
        texts = row.epsilon, row.threshold
        if texts not in self._known:  # a pool has many rows at a few levels
            self._known[texts] = self.encoding.level(row.epsilon, int(row.threshold))
        return self._known[texts]

    def price(self, level: Level) -> int:
        """Return what a level costs: of a pool, for each object."""
        return self.prices.price(level.epsilon, level.retention)

    def half_width(self, level: Level, objects: int) -> float | None:
        """Return how precise shares (or a mean) from so many objects will be, at worst; 95 % intervals."""
        if not objects:
            return None
        return Precision(self.encoding, [str(level)], DEFAULT).half_width([objects])


def level_text(level: Level) -> str:
    """Return the threshold of a level as it is kept.

    >>> from relaxdp.mechanisms.categorical import Categorical
    >>> level_text(Categorical(["no", "yes"]).level("1e-18"))
    '00000000000000000009'
    """
    return f"{level.threshold:020d}"


def level_columns(level: Level) -> dict[str, str]:
    """Return a level as it is kept: two texts, which `Listing.level` reads back."""
    return {**level.to_dict(), "threshold": level_text(level)}


@dataclass(frozen=True, slots=True)
class KeptLevel:
    """A level that is out: delivered, or drawn between two others."""

    level: Level
    between: Neighbours | None
    """What it was drawn from; None where it was delivered."""

    @property
    def delivered(self) -> bool:
        """Whether it came from a seller."""
        return self.between is None

    def columns(self) -> dict[str, Any]:
        """Return it as it is kept."""
        lower, upper = (None, None) if self.between is None else (self.between.lower, self.between.upper)
        return {
            **level_columns(self.level),
            "delivered": self.delivered,
            "lower": None if lower is None else level_text(lower),
            "upper": None if upper is None else level_text(upper),
        }


@dataclass(frozen=True, slots=True)
class KeptFile(KeptLevel):
    """A level of a release that is out: all of its reports in one file."""

    digest: str


def origins(listing: StoredListing, rows: Sequence[Row[Any]]) -> list[tuple[Level, Neighbours | None]]:
    """Return the levels that rows keep, and what each was drawn from: other levels of the same listing."""
    named = {row.threshold: listing.level(row) for row in rows}
    return [
        (
            listing.level(row),
            None if row.delivered else Neighbours(None if row.lower is None else named[row.lower], named[row.upper]),
        )
        for row in rows
    ]


def create(
    connection: Connection,
    listing_id: str | None,
    *,
    kind: Kind,
    title: str,
    prices: PriceCurve,
    grid: Grid = (),
    details: Details = NOTHING_SAID,
    question: str | None = None,
    suggested: Decimal | None = None,
    seller: int | None = None,
    budget: Decimal | None = None,
    described: ColumnDescription | None = None,
) -> str:
    """Make a listing and return its id. A release is a draft until its first delivery."""
    chosen = secrets.token_hex(8) if listing_id is None else listing_id
    if _ID.fullmatch(chosen) is None:
        raise MarketError("the id of a listing has 1 to 64 small letters, digits and hyphens.")
    if not title.strip() or len(title) > MOST_TITLE:
        raise MarketError("a listing needs a title, of at most {most} letters.", most=MOST_TITLE)
    if question is not None and (not question.strip() or len(question) > MOST_TITLE):
        raise MarketError("the question of a pool has 1 to {most} letters.", most=MOST_TITLE)
    if connection.execute(select(LISTINGS.c.number).where(LISTINGS.c.id == chosen)).first() is not None:
        raise ListingExistsError("there is a listing {listing!r} already.", listing=chosen)
    row = {
        "id": chosen,
        "kind": kind,
        "seller": seller,
        "title": title.strip(),
        "state": "draft" if described is None else "open",
        "prices": json.dumps(prices.to_json()),
        "grid": grid_text(grid),
        "details": details_text(details),
        "question": None if question is None else question.strip(),
        "suggested": None if suggested is None else format_epsilon(suggested),
        "budget": None if budget is None else format_epsilon(budget),
        "described": None if described is None else json.dumps(described.to_dict()),
        "objects": 0,
    }
    connection.execute(insert(LISTINGS).values(number=next_number(connection, LISTINGS), **row))
    return chosen


def grid_text(grid: Grid) -> str:
    """Return levels as they are kept."""
    return json.dumps([format_epsilon(level) for level in grid])


def find(connection: Connection, listing_id: str) -> StoredListing:
    """Return a listing by its id."""
    row = None
    if _ID.fullmatch(listing_id):
        row = connection.execute(select(LISTINGS).where(LISTINGS.c.id == listing_id)).first()
    if row is None:
        raise UnknownListingError("there is no listing with this id.")
    return _listing(row)


def numbered(connection: Connection, number: int) -> StoredListing:
    """Return a listing by its number."""
    return _listing(connection.execute(select(LISTINGS).where(LISTINGS.c.number == number)).one())


def of_path(connection: Connection, path: str) -> StoredListing | None:
    """Return the listing that sells a path; None where none does."""
    row = connection.execute(select(LISTINGS).where(LISTINGS.c.path == path)).first()
    return None if row is None else _listing(row)


def everything(connection: Connection, who: MarketAccount | None) -> list[StoredListing]:
    """Return all listings that somebody may see, in the order in which they were made: of drafts, one's own."""
    own = None if who is None else who.number
    seen = (LISTINGS.c.state != "draft") | (LISTINGS.c.seller == own) | (own == OPERATOR.number)
    return [_listing(row) for row in connection.execute(select(LISTINGS).where(seen).order_by(LISTINGS.c.number))]


def of_seller(connection: Connection, seller: int) -> list[StoredListing]:
    """Return the listings of a seller."""
    query = select(LISTINGS).where(LISTINGS.c.seller == seller).order_by(LISTINGS.c.number)
    return [_listing(row) for row in connection.execute(query)]


def change(connection: Connection, listing: StoredListing, **columns: Any) -> StoredListing:
    """Change columns of a listing, and return it as it is now."""
    connection.execute(update(LISTINGS).where(LISTINGS.c.number == listing.number).values(**columns))
    return numbered(connection, listing.number)


def describe(connection: Connection, listing: StoredListing, described: ColumnDescription) -> StoredListing:
    """Say what a listing holds."""
    return change(connection, listing, described=json.dumps(described.to_dict()))


def claim_path(connection: Connection, listing: StoredListing, described: ColumnDescription) -> str:
    """Return the name under which a path is sold, or refuse one that is sold elsewhere.

    Two listings of one path would draw their levels independently of each other, and together they would tell more
    than the larger one.
    """
    named = json.dumps([described.key_fingerprint, described.path.release, described.path.attribute])
    path = sha256(named.encode()).hexdigest()  # names may be longer than what an index takes
    known = select(LISTINGS.c.id).where(LISTINGS.c.path == path, LISTINGS.c.number != listing.number)
    holder = connection.execute(known).scalar()
    if holder is not None:
        raise ListingExistsError(
            "this release is listed already, as {listing!r}, and one path is sold in one place only.",
            listing=holder,
        )
    return path


def anything_sold(connection: Connection, listing: StoredListing) -> bool:
    """Tell whether anything of a release was ever sold, refunded or not: a purchase, or a level drawn for one."""
    bought = select(PURCHASES.c.number).where(PURCHASES.c.listing == listing.number)
    drawn = select(LEVELS.c.threshold).where(LEVELS.c.listing == listing.number, ~LEVELS.c.delivered)
    return any(connection.execute(query.limit(1)).first() is not None for query in (bought, drawn))


def levels_of(connection: Connection, listing: StoredListing) -> dict[Level, KeptFile]:
    """Return all levels of a release that are out, ascending."""
    query = select(LEVELS).where(LEVELS.c.listing == listing.number).order_by(LEVELS.c.threshold)
    rows = connection.execute(query).all()
    found = zip(origins(listing, rows), rows, strict=True)
    return {level: KeptFile(level, between, row.digest) for (level, between), row in found}


def authorised(connection: Connection, listing: StoredListing) -> Level | None:
    """Return the largest level of a release that was delivered; None before the first delivery."""
    query = select(LEVELS).where(LEVELS.c.listing == listing.number, LEVELS.c.delivered)
    row = connection.execute(query.order_by(LEVELS.c.threshold.desc()).limit(1)).first()
    return None if row is None else listing.level(row)


def keep_level(connection: Connection, listing: StoredListing, kept: KeptFile) -> None:
    """Keep a level, once and for good."""
    connection.execute(insert(LEVELS).values(listing=listing.number, **kept.columns(), digest=kept.digest))


def _listing(row: Row[Any]) -> StoredListing:
    return StoredListing(
        number=row.number,
        id=row.id,
        kind=row.kind,
        seller=row.seller,
        title=row.title,
        question=row.question,
        suggested=None if row.suggested is None else Decimal(row.suggested),
        state=row.state,
        budget=None if row.budget is None else Decimal(row.budget),
        path=row.path,
        id_column=row.id_column,
        objects=int(row.objects),
        terms=(row.prices, row.grid, row.described),
        said=row.details,
    )
