"""RAPPOR's files: parameters, and candidate maps as Google's tools read and write them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import RapporError
from relaxdp.rappor.candidates import MOST_CANDIDATES, CandidateMap
from relaxdp.rappor.filter import BloomShape

Integers = NDArray[np.int64]

_COLUMNS = ("k", "h", "m", "f")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a parameter file says: k, h and m, which fix the path, and f, the noise of the planned level."""

    shape: BloomShape
    noise: Fraction

    @classmethod
    def read(cls, path: Path) -> Parameters:
        """Read a CSV file of two rows; anything missing or unknown is refused by name."""
        found = _csv_numbers(path)
        bits, hashes, cohorts = (_whole(found[name], name, path) for name in ("k", "h", "m"))
        return cls(BloomShape(bits=bits, hashes=hashes, cohorts=cohorts), _share(found["f"], "f", path))

    def dumps(self) -> str:
        """Return the file as text."""
        shape = self.shape
        return f"{','.join(_COLUMNS)}\n{shape.bits},{shape.hashes},{shape.cohorts},{_decimal(self.noise)}\n"


def read_map(path: Path, shape: BloomShape) -> CandidateMap:
    """Read a candidate map: a word, then its bits in all cohorts, each cohort * k + bit + 1.

    They are h for each cohort. Where two hashes met, some of Google's tools write one bit for both, and leave a field
    at the end of the row empty: which cohort a bit is of is its number's to say, and not its place's.
    """
    words: dict[str, int] = {}
    rows, entries, widest = [], shape.cohorts * shape.hashes, (0, 0)
    for line, (word, *fields) in _rows(path, "map"):
        where = f"{str(path)!r}, line {line:,}: "
        width = len(fields) if any(fields[entries:]) else min(len(fields), entries)
        if width > entries:
            raise _other_number(where, width, shape)
        widest = max(widest, (width, -line))
        rows.append(_map_row([field for field in fields if field.strip()], shape, where))
        if word in words:
            raise RapporError("{where}the candidate {word!r} is listed twice.", where=where, word=word)
        words[word] = line
        if len(words) > MOST_CANDIDATES:
            raise RapporError("{path!r} has more than {most:,} candidates.", path=str(path), most=MOST_CANDIDATES)
    if words and widest[0] < entries:
        raise _other_number(f"{str(path)!r}, line {-widest[1]:,}: ", widest[0], shape)
    bits = np.array(rows, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes)
    return CandidateMap(shape, list(words), bits)


def _other_number(where: str, found: int, shape: BloomShape) -> RapporError:
    return RapporError(
        "{where}there are {found:,} bits behind the word, and the parameters ({shape}) ask for {wanted:,}: the map is "
        "for other parameters.",
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
        raise RapporError("{where}a bit is not a whole number.", where=where) from None
    if ((numbers < 0) | (numbers >= shape.cohorts * shape.bits)).any():
        raise RapporError(
            "{where}a bit lies outside of all cohorts: the map is for other parameters ({shape}).",
            where=where,
            shape=shape,
        )
    cohorts = numbers // shape.bits
    found = np.bincount(cohorts, minlength=shape.cohorts)
    wrong = np.flatnonzero((found < 1) | (found > shape.hashes))
    if len(wrong):
        cohort = int(wrong[0])
        raise RapporError(
            "{where}the word has {found:,} bits in cohort {cohort}, where 1 to {hashes} can be: the map is "
            "for other parameters ({shape}).",
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
        raise RapporError("one bit is a boolean: it needs no map.")
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise RapporError("the candidate {word!r} is listed twice.", word=word)
        seen.add(word)
        bits = [cohort * shape.bits + bit + 1 for cohort in range(shape.cohorts) for bit in shape.bits_of(word, cohort)]
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([word, *bits])
        yield line.getvalue()


def read_text(path: Path, what: str) -> str:
    """Return a text file, or refuse it in one sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as problem:
        raise RapporError(
            "the {what} {path!r} cannot be read: {why}.", what=what, path=str(path), why=problem.strerror
        ) from None
    except UnicodeDecodeError:
        raise RapporError("the {what} {path!r} is not text in UTF-8.", what=what, path=str(path)) from None


def _rows(path: Path, what: str) -> Iterator[tuple[int, list[str]]]:
    """Return the rows of a CSV file, with their lines; blank ones, and those of separators alone, do not count."""
    reader = csv.reader(StringIO(read_text(path, what), newline=""))
    try:
        for row in reader:
            if len(row) == 1 and (";" in row[0] or "\t" in row[0]):
                raise RapporError(
                    "{path!r}, line {line:,}: the fields are not separated by commas.",
                    path=str(path),
                    line=reader.line_num,
                )
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error:
        raise RapporError(
            "{path!r}, line {line:,}: this cannot be read as CSV.", path=str(path), line=reader.line_num
        ) from None


def _without_empty_end(row: Sequence[str]) -> list[str]:
    """Return the fields of a row without the empty ones that spreadsheets put at its end."""
    fields = [field.strip() for field in row]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def _csv_numbers(path: Path) -> dict[str, str]:
    rows = [_without_empty_end(row) for _, row in islice(_rows(path, "parameter file"), 3)]
    if len(rows) != 2:
        raise RapporError(
            "{path!r} must have exactly two rows: {columns} and their numbers.",
            path=str(path),
            columns=",".join(_COLUMNS),
        )
    _refuse_names(rows[0], _COLUMNS, path)
    if len(rows[1]) != len(rows[0]):
        raise RapporError(
            "{path!r} has {second} numbers for {first} columns.",
            path=str(path),
            second=len(rows[1]),
            first=len(rows[0]),
        )
    return dict(zip(rows[0], rows[1], strict=True))


def _refuse_names(found: list[str], wanted: tuple[str, ...], path: Path) -> None:
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    if missing:
        raise RapporError(
            "{path!r} lacks {missing!r}: RAPPOR's parameters are {wanted}.",
            path=str(path),
            missing=missing[0],
            wanted=", ".join(wanted),
        )
    if extra:
        raise RapporError(
            "{path!r} says {extra!r}, which is none of RAPPOR's parameters: {wanted}.",
            path=str(path),
            extra=extra[0],
            wanted=", ".join(wanted),
        )
    if len(found) != len(set(found)):
        raise RapporError("{path!r} says one of its parameters twice.", path=str(path))


def _whole(text: str, name: str, path: Path) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise RapporError(
            "{path!r}: {name} must be a whole number, not {text!r}.", path=str(path), name=name, text=text[:20]
        )
    return int(text)


def _share(text: str, name: str, path: Path) -> Fraction:
    try:
        number = Decimal(text) if text.isascii() and len(text) <= 60 else Decimal("NaN")
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 1:
        raise RapporError(
            "{path!r}: {name} must be a probability from 0 to 1, not {text!r}.",
            path=str(path),
            name=name,
            text=text[:20],
        )
    return Fraction(number)


def _decimal(share: Fraction) -> str:
    """Return a share that came from a decimal number as that number."""
    number: Any = Decimal(share.numerator) / Decimal(share.denominator)
    return f"{number:f}"
