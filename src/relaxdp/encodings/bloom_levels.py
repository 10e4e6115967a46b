"""Levels of a Bloom filter: epsilon of a whole report, epsilon of a bit, and RAPPOR's permanent noise f.

All three say the same. Every rounding goes to the private side: epsilon down, noise up.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from relaxdp.encodings.bloom_filter import BloomShape
from relaxdp.errors import EpsilonError, RapporError
from relaxdp.law.epsilon import MOST_DIGITS, Epsilon, as_epsilon
from relaxdp.law.level import log_up, odds, retention, shared_threshold
from relaxdp.law.support import Support

DIGITS = 12
"""How many significant digits a converted level has."""
_PRECISION = MOST_DIGITS
_DOWN = Context(prec=_PRECISION, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def bit_epsilon(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the epsilon of one bit of a report that has `epsilon` as a whole.

    >>> bit_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "4.4")
    Decimal('1.1')
    """
    return as_epsilon(_DOWN.divide(as_epsilon(epsilon), Decimal(shape.differing)))


def whole_epsilon(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return the epsilon of a whole report whose bits have `epsilon` each.

    >>> whole_epsilon(BloomShape(bits=128, hashes=2, cohorts=64), "1.1")
    Decimal('4.4')
    """
    return as_epsilon(_DOWN.multiply(as_epsilon(epsilon), Decimal(shape.differing)))


def bloom_threshold(shape: BloomShape, epsilon: Epsilon) -> int:
    """Return the threshold of every bit at which a whole report is epsilon-private, rounded down.

    Two words differ in at most 2 h bits, and a bit at epsilon / (2 h) cannot tell more than that.

    Claim: reached and not exceeded; tests/exact/test_bloom.py.
    """
    return shared_threshold(epsilon, 2, parts=shape.differing)


def noise_of(shape: BloomShape, epsilon: Epsilon) -> Decimal:
    """Return RAPPOR's f of a level, 1 - tanh(eps_bit / 2), rounded up in its twelfth digit.

    >>> noise_of(BloomShape(bits=128, hashes=2, cohorts=64), "4.394449154672")
    Decimal('0.500000000001')
    """
    noise = 1 - retention(bloom_threshold(shape, epsilon))
    return Context(prec=DIGITS, rounding=ROUND_CEILING).divide(Decimal(noise.numerator), Decimal(noise.denominator))


def epsilon_of(shape: BloomShape, noise: Decimal | Fraction | str) -> Decimal:
    """Return the level whose noise is at least RAPPOR's f: 2 h ln((2 - f) / f), rounded down in its twelfth digit.

    >>> epsilon_of(BloomShape(bits=128, hashes=2, cohorts=64), "0.5")
    Decimal('4.39444915467')
    """
    ratio = _ratio(noise)
    logarithm = _DOWN.ln(_DOWN.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    below = _DOWN.multiply(_DOWN.next_minus(_DOWN.next_minus(logarithm)), Decimal(shape.differing))
    return as_epsilon(Context(prec=DIGITS, rounding=ROUND_FLOOR).plus(below))


def guarantee_of(shape: BloomShape, noise: Decimal | Fraction | str) -> Decimal:
    """Return what a permanent response with noise f guarantees: 2 h ln((2 - f) / f), rounded up.

    >>> round(guarantee_of(BloomShape(bits=128, hashes=2, cohorts=64), "0.5"), 4)
    Decimal('4.3944')
    """
    return log_up(_ratio(noise) ** shape.differing)


def realised_guarantee(shape: BloomShape, threshold: int) -> Decimal:
    """Return what a whole report at a threshold really guarantees, rounded up."""
    return log_up(odds(retention(threshold), 2) ** shape.differing)


def bit_support(threshold: int) -> Support:
    """Return with which probability a bit of a report is 1, given its truth."""
    return Support.of_one_symbol(retention(threshold), 2)


def _ratio(noise: Decimal | Fraction | str) -> Fraction:
    """Return the odds (2 - f) / f of one bit."""
    exact = Fraction(noise)
    if not 0 < exact <= 1:
        raise RapporError("the permanent noise f lies above 0 and up to 1, not {noise}.", noise=noise)
    if exact == 1:
        raise EpsilonError("a permanent noise of f = 1 tells nothing at all: no level has it.")
    return (2 - exact) / exact
