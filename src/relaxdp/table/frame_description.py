"""How a released frame knows what it holds: by its metadata where it has some, else by being that very frame.

pyarrow tables carry a description in their schema (and into files), pandas frames in `attrs`. Polars frames and DuckDB
relations have no place for one: this process recognises those that it released, as long as they live.
"""

from __future__ import annotations

import json
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp.errors import DescriptionError
from relaxdp.table.description import METADATA_KEY, FileDescription

_NAME = METADATA_KEY.decode()


@dataclass(frozen=True, slots=True)
class Said:
    """What a frame says about itself; and how many rows it had, because filters keep metadata and change the answer."""

    description: FileDescription
    rows: int | None = None

    def dumps(self) -> str:
        """Return the text that files have too, with the rows added."""
        return json.dumps(json.loads(self.description.dumps()) | {"rows": self.rows}, ensure_ascii=False)

    @classmethod
    def loads(cls, text: str | bytes) -> Said:
        """Read it back; a file's own description does not say its rows."""
        description = FileDescription.loads(text)
        rows = json.loads(text).get("rows")
        return cls(description, rows if isinstance(rows, int) else None)


_RELEASED: dict[int, tuple[weakref.ref[Any], Said]] = {}


def describe(frame: Any, said: Said) -> Any:
    """Return the frame with its description; what else stood in that place is gone."""
    if isinstance(frame, pa.Table):
        return frame.replace_schema_metadata({METADATA_KEY: said.dumps()})
    if isinstance(getattr(frame, "attrs", None), dict):
        frame.attrs = {_NAME: said.dumps()}
        return frame
    place = id(frame)
    # Python calls this before it gives the number to another object.
    _RELEASED[place] = (weakref.ref(frame, lambda _: _RELEASED.pop(place, None)), said)
    return frame


def said_by(frame: Any) -> Said | None:
    """Return what a frame says about itself, None for one that relaxdp did not release, or that was changed since."""
    if isinstance(frame, pa.Table):
        text = _arrow_text(frame.schema.metadata or {})
        return None if text is None else Said.loads(text)
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, dict):
        return Said.loads(attributes[_NAME]) if isinstance(attributes.get(_NAME), str) else None
    if type(frame).__module__.startswith("pyspark.sql"):
        from relaxdp.table.spark_estimate import said_by_spark  # noqa: PLC0415

        return said_by_spark(frame)
    reference, said = _RELEASED.get(id(frame), (None, None))
    return said if reference is not None and reference() is frame else None


def _arrow_text(metadata: dict[bytes, bytes]) -> str | bytes | None:
    """Return the description in a schema: its own, or one that pandas put among its attributes."""
    if METADATA_KEY in metadata:
        return metadata[METADATA_KEY]
    try:
        found = json.loads(metadata.get(b"pandas", b"{}")).get("attributes") or {}
        found = found or json.loads(metadata.get(b"PANDAS_ATTRS", b"{}"))
        text = found.get(_NAME)
    except (ValueError, AttributeError):
        return None
    return text if isinstance(text, str) else None


def description_of(source: Any) -> FileDescription:
    """Return what a released frame or file says about itself, or refuse one that says nothing."""
    if isinstance(source, FileDescription):
        return source
    if isinstance(source, str | os.PathLike):
        from relaxdp.table.formats import released  # noqa: PLC0415

        return released(Path(source))[1]
    said = said_by(source)
    if said is None:
        raise DescriptionError(
            "this frame does not say what it holds: relaxdp did not release it, or it was changed since. Say "
            "description= (the frame or file as it was released), or mechanism= and epsilon=."
        )
    return said.description
