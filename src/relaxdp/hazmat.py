"""What can break the guarantee in careless hands: stateless steps for arrays of codes, and randomness from a seed.

A stateless step that is retried draws twice, and two independent draws at one level reveal more than its epsilon: keep
what Algorithm 1, blur and bridge return here, and let no second result out. Seeded randomness can be recomputed by
anybody who guesses the seed. Only experiments, audits and tests belong here, never a person's data.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha512

import numpy as np

from relaxdp.sampling.bridge import Codes, draw_fresh_bridges
from relaxdp.sampling.entropy import Entropy, Keystream, SystemEntropy
from relaxdp.theory.randomized_response import NOISE, TRUTH


class SeededEntropy:
    """A keystream from a seed: the same seed gives the same draws, in the same order of calls."""

    def __init__(self, seed: int) -> None:
        self._stream = Keystream(sha512(f"relaxdp seeded {seed}".encode()).digest())

    def make_keystream(self) -> Keystream:
        """Return the one keystream, which goes on from call to call."""
        return self._stream


def relax_once(
    values: int,
    old: Fraction,
    new: Fraction,
    *,
    truth: Codes,
    last: Codes | None,
    entropy: Entropy | None = None,
) -> Codes:
    """Return the next reports of Algorithm 1; `last` is None for the first report (then `old` is 0)."""
    return bridge_once(values, old, new, TRUTH, lower=last, upper=truth, entropy=entropy)


def blur_once(
    values: int, lower: Fraction, upper: Fraction, *, reports: Codes, entropy: Entropy | None = None
) -> Codes:
    """Return reports at retention `upper` blurred to `lower`, without the truth."""
    return bridge_once(values, NOISE, lower, upper, lower=None, upper=reports, entropy=entropy)


def bridge_once(
    values: int,
    lower_level: Fraction,
    middle: Fraction,
    upper_level: Fraction,
    *,
    lower: Codes | None,
    upper: Codes,
    entropy: Entropy | None = None,
) -> Codes:
    """Return reports at `middle` between two columns of reports, without the truth."""
    for codes in (upper,) if lower is None else (lower, upper):
        if codes.shape != upper.shape or codes.dtype != upper.dtype or codes.dtype.kind != "u" or codes.ndim != 1:
            raise ValueError("codes must be arrays of one unsigned type and one length")
        if np.iinfo(codes.dtype).max < values - 1:
            raise ValueError("the alphabet does not fit into the type of the codes")
    return draw_fresh_bridges(
        values,
        lower_level,
        middle,
        upper_level,
        lower_reports=lower,
        upper_reports=upper,
        entropy=entropy or SystemEntropy(),
    )
