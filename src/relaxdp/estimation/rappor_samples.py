"""Classic reports of clients that report again and again: each client counts once, with the mean of its reports.

All samples of a client are of one permanent response, whose noise is in each of them. So they are no reports of
different devices: only the clients are independent of each other, and the variance is that between clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from relaxdp.estimation.rappor_classic import Responses
from relaxdp.estimation.result import About, Result, check_about

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Sums over the clients of each cohort."""

    responses: Responses
    clients: NDArray[np.int64]
    """How many clients are in each cohort."""
    means: Floats
    """The sums of the clients' mean bits: (cohorts, bits)."""
    inverse: Floats
    """The sums of 1 over the number of a client's reports, by cohort."""
    squares: Floats | None = None
    """The sums of the squares of the clients' mean bits; None where only the sums are known."""

    @classmethod
    def of_sums(cls, clients: Any, ones: Any, *, samples: int, responses: Responses) -> Samples:
        """Return them for clients that all sent equally many samples, from the sums of all these."""
        numbers = np.asarray(clients, dtype=np.int64)
        return cls(responses, numbers, np.asarray(ones) / samples, numbers / samples)

    def shares(self, cohorts: NDArray[np.intp]) -> Floats:
        """Return the unbiased shares of set bits in some of the cohorts."""
        numbers = np.maximum(self.clients[cohorts], 1)[:, None]
        return np.asarray(self.responses.support.debias(self.means[cohorts] / numbers))

    def variances(self, cohorts: NDArray[np.intp], share: Any) -> Floats:
        """Return the variance of these shares from the responses alone, where a `share` of true bits is set."""
        numbers = np.maximum(self.clients[cohorts], 1)[:, None]
        mean = self.responses.mean_variance(share, self.inverse[cohorts][:, None] / numbers)
        return np.asarray(self.excess * mean / numbers)

    def client_variance(self, share: Any) -> Any:
        """Return the variance of what one client says, on average over all clients."""
        return self.excess * self.responses.mean_variance(share, float(self.inverse.sum() / self.clients.sum()))

    @cached_property
    def excess(self) -> float:
        """How many times larger the noise is than that of fresh samples of one permanent response, as clients show.

        It is larger where samples were repeated, and smaller where a client reported several words, each with a
        permanent response of its own; but not smaller than if all samples had one. The clients of a cohort differ by
        their noise and by their truths, so the noise explains at most all of their differences, and at least what is
        left if each has a truth of its own.
        """
        known = np.flatnonzero(self.clients > 1)
        if self.squares is None or not len(known):
            return 1.0
        numbers = self.clients[known].astype(float)[:, None]
        between = self.squares[known] - self.means[known] ** 2 / numbers
        freedom = float((numbers - 1).sum()) * self.means.shape[1]
        seen = float(between.sum()) / freedom / float(self.responses.support.gain) ** 2
        share = self.shares(known)
        inverse = self.inverse[known][:, None] / numbers
        noise = self.responses.mean_variance(np.clip(share, 0, 1), inverse)
        fresh = self.responses.mean_variance(np.clip(share, 0, 1), 1.0) * inverse
        squares = share - share**2 + noise / numbers
        expected, least, truths = (float(((numbers - 1) * each).sum()) / freedom for each in (noise, fresh, squares))
        return float(max(least, min(max(expected, seen - max(0.0, truths)), seen)) / expected)


@dataclass(frozen=True, eq=False, repr=False)
class SampledShares(Result):
    """Shares of words that have a bit of their own in every cohort: normal intervals around the mean of the clients."""

    labels: Sequence[str]
    samples: Samples
    own: Floats
    """For each word the sum of the clients' mean bits, at its own bit."""

    @property
    def value(self) -> Floats:
        """The unbiased estimates."""
        return np.asarray(self.samples.responses.support.debias(self.own / self._clients))

    def standard_error(self, about: About = "objects") -> Floats:
        """Return the standard errors; the unknown shares in the formulas are the estimated ones."""
        check_about(about)
        share = np.clip(self.value, 0, 1)
        sampled = share * (1 - share) if about == "population" else 0.0
        return np.asarray(np.sqrt((self.samples.client_variance(share) + sampled) / self._clients))

    @property
    def null_variance(self) -> float:
        """The variance of an estimate of a word that no client has."""
        return float(self.samples.client_variance(0.0)) / self._clients

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        """Return the ends of the intervals."""
        reach = -float(ndtri(tail)) * self.standard_error(about)
        return self.value - reach, self.value + reach

    @property
    def _clients(self) -> int:
        return int(self.samples.clients.sum())
