"""Encodings by their names: our own, and those that a program registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import EncodingError
from relaxdp.law.epsilon import Epsilon

Member = TypeVar("Member", bound=type[Encoding])
_members: dict[str, type[Encoding]] = {}

# Where our own encodings are: each registers itself when it is imported. By name, because one of them stands
# on a floor below, and nobody here is to know it.
_BUILT_IN = {
    "categorical": "relaxdp.encodings.declared",
    "unary-optimised": "relaxdp.encodings.unary",
    "unary-symmetric": "relaxdp.encodings.unary",
    "local-hash": "relaxdp.encodings.local_hash",
    "numeric": "relaxdp.encodings.numeric",
    "numeric-missing": "relaxdp.encodings.numeric",
    "wave": "relaxdp.encodings.wave",
    "bloom": "relaxdp.rappor.encoding",
}


def register(member: Member) -> Member:
    """Make an encoding known by its name; a class decorator. A name is taken once and for good."""
    if _members.setdefault(member.name, member) is not member:
        raise EncodingError("there is an encoding named {name!r} already.", name=member.name)
    return member


def encoding_named(name: str) -> type[Encoding]:
    """Return the encoding with this name: one of ours, or one that was registered."""
    if name not in _members:
        if name not in _BUILT_IN:
            known = ", ".join(sorted({*_BUILT_IN, *_members}))
            raise EncodingError("there is no encoding named {name!r}; known are: {known}.", known=known, name=name)
        import_module(_BUILT_IN[name])
    return _members[name]


def offered() -> list[type[Encoding]]:
    """Return the encodings that come with this package, and that every device can draw, also in a browser."""
    return [encoding_named(name) for name in _BUILT_IN]


def advised() -> list[type[Encoding]]:
    """Return our own encodings of declared values: what "auto" chooses from."""
    return [member for member in offered() if member.domain == "values"]


def made(
    name: str,
    *,
    values: Sequence[Any] | None = None,
    range: tuple[float, float] | None = None,
    clip: bool = False,
    options: Mapping[str, Any] | None = None,
    epsilon: Epsilon | None = None,
) -> Encoding:
    """Return an encoding by its name and by what is declared: the one place where names become encodings.

    `epsilon` is the last one that is planned, which decides options that were not given. With `clip` numbers are put
    into the range.
    """
    member = encoding_named(name)
    declared = {"values": values, "range": range}
    given = [domain for domain, content in declared.items() if content is not None]
    if given != [each for each in (member.domain,) if each in declared]:
        raise EncodingError(
            "the encoding {encoding!r} takes {domain}, and nothing else.", encoding=name, domain=_OF[member.domain]
        )
    completed = member.planned_options(options or {}, epsilon)
    strange = sorted(set(completed) - {each.name for each in member.takes})
    if strange:
        raise EncodingError("the encoding {encoding!r} takes no {options}.", options=", ".join(strange), encoding=name)
    missing = [each.name for each in member.takes if each.name not in completed]
    if missing:
        raise EncodingError("the encoding {encoding!r} needs {options}.", options=", ".join(missing), encoding=name)
    for each in member.takes:
        number = completed[each.name]
        if isinstance(number, bool) or not isinstance(number, int) or not each.least <= number <= each.most:
            raise EncodingError(
                "{option} of the encoding {encoding!r} is a whole number from {least} to {most:,}.",
                option=each.name,
                encoding=name,
                least=each.least,
                most=each.most,
            )
    encoding: Any = member.make(declared.get(member.domain), completed)
    if not clip:
        return encoding  # type: ignore[no-any-return]
    if not hasattr(encoding, "clipping"):
        raise EncodingError("the encoding {encoding!r} has no range into which numbers could be put.", encoding=name)
    return encoding.clipping()  # type: ignore[no-any-return]


_OF = {"values": "declared values", "range": "numbers in a range", "words": "words that nobody declares"}
