"""What the ledger is asked: whom to charge, for which path, and what that was opened with."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from unicodedata import is_normalized

from relaxdp.draw.stream import PathId
from relaxdp.encodings.registry import encoding_named
from relaxdp.errors import BudgetError, PathNameError, RelaxdpError, SubjectError

Kind = Literal["population", "object"]

MOST_LETTERS = 500


def check_reason(reason: object) -> None:
    """Refuse a reason that is none. Nothing is looked up by it, so its letters matter less than those of a name."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MOST_LETTERS or not reason.isprintable():
        raise BudgetError("the reason must be one line of 1 to {most} letters.", most=MOST_LETTERS)


def check_text(text: object, what: str, error: type[RelaxdpError]) -> None:
    """Refuse a name that is empty, or that could look like another one: then costs would not add up.

    The text itself is not shown; somebody may have put a secret in its place.
    """
    if not isinstance(text, str) or not text or len(text) > MOST_LETTERS:
        raise error("{what} must be text of 1 to {most} letters.", what=what, most=MOST_LETTERS)
    if text != text.strip() or not text.isprintable():
        raise error("{what} must not begin or end with a space, nor hold control characters.", what=what)
    if not is_normalized("NFC", text):
        raise error("{what} is not in Unicode's composed form (NFC).", what=what)


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """Who is charged.

    A release of a table is one entry for all its rows. All tables of a population add up, whoever is in which of
    them: that is an upper bound for each of its people. An object (a device, a seller) has entries of its own.

    >>> print(Subject.population("hospital"), "and", Subject.object("device-17"))
    population 'hospital' and object 'device-17'
    """

    kind: Kind
    name: str

    def __post_init__(self) -> None:
        if self.kind not in ("population", "object"):
            raise SubjectError("a subject is a population or an object.")
        check_text(self.name, f"the name of a {self.kind}", SubjectError)

    @classmethod
    def population(cls, name: str) -> Subject:
        """Return the subject that stands for each of the people of a population."""
        return cls("population", name)

    @classmethod
    def object(cls, name: str) -> Subject:
        """Return the subject that stands for one object."""
        return cls("object", name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


class Sampler(StrEnum):
    """What draws the reports of a path."""

    PATH = "path"
    """The keyed path: a pure function, so that drawing again gives the same reports."""
    ALGORITHM_1 = "algorithm-1"
    """Fresh randomness at each step: drawn once, and from the last reports."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What a path was opened with. All of it is public or keyed: no truth and no key can be read from it."""

    encoding: str
    params: str
    """The digest, in hexadecimal, of the encoding's parameters: for a category, of the ordered values."""
    key_fingerprint: str
    id_type: str
    table_fingerprint: str | None
    """A keyed fingerprint of all (id, truth), whatever their order; None where nobody sees the whole table."""
    growing: bool = False
    """Rows come and go, so that two fingerprints cannot be compared; decided when the path is opened."""
    sampler: Sampler = Sampler.PATH
    as_of: str | None = None
    """The day, like 2026-11-16, whose table it is; that of the first release, unless a person says another."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of the encoding, which stand in its parameters."""
        return encoding_named(self.encoding).options_in(bytes.fromhex(self.params))

    def __post_init__(self) -> None:
        names = ["encoding", "params", "key_fingerprint", "id_type"]
        names += [] if self.table_fingerprint is None else ["table_fingerprint"]
        for name in names:
            check_text(getattr(self, name), f"the {name.replace('_', ' ')} of a path", PathNameError)


@dataclass(frozen=True, slots=True)
class Entry:
    """A level of a path that is to be charged.

    To a quote the epoch does not matter: it says which one it would be. What is charged was drawn on the path's epoch.
    """

    path: PathId
    facts: PathFacts
    epsilon: Decimal
    last: Decimal | None = None
    """Algorithm 1: the level of the reports that it is drawn from; None on the keyed path."""
    digest: str | None = None
    """Algorithm 1: of the file that holds what was drawn, which cannot be drawn again."""
    changed: bool = False
    """Of a growing path, whether rows have changed: only the caller, who keeps their tags, can tell."""
    snapshot: str | None = None
    """The digest of the sealed copy of what it was drawn from, where one was made."""

    def __post_init__(self) -> None:
        check_text(self.path.release, "the name of a release", PathNameError)
        check_text(self.path.attribute, "the name of an attribute", PathNameError)
        if (self.facts.sampler is Sampler.ALGORITHM_1) != (self.last is not None):
            raise ValueError("Algorithm 1, and nothing else, goes on from the level of the last reports")
