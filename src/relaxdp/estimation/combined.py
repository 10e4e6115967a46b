"""Sums of independent estimates with weights: a pool of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaxdp.estimation.result import About, Floats, Result, check_about
from relaxdp.estimation.shrinkage import expected_shares


@dataclass(frozen=True, eq=False, repr=False)
class Combined(Result):
    """A weighted sum of independent estimates, row by row.

    Its interval adds the squared distances from each part's estimate to the end of its interval (the method of
    variance estimates recovery): with one part it is that part's own interval, and it keeps the parts' asymmetry.
    """

    parts: Sequence[Result]
    weights: Sequence[float]
    least: float = 0.0
    most: float = 1.0

    @property
    def most_shown(self) -> int:  # type: ignore[override]
        """As many as of each part."""
        return self.parts[0].most_shown

    @property
    def is_share(self) -> bool:  # type: ignore[override]
        """As each part."""
        return self.parts[0].is_share

    @property
    def labels(self) -> Sequence[Any]:  # type: ignore[override]
        """The labels, which all parts share."""
        return self.parts[0].labels

    @property
    def keys(self) -> dict[str, list[Any]]:
        """What tells the rows apart, which all parts share."""
        return self.parts[0].keys

    @property
    def questions(self) -> int:
        """As many as the part with the most has."""
        return max(part.questions for part in self.parts)

    @property
    def value(self) -> Floats:
        """The weighted sum of the parts' estimates."""
        return np.asarray(sum(weight * part.value for weight, part in self._pairs))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors of independent parts, added in squares."""
        check_about(about)
        return np.asarray(np.sqrt(sum((weight * part.standard_error(about)) ** 2 for weight, part in self._pairs)))

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends before they are cut."""
        below: Any = 0.0
        above: Any = 0.0
        for weight, part in self._pairs:
            low, high = part.ends(tail, about)
            below = below + (weight * (part.value - low)) ** 2
            above = above + (weight * (high - part.value)) ** 2
        return self.value - np.sqrt(below), self.value + np.sqrt(above)

    def consistent(self) -> Floats:
        """Return shares that are not negative and sum to 1: less error, at the price of some bias."""
        if not self.is_share:
            return super().consistent()
        return expected_shares(self.value, self.std_error**2)

    @property
    def _pairs(self) -> list[tuple[float, Result]]:
        return list(zip(self.weights, self.parts, strict=True))
