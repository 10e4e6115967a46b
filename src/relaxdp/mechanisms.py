"""The front door: encodings and the path behind a few names that are a promise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from relaxdp.draw.columns import as_column
from relaxdp.draw.key import Key, as_key
from relaxdp.draw.repeats import refuse_repeats
from relaxdp.draw.stream import PathId
from relaxdp.encodings.containers import like, like_packed
from relaxdp.encodings.declared import CategoricalEncoding, DeclaredEncoding
from relaxdp.encodings.local_hash import LocalHashEncoding
from relaxdp.encodings.numeric import MissingNumericEncoding, NumericEncoding, RangeEncoding
from relaxdp.encodings.path import ReportPath
from relaxdp.encodings.protocol import Encoding
from relaxdp.encodings.registry import made
from relaxdp.encodings.release import release_codes, release_reports
from relaxdp.encodings.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
from relaxdp.encodings.wave import BINS, WaveEncoding
from relaxdp.errors import EncodingError, refusing
from relaxdp.estimation.advice import best_encoding, best_for_numbers
from relaxdp.estimation.counts import Counts
from relaxdp.law.epsilon import Epsilon
from relaxdp.remedies import IN_PYTHON


class Mechanism:
    """What every mechanism can do, whatever its encoding: `path`, `release` and `estimate`."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def path(self, truth: Any, *, key: Key, object_id: object, release: str, attribute: str) -> ReportPath:
        """Return the path of one object: its report at any level, in any order, always the same.

        `truth` is one of the declared values, or a number of the range. `object_id` is a whole number, a text, a UUID
        or bytes, and tells the objects of a release apart; `release` and `attribute` are names, and other names are
        another path.
        """
        path = PathId(release, attribute)
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
    ) -> Any:
        """Return the reports of many objects at one level, as the kind of column that `values` is.

        Lists, NumPy arrays, pyarrow arrays, pandas and polars series; packed reports of a NumPy array are a matrix of
        bytes. `object_ids` belong to them row by row, each once; all else is as in `path`. The same call again gives
        the same reports; a call with a larger `epsilon` relaxes them. Nothing is remembered here: budgets are kept by a
        ledger.
        """
        path = PathId(release, attribute)
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

    `values` are two or more, all of one kind. They are public, and their order is part of every path. None among them
    is the missing category: a null, NaN or NaT in a column is then that value, and rejected otherwise.

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
        super().__init__(CategoricalEncoding(values))


class Unary(Declared):
    """Answers out of many declared values, as one bit for each: the error does not grow with their number.

    Optimised (OUE), or symmetric (SUE, the basic RAPPOR) where `optimised` is False. `values` are as in `Categorical`.
    A report is packed into `bytes`.

    >>> answers = Unary(["flu", "covid", "none"])
    >>> key = Key.from_bytes(bytes(range(32)))
    >>> path = answers.path("covid", key=key, object_id="patient-19", release="survey-2026", attribute="diagnosis")
    >>> [path.at(epsilon).hex() for epsilon in (0.1, 1, 20)]
    ['05', '03', '02']
    """

    def __init__(self, values: Sequence[Hashable], *, optimised: bool = True) -> None:
        super().__init__(OptimisedUnaryEncoding(values) if optimised else SymmetricUnaryEncoding(values))

    def _shown(self) -> str:
        return "" if isinstance(self.encoding, OptimisedUnaryEncoding) else ", optimised=False"


class LocalHash(Declared):
    """Answers out of very many declared values, as a short report: a public seed and a hidden bucket (OLH).

    `values` are as in `Categorical`. The number of `buckets` is part of every path, so it is chosen once: say it, or
    the last `epsilon` that is planned, for which it is the best.

    >>> LocalHash(["flu", "covid", "none"], epsilon=1)
    LocalHash(['flu', 'covid', 'none'], buckets=4)
    """

    def __init__(
        self, values: Sequence[Hashable], *, buckets: int | None = None, epsilon: Epsilon | None = None
    ) -> None:
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
    """Return the mechanism of declared `values`, or of a `range` of numbers, with this `encoding`.

    "auto" takes the best one for `epsilon`, the last one that is planned: an encoding is fixed for the life of a path.
    Numbers are rounded to an end of their range where none is said, or where one may be missing.
    `options` are the encoding's own, like `buckets`. An encoding of another package is found by its name. `clip` puts
    numbers into the range, and with `missing` one may be missing, which is a report of its own.

    >>> mechanism(["a", "b", "c"], epsilon=1), mechanism(list(range(1000)), epsilon=1)
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
    """Numbers in a range, of which the mean is wanted.

    `low` and `high` are the ends of the range, which is public. `clip` puts numbers into the range. With `missing` a
    number may be missing: every object still sends a report, and both the share of missing ones and the mean of the
    others are estimated, for one epsilon. To estimate the mean of a function of the numbers, such as their squares,
    compute it in a column and release that column.

    >>> ages = Numeric(0, 120)
    >>> key = Key.from_bytes(bytes(range(32)))
    >>> ages.path(41, key=key, object_id="patient-17", release="survey-2026", attribute="age").at(1)
    0.0
    """

    encoding: RangeEncoding

    def __init__(self, low: float, high: float, *, clip: bool = False, missing: bool = False) -> None:
        encoding = (MissingNumericEncoding if missing else NumericEncoding)(low, high)
        super().__init__(encoding.clipping() if clip else encoding)

    def __repr__(self) -> str:
        shown = ", missing=True" if isinstance(self.encoding, MissingNumericEncoding) else ""
        return f"Numeric({_shown_range(self.encoding)}{shown})"


class Wave(Mechanism):
    """Numbers in a range, of which the mean and the whole distribution are wanted: a report is a place near the number.

    `low`, `high` and `clip` are as in `Numeric`; `bins` is how finely the range is cut.
    The `window`, over how many places a number is spread, is a power of two and part of every path, so it is chosen
    once: say it, or the last `epsilon` that is planned, for which it is the best.

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
    ) -> None:
        if window is not None and epsilon is not None:
            raise EncodingError("the wave needs a window, or the last epsilon that is planned.")
        given = {"bins": bins} if window is None else {"bins": bins, "window": window}
        options = WaveEncoding.planned_options(given, epsilon)
        encoding = WaveEncoding(low, high, **options)
        super().__init__(encoding.clipping() if clip else encoding)

    def __repr__(self) -> str:
        return f"Wave({_shown_range(self.encoding)}, bins={self.encoding.bins}, window={self.encoding.window})"


def _shown_range(encoding: RangeEncoding) -> str:
    return f"{encoding.low:g}, {encoding.high:g}{', clip=True' if encoding.clip else ''}"
