"""Choosing parameters: the smallest share of a word that would be found, for a number of devices and candidates.

Like every plan it looks at the noise alone. It counts on the decoder of this package.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from io import StringIO
from itertools import islice
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

from relaxdp.errors import PlanError, RapporError
from relaxdp.estimation import special
from relaxdp.estimation.planning import DIGITS, MAX_N
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.bloom import MAX_COHORTS, BloomShape, bit_support, bloom_threshold, compute_noise
from relaxdp.theory.epsilon import Epsilon, as_epsilon

_WRITE_PARAMS = "Write the parameters with `relaxdp rappor params`."

MAX_CANDIDATES = 100_000
POWER = 0.9
"""With which probability a word with the smallest share that is promised is found."""
RATE = 0.05
"""The chance of finding even one word that is not there."""
_LOAD = 0.1
_LEAST_COHORTS = 32
_MOST_SAMPLING = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters, and what they would show."""

    shape: BloomShape
    epsilon: Decimal
    noise: Decimal
    """RAPPOR's f at this level."""
    standard_error: float
    smallest_share: float
    """A word with this share is found with a probability of 90 %."""


def compute_word_error(shape: BloomShape, *, epsilon: Epsilon, devices: int, candidates: int) -> float:
    """Return the standard error of a rare word's share.

    The noise of a bit, divided among the bits that a word sets; a little more because candidates share bits, and
    because the decoder looks at the residuals too.

    Claim: within 10 % of what the decoder finds; tests/unit/rappor/test_plan.py.

    >>> shape = BloomShape(bits=128, hashes=2, cohorts=64)
    >>> round(compute_word_error(shape, epsilon="4.394449", devices=100_000, candidates=300), 5)
    0.00206
    """
    if shape.is_boolean:
        raise RapporError(
            "The reports have one bit (k = 1), which is a boolean. It is planned as two values.",
            hint="Plan two values: rx.plan(values=2), or `relaxdp plan --values 2`.",
        )
    check_numbers(devices, candidates)
    support = bit_support(bloom_threshold(shape, epsilon))
    noise, gain = float(support.noise), float(support.gain)
    chance = 1 - (1 - 1 / shape.bits) ** shape.hashes
    variance = noise * (1 - noise) / gain**2 + chance * (1 - chance)
    own = shape.bits * chance * (1 - chance)
    free = 1 - min(0.5, candidates / (shape.cohorts * shape.bits))
    # The decoder takes the larger of what the noise and what the residuals at a word's bits say.
    careful = 1 + 0.4 * sqrt(2 / (shape.cohorts * shape.hashes))
    return sqrt(variance * careful / (devices * own * free))


def compute_smallest_share(standard_error: float, candidates: int) -> float:
    """Return the share of a word that is found with a probability of 90 %, with Holm's correction at 5 %."""
    return -float(special.ndtri(RATE / candidates) + special.ndtri(1 - POWER)) * standard_error


def advise(
    *, devices: int, candidates: int, epsilon: Epsilon, hashes: Sequence[int] = (1, 2, 4), bits: int | None = None,
    cohorts: int | None = None,
) -> list[Plan]:  # fmt: skip
    """Return plans at one level, that with the smallest share first.

    There are enough bits that the sampling of words matters little compared with the noise, and enough cohorts that
    candidates seldom share their bits.
    """
    check_numbers(devices, candidates)
    exact = as_epsilon(epsilon)
    plans = [_plan(_shape(each, bits, cohorts, candidates, exact), exact, devices, candidates) for each in hashes]
    return sorted(plans, key=lambda plan: plan.smallest_share)


def advise_share(
    share: float, *, devices: int, candidates: int, hashes: Sequence[int] = (1, 2, 4), bits: int | None = None,
    cohorts: int | None = None,
) -> list[Plan]:  # fmt: skip
    """Return plans that find words with this share, that with the smallest epsilon first; rounded up."""
    check_numbers(devices, candidates)
    if not 0 < share < 1:
        raise PlanError(
            "The share must be between 0 and 1, not {share}.", hint="Pass a share such as 0.01.", share=share
        )
    plans = []
    for each in hashes:

        def excess(logarithm: float, each: int = each) -> float:
            level = as_epsilon(f"{exp(logarithm):.12g}")
            shape = _shape(each, bits, cohorts, candidates, level)
            return log(_plan(shape, level, devices, candidates).smallest_share / share)

        least, most = log(1e-6 * each), log(80.0 * each)
        if excess(most) > 0:
            continue
        root = scipy.optimize.brentq(excess, least, most) if excess(least) > 0 else least
        context = Context(prec=DIGITS, rounding=ROUND_CEILING)
        level = as_epsilon(context.create_decimal_from_float(exp(root)))
        while _plan(_shape(each, bits, cohorts, candidates, level), level, devices, candidates).smallest_share > share:
            level = as_epsilon(context.next_plus(level))
        plans.append(_plan(_shape(each, bits, cohorts, candidates, level), level, devices, candidates))
    if not plans:
        raise PlanError(
            "No epsilon is enough to find words with a share of {share:g} among {candidates:,} "
            "candidates with {devices:,} devices.",
            hint="Plan with more devices, fewer candidates or a larger share.",
            candidates=candidates,
            share=share,
            devices=devices,
        )
    return sorted(plans, key=lambda plan: plan.epsilon)


def _plan(shape: BloomShape, epsilon: Decimal, devices: int, candidates: int) -> Plan:
    error = compute_word_error(shape, epsilon=epsilon, devices=devices, candidates=candidates)
    return Plan(shape, epsilon, compute_noise(shape, epsilon), error, compute_smallest_share(error, candidates))


def _shape(hashes: int, bits: int | None, cohorts: int | None, candidates: int, epsilon: Decimal) -> BloomShape:
    if bits is None:
        bits = 32
        while bits < 256 and hashes / bits > _MOST_SAMPLING * _noise(hashes, bits, epsilon):
            bits *= 2
    if cohorts is None:
        cohorts = _LEAST_COHORTS
        while cohorts < MAX_COHORTS and candidates > _LOAD * cohorts * bits:
            cohorts *= 2
    return BloomShape(bits, hashes, cohorts)


def _noise(hashes: int, bits: int, epsilon: Decimal) -> float:
    support = bit_support(bloom_threshold(BloomShape(bits, hashes, 1), epsilon))
    return float(support.noise * (1 - support.noise)) / float(support.gain) ** 2


def check_numbers(devices: int, candidates: int) -> None:
    """Reject numbers that are not whole or out of range."""
    if not isinstance(devices, int) or not 1 <= devices <= MAX_N:
        raise PlanError(
            "The number of devices must be a whole number from 1 to 10^15, not {devices}.",
            hint="Pass a number such as 100000.",
            devices=devices,
        )
    if not isinstance(candidates, int) or not 1 <= candidates <= MAX_CANDIDATES:
        raise PlanError(
            "The number of candidates must be a whole number from 1 to {most:,}, not {candidates}.",
            hint="Pass a number such as 100.",
            most=MAX_CANDIDATES,
            candidates=candidates,
        )


__all__ = ["POWER", "RATE", "Plan", "advise", "advise_share", "compute_smallest_share", "compute_word_error"]


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
