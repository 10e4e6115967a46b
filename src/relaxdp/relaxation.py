"""The paper's Algorithm 1 for one object: a chain of reports, the last of which is kept."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from relaxdp.draw.bridge import fresh_step
from relaxdp.draw.bridge_arrays import fresh_bridges
from relaxdp.draw.chain_file import ChainStore, FileStore, Link, MemoryStore
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.encodings.bridges import FreshPermanent
from relaxdp.encodings.protocol import code_dtype
from relaxdp.errors import ChainFileError, LevelError, refusing
from relaxdp.law.bridge import NOISE, TRUTH
from relaxdp.law.epsilon import ONE, Epsilon, as_epsilon, epsilon_text
from relaxdp.law.level import Level, retention
from relaxdp.mechanisms import Mechanism
from relaxdp.remedies import IN_PYTHON


class Relaxation:
    """The paper's Algorithm 1 for one object: fresh randomness at each step, so the last report is kept.

    `mechanism` says what the `truth` is one of. `store` is a file: it is written before a report is returned, and holds
    the truth and the last report, so it is as secret as a key. With None the chain lives in memory and must not go on
    after the process has ended.

    >>> from relaxdp import Categorical
    >>> chain = Relaxation(Categorical(["flu", "covid", "none"]), truth="covid")
    >>> chain.relax(epsilon=0.5) == chain.relax(epsilon=0.5)
    True
    >>> chain.relax(epsilon=0.1)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: epsilon may only grow: the last report is at 0.5 and 0.1 was asked for. A report \
cannot be taken back. Nothing was released.
    """

    def __init__(self, mechanism: Mechanism, *, truth: Any, store: str | os.PathLike[str] | None = None) -> None:
        self._encoding = mechanism.encoding
        self._entropy: Entropy = SystemEntropy()
        self._store: ChainStore = MemoryStore() if store is None else FileStore(store)
        self._truths = self._encoding.truths([truth])
        self._seen: Link | None = None
        with self._store.locked():
            self._kept()  # a file that belongs to something else is refused before anything is asked of it

    @refusing("Nothing was released.", IN_PYTHON)
    def relax(self, *, epsilon: Epsilon) -> Any:
        """Return the report at this level: a new one if the level is higher than the last, the last one if equal."""
        level = self._encoding.level(epsilon)
        exact = level.epsilon
        with self._store.locked():
            link = self._kept() or self._first()
            last = as_epsilon(link.epsilon, zero=True)
            if exact < last:
                raise LevelError(
                    "epsilon may only grow: the last report is at {last_epsilon} and {epsilon} was asked for. "
                    "A report cannot be taken back.",
                    last_epsilon=epsilon_text(last),
                    epsilon=epsilon_text(exact),
                )
            if exact > last:
                link = self._step(link, level)
                self._store.write(link)
                self._seen = link
        seeds = None if link.seed is None else np.array([int(link.seed)], dtype=np.uint64)
        return self._encoding.reports(np.array([link.report], dtype=code_dtype(self._encoding.alphabet)), seeds)[0]

    @property
    def epsilon(self) -> str | None:
        """The level of the last report: what the whole chain has cost so far."""
        link = self._store.read()
        return link.epsilon if link else None

    def _step(self, link: Link, level: Level) -> Link:
        # The old level is the stored report's own threshold, never a caller's claim.
        old, new = retention(int(link.threshold)), level.retention
        if len(link.symbols) == 1:
            step = fresh_step(
                self._encoding.alphabet, old, new, truth=link.symbols[0], last=link.report[0], entropy=self._entropy
            )
            return replace(link, epsilon=str(level), threshold=str(level.threshold), report=(step,))
        truths, last = np.array([link.symbols, link.report], dtype=code_dtype(self._encoding.alphabet))
        report = fresh_bridges(
            self._encoding.alphabet, old, new, TRUTH, lower_reports=last, upper_reports=truths, entropy=self._entropy
        )
        return replace(link, epsilon=str(level), threshold=str(level.threshold), report=tuple(report.tolist()))

    def _first(self) -> Link:
        """Return the state before the first report: noise at level 0, whatever it shows."""
        permanent = FreshPermanent(self._entropy, 1)
        symbols = tuple(self._encoding.symbol_truths(self._truths, permanent)[0].tolist())
        seeds = self._encoding.seeds(permanent)
        return Link(
            self._encoding.name,
            self._encoding.params.hex(),
            self._truth_text(),
            symbols,
            "0",
            str(NOISE),
            (0,) * len(symbols),
            None if seeds is None else str(int(seeds[0])),
        )

    def _kept(self) -> Link | None:
        link = self._store.read()
        if self._seen and (link is None or as_epsilon(link.epsilon) < as_epsilon(self._seen.epsilon)):
            raise ChainFileError(
                "the chain file is gone, or went back to an earlier state: a step from there would be a second draw."
            )
        self._check(link)
        self._seen = link
        return link

    def _check(self, link: Link | None) -> None:
        if link and (link.encoding, link.params) != (self._encoding.name, self._encoding.params.hex()):
            raise ChainFileError("the chain file belongs to another encoding or other values.")
        if link and link.truth != self._truth_text():
            raise ChainFileError(
                "the truth is not the one that this chain began with. That it changed would show: start "
                "another chain, whose cost is added."
            )
        if link and not self._is_possible(link):
            raise ChainFileError("the chain file says what cannot be: it is damaged.")

    def _is_possible(self, link: Link) -> bool:
        codes = (*link.symbols, *link.report)
        return (
            len(link.symbols) == len(link.report) == self._encoding.symbols
            and all(isinstance(code, int) and 0 <= code < self._encoding.alphabet for code in codes)
            and isinstance(link.epsilon, str)
            and _is_seed(link.seed) == self._encoding.seeded
            and link.threshold == str(self._encoding.level(link.epsilon).threshold)
        )

    def _truth_text(self) -> str:
        suffix = b"" if self._truths.suffix is None else self._truths.suffix.tobytes()
        return f"{int(self._truths.index[0])}:{suffix.hex()}"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a relaxdp chain holds a truth and is not pickled; open its file where it is needed.")

    def __repr__(self) -> str:
        return f"<relaxdp.Relaxation at {self.epsilon or 0}>"


def _is_seed(seed: Any) -> bool:
    return isinstance(seed, str) and seed.isdecimal() and int(seed) < ONE
