"""Encodings by their names: our own, and those that other packages bring (entry point `relaxdp.encodings`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import EncodingError
from relaxdp.law.epsilon import Epsilon

GROUP = "relaxdp.encodings"

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
    """Return the encoding with this name: one of ours, one that was registered, or one of an installed package."""
    if name not in _members:
        if name in _BUILT_IN:
            import_module(_BUILT_IN[name])
        else:
            _load(name)
    return _members[name]


def _load(name: str) -> None:
    """Register what an installed package offers under this name. A package that breaks is no reason to go on."""
    offered = entry_points(group=GROUP, name=name)
    if not offered:
        others = {entry.name for entry in entry_points(group=GROUP)}
        known = ", ".join(sorted({*_BUILT_IN, *_members, *others}))
        raise EncodingError("there is no encoding named {name!r}; known are: {known}.", known=known, name=name)
    found = next(iter(offered)).load()
    if not (isinstance(found, type) and issubclass(found, Encoding) and found.name == name):
        raise EncodingError("the package that offers the encoding {name!r} has none of that name.", name=name)
    register(found)


def offered() -> list[type[Encoding]]:
    """Return all encodings that can be used here, our own first. A package that does not load offers none."""
    names = [*_BUILT_IN, *sorted({*_members, *(entry.name for entry in entry_points(group=GROUP))} - {*_BUILT_IN})]
    found = []
    for name in names:
        with suppress(EncodingError, ImportError, AttributeError):
            found.append(encoding_named(name))
    return found


def is_built_in(name: str) -> bool:
    """Tell whether an encoding ships with this package and every device can draw it, also in a browser."""
    return name in _BUILT_IN


def advised() -> list[type[Encoding]]:
    """Return our own encodings of declared values: what "auto" chooses from, whatever else is installed."""
    return [member for member in map(encoding_named, _BUILT_IN) if member.domain == "values"]


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
