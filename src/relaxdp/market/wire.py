"""What travels over HTTP, as strict types: nothing is coerced and no unknown field is taken."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from relaxdp.market.accounts import NAME_PATTERN
from relaxdp.market.details import Details
from relaxdp.market.levels import MOST_LEVELS
from relaxdp.market.listings import ID_PATTERN, MOST_TITLE
from relaxdp.mechanisms.square_wave import Goal
from relaxdp.service.wire import EpsilonText, Label, WireLevel

Credits = Annotated[int, Meta(ge=0, le=10**15)]
Id = Annotated[str, Meta(pattern=ID_PATTERN)]
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
# PostgreSQL keeps no null character in a text.
TEXT_PATTERN = "^[^\\u0000]*$"
Title = Annotated[str, Meta(min_length=1, max_length=MOST_TITLE, pattern=TEXT_PATTERN)]
Reason = Annotated[str, Meta(min_length=1, max_length=200, pattern=TEXT_PATTERN)]
Point = tuple[EpsilonText, Credits]
Levels = Annotated[list[EpsilonText], Meta(min_length=1, max_length=MOST_LEVELS)]
Kind = Literal["release", "pool"]
Role = Literal["seller", "buyer"]
AnyRole = Literal["seller", "buyer", "operator", "issue"]
State = Literal["draft", "open", "closed"]
PurchaseState = Literal["owned", "upgraded", "refunded"]


class Prices(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A curve that does not fall: points, or a formula."""

    points: Annotated[list[Point], Meta(min_length=1, max_length=1000)] | None = None
    formula: Annotated[str, Meta(min_length=1, max_length=500)] | None = None


class Encoding(Struct, frozen=True, omit_defaults=True):
    """How answers are encoded: its name, and values or a range."""

    name: str
    options: dict[str, Any]
    values: list[Any] | UnsetType = UNSET
    range: tuple[float, float] | UnsetType = UNSET


class PoolEncoding(Struct, frozen=True, forbid_unknown_fields=True):
    """The encoding of a pool to be made."""

    name: Annotated[str, Meta(max_length=64)]
    values: Annotated[list[Label], Meta(max_length=10_000)] | None = None
    range: tuple[float, float] | None = None
    options: dict[str, int | Goal] = {}


class AccountRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """An account to be made."""

    name: Name
    role: Role


class Account(Struct, frozen=True):
    """Somebody who trades, and their credits."""

    name: str
    role: AnyRole
    balance: int


class NewAccount(Account, frozen=True):
    """An account with its token, shown this once."""

    token: str


class Accounts(Struct, frozen=True):
    """All accounts; that from which credits come owes what is in circulation."""

    accounts: list[Account]


class CreditRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Credits for an account."""

    account: Name
    amount: Annotated[int, Meta(ge=1, le=10**15)]
    reason: Reason


class ListingRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A release to be listed; its first delivery follows."""

    title: Title
    prices: Prices
    levels: Levels | None = None
    id: Id | None = None
    budget: EpsilonText | None = None
    details: Details | None = None


class PoolRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A pool to be made; its prices are for each object."""

    title: Title
    encoding: PoolEncoding
    prices: Prices
    levels: Levels | None = None
    id: Id | None = None
    details: Details | None = None
    question: Title | None = None
    suggested: EpsilonText | None = None


class PricesRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Prices that reach further up, and levels that lie there."""

    prices: Prices
    levels: Levels | None = None


class BudgetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A larger budget."""

    budget: EpsilonText


class MemberReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The report of a single seller, and the least that must be paid for it."""

    level: WireLevel
    report: Annotated[
        str | int | float, Meta(description="A label, a number, or packed bytes in base 64: as the encoding says.")
    ]
    minimum: Credits = 0


class OrderRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A level to be bought, and the most that may be due for it."""

    epsilon: EpsilonText
    most: Credits | None = None


class RefundRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Why credits are given back."""

    reason: Reason


class OfferedLevel(Struct, frozen=True):
    """A level of a listing: what it costs (in a pool, also for each object), what it tells, whether it is on sale.

    `better` is another level on sale that costs no more and tells no less.
    """

    epsilon: str
    price: int
    each: int | None
    objects: int
    half_width: float | None
    available: bool
    better: str | None


class Listing(Struct, frozen=True):
    """What everybody may know of a listing."""

    id: str
    kind: Kind
    title: str
    details: Details
    question: str | None
    suggested: str | None
    seller: str | None
    state: State
    encoding: Encoding | None
    objects: int
    authorised: str | None
    prices: Prices
    levels: list[OfferedLevel]


class Listings(Struct, frozen=True):
    """All listings."""

    listings: list[Listing]


class Quote(Struct, frozen=True):
    """What a level costs; `due` is what is left to pay for whoever asks."""

    listing: str
    epsilon: str
    threshold: str
    price: int
    due: int
    owned: str | None
    objects: int
    half_width: float | None


class QuoteOptions(Struct, frozen=True):
    """Which level is asked for."""

    epsilon: EpsilonText


class DeliveryOptions(Struct, frozen=True):
    """Which of several released columns is for sale."""

    column: Annotated[str, Meta(max_length=1000)] | None = None


class Purchase(Struct, frozen=True):
    """What a buyer got."""

    number: int
    listing: str
    title: str
    epsilon: str
    threshold: str
    retention: str
    price: int
    paid: int
    objects: int
    half_width: float | None
    digest: str
    state: PurchaseState
    previous: int | None
    issued: str
    authorised: str | None
    new: bool = False


class ToldRow(Struct, frozen=True):
    """A share (or the mean) that a purchase tells, with its interval."""

    value: Any
    estimate: float
    low: float
    high: float


class Told(Struct, frozen=True):
    """What a purchase tells about its own objects, with 95 % intervals: all of its values, or the largest of many."""

    objects: int
    values: int
    range: tuple[float, float] | None
    """Between which numbers a mean lies; None where the answers are shares."""
    rows: list[ToldRow]


class Purchases(Struct, frozen=True):
    """Everything that a buyer bought, the newest first."""

    purchases: list[Purchase]
    balance: int


class SignedReceipt(Struct, frozen=True, forbid_unknown_fields=True):
    """A receipt and its signature; what proves something is the signature under the market's own key."""

    receipt: dict[str, Any]
    signature: Annotated[str, Meta(max_length=200)]
    public_key: Annotated[str, Meta(max_length=200)] | UnsetType = UNSET


class Verified(Struct, frozen=True):
    """A receipt is this market's; what became of the purchase."""

    valid: bool
    state: PurchaseState


class DeliveredLevel(Struct, frozen=True):
    """A level that the seller delivered."""

    epsilon: str
    threshold: str


class SoldLevel(Struct, frozen=True, rename={"drawn_from": "from"}):
    """A level that was sold: to how many, for what, and between which levels it was drawn, unless it was delivered."""

    epsilon: str
    buyers: int
    income: int
    drawn_from: tuple[str | None, str] | None


class SellerListing(Struct, frozen=True):
    """A listing as its seller sees it: income against privacy loss."""

    listing: Listing
    budget: str | None
    delivered: list[DeliveredLevel]
    sold: list[SoldLevel]
    buyers: int
    income: int
    loss_buyers: str
    loss_platform: str
    left: str | None
    minimum: int | None


class Sales(Struct, frozen=True):
    """All listings of a seller."""

    listings: list[SellerListing]
    balance: int


class Entry(Struct, frozen=True):
    """One line of an account."""

    transaction: int
    amount: int
    reason: str
    purchase: int | None
    issued: str


class Statement(Struct, frozen=True):
    """The last lines of an account, the newest first."""

    entries: list[Entry]


class Books(Struct, frozen=True):
    """Whether all lines add up to nothing, and the credits in circulation."""

    balanced: bool
    transactions: int
    credits: int


class About(Struct, frozen=True):
    """The market: what its receipts are checked with, and how much there is."""

    public_key: str
    fingerprint: str
    listings: int
