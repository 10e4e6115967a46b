"""Descriptions of released columns: values, level and key, but nothing about true values.

It travels in the schema metadata of Parquet files under the name `relaxdp`, and next to a CSV file as
`FILE.relaxdp.json`. Analysts, the collector's exports and the market's downloads all read it.
"""

from __future__ import annotations

import base64
import json
import sys
import uuid
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from relaxdp.errors import MechanismError, MetadataError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.sampling.keyed_stream import PathId, get_value_kind
from relaxdp.theory.epsilon import as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

METADATA_KEY = b"relaxdp"
_TEXT_KEY = METADATA_KEY.decode()
# Where Spark's own writer puts the metadata of columns.
SPARK_KEY = b"org.apache.spark.sql.parquet.row.metadata"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """The description of a released column. Epsilon and threshold are its level, as text so that nothing is rounded."""

    path: PathId
    encoding: str
    epsilon: Decimal
    threshold: int
    id_type: str
    key_fingerprint: str
    values: tuple[Any, ...] | None = None
    range: tuple[float, float] | None = None
    clip: bool = False
    """Whether numbers were put into the range."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What an encoding needs to know beside the values, such as the number of buckets."""
    level_column: str | None = None
    """The column that states the epsilon of each row, where rows are at different levels."""
    row_epsilons: tuple[Decimal, ...] = ()
    """The levels of the rows then, ascending. `epsilon` is the largest that the release allows."""

    @classmethod
    def from_level(
        cls, mechanism: Mechanism, level: Level, *, path: PathId, id_type: str = "", key_fingerprint: str = ""
    ) -> ColumnDescription:
        """Return the description of reports of this mechanism at this level."""
        return cls(
            path=path,
            encoding=mechanism.name,
            epsilon=level.epsilon,
            threshold=level.threshold,
            id_type=id_type,
            key_fingerprint=key_fingerprint,
            **get_mechanism_arguments(mechanism),
        )

    @property
    def epsilons(self) -> tuple[Decimal, ...]:
        """The levels of the rows: all at one, or those that the level column states."""
        return self.row_epsilons if self.level_column is not None else (self.epsilon,)

    def mechanism(self) -> Mechanism:
        """Return the mechanism that counts and estimates this column."""
        with suppress(MechanismError):
            found = create_mechanism(
                self.encoding, values=self.values, range=self.range, clip=self.clip, options=self.options
            )
            if found.name == self.encoding:
                return found
        raise MetadataError(
            "Unknown mechanism {encoding!r} in the metadata.",
            hint="Install the version of relaxdp that released the file, or call register_mechanism(...) for your own.",
            encoding=self.encoding,
        )

    @property
    def n_bits_as_text(self) -> int | None:
        """How many bits a packed report has where text spells them, as for RAPPOR; None for hexadecimal digits."""
        return int(self.options["bits"]) if self.encoding == "bloom" else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: values of every kind are written so that they come back as what they were."""
        values = None if self.values is None else [encode_json_value(value) for value in self.values]
        content: dict[str, Any] = {
            "version": VERSION,
            "release": self.path.release,
            "attribute": self.path.attribute,
            "encoding": self.encoding,
            "epsilon": format_epsilon(self.epsilon),
            "threshold": str(self.threshold),
            "id_type": self.id_type,
            "key_fingerprint": self.key_fingerprint,
        }
        if values is not None:
            content["values"] = values
        if self.options:
            content["options"] = dict(self.options)
        if self.range is not None:
            content["range"] = list(self.range)
            content["clip"] = self.clip
        if self.level_column is not None:
            content["level_column"] = self.level_column
            content["row_epsilons"] = [format_epsilon(each) for each in self.row_epsilons]
        return content

    @classmethod
    def from_dict(cls, content: Any) -> ColumnDescription:
        """Return the description, or reject JSON that is damaged or from a newer version."""
        with _reject_damage():
            if (version := content["version"]) != VERSION:
                raise MetadataError(
                    "The metadata of the file has version {version!r}. This version of relaxdp reads version {reads}.",
                    hint="Install the version of relaxdp that released the file.",
                    version=version,
                    reads=VERSION,
                )
            threshold, values, ends = int(content["threshold"]), content.get("values"), content.get("range")
            clip, level_column = content.get("clip", False), content.get("level_column")
            if type(clip) is not bool or "function" in content:  # numbers of which a function was taken
                raise ValueError
            row_epsilons = content.get("row_epsilons", [])
            if type(row_epsilons) is not list or not isinstance(level_column, str | None):
                raise ValueError
            if bool(row_epsilons) != (level_column is not None):
                raise ValueError
            return cls(
                path=PathId(content["release"], content["attribute"]),
                encoding=sys.intern(content["encoding"]),  # which takes nothing but text
                epsilon=as_epsilon(content["epsilon"]),
                threshold=threshold,
                id_type=content["id_type"],
                key_fingerprint=content["key_fingerprint"],
                values=None if values is None else tuple(decode_json_value(value) for value in values),
                range=None if ends is None else (float(ends[0]), float(ends[1])),
                clip=clip,
                options=dict(content.get("options", {})),
                level_column=level_column,
                row_epsilons=tuple(map(as_epsilon, row_epsilons)),
            )


@contextmanager
def _reject_damage() -> Iterator[None]:
    """Reject damaged JSON, which is not a description."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise MetadataError("The metadata of the file is damaged.", hint="Use an undamaged copy of the file.") from None


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The head of a ledger's chain when a file was released: its last event, which older copies of a vault lack."""

    vault: str
    event: int
    digest: str


@dataclass(frozen=True, slots=True)
class FileDescription:
    """The description of a file: its released columns by name, its id column, and how many rows were released."""

    id_column: str
    columns: dict[str, ColumnDescription]
    rows: int | None = field(default=None, kw_only=True, compare=False)
    """Of the whole table, also where a file is a part of it; None where rows were chosen without looking at reports."""
    head: ChainHead | None = field(default=None, kw_only=True, compare=False)
    """The vault that released it; None for a file of the market or of a campaign."""

    def find_column(self, name: str) -> str | None:
        """Return the released column with a name: its own, or that of the table's column that it reports."""
        if name in self.columns:
            return name
        found = [each for each, column in self.columns.items() if column.path.attribute == name]
        return found[0] if len(found) == 1 else None

    def to_json(self) -> str:
        """Return the description as one JSON text."""
        columns = {name: column.to_dict() for name, column in self.columns.items()}
        rows = {} if self.rows is None else {"rows": self.rows}
        head = {} if self.head is None else {"vault": asdict(self.head)}
        return json.dumps({"id": self.id_column, "columns": columns, **rows, **head}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> FileDescription:
        """Return the description that `to_json` wrote."""
        with _reject_damage():
            content = json.loads(text)
            rows, head = content.get("rows"), content.get("vault")
            if rows is not None and (type(rows) is not int or rows < 0):
                raise ValueError
            columns, id_column = dict(content["columns"]), content["id"]
            head = None if head is None else ChainHead(**head)
        found = {name: ColumnDescription.from_dict(column) for name, column in columns.items()}
        return cls(id_column, found, rows=rows, head=head)

    def equals_json(self, text: str | bytes) -> bool:
        """Tell whether a JSON text is the same description, apart from the number of rows and the vault."""
        with suppress(ValueError, TypeError, RecursionError):
            no_matter = {"rows": None, "vault": None}
            return bool({**json.loads(text), **no_matter} == {**json.loads(self.to_json()), **no_matter})
        return False


def require_same_description(given: FileDescription, own: FileDescription | None, table_name: str) -> FileDescription:
    """Return a description that the caller gives, or reject one that contradicts the table's own.

    It may vouch for the rows of a table that describes itself. At another level, or with other values, every estimate
    would be wrong without a sign of it.
    """
    if own is None:
        return given
    for column, described in given.columns.items():
        mine, stated = own.columns.get(column), described
        if mine is None:
            raise MetadataError(
                "{column!r} is not a released column of {name}, according to the metadata of {name}.",
                hint="Name one of the released columns: {released}.",
                name=table_name,
                column=column,
                released=", ".join(map(repr, own.columns)),
            )
        if not described.path.release:  # a mechanism and an epsilon, which state neither path nor ids
            fields = ("encoding", "epsilon", "threshold", "values", "range", "options", "level_column", "row_epsilons")
            stated = replace(mine, **{each: getattr(described, each) for each in fields})
        if stated != mine:
            raise MetadataError(
                "{name} has its own metadata: {column!r} was released at epsilon {own_epsilon}. The "
                "given description (epsilon {given_epsilon}) contradicts it.",
                hint="Leave description=, mechanism= and epsilon= (--description) out.",
                name=table_name,
                column=column,
                own_epsilon=format_epsilon(mine.epsilon),
                given_epsilon=format_epsilon(stated.epsilon),
            )
    return given


def parse_description(metadata: Mapping[bytes, bytes]) -> FileDescription | None:
    """Return the description in the metadata of a schema or a file, wherever relaxdp, pandas or Spark put it."""
    text: Any = metadata.get(METADATA_KEY)
    if text is None and SPARK_KEY in metadata:
        return _parse_spark_schema(metadata[SPARK_KEY])
    text = _find_pandas_description(metadata) if text is None else text
    return None if text is None else FileDescription.from_json(text)


def _find_pandas_description(metadata: Mapping[bytes, bytes]) -> str | None:
    """Return the text that pandas put among the attributes of a frame, in a schema or in a file; else None."""
    try:
        found = json.loads(metadata.get(b"pandas", b"{}")).get("attributes") or {}
        found = found or json.loads(metadata.get(b"PANDAS_ATTRS", b"{}"))
        text = found.get(_TEXT_KEY)
    except (ValueError, AttributeError, RecursionError):
        return None
    return text if isinstance(text, str) else None


def _parse_spark_schema(schema: str | bytes) -> FileDescription | None:
    """Return the description out of a Spark schema as JSON, where every released column carries its own; else None.

    The metadata goes along when a column gets another name: two levels of one column may stand side by side.
    """
    try:
        fields = json.loads(schema)["fields"]
        texts = {field["name"]: field["metadata"].get(_TEXT_KEY) for field in fields}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    parts = {name: FileDescription.from_json(text) for name, text in texts.items() if text is not None}
    if not parts:
        return None
    first = next(iter(parts.values()))
    columns = {name: next(iter(part.columns.values())) for name, part in parts.items()}
    return FileDescription(first.id_column, columns, rows=first.rows)


def encode_json_value(value: Any) -> Any:
    """Encode a value for JSON: text, small whole numbers and None as they are, everything else with its kind."""
    kind = get_value_kind(value)
    if value is None or kind == "text" or (kind == "integer" and abs(value) < 2**53):
        return value
    return {str(kind): value.hex() if kind in ("bytes", "number") else str(value)}


def decode_json_value(entry: Any) -> Any:
    """Return the value that `encode_json_value` wrote."""
    if not isinstance(entry, dict):
        return entry
    ((kind, text),) = entry.items()
    readers: dict[str, Any] = {"integer": int, "bytes": bytes.fromhex, "number": float.fromhex, "uuid": uuid.UUID}
    return readers[kind](text)


def open_parquet_writer(file: IO[bytes], schema: Any, id_column: str) -> Any:
    """Return a writer of a released table as Parquet; before it is closed, it is given `make_parquet_metadata`.

    No id occurs twice, so a dictionary of ids is nothing but work. Whole numbers that ascend are written as the small
    steps between them: a sixth of the size, read in half the time.
    """
    options: dict[str, Any] = {"use_dictionary": [each.name for each in schema if each.name != id_column]}
    if id_column in schema.names and pa.types.is_integer(schema.field(id_column).type):
        options["column_encoding"] = {id_column: "DELTA_BINARY_PACKED"}
    return pa_parquet.ParquetWriter(file, schema, compression="zstd", compression_level=1, store_schema=True, **options)


def make_parquet_metadata(schema: Any, description: FileDescription) -> dict[str, bytes]:
    """Return the metadata that a Parquet writer is given before it is closed.

    A file contains the description twice: by itself, and in the schema that Arrow keeps there for its own readers.
    Only what is in the latter comes back with a table, and goes on from there into other files.

    Claim: the file is what a writer makes that knows all this before; tests/unit/tables/test_file_rows.py.
    """
    text = description.to_json()
    # pandas puts what it finds under this name into the attributes of the frame that it reads.
    metadata = {_TEXT_KEY: text, "PANDAS_ATTRS": json.dumps({_TEXT_KEY: text})}
    whole = schema.with_metadata(metadata)
    return {
        **{name: each.encode() for name, each in metadata.items()},
        "ARROW:schema": base64.b64encode(whole.serialize()),
    }


# Descriptions of frames: a polars frame or a DuckDB relation has no place for one, so this process recognises those
# that it released, as long as they live.

_RELEASED: dict[int, tuple[weakref.ref[Any], FileDescription]] = {}


def attach_description(frame: Any, description: FileDescription) -> Any:
    """Return the frame with its description, which replaces all other metadata of the frame."""
    if isinstance(frame, pa.Table):
        return frame.replace_schema_metadata({METADATA_KEY: description.to_json()})
    if isinstance(getattr(frame, "attrs", None), dict):
        frame.attrs = {_TEXT_KEY: description.to_json()}
        return frame
    place = id(frame)
    # Python calls this before it gives the number to another object.
    _RELEASED[place] = (weakref.ref(frame, lambda _: _RELEASED.pop(place, None)), description)
    return frame


def is_spark_frame(frame: Any) -> bool:
    """Tell whether this is a Spark DataFrame; Spark itself may be missing."""
    return type(frame).__module__.startswith("pyspark.sql")


def read_frame_description(frame: Any) -> FileDescription | None:
    """Return the description of a frame, None if relaxdp did not release it or it was changed since."""
    if isinstance(frame, pa.Table):
        return parse_description(frame.schema.metadata or {})
    if is_spark_frame(frame):
        return _parse_spark_schema(frame.schema.json())
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, dict):
        return FileDescription.from_json(attributes[_TEXT_KEY]) if isinstance(attributes.get(_TEXT_KEY), str) else None
    reference, description = _RELEASED.get(id(frame), (None, None))
    return description if reference is not None and reference() is frame else None
