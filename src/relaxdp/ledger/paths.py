"""What names a path, and the facts that may not change while it is continued."""

from __future__ import annotations

from dataclasses import dataclass

from relaxdp.errors import PathNameError
from relaxdp.ledger.subject import check_text


@dataclass(frozen=True, slots=True, order=True)
class PathIdentity:
    """The name of a path within its subject. Another release or attribute is another path, whose cost adds up.

    >>> print(PathIdentity("survey-2026", "diagnosis"))
    'diagnosis' of release 'survey-2026'
    """

    release: str
    attribute: str

    def __post_init__(self) -> None:
        check_text(self.release, "the name of a release", PathNameError)
        check_text(self.attribute, "the name of an attribute", PathNameError)

    def __str__(self) -> str:
        return f"{self.attribute!r} of release {self.release!r}"


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

    def __post_init__(self) -> None:
        names = ["encoding", "params", "key_fingerprint", "id_type"]
        names += [] if self.table_fingerprint is None else ["table_fingerprint"]
        for name in names:
            check_text(getattr(self, name), f"the {name.replace('_', ' ')} of a path", PathNameError)
