"""Pools: members send reports of one path up to their own limit, and a file has the report at min(level, limit)."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import delete
from tests.refusals import refused
from tests.servers.collectors import STORES
from tests.servers.markets import Market, make_market_fixture, make_vault

import relaxdp as rx
from relaxdp.device.report import written_report
from relaxdp.market import pools
from relaxdp.market.client import MarketClient
from relaxdp.market.level_file import compute_level_digest, read_level_file
from relaxdp.market.pool_member import join_pool
from relaxdp.market.schema import FILES
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import AnswerChangedError, DeviceFileError, OfferError, RefusedByServerError

market = make_market_fixture(STORES)
LEVELS = {"0.5": "10", "1": "15", "2": "25"}
CHOICE = {"name": "categorical", "values": ["no", "yes"]}
ENCODINGS: dict[str, tuple[dict[str, Any], Mechanism, str]] = {
    "categorical": (CHOICE, rx.Categorical(["no", "yes"]), "yes"),
    "unary": ({"name": "unary-optimised", "values": ["no", "yes"]}, rx.Unary(["no", "yes"]), "yes"),
    "local hash": (
        {"name": "local-hash", "values": ["no", "yes"], "options": {"buckets": 3}},
        rx.LocalHash(["no", "yes"], buckets=3), "yes",
    ),
    "numeric": ({"name": "numeric", "range": [0, 10]}, rx.Numeric(0, 10), "7"),
    "square wave": (
        {"name": "wave", "range": [0, 10], "options": {"bins": 8, "window": 2}},
        rx.SquareWave(0, 10, bins=8, window=2), "7",
    ),
}  # fmt: skip


def create_pool(market: Market, encoding: Any = CHOICE, **terms: Any) -> str:
    name = market.make_name("pool")
    asked = {"title": "Do you work at night?", "currency": "EUR", "prices": LEVELS, "approval": "automatic", **terms}
    market.operator.create_pool(name, encoding=encoding, **asked)
    return name


def join(market: Market, pool: str, limit: str, folder: Path, answer: str = "yes", **more: Any) -> Any:
    """Join as a new member with an own key, or again with `member` and `key`."""
    member, key = more.get("member") or market.add("seller"), more.get("key") or rx.Key.generate()
    memory = folder / f"{key.fingerprint}.pools"
    return member, key, join_pool(member, pool, answer, key=key, limit=limit, memory=memory)


def read_reports(buyer: MarketClient, pool: str, epsilon: str, folder: Path, **more: Any) -> dict[str, tuple[str, Any]]:
    """Order a level, and return level and report of each row."""
    order = buyer.order(pool, epsilon, **more)
    path = folder / f"{len([*folder.iterdir()])}.parquet"
    receipt = buyer.download(order["id"], path).receipt
    table = pa_parquet.read_table(path).to_pydict()
    assert receipt.digest == order["digest"] == compute_level_digest(read_level_file(path))
    assert sorted(table) == sorted(["member", "answer", "answer_epsilon"])
    return {row: (e, r) for row, e, r in zip(table["member"], table["answer_epsilon"], table["answer"], strict=True)}


@pytest.mark.parametrize("name", ENCODINGS)
def test_rows_are_at_the_smaller_of_level_and_limit(market: Market, tmp_path: Path, name: str) -> None:
    """Every row is read from its member's own key, and says at which level; all levels of a member are one path."""
    encoding, mechanism, answer = ENCODINGS[name]
    pool = create_pool(market, encoding)
    limits = ["0.5", "1", "1", "2"]
    keys = [join(market, pool, limit, tmp_path, answer)[1] for limit in limits]
    value: Any = float(answer) if answer.isdigit() else answer

    def expected(key: rx.Key, epsilon: str) -> Any:
        return written_report(mechanism.path(value, key=key, id=pool, name=pool, column="answer").at(epsilon))

    for epsilon, used in {"0.5": ["0.5"] * 4, "1": ["0.5", "1", "1", "1"], "2": limits}.items():
        rows = read_reports(market.add("buyer"), pool, epsilon, tmp_path)
        found = [(level, report) for level, report in rows.values()]
        if encoding["name"] in ("unary-optimised", "local-hash"):
            found = [(level, base64.b64encode(report).decode()) for level, report in found]
        assert Counter(found) == Counter((level, expected(key, level)) for level, key in zip(used, keys, strict=True))
        (offer,) = [each for each in market.operator.listing(pool)["levels"] if each["epsilon"] == epsilon]
        assert offer["rows_by_level"] == dict(Counter(used))


def test_a_member_may_raise_the_limit(market: Market, tmp_path: Path) -> None:
    """Reports that are out stay as they are, and so does the member's row; a level is delivered as it is now."""
    pool, buyer = create_pool(market), market.add("buyer")
    member, key, _ = join(market, pool, "0.5", tmp_path)
    join(market, pool, "2", tmp_path)
    first = read_reports(buyer, pool, "0.5", tmp_path)
    assert join(market, pool, "0.5", tmp_path, member=member, key=key)[2] == market.operator.listing(pool)
    before = read_reports(market.add("buyer"), pool, "1", tmp_path)
    join(market, pool, "2", tmp_path, member=member, key=key)
    again = read_reports(market.add("buyer"), pool, "0.5", tmp_path)
    assert again == first == read_reports(buyer, pool, "0.5", tmp_path)
    after = read_reports(market.add("buyer"), pool, "1", tmp_path)
    (raised,) = [row for row, (level, _) in before.items() if level == "0.5"]
    assert after[raised][0] == "1"
    assert {row: each for row, each in after.items() if row != raised} == {
        row: each for row, each in before.items() if row != raised
    }
    join(market, pool, "1", tmp_path, member=member, key=key)  # a lower limit takes nothing back
    assert read_reports(market.add("buyer"), pool, "1", tmp_path) == after


def test_orders_of_equal_reports_have_one_digest(market: Market, tmp_path: Path) -> None:
    """And a new member makes another one; what was delivered before stays as it is."""
    pool, buyers = create_pool(market), [market.add("buyer") for _ in range(3)]
    join(market, pool, "1", tmp_path)
    first, second = (each.order(pool, "1") for each in buyers[:2])
    join(market, pool, "1", tmp_path)
    third = buyers[2].order(pool, "1")
    assert first["digest"] == second["digest"] != third["digest"]
    assert buyers[0].download(first["id"], tmp_path / "x.parquet").receipt.rows == 1
    assert buyers[2].download(third["id"], tmp_path / "y.parquet").receipt.rows == 2


def test_another_answer_is_rejected_where_it_is_known(market: Market, tmp_path: Path) -> None:
    """A client rejects it before anything is sent; the market where a report at the same level differs."""
    pool = create_pool(market)
    member, key, _ = join(market, pool, "1", tmp_path)
    with pytest.raises(AnswerChangedError) as changed:
        join(market, pool, "1", tmp_path, "no", member=member, key=key)
    assert "no" not in json.dumps(changed.value.fields)
    sent = {epsilon: rx.Categorical(["no", "yes"]).path("yes", key=key, id=pool, name=pool, column="answer").at(epsilon)
            for epsilon in ("0.5", "1")}  # fmt: skip
    other = {"no": "yes", "yes": "no"}
    for wrong in ({**sent, "0.5": other[sent["0.5"]]}, {**sent, "1": other[sent["1"]], "2": "yes"}):
        with refused(RefusedByServerError, error="level_differs"):
            member.join_pool(pool, wrong)
    with refused(DeviceFileError):  # a key without a file has no place to remember what it was used for
        join_pool(member, pool, "yes", key=key, limit="1")
    with refused(OfferError):
        join(market, pool, "0.7", tmp_path, member=member, key=key)


def test_what_is_no_set_of_reports_is_rejected(market: Market, tmp_path: Path) -> None:
    """Levels are sent from the lowest up to the own limit: a gap could not be delivered."""
    pool, member, hashed = create_pool(market), market.add("seller"), create_pool(market, ENCODINGS["local hash"][0])
    for levels in (["1"], ["0.5", "2"], ["0.5", "0.7"], ["0.5", "1", "3"]):
        with refused(RefusedByServerError, error="market"):
            member.join_pool(pool, dict.fromkeys(levels, "no"))
    for other in (market.make_name(), market.publish(make_vault(tmp_path)).listing["id"]):
        with refused(RefusedByServerError):
            member.join_pool(other, {"0.25": "flu"})
    for report in ("SECRET", 7, 0.5, "YES", ""):
        with refused(RefusedByServerError, error="report_outside_encoding") as found:
            member.join_pool(pool, {"0.5": report})
        assert "SECRET" not in found.value.message
    seeds = [base64.b64encode(bytes([seed] * 8 + [1])).decode() for seed in (1, 2)]
    with refused(RefusedByServerError, error="level_differs"):  # one path has one seed
        member.join_pool(hashed, {"0.5": seeds[0], "1": seeds[1]})
    with refused(RefusedByServerError, error="market") as empty:
        market.add("buyer").order(pool, "0.5")
    assert "has joined the pool" in empty.value.message


def test_the_operator_approves_orders_of_a_pool(market: Market, tmp_path: Path) -> None:
    """Its file is made with the approval, from those who have joined until then, and again for a restored order."""
    pool, buyer = create_pool(market, approval="seller"), market.add("buyer")
    join(market, pool, "1", tmp_path)
    order = buyer.order(pool, "1")
    join(market, pool, "1", tmp_path)
    assert order["id"] in [each["id"] for each in market.operator.orders()]
    with refused(RefusedByServerError, error="unknown_order"):
        market.add("seller").approve(order["id"])
    approved = market.operator.approve(order["id"])
    signed = buyer.download(order["id"], tmp_path / "x.parquet")
    assert (signed.receipt.rows, signed.receipt.digest, signed.receipt.seller) == (2, approved["digest"], "")
    other = market.add("buyer")
    lost = market.sign_lost_order(signed.receipt, other)
    assert other.download(other.restore(lost)["id"], tmp_path / "y.parquet") == lost
    join(market, pool, "1", tmp_path)
    late = market.add("buyer")
    with refused(RefusedByServerError, error="receipt"):
        late.restore(market.sign_lost_order(signed.receipt, late))


def test_a_restored_pool_makes_its_files_again(market: Market, tmp_path: Path) -> None:
    pool, buyer = create_pool(market), market.add("buyer")
    join(market, pool, "1", tmp_path)
    receipt = buyer.receipt(buyer.order(pool, "1")["id"]).receipt
    with market.open_database() as database, database.writing() as connection:
        connection.exec_driver_sql(
            "DROP TRIGGER market_file_kept_1" + ("" if database.is_sqlite else " ON market_file")
        )
        connection.execute(delete(FILES).where(FILES.c.digest == receipt.digest))
    lost = market.sign_lost_order(receipt, other := market.add("buyer"))
    assert other.download(other.restore(lost)["id"], tmp_path / "x.parquet") == lost


def test_a_pool_has_room_for_so_many_members(market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who have joined may still raise their limits. Members of another pool do not count."""
    monkeypatch.setattr(pools, "MAX_MEMBERS", 2)
    pool, other = create_pool(market), create_pool(market)
    join(market, other, "1", tmp_path)
    (member, key, _), _ = (join(market, pool, "0.5", tmp_path) for _ in range(2))
    with refused(RefusedByServerError, error="market") as full:
        join(market, pool, "0.5", tmp_path)
    assert "has 2 members" in full.value.message
    join(market, pool, "1", tmp_path, member=member, key=key)


def test_a_pool_has_at_most_as_many_levels_as_a_file_states(market: Market) -> None:
    prices = {f"{step / 100:.2f}": "1" for step in range(1, 64)}
    terms: dict[str, Any] = {"title": "T", "currency": "EUR", "encoding": {"name": "categorical", "values": [0, 1]}}
    with refused(RefusedByServerError, error="market", hint="fewer levels"):
        market.operator.create_pool(market.make_name(), prices=prices, **terms)
    prices.popitem()
    market.operator.create_pool(market.make_name(), prices=prices, **terms)


def test_a_pool_stays_as_it_is(market: Market, tmp_path: Path) -> None:
    pool = create_pool(market)
    join(market, pool, "0.5", tmp_path)
    terms: dict[str, Any] = {"title": "New", "currency": "EUR", "encoding": CHOICE}
    assert market.operator.create_pool(pool, prices=LEVELS, **terms)["title"] == "New"
    for prices in ({**LEVELS, "4": "99"}, {**LEVELS, "2": "26"}):
        with refused(RefusedByServerError, error="market"):
            market.operator.create_pool(pool, prices=prices, **terms)
    with refused(RefusedByServerError, error="listing_exists"):
        market.operator.create_pool(pool, prices=LEVELS, **{**terms, "encoding": {**CHOICE, "values": ["a", "b"]}})
