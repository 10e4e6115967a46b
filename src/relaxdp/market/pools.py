"""Pools: single sellers with one report each. A row of a level carries its member's report at min(level, own limit).

The market draws nothing for a pool either. A member sends the reports of all listed levels up to the own limit, which
are one path, and an order is delivered from them. Listings of campaigns will replace pools.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, func, insert, select

from relaxdp.market import listings
from relaxdp.market.level_file import MAX_LIMITS, LevelReports
from relaxdp.market.listings import Listing, PreparedLevel
from relaxdp.market.schema import POOL_REPORTS
from relaxdp.mechanisms.base import Mechanism
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.server_errors import LevelDiffersError, MarketError
from relaxdp.service.codecs import Codec
from relaxdp.service.transfer import workplace
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.theory.epsilon import as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

ROW, COLUMN, LEVEL_COLUMN = "member", "answer", "answer_epsilon"
MAX_MEMBERS = 100_000


def create_pool(
    connection: Connection, pool_id: str, mechanism: Mechanism, prices: Mapping[str, str], **terms: Any
) -> Listing:
    """Create a pool with all its levels and prices, which never change."""
    if len(prices) > MAX_LIMITS:  # each may be a member's limit
        raise MarketError(
            "The pool has {levels} levels. The maximum is {maximum}.",
            hint="Choose fewer levels.",
            levels=len(prices),
            maximum=MAX_LIMITS,
        )
    path = PathId(pool_id, COLUMN)
    description = ColumnDescription.from_level(mechanism, mechanism.level(1), path=path, id_type="text")
    listing = listings.create_listing(
        connection, listing_id=pool_id, kind="pool", seller="", description=description, column=COLUMN, id_column=ROW,
        **terms,
    )  # fmt: skip
    known = listings.list_levels(connection, listing)
    for level, price, published in listings.plan_levels(connection, listing, prices):
        if known and published is None:
            raise MarketError("The levels of a pool do not change.", hint="Create another pool.")
        if not known:
            listings.insert_level(connection, listing, level, price, {}, None)
    return listing


def join_pool(connection: Connection, listing: Listing, member: str, reports: Mapping[str, str | int | float]) -> None:
    """Store the reports of a member at all listed levels up to the member's limit. The same reports change nothing.

    A higher limit later adds levels. A report that is stored is never replaced.
    """
    known = {each.level: each for each in listings.list_levels(connection, listing)}
    given = {listing.parse_level(as_epsilon(epsilon)): report for epsilon, report in reports.items()}
    if listing.kind != "pool" or not given or set(given) != {each for each in known if each <= max(given)}:
        raise MarketError(
            "A member sends one report at each level of the pool up to the own limit, and these are other levels.",
            hint="Join with the client: relaxdp market join.",
        )
    codec, columns = Codec(listing.mechanism), POOL_REPORTS.c
    own = (columns.listing == listing.id, columns.member == member)
    stored = {row.threshold: row for row in connection.execute(select(POOL_REPORTS).where(*own))}
    row_id = next((row.row for row in stored.values()), secrets.token_hex(16))
    packed = {known[level].key: codec.read(report, None) for level, report in given.items()}
    fixed = {codec.fixed(each) for each in (*packed.values(), *(bytes(row.report) for row in stored.values()))}
    if len(fixed) > 1 or any(key in stored and bytes(stored[key].report) != each for key, each in packed.items()):
        raise LevelDiffersError(
            "These are not the reports that this member sent before: the answer, the key or the seed differs.",
            hint="Join again with the same key and the same answer.",
        )
    if not stored and count_members(connection, listing) >= MAX_MEMBERS:
        raise MarketError("The pool has {maximum:,} members, the maximum.", maximum=MAX_MEMBERS)
    for key, report in packed.items():
        if key not in stored:
            row = {"listing": listing.id, "member": member, "threshold": key, "row": row_id, "report": report}
            connection.execute(insert(POOL_REPORTS).values(**row))


def count_members(connection: Connection, listing: Listing) -> int:
    """Return the number of members of a pool."""
    query = select(func.count(POOL_REPORTS.c.member.distinct())).where(POOL_REPORTS.c.listing == listing.id)
    return int(connection.execute(query).scalar_one())


def assemble_level(connection: Connection, listing: Listing, level: Level) -> PreparedLevel:
    """Return the file of a level: the report of every member at min(level, own limit), with the level stated."""
    columns = POOL_REPORTS.c
    most = listings.format_threshold(level)
    query = select(columns.row, columns.threshold, columns.report).where(
        columns.listing == listing.id, columns.threshold <= most
    )
    highest: dict[str, tuple[str, bytes]] = defaultdict(lambda: ("", b""))
    for row in connection.execute(query):
        highest[row.row] = max(highest[row.row], (row.threshold, bytes(row.report)))
    if not highest:
        raise MarketError("No one has joined the pool {listing!r} yet.", hint="Order later.", listing=listing.id)
    texts = {each.key: format_epsilon(each.level.epsilon) for each in listings.list_levels(connection, listing)}
    rows = sorted(highest.items())
    stated = [texts[threshold] for _, (threshold, _) in rows]
    used = tuple(sorted(map(as_epsilon, set(stated))))
    described = replace(
        listing.description, epsilon=level.epsilon, threshold=level.threshold, level_column=LEVEL_COLUMN,
        row_epsilons=used,
    )  # fmt: skip
    ids = pa.array([row_id for row_id, _ in rows], pa.string())
    reports = Codec(listing.mechanism).column([report for _, (_, report) in rows])
    with workplace() as folder:
        return PreparedLevel.create(
            LevelReports(ROW, COLUMN, described, ids, reports, pa.array(stated).dictionary_encode()), folder
        )
