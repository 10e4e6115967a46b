"""RAPPOR's files: parameters (CSV and JSON), candidate maps and counts, as Google's tools read and write them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.encode.bloom_filter import BloomShape
from relaxdp.errors import RapporError
from relaxdp.estimate.rappor_classic import Responses
from relaxdp.estimate.rappor_map import MOST_CANDIDATES, CandidateMap

Integers = NDArray[np.int64]

_COLUMNS = ("k", "h", "m", "p", "q", "f")
_JSON_NAMES = dict(
    zip(_COLUMNS, ("numBits", "numHashes", "numCohorts", "probIrr0", "probIrr1", "probPrr"), strict=True)
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a parameter file says: k, h and m, which fix the path, and f, p and q, which say how bits are answered."""

    shape: BloomShape
    responses: Responses

    @classmethod
    def read(cls, path: Path) -> Parameters:
        """Read a CSV file of two rows, or a JSON file; anything missing or unknown is refused by name."""
        text = read_text(path, "parameter file")
        found = _json_numbers(text, path) if path.suffix.lower() == ".json" else _csv_numbers(text, path)
        whole = {name: _whole(found[name], name, path) for name in ("k", "h", "m")}
        shares = {name: _share(found[name], name, path) for name in ("p", "q", "f")}
        return cls(
            BloomShape(bits=whole["k"], hashes=whole["h"], cohorts=whole["m"]),
            Responses(noise=shares["f"], one_from_zero=shares["p"], one_from_one=shares["q"]),
        )

    def dumps(self, *, as_json: bool = False) -> str:
        """Return the file as text."""
        shape, responses = self.shape, self.responses
        chances = (responses.one_from_zero, responses.one_from_one, responses.noise)
        numbers = [str(shape.bits), str(shape.hashes), str(shape.cohorts), *map(_decimal, chances)]
        if not as_json:
            return f"{','.join(_COLUMNS)}\n{','.join(numbers)}\n"
        entries = [f'  "{_JSON_NAMES[name]}": {number}' for name, number in zip(_COLUMNS, numbers, strict=True)]
        return "{\n" + ",\n".join(entries) + "\n}\n"


def read_map(path: Path, shape: BloomShape) -> CandidateMap:
    """Read a candidate map: a word, then h entries per cohort, each cohort * k + bit + 1."""
    words, rows = [], []
    entries = shape.cohorts * shape.hashes
    offsets = np.repeat(np.arange(shape.cohorts, dtype=np.int64) * shape.bits, shape.hashes)
    for number, row in enumerate(csv.reader(StringIO(read_text(path, "map"))), 1):
        if not row:
            continue
        where = f"{str(path)!r}, row {number:,}: "
        if len(row) != entries + 1:
            raise RapporError(
                f"{where}there are {len(row) - 1:,} bits behind the word, and the parameters ({shape}) ask for "
                f"{entries:,}: the map is for other parameters."
            )
        try:
            bits = np.array(row[1:], dtype=np.int64) - offsets - 1
        except (ValueError, OverflowError):
            raise RapporError(f"{where}a bit is not a whole number.") from None
        if ((bits < 0) | (bits >= shape.bits)).any():
            raise RapporError(f"{where}a bit lies outside of its cohort: the map is for other parameters ({shape}).")
        words.append(row[0])
        rows.append(bits)
        if len(words) > MOST_CANDIDATES:
            raise RapporError(f"{str(path)!r} has more than {MOST_CANDIDATES:,} candidates.")
    bits = np.array(rows, dtype=np.int64).reshape(len(words), shape.cohorts, shape.hashes)
    return CandidateMap(shape, words, bits)


def map_rows(words: Iterable[str], shape: BloomShape) -> Iterator[str]:
    """Return the rows of a candidate map, one at a time: it may be larger than memory."""
    if shape.is_boolean:
        raise RapporError("one bit is a boolean: it needs no map.")
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise RapporError(f"the candidate {word!r} is listed twice.", word=word)
        seen.add(word)
        bits = [cohort * shape.bits + bit + 1 for cohort in range(shape.cohorts) for bit in shape.bits_of(word, cohort)]
        line = StringIO()
        csv.writer(line, lineterminator="\n").writerow([word, *bits])
        yield line.getvalue()


def read_counts(path: Path, shape: BloomShape) -> tuple[Integers, Integers]:
    """Read counts: no header, one row per cohort: its reports, then how often each bit was set."""
    rows = [row for row in csv.reader(StringIO(read_text(path, "counts file"))) if row]
    if len(rows) != shape.cohorts:
        raise RapporError(
            f"{str(path)!r} has {len(rows):,} rows, and the parameters say m = {shape.cohorts}: one row per cohort, "
            "without a header."
        )
    for number, row in enumerate(rows, 1):
        if len(row) != shape.bits + 1:
            raise RapporError(
                f"{str(path)!r}, row {number:,}: there are counts of {len(row) - 1:,} bits, and the parameters say "
                f"k = {shape.bits}."
            )
    try:
        table = np.array(rows, dtype=np.int64)
    except (ValueError, OverflowError):
        raise RapporError(f"{str(path)!r} holds something that is not a whole number.") from None
    return table[:, 0], table[:, 1:]


def counts_text(devices: Integers, counts: Integers) -> str:
    """Return a counts file as text."""
    rows = [",".join(map(str, [total, *ones])) for total, ones in zip(devices.tolist(), counts.tolist(), strict=True)]
    return "\n".join(rows) + "\n"


def read_text(path: Path, what: str, *, first_line: bool = False) -> str:
    """Return a text file, or its first line, or refuse it in one sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.readline(1 << 20) if first_line else file.read()
    except OSError as problem:
        raise RapporError(f"the {what} {str(path)!r} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise RapporError(f"the {what} {str(path)!r} is not text in UTF-8.") from None


def _csv_numbers(text: str, path: Path) -> dict[str, str]:
    rows = [[field.strip() for field in row] for row in islice(csv.reader(StringIO(text)), 4) if row]
    if len(rows) != 2:
        raise RapporError(f"{str(path)!r} must have exactly two rows: {','.join(_COLUMNS)} and their numbers.")
    _refuse_names(rows[0], _COLUMNS, path)
    if len(rows[1]) != len(rows[0]):
        raise RapporError(f"{str(path)!r} has {len(rows[1])} numbers for {len(rows[0])} columns.")
    return dict(zip(rows[0], rows[1], strict=True))


def _json_numbers(text: str, path: Path) -> dict[str, str]:
    try:
        content = json.loads(text, parse_float=str, parse_int=str)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise RapporError(f"{str(path)!r} is not a JSON object with RAPPOR's parameters.")
    _refuse_names(list(content), tuple(_JSON_NAMES.values()), path)
    return {name: str(content[long]) for name, long in _JSON_NAMES.items()}


def _refuse_names(found: list[str], wanted: tuple[str, ...], path: Path) -> None:
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    if missing:
        raise RapporError(f"{str(path)!r} lacks {missing[0]!r}: RAPPOR's parameters are {', '.join(wanted)}.")
    if extra:
        raise RapporError(
            f"{str(path)!r} says {extra[0]!r}, which is none of RAPPOR's parameters: {', '.join(wanted)}."
        )
    if len(found) != len(set(found)):
        raise RapporError(f"{str(path)!r} says one of its parameters twice.")


def _whole(text: str, name: str, path: Path) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise RapporError(f"{str(path)!r}: {name} must be a whole number, not {text[:20]!r}.")
    return int(text)


def _share(text: str, name: str, path: Path) -> Fraction:
    try:
        number = Decimal(text) if text.isascii() and len(text) <= 60 else Decimal("NaN")
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 1:
        raise RapporError(f"{str(path)!r}: {name} must be a probability from 0 to 1, not {text[:20]!r}.")
    return Fraction(number)


def _decimal(share: Fraction) -> str:
    """Return a share that came from a decimal number as that number."""
    number: Any = Decimal(share.numerator) / Decimal(share.denominator)
    return f"{number:f}"
