"""What can break the guarantee in careless hands: stateless steps for arrays of codes, and randomness from a seed.

A stateless step that is retried draws twice, and two independent draws at one level reveal more than its epsilon: keep
what Algorithm 1 and the bridge return here, and let no second result out. Seeded randomness can be recomputed by
anybody who guesses the seed. Only experiments, audits and tests belong here, never a person's data.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha512

import numpy as np

from relaxdp.sampling.bridge import Codes, draw_fresh_bridge_reports
from relaxdp.sampling.entropy import Entropy, Keystream, SystemEntropy
from relaxdp.theory.randomized_response import TRUTH


class SeededEntropy:
    """A keystream from a seed: the same seed gives the same draws, in the same order of calls."""

    def __init__(self, seed: int) -> None:
        self._stream = Keystream(sha512(f"relaxdp seeded {seed}".encode()).digest())

    def make_keystream(self) -> Keystream:
        """Return the one keystream, which goes on from call to call."""
        return self._stream


def relax_once(
    n_values: int,
    old_retention: Fraction,
    new_retention: Fraction,
    *,
    truths: Codes,
    last_reports: Codes | None,
    entropy: Entropy | None = None,
) -> Codes:
    """Return the next reports of Algorithm 1. For the first ones `last_reports` is None and `old_retention` is 0."""
    retentions = old_retention, new_retention, TRUTH
    return bridge_once(n_values, *retentions, lower_reports=last_reports, upper_reports=truths, entropy=entropy)


def bridge_once(
    n_values: int,
    lower_retention: Fraction,
    middle_retention: Fraction,
    upper_retention: Fraction,
    *,
    lower_reports: Codes | None,
    upper_reports: Codes,
    entropy: Entropy | None = None,
) -> Codes:
    """Return reports between two columns of reports. Without lower reports, at a lower retention of 0, it blurs."""
    shape, dtype = upper_reports.shape, upper_reports.dtype
    for codes in (upper_reports,) if lower_reports is None else (lower_reports, upper_reports):
        if codes.shape != shape or codes.dtype != dtype or codes.dtype.kind != "u" or codes.ndim != 1:
            raise ValueError("codes must be arrays of one unsigned type and one length")
        if np.iinfo(codes.dtype).max < n_values - 1:
            raise ValueError("the alphabet does not fit into the type of the codes")
    return draw_fresh_bridge_reports(
        n_values,
        lower_retention,
        middle_retention,
        upper_retention,
        lower_reports=lower_reports,
        upper_reports=upper_reports,
        entropy=entropy or SystemEntropy(),
    )
