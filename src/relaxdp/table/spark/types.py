"""Types that Spark does not have: what it hands over instead of them, and how a worker makes them again.

Unsigned numbers come as wider ones, those of 64 bits as decimals, and UUIDs as bytes. As such they would be the ids of
other people than the same file's on a laptop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from relaxdp.errors import ObjectIdError, OptionError
from relaxdp.publication.plain import plain_type

Types = Mapping[str, Any]
"""The own types of those columns that Spark hands over as others."""

UNSIGNED = pa.decimal128(20, 0)
"""What Spark makes of unsigned 64-bit numbers."""
_NEAREST = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): UNSIGNED}


def spark_type(kind: Any) -> Any:
    """Return the nearest type that Spark has: no dictionaries, and bytes of any width."""
    kind = plain_type(kind)
    if _is_uuid(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _NEAREST.get(kind, kind)


def spark_schema(schema: Any) -> Any:
    """Return Spark's own words for columns of types that it has."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    try:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except Exception:
        raise unreadable() from None


def unreadable() -> OptionError:
    """Return the refusal of a table with a column that can be handed over neither way."""
    return OptionError("the table has a column of a type that Spark cannot hand over.")


def types_of(schema: Any) -> dict[str, Any]:
    """Return the columns of a file that Spark would hand over as something else."""
    kinds = {field.name: plain_type(field.type) for field in schema}
    return {name: kind for name, kind in kinds.items() if spark_type(kind) != kind}


def has_uuids(schema: Any) -> bool:
    """Tell whether Spark would refuse a whole file because of a column of UUIDs."""
    return any(_is_uuid(field.type) for field in schema)


def own_schema(schema: Any, types: Types) -> Any:
    """Return a schema of Spark's with the own types of the columns."""
    return pa.schema([(field.name, types.get(field.name, field.type)) for field in schema])


def restored(batch: Any, types: Types) -> Any:
    """Return a batch of Spark's with columns of their own types; one that was read from a file has them."""
    for place, name in enumerate(batch.schema.names):
        kind = types.get(name)
        if kind is not None and batch.schema.field(place).type != kind:
            column = _restored(batch.column(place), kind)
            if column is None:  # raised here, because Arrow's own message quotes the number
                raise ObjectIdError(
                    "ids of type decimal(20,0) are taken for unsigned 64-bit numbers, and one of them is none."
                )
            batch = batch.set_column(place, name, column)
    return batch


def _restored(column: Any, kind: Any) -> Any | None:
    try:
        column = column.cast(getattr(kind, "storage_type", kind))
    except pa.ArrowException:
        return None
    return pa.ExtensionArray.from_storage(kind, column) if isinstance(kind, pa.BaseExtensionType) else column


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"
