"""A campaign as an operator describes it: options or a JSON file -> the request that the collector takes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from relaxdp.cli.options import encoding_and_options
from relaxdp.errors import OptionError, TableFileError
from relaxdp.publication.request import values_from_file

_WORDS = {"bits": 128, "hashes": 2, "cohorts": 64}
"""The Bloom filter of free text, unless a file says otherwise."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `relaxdp campaign create`."""

    question: str | None
    levels: str | None
    values: str | None
    values_file: Path | None
    range: tuple[float, float] | None
    words: Path | None
    encoding: str
    half_width: float | None
    devices: int | None
    id: str | None
    opens: str | None
    closes: str | None
    invitations: bool
    series: str | None
    date: str | None


def campaign_request(asked: Asked, file: Path | None) -> dict[str, Any]:
    """Return what is sent to the collector."""
    if file is not None:
        given = [each.name for each in fields(asked) if getattr(asked, each.name) not in (None, False, "auto")]
        if given:
            raise OptionError(
                "--file says everything: {option} does not go with it.", option=f"--{given[0].replace('_', '-')}"
            )
        return _from_file(file)
    if asked.question is None or asked.levels is None:
        raise OptionError("a campaign needs a --question and its --levels, or all of it in a --file.")
    request: dict[str, Any] = {
        "question": asked.question,
        "encoding": _encoding(asked),
        "levels": [{"epsilon": level.strip()} for level in asked.levels.split(",")],
        "invitations": asked.invitations,
    }
    if (asked.series is None) != (asked.date is None):
        raise OptionError("--series and --date go together.")
    if asked.series is not None:
        request["series"] = {"name": asked.series, "date": asked.date}
    if asked.half_width is not None:
        request["target"] = {"half_width": asked.half_width}
    for name in ("id", "devices", "opens", "closes"):
        if getattr(asked, name) is not None:
            request[name] = getattr(asked, name)
    return request


def _encoding(asked: Asked) -> dict[str, Any]:
    kinds = [asked.values, asked.values_file, asked.range, asked.words]
    if sum(kind is not None for kind in kinds) != 1:
        raise OptionError("say what can be answered: one of --values, --values-file, --range and --words.")
    name, options = encoding_and_options(asked.encoding)
    if asked.words is not None:
        if name != "auto":
            raise OptionError("words have an encoding of their own: --encoding does not go with them.")
        return {"name": "bloom", "options": _WORDS, "candidates": values_from_file(asked.words)}
    chosen = {"name": name, "options": options}
    if asked.range is not None:
        return {**chosen, "range": list(asked.range)}
    if asked.values_file is not None:
        return {**chosen, "values": values_from_file(asked.values_file)}
    return {**chosen, "values": str(asked.values).split(",")}


def _from_file(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise TableFileError("{path!r} cannot be read: {why}.", path=str(file), why=problem.strerror) from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise OptionError("{path!r} does not hold a campaign as JSON.", path=str(file))
    return content
