"""What a purchase tells: shares or a mean with intervals, from the very reports that were bought. Nothing is drawn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from sqlalchemy import Connection

from relaxdp.estimation.counts import Counts
from relaxdp.market import wire
from relaxdp.market.goods import read_file
from relaxdp.market.purchases import StoredPurchase
from relaxdp.server_errors import MarketError
from relaxdp.tables.files import BATCH_ROWS
from relaxdp.tables.metadata import encode_json_value
from relaxdp.tables.table_columns import remove_hidden_values

MOST_READ = 5_000_000
"""A file of more objects is counted where it was downloaded to, not while others wait for the service."""
MOST_SHOWN = 20


def told_by(connection: Connection, purchase: StoredPurchase) -> wire.Told:
    """Return what a purchase tells about its own objects, with 95 % intervals: of many values the largest.

    Claim: the numbers are those of `relaxdp estimate` from the file that was bought; tests/unit/market/test_told.py.
    """
    listing = purchase.listing
    if purchase.objects > MOST_READ:
        raise MarketError(
            "this purchase tells of more than {most:,} objects: download it, and let `relaxdp estimate` count it.",
            most=MOST_READ,
        )
    assert listing.described is not None  # noqa: S101 (it was said before anything was sold)
    counts, column = Counts(listing.encoding), listing.described.path.attribute
    with pa_parquet.ParquetFile(pa.py_buffer(read_file(connection, purchase.digest))) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=[column]):
            counts.add(remove_hidden_values(batch.column(0)), epsilon=purchase.level.epsilon)
    found = counts.estimate()
    shown = found.largest(MOST_SHOWN)
    low, high = shown.interval()
    numbers = [np.atleast_1d(each).tolist() for each in (shown.value, low, high)]
    rows = [wire.ToldRow(encode_json_value(label), *each) for label, *each in zip(shown.labels, *numbers, strict=True)]
    ends = None if found.is_share else (found.minimum, found.maximum)
    return wire.Told(objects=counts.n, values=len(found.labels), range=ends, rows=rows)
