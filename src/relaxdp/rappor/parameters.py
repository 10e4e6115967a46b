"""Parameters of RAPPOR: planned for a number of devices and candidates, and read from CSV files.

A plan states the smallest share of a word that would be found. It takes only the noise into account, and assumes the
decoder of this package.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from io import StringIO
from itertools import islice
from math import exp, log, sqrt
from pathlib import Path

from relaxdp.errors import PlanError, RapporError
from relaxdp.estimation.planning import DIGITS, MAX_N
from relaxdp.lazy_imports import scipy
from relaxdp.mechanisms.bloom import MAX_COHORTS, BloomShape, compute_bit_support, compute_bit_threshold, compute_noise
from relaxdp.theory.epsilon import Epsilon, as_epsilon

_WRITE_PARAMETERS = "Write the file: `relaxdp rappor params --devices N --candidates N --epsilon 4 --write params.csv`."

MAX_CANDIDATES = 100_000
POWER = 0.9
"""The probability that a word with the smallest detectable share is found."""
RATE = 0.05
"""The probability of finding even one word that no device has."""
_MAX_CANDIDATES_PER_BIT = 0.1
_MIN_COHORTS = 32
_MAX_SAMPLING_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class RapporPlan:
    """Parameters, and the smallest share of a word that would be found with them."""

    shape: BloomShape
    epsilon: Decimal
    noise: Decimal
    """RAPPOR's f at this level."""
    std_error: float
    smallest_share: float
    """A word with this share is found with a probability of 90 %."""


def compute_word_std_error(shape: BloomShape, *, epsilon: Epsilon, n_devices: int, n_candidates: int) -> float:
    """Return the standard error of a rare word's share.

    The noise of a bit, divided among the bits that a word sets; a little more because candidates share bits, and
    because the decoder looks at the residuals too.

    Claim: within 10 % of what the decoder finds; tests/unit/rappor/test_plan.py.

    >>> shape = BloomShape(bits=128, hashes=2, cohorts=64)
    >>> round(compute_word_std_error(shape, epsilon="4.394449", n_devices=100_000, n_candidates=300), 5)
    0.00206
    """
    if shape.is_boolean:
        raise RapporError(
            "The parameters have one bit (k = 1), so reports are booleans. A boolean is planned as two values.",
            hint="Plan two values: rx.plan(values=2), or `relaxdp plan --values 2`.",
        )
    check_plan_sizes(n_devices, n_candidates)
    support = compute_bit_support(compute_bit_threshold(shape, epsilon))
    noise, gain = float(support.noise), float(support.gain)
    chance = 1 - (1 - 1 / shape.bits) ** shape.hashes
    variance = noise * (1 - noise) / gain**2 + chance * (1 - chance)
    own = shape.bits * chance * (1 - chance)
    free = 1 - min(0.5, n_candidates / (shape.cohorts * shape.bits))
    # The decoder takes the larger of what the noise and what the residuals at a word's bits say.
    careful = 1 + 0.4 * sqrt(2 / (shape.cohorts * shape.hashes))
    return sqrt(variance * careful / (n_devices * own * free))


def compute_smallest_detectable_share(std_error: float, n_candidates: int) -> float:
    """Return the share of a word that is found with a probability of 90 %, with Holm's correction at 5 %."""
    return -float(scipy.special.ndtri(RATE / n_candidates) + scipy.special.ndtri(1 - POWER)) * std_error


def plan_parameters(
    *, n_devices: int, n_candidates: int, epsilon: Epsilon, hashes: Sequence[int] = (1, 2, 4),
    bits: int | None = None, cohorts: int | None = None,
) -> list[RapporPlan]:  # fmt: skip
    """Return plans at one level, one for each number of hashes; the plan with the smallest share comes first.

    There are enough bits that the sampling of words matters little compared with the noise, and enough cohorts that
    candidates seldom share their bits.
    """
    check_plan_sizes(n_devices, n_candidates)
    exact = as_epsilon(epsilon)
    plans = [_make_plan(each, bits, cohorts, exact, n_devices, n_candidates) for each in hashes]
    return sorted(plans, key=lambda plan: plan.smallest_share)


def plan_parameters_for_share(
    share: float, *, n_devices: int, n_candidates: int, hashes: Sequence[int] = (1, 2, 4), bits: int | None = None,
    cohorts: int | None = None,
) -> list[RapporPlan]:  # fmt: skip
    """Return plans that find words with this share; the plan with the smallest epsilon, rounded up, comes first."""
    check_plan_sizes(n_devices, n_candidates)
    if not 0 < share < 1:
        raise PlanError(
            "The share of a word must be between 0 and 1, not {share}.", hint="Pass a share such as 0.01.", share=share
        )
    plans = []
    for each in hashes:

        def make_plan(level: Decimal, hashes: int = each) -> RapporPlan:
            return _make_plan(hashes, bits, cohorts, level, n_devices, n_candidates)

        def compute_excess(logarithm: float, make_plan: Callable[[Decimal], RapporPlan] = make_plan) -> float:
            return log(make_plan(as_epsilon(f"{exp(logarithm):.12g}")).smallest_share / share)

        lower, upper = log(1e-6 * each), log(80.0 * each)
        if compute_excess(upper) > 0:
            continue
        root = scipy.optimize.brentq(compute_excess, lower, upper) if compute_excess(lower) > 0 else lower
        context = Context(prec=DIGITS, rounding=ROUND_CEILING)
        level = as_epsilon(context.create_decimal_from_float(exp(root)))
        while make_plan(level).smallest_share > share:
            level = as_epsilon(context.next_plus(level))
        plans.append(make_plan(level))
    if not plans:
        raise PlanError(
            "No epsilon is enough to find words with a share of {share:g} among {candidates:,} "
            "candidates with {devices:,} devices.",
            hint="Plan with more devices, fewer candidates or a larger share.",
            candidates=n_candidates,
            share=share,
            devices=n_devices,
        )
    return sorted(plans, key=lambda plan: plan.epsilon)


def _make_plan(
    hashes: int, bits: int | None, cohorts: int | None, epsilon: Decimal, n_devices: int, n_candidates: int
) -> RapporPlan:
    if bits is None:
        bits = 32
        while bits < 256 and hashes / bits > _MAX_SAMPLING_SHARE * _compute_noise_variance(hashes, bits, epsilon):
            bits *= 2
    if cohorts is None:
        cohorts = _MIN_COHORTS
        while cohorts < MAX_COHORTS and n_candidates > _MAX_CANDIDATES_PER_BIT * cohorts * bits:
            cohorts *= 2
    shape = BloomShape(bits, hashes, cohorts)
    error = compute_word_std_error(shape, epsilon=epsilon, n_devices=n_devices, n_candidates=n_candidates)
    share = compute_smallest_detectable_share(error, n_candidates)
    return RapporPlan(shape, epsilon, compute_noise(shape, epsilon), error, share)


def _compute_noise_variance(hashes: int, bits: int, epsilon: Decimal) -> float:
    support = compute_bit_support(compute_bit_threshold(BloomShape(bits, hashes, 1), epsilon))
    return float(support.noise * (1 - support.noise)) / float(support.gain) ** 2


def check_plan_sizes(n_devices: int, n_candidates: int) -> None:
    """Reject numbers of devices and candidates that are not whole or out of range."""
    if not isinstance(n_devices, int) or not 1 <= n_devices <= MAX_N:
        raise PlanError(
            "The number of devices must be a whole number from 1 to 10^15, not {devices}.",
            hint="Pass the number of devices that report, such as 100000.",
            devices=n_devices,
        )
    if not isinstance(n_candidates, int) or not 1 <= n_candidates <= MAX_CANDIDATES:
        raise PlanError(
            "The number of candidates must be a whole number from 1 to {maximum:,}, not {candidates}.",
            hint="Pass the number of candidate words, such as 100.",
            maximum=MAX_CANDIDATES,
            candidates=n_candidates,
        )


_COLUMNS = ("k", "h", "m", "f")


@dataclass(frozen=True, slots=True)
class RapporParameters:
    """The content of a parameter file: k, h and m, which fix the path, and f, the noise of the planned level."""

    shape: BloomShape
    noise: Fraction

    @classmethod
    def read(cls, path: Path) -> RapporParameters:
        """Read a CSV file of two rows: k,h,m,f and their values."""
        fields = _read_parameter_fields(path)
        bits, hashes, cohorts = (_parse_whole_number(fields[name], name, path) for name in ("k", "h", "m"))
        shape = BloomShape(bits=bits, hashes=hashes, cohorts=cohorts)
        return cls(shape, _parse_probability(fields["f"], "f", path))

    def to_csv(self) -> str:
        """Return the content of the parameter file."""
        shape, noise = self.shape, Decimal(self.noise.numerator) / Decimal(self.noise.denominator)
        return f"{','.join(_COLUMNS)}\n{shape.bits},{shape.hashes},{shape.cohorts},{noise:f}\n"


def _read_parameter_fields(path: Path) -> dict[str, str]:
    rows = [_strip_trailing_empty_fields(row) for _, row in islice(read_csv_rows(path, "parameter file"), 3)]
    if len(rows) != 2:
        raise RapporError(
            "The parameter file {path!r} must have exactly two rows: {columns}, then their values.",
            hint=_WRITE_PARAMETERS,
            path=str(path),
            columns=",".join(_COLUMNS),
        )
    names, values = rows
    if sorted(names) != sorted(_COLUMNS):
        raise RapporError(
            "The first row of the parameter file {path!r} must name the parameters {columns}, each of them once.",
            hint=_WRITE_PARAMETERS,
            path=str(path),
            columns=", ".join(_COLUMNS),
        )
    if len(values) != len(names):
        raise RapporError(
            "The parameter file {path!r} has {values} values for {names} parameters.",
            hint=_WRITE_PARAMETERS,
            path=str(path),
            values=len(values),
            names=len(names),
        )
    return dict(zip(names, values, strict=True))


def _strip_trailing_empty_fields(row: Sequence[str]) -> list[str]:
    """Return the fields of a row without the empty ones that spreadsheets put at its end."""
    fields = [field.strip() for field in row]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def _parse_whole_number(text: str, name: str, path: Path) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise _make_value_error("a whole number", text, name, path)
    return int(text)


def _parse_probability(text: str, name: str, path: Path) -> Fraction:
    try:
        number = Decimal(text) if text.isascii() and len(text) <= 60 else Decimal("NaN")
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 1:
        raise _make_value_error("a probability from 0 to 1", text, name, path)
    return Fraction(number)


def _make_value_error(expected: str, text: str, name: str, path: Path) -> RapporError:
    return RapporError(
        "The parameter {name!r} in {path!r} must be {expected}, not {text!r}.",
        hint=_WRITE_PARAMETERS,
        path=str(path),
        name=name,
        expected=expected,
        text=text[:20],
    )


def read_csv_rows(path: Path, file_kind: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file with their line numbers, without blank rows and rows of separators alone."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise RapporError(
            "The {file_kind} {path!r} cannot be read: {why}.",
            hint="Check that the file exists and that you may read it.",
            file_kind=file_kind,
            path=str(path),
            why=problem.strerror,
        ) from None
    except UnicodeDecodeError:
        raise RapporError(
            "The {file_kind} {path!r} is not text in UTF-8.",
            hint="Save the file as UTF-8.",
            file_kind=file_kind,
            path=str(path),
        ) from None
    reader = csv.reader(StringIO(text, newline=""))
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
