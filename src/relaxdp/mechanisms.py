"""The front door: an encoding, the path and Algorithm 1 behind a few names that are a promise."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from relaxdp.draw.bridge import fresh_step
from relaxdp.draw.bridge_arrays import fresh_bridges
from relaxdp.draw.chain_file import ChainStore, FileStore, Link, MemoryStore
from relaxdp.draw.columns import as_column
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.draw.key import Key, as_key
from relaxdp.draw.repeats import refuse_repeats
from relaxdp.draw.stream import PathId
from relaxdp.encodings.bridges import FreshPermanent
from relaxdp.encodings.containers import like, like_packed
from relaxdp.encodings.declared import CategoricalEncoding, DeclaredEncoding
from relaxdp.encodings.local_hash import LocalHashEncoding
from relaxdp.encodings.numeric import CLIP, Function, MissingNumericEncoding, NumericEncoding, RangeEncoding
from relaxdp.encodings.path import ReportPath
from relaxdp.encodings.protocol import Encoding, code_dtype
from relaxdp.encodings.registry import made
from relaxdp.encodings.release import release_codes, release_reports
from relaxdp.encodings.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
from relaxdp.encodings.wave import BINS, WaveEncoding
from relaxdp.errors import ChainFileError, EncodingError, LevelError, refusing
from relaxdp.estimation.advice import best_encoding, best_for_numbers
from relaxdp.estimation.counts import Counts
from relaxdp.law.bridge import NOISE, TRUTH
from relaxdp.law.epsilon import ONE, Epsilon, as_epsilon, epsilon_text
from relaxdp.law.level import Level, retention
from relaxdp.remedies import IN_PYTHON


class Mechanism:
    """What every mechanism can do, whatever its encoding."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def path(
        self, truth: Any, *, key: Key, object_id: object, release: str, attribute: str, epoch: int = 1, date: str = ""
    ) -> ReportPath:
        """Return the path of one object: its report at any level, in any order, always the same.

        An epoch above 1 is a path that was forced, as the ledger counts them; a date is one of a series of releases.
        """
        path = PathId(release, attribute, epoch, date)
        return ReportPath(self.encoding, truth, key=as_key(key), object_id=object_id, path=path)

    @refusing("Nothing was released.", IN_PYTHON)
    def release(
        self,
        values: Any,
        object_ids: Any,
        *,
        key: Key,
        epsilon: Epsilon,
        release: str,
        attribute: str,
        epoch: int = 1,
        date: str = "",
    ) -> Any:
        """Return the reports of many objects at one level, as the kind of column that `values` is.

        Lists, NumPy arrays, pyarrow arrays, pandas and polars series; packed reports of a NumPy array are a matrix of
        bytes. The same call again gives the same reports; a call with a larger epsilon relaxes them. Nothing is
        remembered here: budgets are kept by a ledger.
        """
        path = PathId(release, attribute, epoch, date)
        where: Any = {"key": as_key(key), "level": self.encoding.level(epsilon), "path": path}
        if self.encoding.symbols == 1 and self.encoding.joint == "exclusive":
            codes = release_codes(self.encoding, values, object_ids, **where)
            released = like(values, self.encoding.labels, codes[:, 0])
        else:
            reports = release_reports(self.encoding, values, object_ids, **where)
            released = like_packed(values, reports) if self.encoding.report_width else reports.to_pylist()
        refuse_repeats(as_column(object_ids))
        return released

    def estimate(self, reports: Any, *, epsilon: Epsilon) -> Any:
        """Return what reports at one level say: `.value`, `.std_error`, `.interval(0.95)`, `.to_frame()`, `.plot()`.

        For objects at different levels, and for counts made elsewhere, there is `relaxdp.Counts`.
        """
        counts = Counts(self)
        counts.add(reports, epsilon=epsilon)
        return counts.estimate()


class Declared(Mechanism):
    """A mechanism for answers out of a list of declared values, however they are encoded."""

    encoding: DeclaredEncoding

    @property
    def values(self) -> tuple[Hashable, ...]:
        """The declared values."""
        return self.encoding.values

    def __repr__(self) -> str:
        name, values = type(self).__name__, len(self.values)
        return (
            f"{name}({list(self.values)!r}{self._shown()})" if values <= 10 else f"<{name} of {values}{self._shown()}>"
        )

    def _shown(self) -> str:
        return ""


class Categorical(Declared):
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

    def __init__(self, values: Sequence[Hashable]) -> None:
        """Declare the values. They are public, and their order is part of every path."""
        super().__init__(CategoricalEncoding(values))


class Unary(Declared):
    """Answers out of many declared values, as one bit for each: the error does not grow with their number.

    Optimised (OUE), or symmetric (SUE, the basic RAPPOR). A report is packed into `bytes`.

    >>> answers = Unary(["flu", "covid", "none"])
    >>> key = Key.from_bytes(bytes(range(32)))
    >>> path = answers.path("covid", key=key, object_id="patient-19", release="survey-2026", attribute="diagnosis")
    >>> [path.at(epsilon).hex() for epsilon in (0.1, 1, 20)]
    ['05', '03', '02']
    """

    def __init__(self, values: Sequence[Hashable], *, optimised: bool = True) -> None:
        """Declare the values. They are public, and their order is part of every path."""
        super().__init__(OptimisedUnaryEncoding(values) if optimised else SymmetricUnaryEncoding(values))

    def _shown(self) -> str:
        return "" if isinstance(self.encoding, OptimisedUnaryEncoding) else ", optimised=False"


class LocalHash(Declared):
    """Answers out of very many declared values, as a short report: a public seed and a hidden bucket (OLH).

    The number of buckets is part of every path, so it is chosen once, for the last epsilon that is planned.

    >>> LocalHash(["flu", "covid", "none"], epsilon=1)
    LocalHash(['flu', 'covid', 'none'], buckets=4)
    """

    def __init__(
        self, values: Sequence[Hashable], *, buckets: int | None = None, epsilon: Epsilon | None = None
    ) -> None:
        """Declare the values, and the number of buckets or the last epsilon that it is to be the best for."""
        if buckets is not None and epsilon is not None:
            raise EncodingError("local hashing needs a number of buckets, or the last epsilon that is planned.")
        options = LocalHashEncoding.planned_options({} if buckets is None else {"buckets": buckets}, epsilon)
        super().__init__(LocalHashEncoding(values, **options))

    def _shown(self) -> str:
        return f", buckets={self.encoding.alphabet}"


def mechanism(
    values: Sequence[Hashable] | None = None,
    *,
    range: tuple[float, float] | None = None,
    clip: bool = False,
    missing: bool = False,
    encoding: str = "auto",
    epsilon: Epsilon | None = None,
    **options: Any,
) -> Mechanism:
    """Return the mechanism of declared values, or of a range of numbers, with this encoding.

    "auto" takes the best one for `epsilon`, the last one that is planned: an encoding is fixed for the life of a path.
    Numbers are rounded to an end of their range where none is said, or where one may be missing.
    `options` are the encoding's own, like `buckets`. An encoding of another package is found by its name. `clip` puts
    numbers into the range, and with `missing` one may be missing, which is a report of its own.

    >>> mechanism(["a", "b", "c"], epsilon=1), mechanism(np.arange(1000), epsilon=1)
    (Categorical(['a', 'b', 'c']), <LocalHash of 1000, buckets=4>)
    >>> mechanism(["a", "b"], encoding="unary-symmetric"), mechanism(range=(0, 120))
    (Unary(['a', 'b'], optimised=False), Numeric(0, 120))
    >>> mechanism(range=(0, 120), epsilon=1), mechanism(range=(0, 120), epsilon=2)
    (Numeric(0, 120), Wave(0, 120, bins=64, window=32))
    """
    if encoding == "auto" and values is None:
        encoding = NumericEncoding.name if epsilon is None else best_for_numbers(epsilon).best
        encoding = MissingNumericEncoding.name if missing else encoding
    elif encoding == "auto" and values is not None:
        if epsilon is None:
            raise EncodingError("the best encoding depends on epsilon: pass epsilon=, the last one that is planned.")
        encoding = best_encoding(len(values), epsilon).best if len(values) > 1 else CategoricalEncoding.name
    if missing and encoding != MissingNumericEncoding.name:
        raise EncodingError("the encoding {encoding!r} has no report for a missing number.", encoding=encoding)
    return mechanism_of(made(encoding, values=values, range=range, clip=clip, options=options, epsilon=epsilon))


def mechanism_of(encoding: Encoding) -> Mechanism:
    """Return the mechanism whose encoding this is, by the name that this house has for it.

    >>> mechanism_of(NumericEncoding(0, 120))
    Numeric(0, 120)
    """
    known: dict[str, type[Mechanism]] = {
        "categorical": Categorical,
        "unary-optimised": Unary,
        "unary-symmetric": Unary,
        "local-hash": LocalHash,
        "numeric": Numeric,
        "numeric-missing": Numeric,
        "wave": Wave,
    }
    kind = known.get(encoding.name, Mechanism)
    found = kind.__new__(kind)
    found.encoding = encoding
    return found


class Numeric(Mechanism):
    """Numbers in a range, of which the mean (of any function of them) is wanted.

    >>> ages = Numeric(0, 120)
    >>> key = Key.from_bytes(bytes(range(32)))
    >>> ages.path(41, key=key, object_id="patient-17", release="survey-2026", attribute="age").at(1)
    0.0
    >>> Numeric(0, 120**2, function=np.square, function_name="square")
    Numeric(0, 14400, function_name='square')
    """

    encoding: RangeEncoding

    def __init__(
        self,
        low: float,
        high: float,
        *,
        clip: bool = False,
        missing: bool = False,
        function: Function | None = None,
        function_name: str = "identity",
    ) -> None:
        """Declare the range of f(x), which is public. A function has a name, which is part of every path.

        `clip` puts numbers into the range. With `missing` a number may be missing: every object still sends a report,
        and both the share of missing ones and the mean of the others are estimated, for one epsilon.
        """
        encoding = (MissingNumericEncoding if missing else NumericEncoding)(low, high, function, function_name)
        super().__init__(encoding.clipping() if clip else encoding)

    def __repr__(self) -> str:
        shown = ", missing=True" if isinstance(self.encoding, MissingNumericEncoding) else ""
        return f"Numeric({_shown_range(self.encoding)}{shown})"


class Wave(Mechanism):
    """Numbers in a range, of which the mean and the whole distribution are wanted: a report is a place near the number.

    The window, over how many places a number is spread, is part of every path, so it is chosen once, for the last
    epsilon that is planned.

    >>> Wave(0, 120, epsilon=2), Wave(0, 120, epsilon=4)
    (Wave(0, 120, bins=64, window=32), Wave(0, 120, bins=64, window=16))
    >>> ages, key = Wave(0, 120, epsilon=4), Key.from_bytes(bytes(range(32)))
    >>> path = ages.path(41, key=key, object_id="patient-17", release="survey-2026", attribute="age")
    >>> path.at(2), path.at(4)
    (29, 29)
    """

    encoding: WaveEncoding

    def __init__(
        self,
        low: float,
        high: float,
        *,
        bins: int = BINS,
        window: int | None = None,
        epsilon: Epsilon | None = None,
        clip: bool = False,
        function: Function | None = None,
        function_name: str = "identity",
    ) -> None:
        """Declare the range of f(x), which is public, and the window or the last epsilon that it is to be the best for.

        `clip` puts numbers into the range. A function has a name, which is part of every path.
        """
        if window is not None and epsilon is not None:
            raise EncodingError("the wave needs a window, or the last epsilon that is planned.")
        given = {"bins": bins} if window is None else {"bins": bins, "window": window}
        options = WaveEncoding.planned_options(given, epsilon)
        encoding = WaveEncoding(low, high, **options, function=function, function_name=function_name)
        super().__init__(encoding.clipping() if clip else encoding)

    def __repr__(self) -> str:
        return f"Wave({_shown_range(self.encoding)}, bins={self.encoding.bins}, window={self.encoding.window})"


def _shown_range(encoding: RangeEncoding) -> str:
    name = encoding.function_name
    shown = {"identity": "", CLIP: ", clip=True"}.get(name, f", function_name={name!r}")
    return f"{encoding.low:g}, {encoding.high:g}{shown}"


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
