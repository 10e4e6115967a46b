"""Deals: what is on sale at which price, and why a deal cannot be made. Each bound from both sides."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest

import relaxdp as rx
from relaxdp.market.accounts import MarketAccount
from relaxdp.market.listings import StoredListing
from relaxdp.market.prices import prices_of
from relaxdp.market.purchases import StoredPurchase
from relaxdp.market.sales import Deal, LevelOffer, check, level_of, release_offer
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.server_errors import (
    CreditsError,
    ListingStateError,
    NotAuthorisedError,
    NotOwnedError,
    OwnedAlreadyError,
    PriceChangedError,
    UnknownLevelError,
)
from relaxdp.tables.metadata import ColumnDescription

VALUES = ("flu", "covid", "none")
THREE = rx.Categorical(VALUES)
LEVEL = {epsilon: THREE.level(epsilon) for epsilon in ("0.5", "1", "2")}
DESCRIBED = ColumnDescription(
    PathId("survey", "diagnosis"), "categorical", Decimal(1), LEVEL["1"].threshold, "int", "00", VALUES
)
PRICES = prices_of(None, "100*epsilon + 1000*precision")
LISTING = StoredListing(
    number=1, id="one", kind="release", seller=1, title="Diagnoses", state="open", budget=None, path=None,
    id_column="id", objects=2000,
    terms=(json.dumps(PRICES.to_json()), '["0.5", "1", "2"]', json.dumps(DESCRIBED.to_dict())),
)  # fmt: skip
BUYER = MarketAccount(2, "institute", "buyer", 100)
OFFER = LevelOffer(LISTING, LEVEL["1"], 100, 2000)


def owned(level: str) -> StoredPurchase:
    return StoredPurchase(
        number=7, listing=LISTING, buyer=2, level=LEVEL[level], price=40, paid=40,
        objects=2000, digest="", state="owned", previous=None, issued="", signature="", place=0, history="",
    )  # fmt: skip


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_only_an_open_listing_sells(state: str) -> None:
    with pytest.raises(ListingStateError, match="sells nothing now") as refused:
        level_of(replace(LISTING, state=state), Decimal(1), LEVEL["2"])
    assert refused.value.fields == {"state": state}


def test_a_pool_without_members_sells_nothing() -> None:
    with pytest.raises(NotAuthorisedError, match="nobody has joined this pool yet."):
        level_of(replace(LISTING, kind="pool"), Decimal(1), None)


@pytest.mark.parametrize("asked", ["0.5", "1", "1.00000000000000000000001"])
def test_what_was_authorised_is_on_sale(asked: str) -> None:
    """Another name of the level that was delivered is no more than that."""
    level = "0.5" if asked == "0.5" else "1"
    found = level_of(LISTING, Decimal(asked), LEVEL["1"])
    assert (found, str(found)) == (LEVEL[level], level)


@pytest.mark.parametrize("asked", ["2", "1.0000000001"])
def test_more_than_was_authorised_is_not_on_sale(asked: str) -> None:
    """Nor is what lies next to it, where the refusal must not be that there is no such level."""
    with pytest.raises(NotAuthorisedError) as refused:
        level_of(LISTING, Decimal(asked), LEVEL["1"])
    assert refused.value.fields == {"epsilon": asked, "authorised": "1"}


def test_what_tells_nothing_is_no_level_of_what_was_authorised() -> None:
    """It has no threshold that could be compared."""
    for asked in ("1e-30", "0.7"):
        with pytest.raises(UnknownLevelError):
            level_of(LISTING, Decimal(asked), LEVEL["1"])


@pytest.mark.parametrize("level", ["0.5", "1"])
def test_the_offer_of_a_release(level: str) -> None:
    """All of its objects, at the price of the precision that is realised, rounded up."""
    offer = release_offer(LISTING, Decimal(level), LEVEL["1"])
    exact = 100 * Fraction(level) + 1000 * LEVEL[level].retention ** 2
    assert offer == LevelOffer(LISTING, LEVEL[level], ceil(exact), 2000, each=0)
    assert offer.half_width == LISTING.half_width(LEVEL[level], 2000)


def test_a_deal_that_can_be_made() -> None:
    """Up to the last credit that the buyer has, or is ready to pay."""
    check(Deal(OFFER, 100, None), BUYER, upgrade=False, most=None)
    check(Deal(OFFER, 100, None), BUYER, upgrade=False, most=100)
    check(Deal(OFFER, 60, owned("0.5")), BUYER, upgrade=True, most=60)
    check(Deal(OFFER, 0, None), replace(BUYER, balance=0), upgrade=False, most=0)


def test_too_few_credits() -> None:
    for most in (None, 101, 200):
        with pytest.raises(CreditsError) as refused:
            check(Deal(OFFER, 101, None), BUYER, upgrade=False, most=most)
        assert refused.value.fields == {"account": BUYER.name, "balance": 100, "due": 101}


def test_more_than_the_buyer_is_ready_to_pay() -> None:
    for due, most in ((100, 99), (101, 100), (1, 0)):
        with pytest.raises(PriceChangedError) as refused:
            check(Deal(OFFER, due, None), BUYER, upgrade=False, most=most)
        assert refused.value.fields == {"due": due, "most": most}


def test_an_upgrade_of_nothing() -> None:
    with pytest.raises(NotOwnedError) as refused:
        check(Deal(OFFER, 100, None), BUYER, upgrade=True, most=None)
    assert refused.value.fields == {"buyer": BUYER.name, "listing": LISTING.id}


@pytest.mark.parametrize("upgrade", [False, True])
def test_what_is_owned_is_no_deal(upgrade: bool) -> None:
    """Whoever asks again for what is owned is not refused, whatever else is wrong."""
    deal = Deal(OFFER, 101, owned("1"))
    assert deal.is_owned
    check(deal, BUYER, upgrade=upgrade, most=0)


@pytest.mark.parametrize("upgrade", [False, True])
def test_less_than_what_is_owned(upgrade: bool) -> None:
    deal = Deal(OFFER, 0, owned("2"))
    assert not deal.is_owned
    with pytest.raises(OwnedAlreadyError, match="tells more") as found:
        check(deal, BUYER, upgrade=upgrade, most=None)
    said = {"buyer": BUYER.name, "listing": LISTING.id, "purchase": 7, "epsilon": "1", "owned": "2"}
    assert found.value.fields == said


def test_more_than_what_is_owned_is_an_upgrade() -> None:
    """Nobody pays the difference who did not ask to."""
    deal = Deal(OFFER, 60, owned("0.5"))
    assert not deal.is_owned
    with pytest.raises(OwnedAlreadyError, match="costs the difference") as refused:
        check(deal, BUYER, upgrade=False, most=None)
    said = {"buyer": BUYER.name, "listing": LISTING.id, "epsilon": "1", "owned": "0.5", "due": 60}
    assert refused.value.fields == said
    assert not Deal(OFFER, 60, None).is_owned
