"""How a released frame knows what it holds: by its metadata where it has some, else by being that very frame.

pyarrow tables carry a description in their schema (and into files), pandas frames in `attrs`. Polars frames and DuckDB
relations have no place for one: this process recognises those that it released, as long as they live.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from relaxdp.errors import MetadataError
from relaxdp.tables.metadata import METADATA_KEY, FileDescription, description_in

_NAME = METADATA_KEY.decode()


_RELEASED: dict[int, tuple[weakref.ref[Any], FileDescription]] = {}


def describe(frame: Any, said: FileDescription) -> Any:
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


def said_by(frame: Any) -> FileDescription | None:
    """Return what a frame says about itself, None for one that relaxdp did not release, or that was changed since."""
    if isinstance(frame, pa.Table):
        return description_in(frame.schema.metadata or {})
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, dict):
        return FileDescription.loads(attributes[_NAME]) if isinstance(attributes.get(_NAME), str) else None
    if type(frame).__module__.startswith("pyspark.sql"):
        from relaxdp.tables.spark_estimate import read_spark_metadata  # noqa: PLC0415

        return read_spark_metadata(frame)
    reference, said = _RELEASED.get(id(frame), (None, None))
    return said if reference is not None and reference() is frame else None


def description_of(source: Any) -> FileDescription:
    """Return what a released frame or file says about itself, or refuse one that says nothing."""
    if isinstance(source, FileDescription):
        return source
    if isinstance(source, str | os.PathLike):
        from relaxdp.tables.files import released  # noqa: PLC0415

        return released(Path(source))[1]
    said = said_by(source)
    if said is None:
        raise MetadataError(
            "The data frame has no description of its reports: relaxdp did not release it, it was changed, or its "
            "library (such as polars) has no place for one.",
            hint="Pass the path of the released file, or the Release. Otherwise pass description= with one of these, "
            "or mechanism= and epsilon=.",
        )
    return said


def vouched(source: Any) -> FileDescription:
    """Return a description that a person gives: whatever rows are there, they were chosen without a look at reports."""
    return replace(description_of(source), rows=None)
