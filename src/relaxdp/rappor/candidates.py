"""Candidate maps: which bits each candidate word sets in each cohort, checked against the parameters."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.lazy import scipy
from relaxdp.mechanisms.bloom_filter import BloomShape

_REMAKE_MAP = "Make the map again: `relaxdp rappor map --params params.csv`."
_WRITE_PARAMS = "Write the parameters with `relaxdp rappor params`."
_FEWER = "Remove candidates that are unlikely."

MAX_CANDIDATES = 100_000
Bits = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class CandidateMap:
    """Words and their bits, as an array of shape (words, cohorts, hashes). Candidates are public."""

    shape: BloomShape
    words: Sequence[str]
    bits: Bits

    def __post_init__(self) -> None:
        wanted = (len(self.words), self.shape.cohorts, self.shape.hashes)
        if self.bits.shape != wanted:
            raise RapporError(
                "The map was made for other parameters. It does not have h bits in every cohort for each word.",
                hint=_REMAKE_MAP,
            )
        if not self.words:
            raise RapporError(
                "The map has no candidates. Only candidates can be found.",
                hint="Make a map from a file with one word per line.",
            )
        seen: set[str] = set()
        for word in self.words:
            if word in seen:
                raise RapporError("The candidate {word!r} is listed twice.", hint="Remove one of the two.", word=word)
            seen.add(word)

    @classmethod
    def from_words(cls, words: Sequence[str], shape: BloomShape) -> CandidateMap:
        """Return the map of words that devices hash with the parameters `shape`.

        >>> found = CandidateMap.from_words(["hello", "world"], BloomShape(bits=128, hashes=2, cohorts=64))
        >>> found.bits[0, 5].tolist()
        [96, 14]
        """
        if shape.is_boolean:
            raise RapporError(
                "The reports have one bit (k = 1), which is a boolean. It is decoded without a map.",
                hint="Leave out the map.",
            )
        if len(words) > MAX_CANDIDATES:
            raise RapporError(
                "There are {words:,} candidates. The maximum is {most:,}.",
                hint=_FEWER,
                words=len(words),
                most=MAX_CANDIDATES,
            )
        cohorts = range(shape.cohorts)
        bits = [[shape.compute_bits(word, cohort) for cohort in cohorts] for word in words]
        return cls(shape, list(words), np.array(bits, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes))

    @cached_property
    def is_hashed(self) -> bool:
        """Whether the bits are those that the parameters' own hash gives to the words."""
        everywhere = np.arange(self.shape.cohorts)
        theirs = CandidateMap.from_words(self.words, self.shape).design(everywhere)
        return bool((self.design(everywhere) != theirs).nnz == 0)  # in whatever order a map names the bits of a cohort

    def check(self) -> None:
        """Reject a map whose words hash to other bits: it would find words that no device has."""
        if not self.is_hashed:
            raise RapporError(
                "The map was made for other parameters than {shape}, or by another hash function.",
                hint=_REMAKE_MAP,
                shape=self.shape,
            )

    def design(self, cohorts: NDArray[np.intp]) -> Any:
        """Return the sparse matrix of zeros and ones of (cohort, bit) by word, for some of the cohorts."""
        rows = np.arange(len(cohorts))[None, :, None] * self.shape.bits + self.bits[:, cohorts]
        rows = rows.reshape(len(self.words), -1)
        columns = np.repeat(np.arange(len(self.words)), rows.shape[1])
        size = (len(cohorts) * self.shape.bits, len(self.words))
        matrix = scipy.sparse.csc_matrix((np.ones(rows.size), (rows.ravel(), columns)), shape=size)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0  # two hashes that meet in one bit set it once
        return matrix


Integers = NDArray[np.int64]

_COLUMNS = ("k", "h", "m", "f")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The content of a parameter file: k, h and m, which fix the path, and f, the noise of the planned level."""

    shape: BloomShape
    noise: Fraction

    @classmethod
    def read(cls, path: Path) -> Parameters:
        """Read a CSV file of two rows; anything missing or unknown is rejected by name."""
        found = _csv_numbers(path)
        bits, hashes, cohorts = (_whole(found[name], name, path) for name in ("k", "h", "m"))
        return cls(BloomShape(bits=bits, hashes=hashes, cohorts=cohorts), _share(found["f"], "f", path))

    def dumps(self) -> str:
        """Return the file as text."""
        shape = self.shape
        return f"{','.join(_COLUMNS)}\n{shape.bits},{shape.hashes},{shape.cohorts},{_decimal(self.noise)}\n"


def read_map(path: Path, shape: BloomShape) -> CandidateMap:
    """Read a candidate map: a word, then its bits in all cohorts, each cohort * k + bit + 1.

    Each cohort has h bits. Where two hashes are equal, some of Google's tools write one bit for both, and leave a
    field at the end of the row empty. So the cohort of a bit follows from its number, not from its position.
    """
    words: dict[str, int] = {}
    rows, entries, widest = [], shape.cohorts * shape.hashes, (0, 0)
    for line, (word, *fields) in _rows(path, "map"):
        where = f"Line {line:,} of {str(path)!r}: "
        width = len(fields) if any(fields[entries:]) else min(len(fields), entries)
        if width > entries:
            raise _make_bits_error(where, width, shape)
        widest = max(widest, (width, -line))
        rows.append(_map_row([field for field in fields if field.strip()], shape, where))
        if word in words:
            raise RapporError(
                "{where}the candidate {word!r} is listed twice.",
                hint="Remove one of the two lines.",
                where=where,
                word=word,
            )
        words[word] = line
        if len(words) > MAX_CANDIDATES:
            raise RapporError(
                "The map {path!r} has more than {most:,} candidates, the maximum.",
                hint=_FEWER,
                path=str(path),
                most=MAX_CANDIDATES,
            )
    if words and widest[0] < entries:
        raise _make_bits_error(f"Line {-widest[1]:,} of {str(path)!r}: ", widest[0], shape)
    bits = np.array(rows, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes)
    return CandidateMap(shape, list(words), bits)


def _make_bits_error(where: str, found: int, shape: BloomShape) -> RapporError:
    return RapporError(
        "{where}the word has {found:,} bits, and the parameters ({shape}) need {wanted:,}. The "
        "map was made for other parameters.",
        hint=_REMAKE_MAP,
        where=where,
        found=found,
        shape=shape,
        wanted=shape.cohorts * shape.hashes,
    )


def _map_row(fields: Sequence[str], shape: BloomShape, where: str) -> Integers:
    """Return the bits of one word as (cohorts, hashes); where hashes met, their bit stands for each of them."""
    try:
        numbers = np.array(fields, dtype=np.int64) - 1
    except (ValueError, OverflowError):
        raise RapporError("{where}a bit is not a whole number.", hint=_REMAKE_MAP, where=where) from None
    if ((numbers < 0) | (numbers >= shape.cohorts * shape.bits)).any():
        raise RapporError(
            "{where}a bit is outside of all cohorts. The map was made for other parameters than {shape}.",
            hint=_REMAKE_MAP,
            where=where,
            shape=shape,
        )
    cohorts = numbers // shape.bits
    found = np.bincount(cohorts, minlength=shape.cohorts)
    wrong = np.flatnonzero((found < 1) | (found > shape.hashes))
    if len(wrong):
        cohort = int(wrong[0])
        raise RapporError(
            "{where}the word has {found:,} bits in cohort {cohort}, instead of 1 to {hashes}. The "
            "map was made for other parameters than {shape}.",
            hint=_REMAKE_MAP,
            where=where,
            found=found[cohort],
            cohort=cohort,
            hashes=shape.hashes,
            shape=shape,
        )
    ordered = numbers[np.argsort(cohorts, kind="stable")] % shape.bits
    starts = np.cumsum(found) - found
    return np.asarray(ordered[starts[:, None] + np.minimum(np.arange(shape.hashes), found[:, None] - 1)])


def map_rows(words: Iterable[str], shape: BloomShape) -> Iterator[str]:
    """Return the rows of a candidate map, one at a time: it may be larger than memory."""
    if shape.is_boolean:
        raise RapporError(
            "The parameters have one bit (k = 1), which is a boolean. It is decoded without a map.",
            hint="Leave out the map, or choose k = 2 or more for words.",
        )
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise RapporError("The candidate {word!r} is listed twice.", hint="Remove one of the two.", word=word)
        seen.add(word)
        bits = [
            cohort * shape.bits + bit + 1 for cohort in range(shape.cohorts) for bit in shape.compute_bits(word, cohort)
        ]
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([word, *bits])
        yield line.getvalue()


def read_text(path: Path, what: str) -> str:
    """Return the content of a text file, or raise an error with its path."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as problem:
        raise RapporError(
            "The {what} {path!r} cannot be read: {why}.",
            hint="Check the path and the mode of the file.",
            what=what,
            path=str(path),
            why=problem.strerror,
        ) from None
    except UnicodeDecodeError:
        raise RapporError(
            "The {what} {path!r} is not text in UTF-8.", hint="Save the file as UTF-8.", what=what, path=str(path)
        ) from None


def _rows(path: Path, what: str) -> Iterator[tuple[int, list[str]]]:
    """Return the rows of a CSV file, with their lines; blank ones, and those of separators alone, do not count."""
    reader = csv.reader(StringIO(read_text(path, what), newline=""))
    try:
        for row in reader:
            if len(row) == 1 and (";" in row[0] or "\t" in row[0]):
                raise RapporError(
                    "Line {line:,} of {path!r}: the fields are not separated by commas.",
                    hint="Save the file as CSV with commas.",
                    path=str(path),
                    line=reader.line_num,
                )
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error:
        raise RapporError(
            "Line {line:,} of {path!r} is not valid CSV.",
            hint="Save the file as CSV with commas and double quotes.",
            path=str(path),
            line=reader.line_num,
        ) from None


def _strip_empty_end(row: Sequence[str]) -> list[str]:
    """Return the fields of a row without the empty ones that spreadsheets put at its end."""
    fields = [field.strip() for field in row]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def _csv_numbers(path: Path) -> dict[str, str]:
    rows = [_strip_empty_end(row) for _, row in islice(_rows(path, "parameter file"), 3)]
    if len(rows) != 2:
        raise RapporError(
            "The parameter file {path!r} must have exactly two rows: {columns} and their numbers.",
            hint=_WRITE_PARAMS,
            path=str(path),
            columns=",".join(_COLUMNS),
        )
    _reject_names(rows[0], _COLUMNS, path)
    if len(rows[1]) != len(rows[0]):
        raise RapporError(
            "The parameter file {path!r} has {second} numbers for {first} columns.",
            hint=_WRITE_PARAMS,
            path=str(path),
            second=len(rows[1]),
            first=len(rows[0]),
        )
    return dict(zip(rows[0], rows[1], strict=True))


def _reject_names(found: list[str], wanted: tuple[str, ...], path: Path) -> None:
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    if missing:
        raise RapporError(
            "The parameter file {path!r} does not have {missing!r}. Expected: {wanted}.",
            hint=_WRITE_PARAMS,
            path=str(path),
            missing=missing[0],
            wanted=", ".join(wanted),
        )
    if extra:
        raise RapporError(
            "The parameter file {path!r} has the unknown parameter {extra!r}. Expected: {wanted}.",
            hint=_WRITE_PARAMS,
            path=str(path),
            extra=extra[0],
            wanted=", ".join(wanted),
        )
    if len(found) != len(set(found)):
        raise RapporError("The parameter file {path!r} has a parameter twice.", hint=_WRITE_PARAMS, path=str(path))


def _whole(text: str, name: str, path: Path) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise RapporError(
            "The parameter {name} in {path!r} must be a whole number, not {text!r}.",
            hint=_WRITE_PARAMS,
            path=str(path),
            name=name,
            text=text[:20],
        )
    return int(text)


def _share(text: str, name: str, path: Path) -> Fraction:
    try:
        number = Decimal(text) if text.isascii() and len(text) <= 60 else Decimal("NaN")
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 1:
        raise RapporError(
            "The parameter {name} in {path!r} must be a probability from 0 to 1, not {text!r}.",
            hint=_WRITE_PARAMS,
            path=str(path),
            name=name,
            text=text[:20],
        )
    return Fraction(number)


def _decimal(share: Fraction) -> str:
    """Return a share that came from a decimal number as that number."""
    number: Any = Decimal(share.numerator) / Decimal(share.denominator)
    return f"{number:f}"
