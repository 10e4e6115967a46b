"""The goods: a level of a release in memory, drawn from its neighbours, and kept as a file.

Files lie in the market's database under the digest of their bytes, so that goods and money change in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from sqlalchemy import Connection, func, insert, select

from relaxdp.errors import RelaxdpError
from relaxdp.market.schema import FILES
from relaxdp.mechanisms.base import Mechanism, make_path_key_info, require_level
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.bridged_columns import draw_keyed_bridged_column
from relaxdp.mechanisms.report_arrays import read_report_column
from relaxdp.sampling.keyed_stream import CHUNK, PathKeyInfo
from relaxdp.sampling.keys import Key
from relaxdp.server_errors import DeliveryError
from relaxdp.tables.files import BATCH_ROWS, TableFile
from relaxdp.tables.metadata import ColumnDescription, FileDescription, make_parquet_metadata, open_parquet_writer
from relaxdp.tables.table_columns import remove_hidden_values
from relaxdp.theory.randomized_response import NOISE, Level

if TYPE_CHECKING:  # the auditor draws levels where nothing of a service is installed
    from relaxdp.market.listings import StoredListing

MOST_OBJECTS = 50_000_000
MOST_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Goods:
    """All reports of a release at one level, in the order of their ids."""

    id_column: str
    described: ColumnDescription
    """What is said of every level of the release."""
    encoding: Mechanism
    level: Level
    ids: Any
    reports: Any


def read_level(content: bytes, listing: StoredListing, level: Level) -> Goods:
    """Read a level that the market wrote; what a listing says of itself holds for all of its levels."""
    assert listing.described is not None  # noqa: S101 (it was said before anything was written)
    assert listing.id_column is not None  # noqa: S101
    with pa_parquet.ParquetFile(pa.py_buffer(content)) as parquet:
        columns = parquet.read([listing.id_column, listing.described.path.attribute]).columns
    ids, reports = (pa.concat_arrays(each.chunks) for each in columns)
    return Goods(listing.id_column, listing.described, listing.encoding, level, ids, reports)


def level_file(goods: Goods) -> bytes:
    """Return a level as every released file is written, with its retention in the description."""
    name = goods.described.path.attribute
    schema = pa.schema([(goods.id_column, goods.ids.type), (name, goods.reports.type)])
    content = BytesIO()
    with open_parquet_writer(content, schema, goods.id_column) as writer:
        for start in range(0, len(goods.ids), BATCH_ROWS):
            columns = [column[start : start + BATCH_ROWS] for column in (goods.ids, goods.reports)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        file = FileDescription(goods.id_column, {name: goods.described.with_level(goods.level)}, rows=len(goods.ids))
        writer.add_key_value_metadata(make_parquet_metadata(schema, file))
    return content.getvalue()


def draw_level(key: Key, listing: str, level: Level, *, lower: Goods | None, upper: Goods) -> Goods:
    """Draw a level between two others, as a pure function of the market's key, the listing and what is out.

    Nothing of this has left when it returns, and the same call gives the same reports: a sale that was interrupted
    before it was kept may be begun again.

    Claim: every report is the scalar `draw_keyed_bridge_report` of its neighbours; tests/unit/market/test_goods.py.
    """
    encoding = upper.encoding
    name = bridge_name(listing, upper.described, encoding)
    reports = draw_keyed_bridged_column(
        encoding,
        NOISE if lower is None else lower.level.retention,
        require_level(encoding, level).retention,
        upper.level.retention,
        lower_reports=None if lower is None else lower.reports,
        upper_reports=upper.reports,
        ids=upper.ids,
        key=key,
        inputs=name,
    )
    return replace(upper, level=level, reports=reports)


def bridge_name(listing: str, described: ColumnDescription, encoding: Mechanism) -> PathKeyInfo:
    """Return what is bound into every bridge of a listing.

    Two listings may hold the same ids, and two sellers may give their releases the same name: with shared noise their
    reports would betray each other.
    """
    release = "/".join((listing, described.key_fingerprint, described.path.release))
    return make_path_key_info(encoding, replace(described.path, release=release))


def encoding_of(described: ColumnDescription) -> Mechanism:
    """Return the encoding that a description names, or refuse what is not sold here."""
    try:
        encoding = described.mechanism()
    except RelaxdpError as problem:
        raise DeliveryError(
            "the delivery cannot be sold here: its encoding is not known, or its values do not fit it.",
            problem=problem.code,
        ) from None
    if isinstance(encoding, Bloom):
        raise DeliveryError("The delivery cannot be sold here: it holds RAPPOR reports.")
    return encoding


def check_fits(new: Goods, first: Goods) -> None:
    """Refuse a delivery that does not go on with the path of the first one."""
    one, two = first.described, new.described
    if (one.path, one.key_fingerprint) != (two.path, two.key_fingerprint):
        raise DeliveryError(
            "the delivery is of another release, attribute or key than the first one: only a relaxed release "
            "of the same path raises the authorised epsilon."
        )
    encoding = first.encoding
    if encoding.params != new.encoding.params or one.encoding != two.encoding:
        raise DeliveryError("the delivery has other values, or in another encoding, than the first one.")
    if one.id_type != two.id_type or first.id_column != new.id_column or not first.ids.equals(new.ids):
        raise DeliveryError("the delivery has other ids than the first one.")
    if not _same_seeds(encoding, first.reports, new.reports):
        raise DeliveryError("the delivery has other seeds than the first one: it is not of one path.")


def _same_seeds(encoding: Mechanism, first: Any, new: Any) -> bool:
    """Tell whether every object has the public word that it had, where an encoding has any: the bridge needs it."""
    if not encoding.seeded:
        return True
    for start in range(0, len(new), CHUNK):
        one, two = (read_report_column(encoding, each[start : start + CHUNK])[1] for each in (first, new))
        if one is None or two is None or not np.array_equal(one, two):
            return False
    return True


def read_columns(table: TableFile, id_column: str, column: str) -> tuple[Any, Any]:
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
                parts.append(
                    (remove_hidden_values(batch.column(id_column)), remove_hidden_values(batch.column(column)))
                )
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


PART_BYTES = 256 << 10  # so much of it is in memory for each buyer who downloads


def keep_file(connection: Connection, content: bytes) -> str:
    """Keep a file, and return its digest as `sha256sum` shows it; where it is there already, nothing is written."""
    digest = sha256(content).hexdigest()
    if connection.execute(select(FILES.c.part).where(FILES.c.digest == digest).limit(1)).first() is None:
        for place, start in enumerate(range(0, len(content), PART_BYTES)):
            part = content[start : start + PART_BYTES]
            connection.execute(insert(FILES).values(digest=digest, part=place, content=part))
    return digest


def part_of(connection: Connection, digest: str, place: int) -> bytes | None:
    """Return one part of a kept file; None after the last one."""
    query = select(FILES.c.content).where(FILES.c.digest == digest, FILES.c.part == place)
    found = connection.execute(query).scalar()
    return None if found is None else bytes(found)


def parts_of(connection: Connection, digest: str) -> Iterator[bytes]:
    """Return the bytes of a kept file, a part at a time."""
    place = 0
    while part := part_of(connection, digest, place):
        yield part
        place += 1


def length_of(connection: Connection, digest: str) -> int:
    """Return how many bytes a kept file has."""
    query = select(func.coalesce(func.sum(func.length(FILES.c.content)), 0)).where(FILES.c.digest == digest)
    return int(connection.execute(query).scalar_one())


def read_file(connection: Connection, digest: str) -> bytes:
    """Return a kept file, whole."""
    return b"".join(parts_of(connection, digest))
