"""Parameters of RAPPOR: planned for a number of devices and candidates, and read from CSV files.

A plan states the smallest share of a word that would be found. It takes only the noise into account, and assumes the
decoder of this package.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import partial
from io import StringIO
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
    for what, number, maximum in (("devices", n_devices, MAX_N), ("candidates", n_candidates, MAX_CANDIDATES)):
        if not 1 <= number <= maximum:
            raise PlanError(
                "The number of {what} must be a whole number from 1 to {maximum:,}, not {number}.",
                hint="Pass such a number, as in --devices 100000 --candidates 300 (n_devices=, n_candidates=).",
                what=what,
                maximum=maximum,
                number=number,
            )
    support = compute_bit_support(compute_bit_threshold(shape, epsilon))
    noise, gain = float(support.noise), float(support.gain)
    chance = 1 - (1 - 1 / shape.bits) ** shape.hashes
    variance = noise * (1 - noise) / gain**2 + chance * (1 - chance)
    own = shape.bits * chance * (1 - chance)
    free = 1 - min(0.5, n_candidates / (shape.cohorts * shape.bits))
    # The decoder takes the larger of what the noise and what the residuals at a word's bits say.
    careful = 1 + 0.4 * sqrt(2 / (shape.cohorts * shape.hashes))
    return sqrt(variance * careful / (n_devices * own * free))


def plan_parameters(
    *, n_devices: int, n_candidates: int, epsilon: Epsilon, hashes: Sequence[int] = (1, 2, 4),
    bits: int | None = None, cohorts: int | None = None,
) -> list[RapporPlan]:  # fmt: skip
    """Return plans at one level, one for each number of hashes; the plan with the smallest share comes first.

    There are enough bits that the sampling of words matters little compared with the noise, and enough cohorts that
    candidates seldom share their bits.
    """
    exact = as_epsilon(epsilon)
    plans = [_make_plan(each, bits, cohorts, n_devices, n_candidates, exact) for each in hashes]
    return sorted(plans, key=lambda plan: plan.smallest_share)


def plan_parameters_for_share(
    share: float, *, n_devices: int, n_candidates: int, hashes: Sequence[int] = (1, 2, 4), bits: int | None = None,
    cohorts: int | None = None,
) -> list[RapporPlan]:  # fmt: skip
    """Plan parameters that find words with this share; the plan with the smallest epsilon, rounded up, comes first."""
    if not 0 < share < 1:
        raise PlanError(
            "The share of a word must be between 0 and 1, not {share}.", hint="Pass a share such as 0.01.", share=share
        )
    found = (
        _find_plan_for_share(share, each, partial(_make_plan, each, bits, cohorts, n_devices, n_candidates))
        for each in hashes
    )
    plans = [plan for plan in found if plan is not None]
    if not plans:
        raise PlanError(
            "No epsilon is enough to find words with a share of {share:g} among {candidates:,} "
            "candidates with {devices:,} devices.",
            hint="Plan with more devices (--devices), fewer candidates (--candidates) or a larger share (--share).",
            candidates=n_candidates,
            share=share,
            devices=n_devices,
        )
    return sorted(plans, key=lambda plan: plan.epsilon)


def _find_plan_for_share(share: float, hashes: int, make_plan: Callable[[Decimal], RapporPlan]) -> RapporPlan | None:
    """Return the plan with the smallest epsilon that finds words with this share; None where no epsilon does."""

    def compute_excess(logarithm: float) -> float:
        return log(make_plan(as_epsilon(f"{exp(logarithm):.12g}")).smallest_share / share)

    lower, upper = log(1e-6 * hashes), log(80.0 * hashes)
    if compute_excess(upper) > 0:
        return None
    root = scipy.optimize.brentq(compute_excess, lower, upper) if compute_excess(lower) > 0 else lower
    context = Context(prec=DIGITS, rounding=ROUND_CEILING)
    level = as_epsilon(context.create_decimal_from_float(exp(root)))
    while make_plan(level).smallest_share > share:
        level = as_epsilon(context.next_plus(level))
    return make_plan(level)


def _make_plan(
    hashes: int, bits: int | None, cohorts: int | None, n_devices: int, n_candidates: int, epsilon: Decimal
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
    # Found with a probability of POWER, with Holm's correction at RATE.
    share = -float(scipy.special.ndtri(RATE / n_candidates) + scipy.special.ndtri(1 - POWER)) * error
    return RapporPlan(shape, epsilon, compute_noise(shape, epsilon), error, share)


def _compute_noise_variance(hashes: int, bits: int, epsilon: Decimal) -> float:
    support = compute_bit_support(compute_bit_threshold(BloomShape(bits, hashes, 1), epsilon))
    return float(support.noise * (1 - support.noise)) / float(support.gain) ** 2


_COLUMNS = ("k", "h", "m", "f")


@dataclass(frozen=True, slots=True)
class RapporParameters:
    """The content of a parameter file: k, h and m, which fix the path, and f, the noise of the planned level."""

    shape: BloomShape
    noise: Decimal

    @classmethod
    def read(cls, path: Path) -> RapporParameters:
        """Read a CSV file of two rows: k,h,m,f and their values."""
        rows = [[field.strip() for field in row if field.strip()] for _, row in read_csv_rows(path, "parameter file")]
        if len(rows) != 2 or sorted(rows[0]) != sorted(_COLUMNS) or len(rows[1]) != len(_COLUMNS):
            raise RapporError(
                "The parameter file {path!r} must have two rows: {columns}, then a number for each of them.",
                hint=_WRITE_PARAMETERS,
                path=str(path),
                columns=",".join(_COLUMNS),
            )
        texts = dict(zip(*rows, strict=True))
        try:
            bits, hashes, cohorts = (int(texts[name]) for name in ("k", "h", "m"))
            noise = Decimal(texts["f"])
        except (ValueError, ArithmeticError):
            noise = Decimal("NaN")
        if noise.is_nan() or not 0 <= noise <= 1:
            raise RapporError(
                "In the parameter file {path!r}, k, h and m must be whole numbers, and f must be from 0 to 1.",
                hint=_WRITE_PARAMETERS,
                path=str(path),
            )
        return cls(BloomShape(bits=bits, hashes=hashes, cohorts=cohorts), noise)

    def to_csv(self) -> str:
        """Return the content of the parameter file."""
        shape = self.shape
        return f"{','.join(_COLUMNS)}\n{shape.bits},{shape.hashes},{shape.cohorts},{self.noise:f}\n"


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
        raise _make_format_error(path, file_kind) from None
    try:
        reader = csv.reader(StringIO(text, newline=""))
        for row in reader:
            if len(row) == 1 and (";" in row[0] or "\t" in row[0]):
                raise _make_format_error(path, file_kind)
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error:
        raise _make_format_error(path, file_kind) from None


def _make_format_error(path: Path, file_kind: str) -> RapporError:
    return RapporError(
        "The {file_kind} {path!r} is not a CSV file in UTF-8 whose fields are separated by commas.",
        hint="Save it as CSV with commas and double quotes, in UTF-8.",
        file_kind=file_kind,
        path=str(path),
    )
