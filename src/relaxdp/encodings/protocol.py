"""The protocol of an encoding. Whatever follows it gets the path, Algorithm 1, tables, campaigns and the market.

A mechanism differs from another only in how a value becomes symbols and in how epsilon becomes the retention of a
symbol. So that is all an encoding says; drawing, relaxing, blurring and accounting are written once, elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.canonical import kind_of
from relaxdp.draw.columns import as_column, column_slice
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId, PathName, Purpose, Words
from relaxdp.errors import (
    CountsError,
    LevelMismatchError,
    OtherEncodingError,
    RelaxdpError,
    UndeclaredValueError,
)
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.law.level import Level, Scale
from relaxdp.law.support import Cover, Support

Codes = NDArray[np.unsignedinteger]
Packed = NDArray[np.uint8]
Joint = Literal["exclusive", "independent", "unknown"]
Domain = Literal["values", "range", "words"]

PUBLIC: tuple[Purpose, ...] = ("seed", "cohort")
"""Kept randomness that everybody may see: a function of the object alone."""

# So many symbols, or supported values, at a time that an array of them stays in the processor's cache.
BATCH = 1 << 20


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
        # Contiguous, because AES takes whole rows: NumPy's own order would put the blocks of one object together.
        chosen = None if self.suffix is None else np.ascontiguousarray(self.suffix[:, selection])
        return Truths(self.index[selection], chosen)


class Permanent(Protocol):
    """Randomness that an object draws once and keeps: a coin, a rounding, a hash seed, a cohort.

    On the path it is keyed, so it is the same whenever it is asked for; for Algorithm 1 it is fresh and stored. Seeds
    and cohorts are public, so they know nothing of the truth.
    """

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return one uniform word per object, for one purpose and symbol: the same word at every call."""
        ...


@dataclass(frozen=True, slots=True)
class Measure:
    """What each label counts for, where the answer is a mean: it is the sum of the weights times the labels' shares."""

    weights: tuple[float, ...]
    least: float
    """The least and the most that the mean can be."""
    most: float
    absent: int | None = None
    """The label of objects that have no number: then it is the mean of all others, whose number is estimated too."""
    window: int | None = None
    """Where a number is spread evenly over so many labels in a row: then reports tell of its whole distribution."""


@dataclass(frozen=True, slots=True)
class Option:
    """A whole number that an encoding takes beside its values or its range, as a form shows it."""

    name: str
    meaning: str
    least: int
    most: int
    is_planned: bool = False
    """Whether it may be left out: then the last planned epsilon decides."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What `params` stands for, to people: what is not the same where they differ, and the way out of that."""

    what: str
    remedy: str


class Encoding(ABC):
    """How a value becomes symbols, how epsilon becomes retention, and what a report tells of each value.

    A report is the codes of its symbols and, where `seeded`, a public word of its object. Blur, bridge and Algorithm 1
    act on the codes; the seed travels along unchanged.
    """

    name: str
    """The name in the registry, in files and in the stream."""
    meaning: str = ""
    """What a report is, in a few words, for whoever chooses."""
    alphabet: int
    """How many values a symbol can take."""
    symbols: int
    """How many symbols a report has."""
    seeded: bool = False
    """Whether a report carries a public word of its object, such as the seed of a hash."""
    report_width: int | None = None
    """How many bytes a report has where it travels packed; None where it travels as a label (see `packed.py`)."""
    joint: Joint = "unknown"
    """How the supports of two values go together, given all truths.

    "exclusive": a report supports exactly one value. "independent": whether it supports one value says nothing about
    another. It decides covariances and simultaneous intervals of two values; "unknown" is always safe.
    """

    domain: Domain = "values"
    """What is declared of the truths: a list of values, a range of numbers, or nothing, because any word may come."""
    is_asked: bool = True
    """Whether devices can be asked for it; what is missing is missing in a table, and a device has an answer."""
    takes: tuple[Option, ...] = ()
    """The options of the constructor."""
    parameters = Parameters("the list of values (or their order)", "same_values")
    goes_on_from_reports: bool = False
    """Whether Algorithm 1 needs nothing but truth and last report: no coin, rounding or seed that was kept."""
    cohorts: int = 0
    """Into how many cohorts devices fall, each with an encoding of its own; 0 where all have the same one."""
    cohort: int | None = None
    """Which of them this is of."""

    @classmethod
    def make(cls, declared: Any, options: Mapping[str, Any]) -> Self:
        """Return the encoding of what is declared: the values, or the two ends of the range."""
        made: Any = cls
        return made(*declared, **options) if cls.domain == "range" else made(declared, **options)  # type: ignore[no-any-return]

    @classmethod
    def planned_options(cls, options: Mapping[str, Any], epsilon: Epsilon | None) -> dict[str, Any]:
        """Return the options with those that the last planned epsilon decides, where they were not given."""
        return dict(options)

    @classmethod
    def options_in(cls, params: bytes) -> dict[str, Any]:
        """Return the options that stand in `params`: a ledger keeps these, and a path goes on with the same ones."""
        return {}

    @classmethod
    def planned_support(cls, values: int, epsilon: Decimal) -> tuple[Support, int] | None:
        """Return how an encoding of so many values would do, and the bytes of a report; None if it is not advised."""
        return None

    @property
    def measure(self) -> Measure | None:
        """What is answered is a mean; None where it is the shares of the labels."""
        return None

    @property
    def declared(self) -> dict[str, Any]:
        """What is declared, by the name of its domain: with it and `options` a file says how to read itself."""
        return {}

    @property
    @abstractmethod
    def params(self) -> bytes:
        """The bytes that tell this encoding from others of the same name; they are bound into the stream."""

    @property
    def options(self) -> dict[str, Any]:
        """What the constructor takes beside what is declared, as plain JSON."""
        return {}

    @abstractmethod
    def threshold(self, epsilon: Decimal) -> int:
        """Return the threshold of every symbol at which a whole report is epsilon-private, rounded down.

        That is what an encoding says; everybody else asks for a `level`.
        """

    @property
    def scale(self) -> Scale:
        """What the levels of this encoding may be compared with: those of the same scale."""
        return self.name, self.params

    def level(self, epsilon: Epsilon, threshold: int | None = None) -> Level:
        """Return the level of an epsilon: the only place where levels are made.

        `threshold` is that of reports which were drawn elsewhere; one that tells more than epsilon allows is refused.
        """
        exact, scale = as_epsilon(epsilon), self.scale
        most = self.threshold(exact)
        if threshold is not None and not 0 < threshold <= most:
            raise LevelMismatchError(
                "an epsilon and a threshold do not agree.", epsilon=epsilon_text(exact), threshold=str(threshold)
            )
        return Level(exact, most if threshold is None else threshold, scale)

    def checked(self, level: Level) -> Level:
        """Return a level of this encoding; refuse one of another, whose threshold would mean something else."""
        if level.scale != self.scale:
            raise OtherEncodingError("a level of another encoding means another guarantee.")
        return level

    @abstractmethod
    def truths(self, column: Any, first_row: int = 0) -> Truths:
        """Return the truths of a column, or refuse it. An error names the row, never the value."""

    @abstractmethod
    def symbol_truth(self, truths: Truths, symbol: int, permanent: Permanent) -> Words:
        """Return what each object would report as this symbol if nothing were hidden."""

    def symbol_truths(self, truths: Truths, permanent: Permanent) -> Codes:
        """Return what each object would report if nothing were hidden, as codes of shape (objects, symbols)."""
        codes = np.empty((len(truths), self.symbols), dtype=code_dtype(self.alphabet))
        for symbol in range(self.symbols):
            codes[:, symbol] = self.symbol_truth(truths, symbol, permanent)
        return codes

    def seeds(self, permanent: Permanent) -> Words | None:
        """Return the public word of each object; None unless `seeded`."""
        return permanent.words("seed") if self.seeded else None

    @property
    @abstractmethod
    def labels(self) -> Sequence[Any]:
        """The values that are estimated, as people read them."""

    @abstractmethod
    def reports(self, codes: Codes, seeds: Words | None = None) -> Sequence[Any]:
        """Return reports as people read them, from codes of shape (objects, symbols)."""

    @abstractmethod
    def codes(self, column: Any) -> Codes:
        """Return the codes of a column of reports as people read them: the inverse of `reports`."""

    def read(self, column: Any) -> tuple[Codes, Words | None]:
        """Return codes and seeds of a column of reports: the inverse of `column`."""
        return self.codes(column), None

    @property
    def report_type(self) -> Any:
        """The Arrow type of a column of reports."""
        return pa.array(self.reports(np.zeros((1, self.symbols), code_dtype(self.alphabet)), self._no_seeds(1))).type

    def column(self, codes: Codes, seeds: Words | None = None) -> Any:
        """Return reports as a finished Arrow column of `report_type`."""
        return pa.array(self.reports(codes, seeds), type=self.report_type)

    @abstractmethod
    def supports(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.bool_]:
        """Return which values each report supports, of shape (objects, labels)."""

    def count(self, codes: Codes, seeds: Words | None = None) -> NDArray[np.int64]:
        """Return how many objects support each value; counts of disjoint objects may be added."""
        counts = np.zeros(len(self.labels), dtype=np.int64)
        step = max(1, BATCH // len(self.labels))
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            counts += np.count_nonzero(self.supports(codes[part], None if seeds is None else seeds[part]), axis=0)
        return counts

    def count_reports(self, column: Any) -> tuple[NDArray[np.int64], int]:
        """Return the counts of a column of reports, and how many reports there are; a piece at a time."""
        column = as_column(column)
        counts = np.zeros(len(self.labels), dtype=np.int64)
        step = max(1, BATCH // self.symbols)
        for start in range(0, len(column), step):
            counts += self.count(*self.read(column_slice(column, start, start + step)))
        return counts, len(column)

    @abstractmethod
    def support(self, keep: Fraction) -> Support:
        """Return with which probability a report supports a value, at retention `keep` of every symbol."""

    def distance(self, keep: Fraction) -> Fraction:
        """Return how far the laws of reports of two truths are apart at most: their total variation, or more.

        What a publication costs is bounded with it. A symbol that was not kept is the same for all truths, and so is a
        seed; of several symbols 1 is always safe.
        """
        return keep if self.symbols == 1 else Fraction(1)

    def cover(self, keep: Fraction) -> Cover | None:
        """Return what hides a report among others, where that is known; a truth may be a mixture of symbols."""
        return Cover.of_one_symbol(keep, self.alphabet) if self.symbols == 1 and not self.seeded else None

    def path_name(self, path: PathId) -> PathName:
        """Return what binds this encoding to a path."""
        return PathName(path, self.name, self.alphabet, self.params)

    @property
    def packed_width(self) -> int:
        """How many bytes a report has where it is kept."""
        return self.report_width or _code_bytes(self.alphabet)

    def pack(self, codes: Codes, seeds: Words | None = None) -> Packed:
        """Return reports as bytes of shape (objects, packed_width)."""
        width = self.packed_width
        return np.ascontiguousarray(codes[:, 0], f"<u{width}").view(np.uint8).reshape(-1, width)

    def unpack(self, packed: Packed) -> tuple[Codes, Words | None]:
        """Return codes and seeds, or refuse bytes that no report can have."""
        codes = np.ascontiguousarray(packed).view(f"<u{self.packed_width}")
        if len(packed) and int(codes.max()) >= self.alphabet:
            raise CountsError("a report is none of the {alphabet:,} that there are.", alphabet=self.alphabet)
        return codes.astype(code_dtype(self.alphabet), copy=False), None

    def count_packed(self, packed: Packed) -> NDArray[np.int64]:
        """Return how many reports support each value. Not more than a batch of them is unpacked at a time."""
        return self.count(*self.unpack(packed))

    def is_report(self, packed: bytes) -> bool:
        """Tell whether bytes of the right width are a report. Asked once for every report that arrives."""
        try:
            self.unpack(np.frombuffer(packed, np.uint8)[None])
        except RelaxdpError:
            return False
        return True

    def kept_part(self, packed: bytes) -> bytes:
        """Return what stays the same in all reports of an object: its seed."""
        if not self.seeded:
            return b""
        seeds = self.unpack(np.frombuffer(packed, np.uint8)[None])[1]
        return b"" if seeds is None else seeds.tobytes()

    def for_object(self, object_id: str, *, key: Key, path: PathId) -> Encoding:
        """Return the encoding of one object: that of its cohort, where there are any."""
        return self

    def answer(self, given: Any) -> Any:
        """Return an answer in the one form in which it is kept, or refuse what is none, without showing it."""
        try:
            return self._answer(given)
        except (RelaxdpError, TypeError, ValueError, OverflowError, UnicodeError):
            pass
        raise self._no_answer()

    def answer_in(self, text: str) -> Any:
        """Return the answer that a person typed."""
        return self.answer(text)

    def _answer(self, given: Any) -> Any:
        self.truths([given])
        if kind_of(given) is None:
            raise TypeError
        return given

    def _no_answer(self) -> UndeclaredValueError:
        return UndeclaredValueError("the answer is none that can be given here.")

    def _no_seeds(self, objects: int) -> Words | None:
        return np.zeros(objects, np.uint64) if self.seeded else None


def code_dtype(alphabet: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that holds every code."""
    return np.min_scalar_type(alphabet - 1)


def whole_bytes(alphabet: int) -> int:
    """Return how many whole bytes a code needs where it travels."""
    return ((alphabet - 1).bit_length() + 7) // 8


def _code_bytes(alphabet: int) -> int:
    """Return how many bytes hold every code, as databases keep it: one, two or four."""
    return 1 if alphabet <= 1 << 8 else 2 if alphabet <= 1 << 16 else 4
