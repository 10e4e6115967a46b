"""The requests and answers of the market over HTTP, as strict types: unknown fields are rejected."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from relaxdp.market.listings import MAX_TITLE
from relaxdp.market.schema import MAX_LEVELS
from relaxdp.service.wire import ID_PATTERN, WHOLE_TEXT, EncodingRequest, EpsilonText

Id = Annotated[str, Meta(pattern=ID_PATTERN)]
Currency = Annotated[str, Meta(pattern=f"^[A-Z]{{3}}{WHOLE_TEXT}", description="Such as EUR.")]
Amount = Annotated[str, Meta(max_length=20, description="Such as 60 or 9.50.")]
# PostgreSQL keeps no null character in a text.
_PLAIN = "^[^\\u0000]*$"
Title = Annotated[str, Meta(min_length=1, max_length=MAX_TITLE, pattern=_PLAIN)]
Column = Annotated[str, Meta(min_length=1, max_length=1000, pattern=_PLAIN)]
About = Annotated[str, Meta(max_length=2000, pattern=_PLAIN)]
Prices = Annotated[dict[EpsilonText, Amount], Meta(min_length=1, max_length=MAX_LEVELS)]
Approval = Literal["seller", "automatic"]
Role = Literal["seller", "buyer"]
OrderState = Literal["requested", "approved", "withdrawn"]


class TokenRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A token for a new member; with `renew`, a new one for a member who exists."""

    name: Id
    role: Role
    renew: bool = False


class NewToken(Struct, frozen=True):
    """A token, which is shown once."""

    name: str
    role: Role
    token: str


class MemberView(Struct, frozen=True):
    """Whose token a request has."""

    name: str
    role: Literal["seller", "buyer", "operator"]


class ListingRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A column of a release that is to be sold, with the prices of levels that are about to be published.

    Title, text and approval of a listing that exists stay as they are where the request leaves them out.
    """

    id: Id
    currency: Currency
    prices: Prices
    column: Column
    id_column: Column
    description: dict[str, Any]
    """The column as a released file describes it."""
    limits: Column | None = None
    """The column with the limits of individuals, which is the same for all levels of a listing."""
    title: Title | None = None
    about: About | None = None
    approval: Approval | None = None


class PoolRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A pool, whose members sell one report each."""

    id: Id
    title: Title
    currency: Currency
    prices: Prices
    encoding: EncodingRequest
    about: About = ""
    approval: Approval = "seller"


class PoolReports(Struct, frozen=True, forbid_unknown_fields=True):
    """The reports of one member, by epsilon: labels or numbers, or packed bytes in base 64."""

    reports: Annotated[dict[EpsilonText, str | int | float], Meta(min_length=1, max_length=MAX_LEVELS)]


class OrderRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A level to be ordered. An upgrade is asked for as such."""

    epsilon: EpsilonText
    upgrade: bool = False


class ReceiptContent(Struct, frozen=True, forbid_unknown_fields=True):
    """A signed receipt, as it travels."""

    receipt: dict[str, Any]
    signature: Annotated[str, Meta(max_length=200)]


class LevelOptions(Struct, frozen=True):
    """The price of a level that is published."""

    price: Amount


class OfferView(Struct, frozen=True):
    """A level for sale. `margin` is the largest expected margin of error (95 %) of a share or of the mean."""

    epsilon: str
    threshold: str
    price: str
    due: str
    """What the buyer who asks would pay: an upgrade costs the difference."""
    rows: int
    rows_by_level: dict[str, int]
    margin: float | None
    is_useful: bool
    is_dominated: bool
    """Whether another level costs no more and is more accurate."""
    digest: str | None
    """For the seller alone: with it, others could confirm a guess of reports that they did not buy."""


class ListingView(Struct, frozen=True):
    """A listing, as everyone sees it."""

    id: str
    kind: Literal["release", "pool"]
    title: str
    about: str
    seller: str
    release: str
    column: str
    currency: str
    approval: Approval
    mechanism: dict[str, Any]
    """The mechanism as a released file describes it: name, values or range, options."""
    levels: list[OfferView]
    recommended: str | None
    """The cheapest level that is useful; None where none is."""
    owned: str | None
    """The level that the buyer who asks has."""


class ListingViews(Struct, frozen=True):
    """All listings."""

    listings: list[ListingView]


class MarketView(Struct, frozen=True):
    """The market: its receipts are checked with the public key."""

    public_key: str
    fingerprint: str
    listings: int


class OrderView(Struct, frozen=True):
    """An order, as its buyer and its seller see it."""

    id: str
    listing: str
    title: str
    seller: str
    buyer: str
    epsilon: str
    price: str
    due: str
    currency: str
    state: OrderState
    previous: str | None
    requested: str
    digest: str | None
    is_new: bool = False


class OrderViews(Struct, frozen=True):
    """The orders of a buyer, or of a seller's listings, the newest first."""

    orders: list[OrderView]


class SoldLevel(Struct, frozen=True):
    """A level of a listing and its buyers."""

    epsilon: str
    buyers: int


class ColumnSales(Struct, frozen=True):
    """A listing, as its seller sees it."""

    listing: str
    release: str
    column: str
    key_fingerprint: str
    sold: list[SoldLevel]
    largest_sold: str
    """The privacy loss towards all buyers together, whatever they share; 0 where nothing is sold."""
    held: str
    """The largest level that the market holds."""
    open_requests: int


class VaultSales(Struct, frozen=True):
    """The sums over the columns that were released with one key: their costs add up."""

    key_fingerprint: str
    largest_sold: str
    held: str


class Sales(Struct, frozen=True):
    """All listings of a seller."""

    columns: list[ColumnSales]
    vaults: list[VaultSales]
