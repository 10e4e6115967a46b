"""Rate limits: a bucket of tokens for every client, refilled as time passes."""

from __future__ import annotations

from collections import OrderedDict

MOST_CLIENTS = 100_000


class Buckets:
    """So many requests a second for each client, and a burst on top. The clock is an argument, so tests own it.

    >>> buckets = Buckets(rate=1, burst=2)
    >>> [buckets.take("a", now=0.0) for _ in range(3)], buckets.take("b", now=0.0), buckets.take("a", now=1.0)
    ([True, True, False], True, True)
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        """Take a rate of 0 for no limit at all."""
        self._rate, self._burst = rate, max(burst, 1.0)
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self._rate > 0

    def take(self, client: str, now: float) -> bool:
        """Take one token, or say that there is none."""
        if self._rate <= 0:
            return True
        tokens, last = self._known.get(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - last) * self._rate)
        allowed = tokens >= 1
        self._known[client] = (tokens - 1 if allowed else tokens, now)
        self._known.move_to_end(client)
        # A forgotten client starts with a full bucket; with so many of them it would have been full again anyway.
        while len(self._known) > MOST_CLIENTS:
            self._known.popitem(last=False)
        return allowed
