"""How precise the mean of numbers that were reported as places will be, from the noise alone."""

from __future__ import annotations

from relaxdp.encodings.protocol import Measure
from relaxdp.estimation.result import About


def place_variance(measure: Measure, keep: float, about: About = "objects", at: float = 1.0) -> float:
    """Return the variance of what one report adds to the mean of numbers, in squares of half their range.

    `at` is how far from the middle of the range the numbers lie, in halves of it. 1, at either end, is the worst: there
    noise and numbers are farthest apart. About a population whose numbers are at both ends their own spread is added.

    Claim: measured variances are within 3 % of it; tests/statistical/estimation/test_number_plans.py.
    """
    assert measure.window is not None  # noqa: S101 (whoever asks has places)
    places, window = len(measure.weights), measure.window
    reach = (places - window) / 2
    distance = at * reach
    spread = keep * (distance**2 + (window**2 - 1) / 12 + 1 / 4) + (1 - keep) * (places**2 - 1) / 12
    if about == "objects":
        spread -= (keep * distance) ** 2
    return spread / (keep * reach) ** 2
