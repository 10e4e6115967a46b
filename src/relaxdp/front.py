"""The front door: an encoding, the path and Algorithm 1 behind a few names that are a promise."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from relaxdp.draw.blocks import Words
from relaxdp.draw.bridge import fresh_step
from relaxdp.draw.chain_file import ChainStore, FileStore, Link, MemoryStore
from relaxdp.draw.columns import as_column
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.draw.key import Key
from relaxdp.draw.repeats import refuse_repeats
from relaxdp.draw.stream import Purpose
from relaxdp.encode.categorical import CategoricalEncoding
from relaxdp.encode.containers import like
from relaxdp.encode.numeric import Function, NumericEncoding
from relaxdp.encode.path import Path
from relaxdp.encode.protocol import Encoding
from relaxdp.encode.release import code_dtype, release_codes
from relaxdp.errors import ChainFileError, LevelError
from relaxdp.estimate.counts import Counts
from relaxdp.estimate.mean import Mean
from relaxdp.estimate.result import Result
from relaxdp.law.bridge import NOISE
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text
from relaxdp.law.threshold import retention


class Mechanism:
    """What every mechanism can do, whatever its encoding."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def path(self, truth: Any, *, key: Key, object_id: object, release: str, attribute: str) -> Path:
        """Return the path of one object: its report at any level, in any order, always the same."""
        return Path(self.encoding, truth, key=key, object_id=object_id, release=release, attribute=attribute)

    def release(self, values: Any, object_ids: Any, *, key: Key, epsilon: Epsilon, release: str, attribute: str) -> Any:
        """Return the reports of many objects at one level, as the kind of column that `values` is.

        Lists, NumPy arrays, pyarrow arrays, pandas and polars series. The same call again gives the same reports;
        a call with a larger epsilon relaxes them. Nothing is remembered here: budgets are kept by a ledger.
        """
        codes = release_codes(
            self.encoding,
            values,
            object_ids,
            key=key,
            epsilon=as_epsilon(epsilon),
            release=release,
            attribute=attribute,
        )
        refuse_repeats(as_column(object_ids))
        return like(values, self.encoding.labels, codes[:, 0])

    def estimate(self, reports: Any, *, epsilon: Epsilon) -> Any:
        """Return what reports at one level say: `.value`, `.std_error`, `.interval(0.95)`, `.to_frame()`, `.plot()`.

        For objects at different levels, and for counts made elsewhere, there is `relaxdp.Counts`.
        """
        counts = Counts(self)
        counts.add(reports, epsilon=epsilon)
        return counts.estimate()

    def answer(self, shares: Result) -> Result:
        """Return what the shares of the symbols' values answer: here, the shares themselves."""
        return shares


class Categorical(Mechanism):
    """Answers out of a list of declared values: the randomized response of the paper, relaxed on the path.

    >>> answers = Categorical(["flu", "covid", "none"])
    >>> key = Key.from_bytes(bytes(range(32)))
    >>> path = answers.path("covid", key=key, object_id="patient-17", release="survey-2026", attribute="diagnosis")
    >>> path.at(0.1), path.at(0.5), path.at(2)
    ('none', 'covid', 'covid')
    >>> answers.release(
    ...     ["covid", "flu"], ["patient-17", "patient-18"],
    ...     key=key, epsilon=0.5, release="survey-2026", attribute="diagnosis",
    ... )
    ['covid', 'none']
    """

    encoding: CategoricalEncoding

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values. They are public, and their order is part of every path."""
        super().__init__(CategoricalEncoding(values))

    @property
    def values(self) -> tuple[Hashable, ...]:
        """The declared values."""
        return self.encoding.values

    def __repr__(self) -> str:
        return (
            f"Categorical({list(self.values)!r})" if len(self.values) <= 10 else f"<Categorical of {len(self.values)}>"
        )


class Numeric(Mechanism):
    """Numbers in a range, of which the mean (of any function of them) is wanted.

    >>> ages = Numeric(0, 120)
    >>> key = Key.from_bytes(bytes(range(32)))
    >>> ages.path(41, key=key, object_id="patient-17", release="survey-2026", attribute="age").at(1)
    0.0
    >>> Numeric(0, 120**2, function=np.square, function_name="square")
    Numeric(0, 14400, function_name='square')
    """

    encoding: NumericEncoding

    def __init__(
        self, low: float, high: float, *, function: Function | None = None, function_name: str = "identity"
    ) -> None:
        """Declare the range of f(x), which is public. A function has a name, which is part of every path."""
        super().__init__(NumericEncoding(low, high, function, function_name))

    def answer(self, shares: Result) -> Mean:
        """Return the mean that the share of upper ends stands for."""
        return Mean(shares, self.encoding.low, self.encoding.high)

    def __repr__(self) -> str:
        name = self.encoding.function_name
        function = "" if name == "identity" else f", function_name={name!r}"
        return f"Numeric({self.encoding.low:g}, {self.encoding.high:g}{function})"


class Relaxation:
    """The paper's Algorithm 1 for one object: fresh randomness at each step, so the last report is kept.

    `store` is a file: it is written before a report is returned, and holds the truth and the last report, so it
    is as secret as a key. With None the chain lives in memory and must not go on after the process has ended.

    >>> chain = Relaxation(Categorical(["flu", "covid", "none"]), truth="covid")
    >>> chain.relax(epsilon=0.5) == chain.relax(epsilon=0.5)
    True
    >>> chain.relax(epsilon=0.1)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: epsilon may only grow: the last report is at 0.5 and 0.1 was asked for. A report \
cannot be taken back.
    """

    def __init__(self, mechanism: Mechanism, *, truth: Any, store: str | os.PathLike[str] | None = None) -> None:
        self._encoding = mechanism.encoding
        self._entropy: Entropy = SystemEntropy()
        self._store: ChainStore = MemoryStore() if store is None else FileStore(store)
        self._truths = self._encoding.truths([truth])
        self._seen: Link | None = None
        with self._store.locked():
            self._kept()  # a file that belongs to something else is refused before anything is asked of it

    def relax(self, *, epsilon: Epsilon) -> Any:
        """Return the report at this level: a new one if the level is higher than the last, the last one if equal."""
        exact = as_epsilon(epsilon)
        level = self._encoding.threshold(exact)
        with self._store.locked():
            link = self._kept() or self._first()
            last = as_epsilon(link.epsilon, zero=True)
            if exact < last:
                raise LevelError(
                    f"epsilon may only grow: the last report is at {epsilon_text(last)} and {epsilon_text(exact)} was "
                    "asked for. A report cannot be taken back.",
                    last_epsilon=epsilon_text(last),
                    epsilon=epsilon_text(exact),
                )
            if exact > last:
                link = self._step(link, level, epsilon_text(exact))
                self._store.write(link)
                self._seen = link
        return self._encoding.reports(np.array([link.report], dtype=code_dtype(self._encoding.alphabet)))[0]

    @property
    def epsilon(self) -> str | None:
        """The level of the last report: what the whole chain has cost so far."""
        link = self._store.read()
        return link.epsilon if link else None

    def _step(self, link: Link, level: int, epsilon: str) -> Link:
        # The old level is the stored report's own threshold, never a caller's claim.
        old, new = retention(int(link.threshold)), retention(level)
        report = tuple(
            fresh_step(self._encoding.alphabet, old, new, truth=truth, last=last, entropy=self._entropy)
            for truth, last in zip(link.symbols, link.report, strict=True)
        )
        return Link(link.encoding, link.params, link.truth, link.symbols, epsilon, str(level), report)

    def _first(self) -> Link:
        """Return the state before the first report: noise at level 0, whatever it shows."""
        symbols = tuple(
            int(self._encoding.symbol_truth(self._truths, symbol, _FreshPermanent(self._entropy))[0])
            for symbol in range(self._encoding.symbols)
        )
        return Link(
            self._encoding.name,
            self._encoding.params.hex(),
            self._truth_text(),
            symbols,
            "0",
            str(NOISE),
            (0,) * len(symbols),
        )

    def _kept(self) -> Link | None:
        link = self._store.read()
        if self._seen and (link is None or as_epsilon(link.epsilon) < as_epsilon(self._seen.epsilon)):
            raise ChainFileError(
                "the chain file is gone, or went back to an earlier state: a step from there would be a second draw. "
                "Nothing was released."
            )
        self._check(link)
        self._seen = link
        return link

    def _check(self, link: Link | None) -> None:
        if link and (link.encoding, link.params) != (self._encoding.name, self._encoding.params.hex()):
            raise ChainFileError("the chain file belongs to another encoding or other values. Nothing was released.")
        if link and link.truth != self._truth_text():
            raise ChainFileError(
                "the truth is not the one that this chain began with. That it changed would show: start another chain, "
                "whose cost is added. Nothing was released."
            )
        if link and not self._is_possible(link):
            raise ChainFileError("the chain file says what cannot be: it is damaged. Nothing was released.")

    def _is_possible(self, link: Link) -> bool:
        codes = (*link.symbols, *link.report)
        return (
            len(link.symbols) == len(link.report) == self._encoding.symbols
            and all(isinstance(code, int) and 0 <= code < self._encoding.alphabet for code in codes)
            and isinstance(link.epsilon, str)
            and link.threshold == str(self._encoding.threshold(as_epsilon(link.epsilon)))
        )

    def _truth_text(self) -> str:
        suffix = b"" if self._truths.suffix is None else self._truths.suffix.tobytes()
        return f"{int(self._truths.index[0])}:{suffix.hex()}"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a relaxdp chain holds a truth and is not pickled; open its file where it is needed.")

    def __repr__(self) -> str:
        return f"<relaxdp.Relaxation at {self.epsilon or 0}>"


class _FreshPermanent:
    """Kept randomness for Algorithm 1: fresh, and stored with the chain."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        return np.array([next(self._entropy.words())], dtype=np.uint64)
