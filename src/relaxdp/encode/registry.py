"""The registry of encodings: by name, and open to others."""

from __future__ import annotations

from typing import TypeVar

from relaxdp.encode.protocol import Encoding
from relaxdp.errors import EncodingError

Member = TypeVar("Member", bound=type[Encoding])
_members: dict[str, type[Encoding]] = {}


def register(member: Member) -> Member:
    """Make an encoding known by its name; a class decorator. A name is taken once and for good."""
    if _members.setdefault(member.name, member) is not member:
        raise EncodingError(f"there is an encoding named {member.name!r} already.", name=member.name)
    return member


def encoding_named(name: str) -> type[Encoding]:
    """Return the encoding with this name."""
    try:
        return _members[name]
    except KeyError:
        known = ", ".join(sorted(_members))
        raise EncodingError(f"there is no encoding named {name!r}; known are: {known}.", name=name) from None
