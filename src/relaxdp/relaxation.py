"""The paper's Algorithm 1 for one value or an array of values, with fresh randomness at each step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relaxdp.draw.bridge import fresh_step
from relaxdp.draw.bridge_arrays import fresh_bridges
from relaxdp.draw.columns import as_column, column_slice
from relaxdp.draw.entropy import Entropy, SystemEntropy
from relaxdp.draw.state_file import FileStore, MemoryStore, State
from relaxdp.encodings.bits import pack_bits, unpack_bits
from relaxdp.encodings.bridges import FreshPermanent
from relaxdp.encodings.containers import like, like_packed
from relaxdp.encodings.protocol import BATCH, Codes, code_dtype
from relaxdp.errors import LengthError, LevelError, OptionError, refusing
from relaxdp.law.bridge import TRUTH
from relaxdp.law.epsilon import Epsilon, as_epsilon, epsilon_text, private_context
from relaxdp.law.level import Level, retention
from relaxdp.mechanisms import Mechanism
from relaxdp.remedies import IN_PYTHON


class Relaxation:
    """Draw reports by the paper's Algorithm 1: with fresh randomness at each step, and the last reports kept.

    Use it where there is no key. Each step draws reports at a larger epsilon from the last ones and the true values,
    so that all reports together cost the largest epsilon.

    Args:
        mechanism: the mechanism, such as `rx.Categorical(["flu", "covid", "none"])`.
        values: one true value, or a list, NumPy array, pyarrow array, pandas or polars series of them.
        state: a file for everything that must be kept. It is created at once, with mode 0600, and replaced before
            reports are returned. It is as secret as the values. Do not copy, restore or delete it: a level would be
            drawn a second time. Without a file the state is in memory, and ends with the process.
        reports: reports of the same values to start from, made elsewhere by randomized response without
            relaxdp. Only `rx.Categorical` can start from reports.
        reports_epsilon: the epsilon of these reports. It is written to the state, and only the state counts
            afterwards. If it is wrong, the guarantee does not hold.

    Raises:
        ChainFileError: the state file is damaged, readable by others, or was made for other values.

    >>> from relaxdp import Categorical
    >>> answers = Relaxation(Categorical(["flu", "covid", "none"]), ["covid", "flu", "flu"])
    >>> first = answers.relax(0.5)
    >>> answers.relax(0.5) == first
    True
    >>> better = answers.relax(2)
    >>> answers.epsilon
    Decimal('2')
    >>> answers.relax(1)
    Traceback (most recent call last):
    relaxdp.errors.LevelError: Epsilon 1 is below 2, the level of the last reports. Reports cannot be taken back. Pass \
2 or more. Nothing was released.
    """

    @refusing("Nothing was released.", IN_PYTHON)
    def __init__(
        self,
        mechanism: Mechanism,
        values: Any,
        *,
        state: str | os.PathLike[str] | None = None,
        reports: Any = None,
        reports_epsilon: Epsilon | None = None,
    ) -> None:
        self._encoding = mechanism.encoding
        self._entropy: Entropy = SystemEntropy()
        self._is_one = isinstance(values, str | bytes) or not hasattr(values, "__len__")
        self._given = values  # its kind and its index are those of the reports
        column = [values] if self._is_one else as_column(values)
        begun = self._begin(column)
        if reports_epsilon is not None:
            begun = self._start_from(begun, reports, reports_epsilon)
        elif reports is not None:
            raise OptionError("`reports` needs `reports_epsilon`, the epsilon at which they were made.")
        self._store = MemoryStore() if state is None else FileStore(state)
        with self._store.locked():
            found = self._store.read()
            if found is None:
                self._store.write(begun)
            else:
                self._check(found, begun)
            self._seen = found or begun

    @refusing("Nothing was released.", IN_PYTHON)
    def relax(self, epsilon: Epsilon) -> Any:
        """Return the reports at this level, as the kind of column that the values are; one report for one value.

        A larger epsilon than the last one draws new reports. An equal one returns the last reports.

        Raises:
            LevelError: epsilon is smaller than the last one.
        """
        level = self._encoding.level(epsilon)
        with self._store.locked():
            state = self._read()
            last = as_epsilon(state.epsilon, zero=True)
            if level.epsilon < last:
                raise LevelError(
                    "Epsilon {epsilon} is below {last_epsilon}, the level of the last reports. "
                    "Reports cannot be taken back.",
                    hint="Pass {last_epsilon} or more.",
                    last_epsilon=epsilon_text(last),
                    epsilon=str(level),
                )
            if level.epsilon > last:
                state = self._step(state, level)
                self._store.write(state)
                self._seen = state
        return self._show(state)

    @property
    def epsilon(self) -> Decimal:
        """The level of the last reports, which all reports together cost; 0 before the first ones.

        This includes `reports_epsilon`, which was spent elsewhere: from reports at 1, `relax(3)` makes a total of 3.
        """
        return as_epsilon(self._read().epsilon, zero=True)

    @property
    def cost(self) -> Decimal:
        """The epsilon that the steps added to the part that was spent elsewhere: `epsilon` minus `reports_epsilon`."""
        state = self._read()
        total, elsewhere = (as_epsilon(each, zero=True) for each in (state.epsilon, state.start_epsilon))
        return private_context(200).subtract(total, elsewhere)  # never rounded, whatever the caller's context

    def _begin(self, column: Any) -> State:
        """Return the state before the first reports, with the randomness that each value keeps drawn now."""
        encoding, rows, digest = self._encoding, len(column), sha256()
        symbols = np.empty((rows, self._width), np.uint8)
        seeds = np.empty(rows, np.uint64) if encoding.seeded else None
        for part in self._parts(rows):
            truths = encoding.truths(column_slice(column, part.start, part.stop), part.start)
            permanent = FreshPermanent(self._entropy, len(truths))
            symbols[part] = self._pack(encoding.symbol_truths(truths, permanent))
            public = encoding.seeds(permanent)
            if seeds is not None and public is not None:
                seeds[part] = public
            for words in (truths.index,) if truths.suffix is None else (truths.index, truths.suffix):
                digest.update(f"{words.shape}".encode() + words.astype("<u8").tobytes())
        kept = (symbols, np.zeros_like(symbols), seeds)
        return State(encoding.name, encoding.params.hex(), digest.hexdigest(), os.urandom(16).hex(), *kept)

    def _start_from(self, begun: State, reports: Any, epsilon: Epsilon) -> State:
        """Return the state in which the last reports are those of the caller, at the level that the caller states."""
        if not self._encoding.goes_on_from_reports:
            raise OptionError(
                "The mechanism {mechanism!r} cannot start from reports: its individuals keep randomness that their "
                "reports do not contain.",
                hint="Use rx.Categorical, or start without `reports`.",
                mechanism=self._encoding.name,
            )
        level = self._encoding.level(epsilon)
        codes = self._encoding.codes([reports] if self._is_one else as_column(reports))
        rows, given = len(begun.symbols), len(codes)
        if given != rows:
            raise LengthError("There are {values:,} values and {reports:,} reports.", values=rows, reports=given)
        packed, epsilon = self._pack(codes), str(level)
        digest = sha256(packed.tobytes()).hexdigest()
        started = replace(begun, reports=packed, start_epsilon=epsilon, start_reports=digest)
        return replace(started, epsilon=epsilon, threshold=str(level.threshold))

    def _step(self, state: State, level: Level) -> State:
        """Return the state after one step of Algorithm 1 for all values."""
        # The old level is the stored threshold: a caller's statement counts only where the state begins.
        old, reports = retention(int(state.threshold)), np.empty_like(state.reports)
        for part in self._parts(len(reports)):
            truths, last = (self._unpack(each[part]) for each in (state.symbols, state.reports))
            if self._is_one and truths.size == 1:  # randomness straight from the operating system
                ends = {"truth": int(truths[0, 0]), "last": int(last[0, 0])}
                step = fresh_step(self._encoding.alphabet, old, level.retention, **ends, entropy=self._entropy)
                drawn = np.full(1, step)
            else:
                drawn = fresh_bridges(
                    self._encoding.alphabet,
                    old,
                    level.retention,
                    TRUTH,
                    lower_reports=last.reshape(-1) if old else None,
                    upper_reports=truths.reshape(-1),
                    entropy=self._entropy,
                )
            reports[part] = self._pack(drawn.reshape(truths.shape))
        return replace(state, epsilon=str(level), threshold=str(level.threshold), reports=reports)

    def _show(self, state: State) -> Any:
        """Return the reports as the caller's kind of column."""
        encoding = self._encoding
        if encoding.symbols == 1 and encoding.joint == "exclusive" and not self._is_one:
            return like(self._given, encoding.labels, self._unpack(state.reports)[:, 0])
        columns = [pa.array([], encoding.report_type)]
        for part in self._parts(len(state.reports)):
            codes, seeds = self._unpack(state.reports[part]), None if state.seeds is None else state.seeds[part]
            if self._is_one:
                return encoding.reports(codes, seeds)[0]
            columns.append(encoding.column(codes, seeds))
        column = pa.concat_arrays(columns)
        return like_packed(self._given, column) if encoding.report_width else column.to_pylist()

    def _read(self) -> State:
        """Return the state, or reject one that is not the last one or a successor of it."""
        state, seen = self._store.read(), self._seen
        if state is not None and state.origin == seen.origin:
            now, before = (as_epsilon(each.epsilon, zero=True) for each in (state, seen))
            if now > before or (now == before and np.array_equal(state.reports, seen.reports)):
                return state
        raise self._store.problem(
            "is missing, or went back to an earlier state. A step from there would draw a level a second time",
            "Put the last state file back.",
        )

    def _check(self, found: State, begun: State) -> None:
        """Reject a state that was made for something else."""
        rows, start = (len(found.symbols), len(begun.symbols)), (begun.start_epsilon, begun.start_reports)
        what, hint = "", "Use another state file: its epsilon is added to what was spent."
        if (found.mechanism, found.params) != (begun.mechanism, begun.params):
            what = "was made for another mechanism, or for other declared values"
        elif rows[0] != rows[1]:
            what = f"was made for {rows[0]:,} values, not for {rows[1]:,}"
        elif found.values != begun.values:
            what = "was made for other values. A changed value would show in the reports"
        elif start not in (("0", ""), (found.start_epsilon, found.start_reports)):
            what, hint = "started from other reports, or at another epsilon", "Leave out `reports`."
        elif not self._is_possible(found):
            what = "is damaged"
        if what:
            raise self._store.problem(what, hint)

    def _is_possible(self, state: State) -> bool:
        """Tell whether a state is one that this mechanism can have."""
        level, alphabet = as_epsilon(state.epsilon, zero=True), self._encoding.alphabet
        codes = () if alphabet == 2 else (state.symbols, state.reports)  # every bit is one of two codes
        return (
            state.symbols.shape[1] == self._width
            and (state.seeds is not None) == self._encoding.seeded
            and state.threshold == (str(self._encoding.level(level).threshold) if level else "0")
            and all(self._unpack(each).max(initial=0) < alphabet for each in codes)
        )

    def _parts(self, rows: int) -> Iterator[slice]:
        """Return slices of so many rows that their symbols stay in the processor's cache."""
        step = max(1, BATCH // self._encoding.symbols)
        return (slice(start, min(start + step, rows)) for start in range(0, rows, step))

    @property
    def _width(self) -> int:
        """How many bytes the symbols of a value have: eight bits in a byte, or whole codes."""
        size = self._encoding.symbols
        return -(-size // 8) if self._encoding.alphabet == 2 else size * code_dtype(self._encoding.alphabet).itemsize

    def _pack(self, codes: Codes) -> NDArray[np.uint8]:
        if self._encoding.alphabet == 2:
            return pack_bits(codes)
        kind = code_dtype(self._encoding.alphabet).newbyteorder("<")
        return np.ascontiguousarray(codes, kind).view(np.uint8).reshape(len(codes), self._width)

    def _unpack(self, rows: NDArray[np.uint8]) -> Codes:
        if self._encoding.alphabet == 2:
            return unpack_bits(rows, self._encoding.symbols)
        kind = code_dtype(self._encoding.alphabet)
        return np.ascontiguousarray(rows).view(kind.newbyteorder("<")).astype(kind)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A relaxation is not pickled: it holds true values. Open its state file where it is needed.")

    def __repr__(self) -> str:
        rows = len(self._seen.symbols)
        return f"<relaxdp.Relaxation of {rows:,} value{'s' * (rows != 1)} at epsilon {self._seen.epsilon}>"
