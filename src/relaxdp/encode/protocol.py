"""The protocol of an encoding. Whatever follows it gets the path, Algorithm 1, tables and the service for free.

A mechanism differs from another only in how a value becomes symbols and in how epsilon becomes the retention of a
symbol. So that is all an encoding says; drawing, relaxing, blurring and accounting are written once, elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relaxdp.draw.blocks import Words
from relaxdp.draw.stream import PathName, Purpose
from relaxdp.law.support import Support

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True, repr=False)
class Truths:
    """The truths of some objects, in the form in which the stream takes them. Its `repr` shows none of them."""

    index: Words
    """The index of each truth among the declared values, or zeros where truths have no index."""
    suffix: Words | None = None
    """Where truths have no index: their canonical bytes, as (blocks, objects, 2) words."""

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, selection: slice | NDArray[np.intp]) -> Truths:
        return Truths(self.index[selection], None if self.suffix is None else self.suffix[:, selection])


class Permanent(Protocol):
    """Randomness that an object draws once and keeps: a coin, a rounding, a hash seed.

    On the path it is keyed, so it is the same whenever it is asked for; for Algorithm 1 it is fresh and stored.
    """

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return one uniform word per object, for one purpose and symbol."""
        ...


class Encoding(ABC):
    """How a value becomes symbols, how epsilon becomes retention, and what a report tells of each value."""

    name: str
    """The name in the registry, in files and in the stream."""
    alphabet: int
    """How many values a symbol can take."""
    symbols: int
    """How many symbols a report has."""

    @property
    @abstractmethod
    def params(self) -> bytes:
        """The bytes that tell this encoding from others of the same name; they are bound into the stream."""

    @abstractmethod
    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of every symbol at which a whole report is epsilon-private, rounded down."""

    @abstractmethod
    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the truths of a column, or refuse it. An error names the row, never the value."""

    @abstractmethod
    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return what each object would report as this symbol if nothing were hidden."""

    @abstractmethod
    def reports(self, codes: Codes) -> Sequence[Any]:
        """Return reports as people read them, from codes of shape (objects, symbols)."""

    @property
    @abstractmethod
    def labels(self) -> Sequence[Any]:
        """The values that are estimated, as people read them."""

    @abstractmethod
    def count(self, codes: Codes) -> NDArray[np.int64]:
        """Return how many objects support each value; counts of disjoint objects may be added."""

    @abstractmethod
    def codes(self, column: Any) -> Codes:
        """Return the codes of a column of reports as people read them: the inverse of `reports`."""

    def count_reports(self, column: Any) -> tuple[NDArray[np.int64], int]:
        """Return the counts of a column of reports as people read them, and how many reports there are."""
        return self.count(self.codes(column)), len(column)

    @abstractmethod
    def support(self, keep: Fraction) -> Support:
        """Return with which probability a report supports a value, at retention `keep` of every symbol."""

    def path_name(self, release: str, attribute: str) -> PathName:
        """Return the name of the path that one attribute of one release takes."""
        return PathName(release, attribute, self.name, self.alphabet, self.params)
