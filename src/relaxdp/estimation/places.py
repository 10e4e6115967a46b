"""The likeliest distribution behind places: a number lies in a bin, and is spread evenly over a window of places.

By hand: the likelihood of a mixture is concave, and at its maximum few bins have a share. Newton's method on those
bins, each step a least-squares problem without negative shares, gets there in a few steps; and how far it still is
from the maximum is known at each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bins = NDArray[np.bool_]

NEAR = 0.01
"""How far from the maximum the logarithm of the likelihood may be: intervals look at differences of 2 and more."""
_STEPS, _SMOOTHED = 100, 2_000
_SAME = 1e-7
_SMALL = 1e-9
"""A share that is none."""


@dataclass(frozen=True, eq=False)
class Places:
    """Counts of places at some levels, and what a report of a level is: its number's window, or anything."""

    counts: Floats
    """Of shape (levels, places)."""
    keeps: Floats
    """The retention of each level."""
    window: int

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return int(self.counts.shape[1]) - self.window + 1

    def chances(self, shares: Floats) -> Floats:
        """Return the chance of each place at each level."""
        spread = np.convolve(shares, np.ones(self.window)) / self.window
        noise = (1 - self.keeps) * shares.sum() / self.counts.shape[1]
        return np.asarray(self.keeps[:, None] * spread + noise[:, None])

    def likelihood(self, shares: Floats) -> float:
        """Return the logarithm of the likelihood."""
        return float((self.counts * np.log(self.chances(shares))).sum())

    def slope(self, shares: Floats) -> Floats:
        """Return how much likelier the counts become with each share."""
        ratios = self.counts / self.chances(shares)
        spread = np.convolve(self.keeps @ ratios, np.ones(self.window), "valid") / self.window
        return np.asarray(spread + ((1 - self.keeps) / self.counts.shape[1]) @ ratios.sum(axis=1))

    def columns(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the chances of all places at all levels, given each of some bins: (levels * places, bins)."""
        places = np.arange(self.counts.shape[1])[:, None]
        inside = (places >= chosen) & (places < chosen + self.window)
        noise = (1 - self.keeps) / self.counts.shape[1]
        whole = inside * (self.keeps / self.window)[:, None, None] + noise[:, None, None]
        return np.asarray(whole.reshape(-1, len(chosen)))


def likeliest(
    places: Places, within: Bins | None = None, share: float = 1.0, *, asked: float | None = None
) -> tuple[Floats, float]:
    """Return the shares of the bins that make the counts likeliest, and the logarithm of that likelihood.

    `within` are bins whose shares are to sum to `share`, and those of the others to the rest. Who only asks whether a
    likelihood is reached says which one: then it ends as soon as that is known.

    Claim: no other shares are likelier by more than a hundredth in the logarithm; tests/unit/estimation/test_places.py.
    """
    within = np.ones(places.bins, np.bool_) if within is None else within
    groups = [(mask, total) for mask, total in ((within, share), (~within, 1 - share)) if total > 0]
    shares = np.zeros(places.bins)
    for mask, total in groups:
        if not mask.any():
            return shares, -np.inf
        shares[mask] = total / mask.sum()
    found = places.likelihood(shares)
    for _ in range(_STEPS):
        slope = places.slope(shares)
        # The likelihood is concave: nothing that the groups allow is likelier by more than its slope promises.
        gap = sum(total * slope[mask].max() for mask, total in groups) - slope @ shares
        if gap < NEAR or (asked is not None and (found >= asked or found + gap < asked)):
            break
        aim = _least_squares(places, shares, slope, groups)
        step, better = 1.0, -np.inf
        while step > _SAME:
            better = places.likelihood(shares + step * (aim - shares))
            if better >= found:
                break
            step /= 2
        if better - found < _SAME:  # expectation-maximisation never goes down, and moves where Newton's method is stuck
            aim, step = _scaled(shares * slope, shares, groups), 1.0
            better = places.likelihood(aim)
        shares, found = shares + step * (aim - shares), better
    return shares, found


def _least_squares(places: Places, shares: Floats, slope: Floats, groups: Sequence[tuple[Bins, float]]) -> Floats:
    """Return where the likelihood's second-order form is largest, among bins with a share and peaks of the slope."""
    from scipy.optimize import nnls  # noqa: PLC0415 (as slow to import as all else)

    padded = np.pad(slope, 1, constant_values=-np.inf)
    peaks = (slope >= padded[:-2]) & (slope >= padded[2:])
    chosen = shares > _SMALL
    for mask, _ in groups:
        chosen = chosen | (mask & peaks)
        chosen[np.flatnonzero(mask)[np.argmax(slope[mask])]] = True
    allowed = np.logical_or.reduce([mask for mask, _ in groups])
    where = np.flatnonzero(chosen & allowed)
    seen = places.counts.reshape(-1) > 0
    chances = places.chances(shares).reshape(-1)[seen]
    roots = np.sqrt(places.counts.reshape(-1)[seen])
    matrix = roots[:, None] * places.columns(where)[seen] / chances[:, None]
    heavy = 1e3 * np.sqrt(places.counts.sum())
    rows = [heavy * mask[where] for mask, _ in groups]
    ends = [heavy * total for _, total in groups]
    found, _ = nnls(np.vstack([matrix, *rows]), np.concatenate([2 * roots, ends]), maxiter=50 * len(where))
    result = np.zeros(len(shares))
    result[where] = found
    return _scaled(result, shares, groups)


def _scaled(result: Floats, shares: Floats, groups: Sequence[tuple[Bins, float]]) -> Floats:
    """Return shares that sum to what they should in each group."""
    scaled = np.zeros(len(result))
    for mask, total in groups:
        own = result[mask]
        scaled[mask] = own * (total / own.sum()) if own.sum() > 0 else shares[mask]
    return scaled


def smoothed(places: Places) -> Floats:
    """Return a smooth distribution (EMS): steps of expectation-maximisation, each averaged with its neighbours.

    The likeliest one stands on a few bins. This one has less error where numbers are spread, and some bias.
    """
    shares, found = np.full(places.bins, 1 / places.bins), -np.inf
    widths = np.ones(places.bins)
    widths[[0, -1]] = 0.5  # a bin at an end has numbers on one side only, so it is the density that is smooth
    for _ in range(_SMOOTHED):
        edged = np.pad(shares * places.slope(shares) / widths, 1, mode="edge")
        shares = widths * (edged[:-2] / 4 + edged[1:-1] / 2 + edged[2:] / 4)
        shares /= shares.sum()
        better = places.likelihood(shares)
        if abs(better - found) < NEAR:
            break
        found = better
    return np.asarray(shares)
