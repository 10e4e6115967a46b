"""What a path was opened with, how its reports are drawn, and what the ledger is asked to charge for it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from relaxdp.draw.stream import PathId
from relaxdp.errors import PathNameError
from relaxdp.ledger.subject import check_text


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

    def __post_init__(self) -> None:
        check_text(self.path.release, "the name of a release", PathNameError)
        check_text(self.path.attribute, "the name of an attribute", PathNameError)
        if (self.facts.sampler is Sampler.ALGORITHM_1) != (self.last is not None):
            raise ValueError("Algorithm 1, and nothing else, goes on from the level of the last reports")
