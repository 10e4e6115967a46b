"""The stateless steps for arrays of codes: Algorithm 1, blur and bridge, drawn afresh at every call.

Keep what they return. Calling one of them twice at one level and letting both results out breaks the guarantee.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from relaxdp.draw.bridge_arrays import Codes, fresh_bridges
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.law.bridge import NOISE, TRUTH


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
    if lower is None and lower_level != NOISE:
        raise ValueError("only noise has no lower reports")
    for codes in (upper,) if lower is None else (lower, upper):
        if codes.shape != upper.shape or codes.dtype != upper.dtype or codes.dtype.kind != "u" or codes.ndim != 1:
            raise ValueError("codes must be arrays of one unsigned type and one length")
        if np.iinfo(codes.dtype).max < values - 1:
            raise ValueError("the alphabet does not fit into the type of the codes")
    return fresh_bridges(
        values,
        lower_level,
        middle,
        upper_level,
        lower_reports=lower,
        upper_reports=upper,
        entropy=entropy or SystemEntropy(),
    )
