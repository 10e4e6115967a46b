"""What `relaxdp campaign create` sends: made of options, or read from a JSON file."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from relaxdp.cli.options import parse_mechanism, read_values_file
from relaxdp.errors import ArgumentError, TableFileError

_WORDS = {"bits": 128, "hashes": 2, "cohorts": 64}
"""The Bloom filter of free text, unless a file says otherwise."""

_AS_SAID = (
    "id", "devices", "opens", "closes", "asker", "about", "purpose", "contact", "privacy_notice", "colour", "suggested",
)  # fmt: skip

_PICTURES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
}
_MOST_PICTURE = 1 << 20  # a slip is told by the collector, unless it is a film


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
    publish_least: int | None
    asker: str | None
    about: str | None
    purpose: str | None
    contact: str | None
    privacy_notice: str | None
    colour: str | None
    logo: Path | None
    suggested: str | None
    shows_results: bool


def campaign_request(asked: Asked, file: Path | None) -> dict[str, Any]:
    """Return what is sent to the collector."""
    if file is not None:
        given = [each.name for each in fields(asked) if getattr(asked, each.name) not in (None, False, "auto")]
        if given:
            raise ArgumentError(
                "--file says everything: {option} does not go with it.", option=f"--{given[0].replace('_', '-')}"
            )
        return described_in(file, "campaign")
    if asked.question is None or asked.levels is None:
        raise ArgumentError("a campaign needs a --question and its --levels, or all of it in a --file.")
    request: dict[str, Any] = {
        "question": asked.question,
        "encoding": _encoding(asked),
        "levels": [{"epsilon": level.strip()} for level in asked.levels.split(",")],
        "invitations": asked.invitations,
        "shows_results": asked.shows_results,
    }
    if asked.half_width is not None:
        request["target"] = {"half_width": asked.half_width}
    if asked.publish_least is not None:
        request["publish"] = {"least": asked.publish_least}
    if asked.logo is not None:
        request["logo"] = _picture(asked.logo)
    for name in _AS_SAID:
        if getattr(asked, name) is not None:
            request[name] = getattr(asked, name)
    return request


def _encoding(asked: Asked) -> dict[str, Any]:
    kinds = [asked.values, asked.values_file, asked.range, asked.words]
    if sum(kind is not None for kind in kinds) != 1:
        raise ArgumentError("say what can be answered: one of --values, --values-file, --range and --words.")
    name, options = parse_mechanism(asked.encoding)
    if asked.words is not None:
        if name != "auto":
            raise ArgumentError("words have an encoding of their own: --encoding does not go with them.")
        return {"name": "bloom", "options": _WORDS, "candidates": read_values_file(asked.words)}
    chosen = {"name": name, "options": options}
    if asked.range is not None:
        return {**chosen, "range": list(asked.range)}
    if asked.values_file is not None:
        return {**chosen, "values": read_values_file(asked.values_file)}
    return {**chosen, "values": str(asked.values).split(",")}


def _picture(file: Path) -> str:
    kind = _PICTURES.get(file.suffix.lower())
    if kind is None:
        raise ArgumentError("a logo is a file that ends in .png, .svg, .webp, .jpg or .jpeg.")
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_PICTURE)
    except OSError as problem:
        raise TableFileError("{path!r} cannot be read: {why}.", path=str(file), why=problem.strerror) from None
    return f"data:{kind};base64,{b64encode(content).decode()}"


def described_in(file: Path, what: str) -> dict[str, Any]:
    """Return a campaign or a survey that is described as JSON."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise TableFileError("{path!r} cannot be read: {why}.", path=str(file), why=problem.strerror) from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ArgumentError("{path!r} does not hold a {what} as JSON.", path=str(file), what=what)
    return content
