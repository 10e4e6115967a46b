"""The goods: a level of a release in memory, drawn from its neighbours, and kept as a file."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from relaxdp.draw.columns import column_slice
from relaxdp.draw.key import Key
from relaxdp.draw.stream import CHUNK, PathName
from relaxdp.encodings.bridges import keyed_column
from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import DeliveryError, RelaxdpError
from relaxdp.law.bridge import NOISE
from relaxdp.law.level import Level
from relaxdp.market.listings import Listing
from relaxdp.publication.description import ColumnDescription, FileDescription
from relaxdp.publication.plain import plain
from relaxdp.table.formats import BATCH_ROWS, Input, Output
from relaxdp.table.kinds import Format, Kind

MOST_OBJECTS = 50_000_000
MOST_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Goods:
    """All reports of a release at one level, in the order of their ids."""

    id_column: str
    described: ColumnDescription
    encoding: Encoding
    ids: Any
    reports: Any

    @property
    def level(self) -> Level:
        """The level that its description says."""
        return self.encoding.level(self.described.epsilon, self.described.threshold)


def read_level(content: bytes, listing: Listing, level: Level) -> Goods:
    """Read a level that the market wrote; what a listing says of itself holds for all of its levels."""
    assert listing.described is not None  # noqa: S101 (it was said before anything was written)
    assert listing.id_column is not None  # noqa: S101
    described = replace(listing.described, epsilon=level.epsilon, threshold=level.threshold)
    with pa_parquet.ParquetFile(pa.py_buffer(content)) as parquet:
        columns = parquet.read([listing.id_column, described.path.attribute]).columns
    return Goods(listing.id_column, described, listing.encoding, *(pa.concat_arrays(each.chunks) for each in columns))


def level_file(goods: Goods) -> bytes:
    """Return a level as every released file is written, with its retention in the description."""
    described = replace(goods.described, retention=goods.level.retention)
    file = FileDescription(goods.id_column, {described.path.attribute: described})
    schema = pa.schema([(goods.id_column, goods.ids.type), (described.path.attribute, goods.reports.type)])
    content = BytesIO()
    output = Output(content, Kind(Format.PARQUET), schema, file)
    try:
        for start in range(0, len(goods.ids), BATCH_ROWS):
            columns = [column[start : start + BATCH_ROWS] for column in (goods.ids, goods.reports)]
            output.write(pa.RecordBatch.from_arrays(columns, schema=output.schema))
        output.close()
        return content.getvalue()
    finally:
        output.abandon()


def draw_level(key: Key, listing: str, level: Level, *, lower: Goods | None, upper: Goods) -> Goods:
    """Draw a level between two others, as a pure function of the market's key, the listing and what is out.

    Nothing of this has left when it returns, and the same call gives the same reports: a sale that was interrupted
    before it was kept may be begun again.

    Claim: every report is the scalar `keyed_bridge` of its neighbours; tests/unit/market/test_goods.py.
    """
    encoding, highest, lowest = upper.encoding, upper.level, None if lower is None else lower.level
    name = bridge_name(listing, upper.described, encoding)
    reports = keyed_column(
        encoding,
        NOISE if lowest is None else lowest.retention,
        encoding.checked(level).retention,
        highest.retention,
        lower=None if lower is None else lower.reports,
        upper=upper.reports,
        object_ids=upper.ids,
        key=key,
        name=name,
    )
    described = replace(upper.described, epsilon=level.epsilon, threshold=level.threshold, retention=None)
    return replace(upper, described=described, reports=reports)


def bridge_name(listing: str, described: ColumnDescription, encoding: Encoding) -> PathName:
    """Return what is bound into every bridge of a listing.

    Two listings may hold the same ids, and two sellers may give their releases the same name: with shared noise their
    reports would betray each other.
    """
    release = "/".join((listing, described.key_fingerprint, described.path.release))
    return encoding.path_name(replace(described.path, release=release))


def encoding_of(described: ColumnDescription) -> Encoding:
    """Return the encoding that a description names, or refuse what is not sold here."""
    try:
        return described.made_encoding()
    except RelaxdpError as problem:
        raise DeliveryError(
            "the delivery cannot be sold here: its encoding is not known, or its values do not fit it.",
            problem=problem.code,
        ) from None


def check_fits(new: Goods, first: Goods) -> None:
    """Refuse a delivery that does not go on with the path of the first one."""
    one, two = first.described, new.described
    if (one.path, one.key_fingerprint) != (two.path, two.key_fingerprint):
        raise DeliveryError(
            "the delivery is of another release, attribute or key than the first one: only a relaxed release "
            "of the same path raises the authorised epsilon."
        )
    encoding = first.encoding
    if encoding.params != new.encoding.params or (one.encoding, one.sampler) != (two.encoding, two.sampler):
        raise DeliveryError("the delivery has other values, or in another encoding, than the first one.")
    if (one.function or "identity") != (two.function or "identity"):
        raise DeliveryError("the delivery is of another function of the numbers than the first one.")
    if one.id_type != two.id_type or first.id_column != new.id_column or not first.ids.equals(new.ids):
        raise DeliveryError("the delivery has other ids than the first one.")
    if not _same_seeds(encoding, first.reports, new.reports):
        raise DeliveryError("the delivery has other seeds than the first one: it is not of one path.")


def _same_seeds(encoding: Encoding, first: Any, new: Any) -> bool:
    """Tell whether every object has the public word that it had, where an encoding has any: the bridge needs it."""
    if not encoding.seeded:
        return True
    for start in range(0, len(new), CHUNK):
        one, two = (encoding.read(column_slice(each, start, start + CHUNK))[1] for each in (first, new))
        if one is None or two is None or not np.array_equal(one, two):
            return False
    return True


def read_columns(table: Input, id_column: str, column: str) -> tuple[Any, Any]:
    """Return both columns, whole. What unfolds to more than the market takes is not read to its end."""
    if any(table.schema.names.count(name) != 1 for name in (id_column, column)):
        raise DeliveryError("the delivery speaks of other columns than it has.")
    if not 0 < (table.rows or 0) <= MOST_OBJECTS:
        raise DeliveryError("a delivery has between 1 and {most:,} rows.", most=MOST_OBJECTS)
    parts: list[tuple[Any, Any]] = []
    size = 0
    try:
        with closing(table.batches([id_column, column])) as batches:
            for batch in batches:
                parts.append((plain(batch.column(id_column)), plain(batch.column(column))))
                size += sum(part.nbytes for part in parts[-1])
                if size > MOST_BYTES:
                    break
    except (RelaxdpError, pa.ArrowException):
        raise DeliveryError("the delivery is damaged, or no Parquet file.") from None
    if size > MOST_BYTES:
        raise too_large()
    if sum(len(ids) for ids, _ in parts) != table.rows:
        raise DeliveryError("the delivery has not as many rows as it says.")
    return pa.concat_arrays([ids for ids, _ in parts]), pa.concat_arrays([reports for _, reports in parts])


def too_large() -> DeliveryError:
    """Return the refusal of what would not fit into memory."""
    return DeliveryError("the delivery is larger than the market takes.")
