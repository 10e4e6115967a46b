"""Deliveries: a seller lists a release with its first level, and raises the authorised epsilon with relaxed ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet
from sqlalchemy import Connection

from relaxdp.errors import RelaxdpError
from relaxdp.market import listings
from relaxdp.market.accounts import MarketAccount
from relaxdp.market.goods import (
    MOST_BYTES,
    Goods,
    check_fits,
    encoding_of,
    keep_file,
    read_columns,
    read_file,
    read_level,
    too_large,
)
from relaxdp.market.levels import check_delivery, check_digits, check_priced, extended, grown
from relaxdp.market.listings import KeptFile, StoredListing
from relaxdp.market.prices import PriceCurve
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import get_mechanism_arguments
from relaxdp.mechanisms.report_arrays import make_report_column, read_report_column
from relaxdp.sampling.keyed_stream import CHUNK
from relaxdp.server_errors import DeliveryError, ListingStateError, MarketError, PriceError, UnknownListingError
from relaxdp.tables.files import TableFile, TableFormat, read_description
from relaxdp.tables.metadata import ColumnDescription, FileDescription
from relaxdp.tables.table_columns import get_id_type
from relaxdp.tables.table_source import IdOrderCheck, NotAscendingError
from relaxdp.theory.epsilon import Epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

MOST_LETTERS = 1000
MAX_VALUES = 10_000
_SMALL_BATCH = 1 << 14


def read_delivery(path: Path, column: str | None = None) -> Goods:
    """Read what a seller delivers: a released Parquet file. Of other columns than ids and reports nothing is kept."""
    try:
        table = TableFile(path)
        file = read_description(table.path)
    except RelaxdpError:
        raise DeliveryError("the delivery is damaged, or no Parquet file.") from None
    if table.format is not TableFormat.PARQUET or file is None:
        raise DeliveryError(
            "the delivery does not say what it holds: a release is delivered as the Parquet file that "
            "`relaxdp release` writes."
        )
    name = _column(file, column)
    described = file.columns[name]
    _check_names(file.id_column, described)
    encoding = encoding_of(described)
    described = _understood(described, encoding)
    level = encoding.level(described.epsilon)
    if level.threshold != described.threshold:
        raise DeliveryError("the delivery says an epsilon and a threshold that are not one level.")
    ids, reports = _read_delivered(path, table, file.id_column, name)
    _check_ids(ids, described)
    return Goods(file.id_column, described, encoding, level, ids, _checked(encoding, reports))


def _check_names(id_column: str, described: ColumnDescription) -> None:
    """Refuse names that are no text, or that both columns would have: they name what is written and bound."""
    names = (id_column, described.path.release, described.path.attribute, described.key_fingerprint)
    if not all(isinstance(name, str) and _is_text(name) for name in names):
        raise DeliveryError("the delivery names its release, attribute, key or ids by something odd.")
    if described.path.attribute == id_column:
        raise DeliveryError("the delivery's attribute has the name of its ids.")


def _understood(described: ColumnDescription, encoding: Mechanism) -> ColumnDescription:
    """Return a description in our own words: what it says beside what was understood would be published as it is."""
    if described.encoding != encoding.name or len(encoding.labels) > MAX_VALUES:
        raise DeliveryError(
            "the delivery cannot be sold here: its encoding is not known, or has more than {most:,} values.",
            most=MAX_VALUES,
        )
    return replace(described, **get_mechanism_arguments(encoding), retention=None)


def _is_text(name: str) -> bool:
    """Tell whether a name is text that can be written everywhere: half a letter, or a null character, cannot."""
    try:
        return "\0" not in name and len(name.encode()) <= MOST_LETTERS
    except UnicodeEncodeError:
        return False


def _column(file: FileDescription, wanted: str | None) -> str:
    names = list(file.columns)
    if wanted is None and len(names) != 1:
        raise DeliveryError("the delivery has several released columns: say which one is for sale.")
    if wanted is not None and wanted not in names:
        raise DeliveryError("the delivery has no released column of that name.")
    return names[0] if wanted is None else wanted


def _read_delivered(path: Path, table: TableFile, id_column: str, column: str) -> tuple[Any, Any]:
    """Return both columns of a file that a stranger made: a small one may unfold to more than there is memory.

    So long texts are refused while they are still entries of a dictionary, and what the file says of its own size is
    looked at first.
    """
    wanted = [id_column, column]
    try:
        with pa_parquet.ParquetFile(path, pre_buffer=False, read_dictionary=wanted) as file:
            if _unpacked(file.metadata) > MOST_BYTES:
                raise too_large()
            for batch in file.iter_batches(_SMALL_BATCH, columns=wanted):
                if any(_longest(each) > MOST_LETTERS for each in batch.columns):
                    raise too_large()
    except (pa.ArrowException, OSError, ValueError, LookupError) as problem:
        if isinstance(problem, RelaxdpError):
            raise
        raise DeliveryError("the delivery is damaged, or no Parquet file.") from None
    return read_columns(table, id_column, column)


def _unpacked(metadata: Any) -> int:
    """Return how many bytes the file states for all its columns when they are unpacked.

    The metadata of a single column is not read: where it is damaged, pyarrow ends the process.
    """
    return sum(max(metadata.row_group(place).total_byte_size, 0) for place in range(metadata.num_row_groups))


def _longest(column: Any) -> int:
    """Return the length of the longest text or bytes of a column, without unfolding its dictionary."""
    values = column.dictionary if pa.types.is_dictionary(column.type) else getattr(column, "storage", column)
    kind = values.type
    if not len(values) or not (pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return 0
    return pc.max(pc.binary_length(values)).as_py() or 0


def _check_ids(ids: Any, described: ColumnDescription) -> None:
    try:
        IdOrderCheck().check(ids)
        kind = get_id_type(ids.type)
    except NotAscendingError:
        raise DeliveryError("the rows are not in the order of their ids, or an id occurs twice.") from None
    except RelaxdpError as problem:
        raise DeliveryError(problem.template, **problem.fields) from None
    if kind != described.id_type:
        raise DeliveryError("the ids are of another type than the delivery says.")


def _checked(encoding: Mechanism, reports: Any) -> Any:
    """Return reports in the encoding's own type, or refuse what is no report."""
    parts = []
    try:
        for start in range(0, len(reports), CHUNK):
            parts.append(make_report_column(encoding, *read_report_column(encoding, reports[start : start + CHUNK])))
    except (RelaxdpError, pa.ArrowException, ValueError, TypeError):
        raise DeliveryError("the delivery holds something that is no report of its encoding.") from None
    return pa.concat_arrays(parts)


def own(connection: Connection, listing_id: str, seller: MarketAccount) -> StoredListing:
    """Return a listing of a seller; somebody else's is as unknown as one that is not there."""
    listing = listings.find(connection, listing_id)
    if listing.seller != seller.number:
        raise UnknownListingError("{seller} has no listing with this id.", seller=seller.name)
    return listing


def deliver(connection: Connection, listing: StoredListing, goods: Goods, file: bytes) -> StoredListing:
    """Take a delivery, whose `level_file` was made before the market was held.

    What is sold was drawn below the levels that were delivered before. So a delivery lies above all of them, and is a
    relaxed release of the very same path; that the seller's key and truths are the same cannot be seen here.
    """
    described, level = goods.described, goods.level
    if listing.kind != "release":
        raise ListingStateError("a pool takes single reports, not releases.")
    if listing.state == "closed":
        raise ListingStateError("this listing is closed.")
    delivered = [kept for kept in listings.levels_of(connection, listing).values() if kept.delivered]
    _check_level(listing, level, max((kept.level for kept in delivered), default=None))
    if delivered:
        first = read_level(read_file(connection, delivered[0].digest), listing, delivered[0].level)
        check_fits(goods, first)
    check_delivery(level, (kept.level for kept in delivered))
    check_digits(level.epsilon)
    columns = {
        "path": listings.claim_path(connection, listing, described),
        "described": json.dumps(described.to_dict()),
        "id_column": goods.id_column,
        "objects": len(goods.ids),
        "state": "open",
        "grid": listings.grid_text(grown(listing.grid, level, listing.prices, goods.encoding)),
    }
    listings.keep_level(connection, listing, KeptFile(level, None, keep_file(connection, file)))
    return listings.change(connection, listing, **columns)


def _check_level(listing: StoredListing, level: Level, before: Level | None) -> None:
    """Refuse a level by its epsilon: whether it is of the encoding that was delivered before is not known yet."""
    epsilon, shown = level.epsilon, str(level)
    if before is not None and epsilon <= before.epsilon:
        raise DeliveryError(
            "a delivery must lie above every delivered level: {delivered} was delivered, and this one is at {epsilon}.",
            delivered=str(before),
            epsilon=shown,
        )
    if listing.budget is not None and epsilon > listing.budget:
        raise DeliveryError(
            "the delivery is at epsilon {epsilon}, and the budget of this listing is {budget}.",
            budget=format_epsilon(listing.budget),
            epsilon=shown,
        )
    if not listing.prices.reaches(epsilon):
        raise PriceError("the prices do not reach epsilon {epsilon}: extend them first.", epsilon=shown)


def extend_prices(
    connection: Connection, listing: StoredListing, newer: PriceCurve, levels: Iterable[Epsilon] | None = None
) -> StoredListing:
    """Let prices reach further up, and state more levels there; what is on sale stays as it is."""
    most = listings.authorised(connection, listing)
    prices, grid = listing.prices.extended_by(newer, None if most is None else most.epsilon), listing.grid
    check_priced(grid, prices)
    if levels is not None:
        grid = extended(grid, levels, prices, most, None if listing.described is None else listing.encoding)
    return listings.change(connection, listing, prices=json.dumps(prices.to_json()), grid=listings.grid_text(grid))


def raise_budget(connection: Connection, listing: StoredListing, budget: Decimal) -> StoredListing:
    """Raise the budget; what was promised to its people is not taken back by lowering it."""
    if listing.budget is not None and budget <= listing.budget:
        raise MarketError(
            "a budget may only be raised: it is {budget}, and {asked} was asked for.",
            budget=format_epsilon(listing.budget),
            asked=format_epsilon(budget),
        )
    most = listings.authorised(connection, listing)
    if most is not None and budget < most.epsilon:
        raise MarketError(
            "epsilon {delivered} was delivered already, which is more than a budget of {asked}.",
            delivered=most,
            asked=format_epsilon(budget),
        )
    return listings.change(connection, listing, budget=format_epsilon(budget))


def close(connection: Connection, listing: StoredListing, *, sold: bool = False) -> StoredListing:
    """Sell no more, for good. What was bought stays bought; if anything was, the path stays taken.

    Of a release that ends before anything was sold, nothing ever left the platform to a buyer, and nothing ever will:
    so what all buyers of the next listing of its path learn is one path again, and it gives the path up. The platform
    holds what was delivered to both, and against it the seller's release is one keyed path, wherever its levels were
    delivered. `sold` says that something was sold which the database has forgotten. A pool keeps its path, which is
    named after an id that stays taken.
    """
    if listing.state == "closed":
        raise ListingStateError("this listing is closed already.")
    if listing.kind == "release" and not sold and not listings.anything_sold(connection, listing):
        return listings.change(connection, listing, state="closed", path=None)
    return listings.change(connection, listing, state="closed")
