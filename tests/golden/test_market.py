"""The paper's market: one release, levels 0.1 to 1.0 in steps of 0.01, two buyers, an upgrade and a coalition.

The recorded values hold for every market that keeps the promise: levels, prices, payments, privacy loss, sizes. Bought
reports equal those that the seller's vault releases at the same level (`market-seller-files`) by value.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.special import chdtrc
from tests.golden import recorded
from tests.golden.driver_market import (
    Buyer,
    Marketplace,
    Seller,
    change_one_report,
    guess_true_values,
    relaxed_distribution,
    release_dataset,
    stated_level,
    verify_receipt,
)
from tests.golden.driver_server import Rejected, Service, estimate_files, read_reports, serve

VALUES = ("flu", "covid", "none")
ROWS = 9000
ANSWERS = [VALUES[(0, 0, 0, 0, 0, 1, 1, 1, 2, 2)[row % 10]] for row in range(ROWS)]
SHARES = {"flu": 0.5, "covid": 0.3, "none": 0.2}
KEY = bytes(range(32))
LEVELS = [f"{step / 100:.2f}".rstrip("0").rstrip(".") for step in range(10, 101)]
PRICES = {level: 10 + 3 * place for place, level in enumerate(LEVELS)}
CONFIDENCE = "0.999999"
"""The true shares must be in every interval."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serve(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def market(service: Service) -> Marketplace:
    return Marketplace(service)


def make_file(folder: Path, level: str, name: str = "patients", rows: int = ROWS) -> Path:
    file = folder / f"{name}-{level}.parquet"
    return release_dataset(file, range(rows), ANSWERS[:rows], VALUES, key=KEY, name=name, level=level)


def read_column(file: Path) -> list[str]:
    """Return the reports of a released or bought file in the order of the rows."""
    reports = read_reports(file, "id", "diagnosis")
    assert list(reports) == list(range(ROWS))
    return list(reports.values())


def p_value(reports: Mapping[str, Sequence[str]]) -> float:
    """Compare reports at ascending levels, given the true values, with the distribution of relaxed reports."""
    statistic, cells = 0.0, 0
    for true_value, answer in enumerate(VALUES):
        rows = [row for row, each in enumerate(ANSWERS) if each == answer]
        counts = Counter(tuple(VALUES.index(each[row]) for each in reports.values()) for row in rows)
        expected = relaxed_distribution(3, list(reports), true_value)
        for transcript in itertools.product(range(3), repeat=len(reports)):
            wanted = len(rows) * float(expected[transcript])
            statistic += (counts[transcript] - wanted) ** 2 / wanted
            cells += 1
    return float(chdtrc(cells - len(VALUES), statistic))


def test_a_buyer_who_comes_back_a_second_buyer_and_a_coalition(market: Marketplace, tmp_path: Path) -> None:
    seller, acme, institute = _open(market, tmp_path)
    top = make_file(tmp_path, "1")
    seller.list_dataset("diagnoses", PRICES, top)
    shown = market.show("diagnoses")
    assert shown["prices"] == PRICES
    assert shown["available"] == LEVELS
    found: dict[str, Any] = {"listing": {**shown, "margins_of_error": _some(shown["margins_of_error"])}}
    found["loss_before"] = seller.privacy_loss("diagnoses")

    first = acme.buy("diagnoses", "0.3", "first")
    found["price_of_an_upgrade"] = acme.ask_price("diagnoses", "0.7")
    upgraded = acme.upgrade("diagnoses", "0.7", "upgraded")
    other = institute.buy("diagnoses", "0.5", "other")
    found["purchases"] = [each.values for each in (first, upgraded, other)]
    found["loss"] = seller.privacy_loss("diagnoses")
    assert found["loss"]["towards_all_buyers"] == "0.7"

    # The same level again is the same file, and costs nothing.
    again = acme.buy("diagnoses", "0.7", "again")
    assert (again.is_new, again.receipt) == (False, upgraded.receipt)
    assert again.file.read_bytes() == upgraded.file.read_bytes()
    found["price_of_the_same_level"] = acme.ask_price("diagnoses", "0.7")
    with pytest.raises(Rejected):
        acme.buy("diagnoses", "0.75x", "no-level")
    with pytest.raises(Rejected):
        acme.buy("diagnoses", "0.305", "between")

    # Each file states its level, and its confidence intervals contain the true shares. So do the seller's own files.
    bought = {"0.3": first.file, "0.5": other.file, "0.7": upgraded.file}
    own = {level: make_file(tmp_path, level) for level in ("0.3", "0.5", "0.7")}
    for level, file in [*bought.items(), *own.items()]:
        assert stated_level(file) == level
        estimate = estimate_files([file], "--confidence-level", CONFIDENCE, "--simultaneous")
        assert estimate["devices"] == ROWS
        assert all(low <= SHARES[value] <= high for value, _, low, high in estimate["rows"])

    # All copies together have the distribution of relaxed reports; independent copies would not.
    reports, own_reports = ({level: read_column(file) for level, file in each.items()} for each in (bought, own))
    assert p_value(reports) > 1e-6
    assert p_value(own_reports) > 1e-6
    assert reports == own_reports
    recorded.check("market-seller-files", {level: _summary(file) for level, file in own.items()})
    independent = read_column(make_file(tmp_path, "0.5", name="another"))
    assert p_value({**reports, "0.5": independent}) < 1e-12

    # The coalition of both buyers guesses no better than the buyer of 0.7 alone.
    assert guess_true_values(reports, VALUES) == guess_true_values({"0.7": reports["0.7"]}, VALUES)

    # A buyer of the top level gets the delivered reports themselves, and the privacy loss is now 1.
    last = market.add_buyer("late", tmp_path / "late").buy("diagnoses", "1", "top")
    assert read_column(last.file) == read_column(top)
    found["last_purchase"], found["loss_at_the_end"] = last.values, seller.privacy_loss("diagnoses")
    assert p_value({"0.3": reports["0.3"], "0.7": reports["0.7"], "1": read_column(last.file)}) > 1e-6
    recorded.check("market-paper-scenario", found)

    # Receipts are verified offline: for the bought file, and for no other one.
    key = market.public_key
    assert all(verify_receipt(each.receipt_file, each.file, key) for each in (first, upgraded, other, last))
    changed = change_one_report(upgraded.file, tmp_path / "changed.parquet", VALUES)
    assert not verify_receipt(upgraded.receipt_file, changed, key)
    assert not verify_receipt(upgraded.receipt_file, first.file, key)
    assert not verify_receipt(upgraded.receipt_file, upgraded.file, "00" * 32)
    upgraded.receipt_file.write_text(upgraded.receipt_file.read_text("utf-8").replace('"0.7"', '"0.9"'), "utf-8")
    assert not verify_receipt(upgraded.receipt_file, upgraded.file, key)


def test_a_path_has_one_listing_and_levels_are_delivered_once(market: Marketplace, tmp_path: Path) -> None:
    """A sold path stays as it is: no second listing, no other reports. A buyer can download again."""
    seller = market.add_seller("hospital")
    buyer = market.add_buyer("reader", tmp_path / "reader")
    prices = {"0.2": 20, "0.4": 40, "0.6": 60}
    seller.list_dataset("visits", prices, make_file(tmp_path, "0.4", name="visits", rows=500))
    first = buyer.buy("visits", "0.2", "first")
    with pytest.raises(Rejected):
        buyer.upgrade("visits", "0.6", "too-early")  # it was not delivered yet
    with pytest.raises(Rejected):
        seller.list_dataset("copy", prices, make_file(tmp_path, "0.6", name="visits", rows=500))
    other_key = tmp_path / "other-key.parquet"
    release_dataset(other_key, range(500), ANSWERS[:500], VALUES, key=bytes(32), name="visits", level="0.6")
    for wrong in (other_key, make_file(tmp_path, "0.6", name="visits", rows=499), make_file(tmp_path, "0.6", name="x")):
        with pytest.raises(Rejected):
            seller.deliver("visits", wrong)
    seller.deliver("visits", make_file(tmp_path, "0.6", name="visits", rows=500))
    upgraded = buyer.upgrade("visits", "0.6", "upgraded")
    found = {"purchases": [first.values, upgraded.values], "loss": seller.privacy_loss("visits")}
    again = buyer.download_again("visits", "0.6", "again")
    assert again.file.read_bytes() == upgraded.file.read_bytes()
    recorded.check("market-later-delivery", found)


def _open(market: Marketplace, folder: Path) -> tuple[Seller, Buyer, Buyer]:
    return (
        market.add_seller("clinic"),
        market.add_buyer("acme", folder / "acme"),
        market.add_buyer("institute", folder / "institute"),
    )


def _some(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {level: numbers[level] for level in ("0.1", "0.3", "0.5", "0.7", "1")}


def _summary(file: Path) -> dict[str, Any]:
    """Return the first reports of a file, all counts, and the estimate."""
    reports = read_column(file)
    return {"first_reports": reports[:60], "counts": dict(sorted(Counter(reports).items())),
            "estimate": estimate_files([file])["rows"]}  # fmt: skip
