"""Whether all levels of a market are one path: each was drawn once, between its nearest neighbours, as it must be."""

from __future__ import annotations

import io
import random
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path

import pyarrow.parquet as pa_parquet
from tests.faults.market.rows import Level, Purchase, Rows
from tests.faults.market.world import (
    ENCODING,
    LEVELS,
    LISTING,
    MARKET_KEY,
    OBJECTS,
    POOL,
    RELEASE,
    SELLER_KEY,
    VALUES,
    delivery,
    member_report,
)

from relaxdp.mechanisms.base import make_path_key_info
from relaxdp.sampling.bridge import draw_keyed_bridge_report
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo

ONE = 1 << 64
SAMPLE = 8
"""How many objects of each level of a release are drawn again, one by one."""


class Goods:
    """The reports of a path, by level: those of all objects of a release, or that of one member."""

    def __init__(self, ids: list[object], reports: dict[str, list[int]]) -> None:
        self.ids, self.reports = ids, reports


def check_paths(rows: Rows, folder: Path) -> None:
    """Check every path in the market, and that only what is on it is sold."""
    paths: defaultdict[tuple[int, int], list[Level]] = defaultdict(list)
    for level in rows.levels:
        paths[level.listing, level.account].append(level)
    used: set[str] = set()
    for (listing, account), levels in paths.items():
        assert len({level.threshold for level in levels}) == len(levels), "a level is there twice"
        kind = "member" if account else "level"
        levels.sort(key=lambda level: rows.appeared[kind, level.listing, level.account, level.threshold])
        check_neighbours(levels)
        if account:
            assert rows.listings[listing] == POOL
            check_member(rows, account, levels)
        else:
            assert rows.listings[listing] == LISTING
            check_release(rows, folder, levels)
            used |= {level.content for level in levels}
    for purchase in rows.purchases.values():
        (check_sold if rows.listings[purchase.listing] == LISTING else check_pool_sale)(rows, purchase)
        assert int(purchase.threshold) == ENCODING.threshold(Decimal(purchase.epsilon)), "this is no level"
        assert purchase.epsilon in LEVELS, "this is no level of the listing"
        used.add(purchase.digest)
    assert used == set(rows.files), "a file is kept that is nobody's"


def check_neighbours(levels: list[Level]) -> None:
    """In the order in which they appeared: a delivery above all others, a draw between the nearest ones."""
    out: list[Level] = []
    for level in levels:
        assert int(level.threshold) == ENCODING.threshold(Decimal(level.epsilon))
        if level.delivered:
            assert (level.lower, level.upper) == (None, None)
            assert all(level.threshold > other.threshold for other in out), "a delivery below what was out"
        else:
            lower = max((other.threshold for other in out if other.threshold < level.threshold), default=None)
            upper = min((other.threshold for other in out if other.threshold > level.threshold), default=None)
            assert upper is not None, "a level was drawn above what was delivered"
            assert (level.lower, level.upper) == (lower, upper), "a level was not drawn from its nearest neighbours"
        out.append(level)


def check_draws(levels: list[Level], goods: Goods, name: PathKeyInfo, sample: int) -> None:
    """Draw some reports of each level again, with the scalar bridge, from what its recorded neighbours are."""
    for level in levels:
        if level.delivered:
            continue
        assert level.upper is not None
        ends = [Fraction(0 if end is None else int(end), ONE) for end in (level.lower, level.threshold, level.upper)]
        for place in random.Random(level.threshold).sample(range(len(goods.ids)), sample):
            drawn = draw_keyed_bridge_report(
                MARKET_KEY, name, goods.ids[place], *ends,
                lower_report=0 if level.lower is None else goods.reports[level.lower][place],
                upper_report=goods.reports[level.upper][place],
            )  # fmt: skip
            assert goods.reports[level.threshold][place] == drawn, "a level is not what its neighbours make of it"


def check_release(rows: Rows, folder: Path, levels: list[Level]) -> None:
    """All levels of the release, as files; each of those that were drawn was drawn for somebody."""
    reports: dict[str, list[int]] = {}
    for level in levels:
        ids, reports[level.threshold] = _content(rows.files[level.content], "id")
        assert ids == list(range(OBJECTS))
        if level.delivered:
            _, delivered = _content(delivery(folder, level.epsilon).read_bytes(), "id")
            assert reports[level.threshold] == delivered, "a delivery is not what the seller delivered"
    sold = {purchase.threshold for purchase in rows.purchases.values() if rows.listings[purchase.listing] == LISTING}
    drawn = {level.threshold for level in levels if not level.delivered}
    assert drawn <= sold, "a level was drawn for nobody"
    name = make_path_key_info(ENCODING, PathId(f"{LISTING}/{SELLER_KEY.fingerprint}/{RELEASE}", "answer"))
    check_draws(levels, Goods(list(range(OBJECTS)), reports), name, SAMPLE)


def check_member(rows: Rows, account: int, levels: list[Level]) -> None:
    """All levels of one member, who is a pseudonym."""
    name = rows.accounts[account].name
    for level in levels:
        if level.delivered:
            assert VALUES[_code(level)] == member_report(name, level.epsilon)[1]
    goods = Goods([rows.members[account][0]], {level.threshold: [_code(level)] for level in levels})
    check_draws(levels, goods, make_path_key_info(ENCODING, PathId(f"{POOL}//{POOL}", "answer")), 1)


def check_sold(rows: Rows, purchase: Purchase) -> None:
    """What was sold of the release: the one file of a level, which was authorised at that time."""
    place = rows.appeared["purchase", purchase.listing, purchase.number, purchase.threshold]
    level, kept_at = rows.release.get(purchase.threshold, (None, place))
    assert level is not None, "a level was sold that is not kept"
    assert kept_at < place, "a level was sold before it was kept"
    assert level.content == purchase.digest, "one level was sold as two files"
    delivered = [each for each, appeared in rows.release.values() if each.delivered and appeared < place]
    top = max(delivered, key=lambda each: each.threshold)
    assert purchase.threshold <= top.threshold, "more was sold than was authorised"
    assert Decimal(purchase.epsilon) <= Decimal(top.epsilon), "more was sold than was authorised"


def check_pool_sale(rows: Rows, purchase: Purchase) -> None:
    """What was sold of the pool: the kept reports of everybody who was willing at that time."""
    place = rows.appeared["purchase", purchase.listing, purchase.number, purchase.threshold]
    out: defaultdict[int, list[Level]] = defaultdict(list)
    for level in rows.levels:
        if level.account and rows.appeared["member", level.listing, level.account, level.threshold] < place:
            out[level.account].append(level)
    each, epsilon = ceil(2 + 3 * Fraction(purchase.epsilon)), Decimal(purchase.epsilon)
    willing = {
        account
        for account, levels in out.items()
        if rows.members[account][1] <= each
        and epsilon <= max(Decimal(level.epsilon) for level in levels if level.delivered)
    }
    assert willing == set(rows.shares[purchase.number]), "other members are in it than were willing"
    ids, reports = _content(rows.files[purchase.digest], "member")
    kept = {level.account: _code(level) for levels in out.values() for level in levels
            if level.threshold == purchase.threshold}  # fmt: skip
    assert dict(zip(ids, reports, strict=True)) == {rows.members[account][0]: kept[account] for account in willing}


def _code(level: Level) -> int:
    return int.from_bytes(level.content, "little")


def _content(content: bytes, id_column: str) -> tuple[list[object], list[int]]:
    table = pa_parquet.read_table(io.BytesIO(content))
    assert table.column_names == [id_column, "answer"]
    return table[id_column].to_pylist(), [VALUES.index(label) for label in table["answer"].to_pylist()]
