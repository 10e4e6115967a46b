"""The paper's Algorithm 1 for one value or an array of values, with fresh randomness at each step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from relaxdp.errors import ArgumentError, EstimationError, LevelError, StateFileError, add_consequence
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bridged_columns import iterate_noiseless_reports, iterate_slices
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.report_arrays import (
    get_packed_width,
    make_report_container,
    make_report_list,
    pack_reports,
    read_packed_matrix,
    unpack_reports,
)
from relaxdp.sampling.arrow_columns import check_lengths, to_arrow
from relaxdp.sampling.bridge import draw_fresh_bridge_reports
from relaxdp.sampling.entropy import Entropy, SystemEntropy
from relaxdp.sampling.private_file import PrivateFileError, lock_folder, read_private_file, write_private_file
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon, make_decimal_context
from relaxdp.theory.randomized_response import TRUTH, Level, compute_retention


class Relaxation:
    """Draw reports by the paper's Algorithm 1: with fresh randomness at each step, and the last reports kept.

    Use it where there is no key. Each step draws reports at a larger epsilon from the last ones and the true values,
    so that all reports together cost the largest epsilon.

    Args:
        mechanism: The mechanism, such as `rx.Categorical(["flu", "covid", "none"])`.
        values: One true value, or a list, NumPy array, pyarrow array, pandas or polars series of them.
        state: A file for everything that must be kept. It is created at once, with mode 0600, and replaced before
            reports are returned. It is as secret as the values. Do not copy, restore or delete it: a level would be
            drawn a second time. Without a file the state is in memory, and ends with the process.
        reports: Reports of the same values to start from, made elsewhere by randomized response without
            relaxdp. Only `rx.Categorical` can start from reports.
        reports_epsilon: The epsilon of these reports. It is written to the state, and only the state counts
            afterwards. If it is wrong, the guarantee does not hold.

    Raises:
        StateFileError: The state file is damaged, readable by others, or was made for other values.
        UndeclaredValueError: A value is not one of the declared values.
        ArgumentError: `reports` is given without `reports_epsilon`, or the mechanism cannot start from reports.

    Example:
        >>> from relaxdp import Categorical
        >>> answers = Relaxation(Categorical(["flu", "covid", "none"]), ["covid", "flu", "flu"])
        >>> first = answers.relax(0.5)
        >>> answers.relax(0.5) == first
        True
        >>> better = answers.relax(2)
        >>> answers.epsilon
        Decimal('2')
    """

    @add_consequence("Nothing was released.")
    def __init__(
        self,
        mechanism: Mechanism,
        values: Any,
        *,
        state: str | os.PathLike[str] | None = None,
        reports: Any = None,
        reports_epsilon: Epsilon | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._is_one = isinstance(values, str | bytes) or not hasattr(values, "__len__")
        self._entropy: Entropy = SystemEntropy(is_expanded=not self._is_one)
        self._given = values  # its kind and its index are those of the reports
        column = to_arrow([values] if self._is_one else values)
        begun = self._start_from_values(column)
        if reports_epsilon is not None:
            begun = self._start_from_reports(begun, reports, reports_epsilon)
        elif reports is not None:
            raise ArgumentError(
                "`reports` is given without `reports_epsilon`, the epsilon at which they were released.",
                hint="Pass both, such as reports=old, reports_epsilon=0.1.",
            )
        self._store = MemoryStateStore() if state is None else StateFileStore(state)
        with self._store.lock():
            found = self._store.read()
            if found is None:
                self._store.write(begun)
            else:
                self._check_state(found, begun)
            self._seen = found or begun

    @add_consequence("Nothing was released.")
    def relax(self, epsilon: Epsilon) -> Any:
        """Return the reports at this level, as the kind of column that the values are; one report for one value.

        A larger epsilon than the last one draws new reports. An equal one returns the last reports.

        Raises:
            LevelError: epsilon is smaller than the last one.
        """
        level = self._mechanism.level(epsilon)
        with self._store.lock():
            state = self._read_state()
            last = as_epsilon(state.epsilon, allow_zero=True)
            if level.epsilon < last:
                raise LevelError(
                    "Epsilon {epsilon} is below {last_epsilon}, that of the last reports, which cannot be taken back.",
                    hint="Pass {last_epsilon} or more.",
                    last_epsilon=format_epsilon(last),
                    epsilon=str(level),
                )
            if level.epsilon > last:
                state = self._draw_next_state(state, level)
                self._store.write(state)
                self._seen = state
        return self._make_reports(state)

    @property
    def epsilon(self) -> Decimal:
        """The level of the last reports, which all reports together cost; 0 before the first ones.

        This includes `reports_epsilon`, which was spent elsewhere: from reports at 1, `relax(3)` makes a total of 3.
        """
        return as_epsilon(self._read_state().epsilon, allow_zero=True)

    @property
    def cost(self) -> Decimal:
        """The epsilon that the steps added to the part that was spent elsewhere: `epsilon` minus `reports_epsilon`."""
        state = self._read_state()
        total, elsewhere = (as_epsilon(each, allow_zero=True) for each in (state.epsilon, state.start_epsilon))
        return make_decimal_context(200).subtract(total, elsewhere)  # never rounded, whatever the caller's context

    def _start_from_values(self, column: Any) -> RelaxationState:
        """Return the state before the first reports of these values, with kept randomness that is drawn now."""
        mechanism, digest = self._mechanism, sha256()
        packed = [np.empty((0, get_packed_width(mechanism)), np.uint8)]
        for truths, part in iterate_noiseless_reports(mechanism, column, self._entropy):
            packed.append(pack_reports(mechanism, *part))
            for words in (truths.index,) if truths.suffix is None else (truths.index, truths.suffix):
                digest.update(f"{words.shape}".encode() + words.astype("<u8").tobytes())
        symbols = np.concatenate(packed)
        origin, reports = os.urandom(16).hex(), np.zeros_like(symbols)
        return RelaxationState(mechanism.name, mechanism.params.hex(), digest.hexdigest(), origin, symbols, reports)

    def _start_from_reports(self, initial_state: RelaxationState, reports: Any, epsilon: Epsilon) -> RelaxationState:
        """Return the state whose last reports are those of the caller, at the level that the caller states."""
        if not isinstance(self._mechanism, Categorical):
            raise ArgumentError(
                "The mechanism {mechanism!r} cannot start from reports that were released elsewhere: it needs random "
                "numbers that the reports do not contain.",
                hint="Use rx.Categorical, or start without `reports`.",
                mechanism=self._mechanism.name,
            )
        level = self._mechanism.level(epsilon)
        codes = self._mechanism.read_label_column([reports] if self._is_one else reports)
        check_lengths(values=initial_state.symbols, reports=codes)
        packed, epsilon = pack_reports(self._mechanism, codes), str(level)
        digest = sha256(packed.tobytes()).hexdigest()
        started = replace(initial_state, reports=packed, start_epsilon=epsilon, start_reports=digest)
        return replace(started, epsilon=epsilon, threshold=str(level.threshold))

    def _draw_next_state(self, state: RelaxationState, level: Level) -> RelaxationState:
        """Return the state after one step of Algorithm 1 for all values."""
        # The old level is the stored threshold: a caller's statement counts only where the state begins.
        mechanism, old = self._mechanism, compute_retention(int(state.threshold))
        reports = np.empty_like(state.reports)
        for start, stop in iterate_slices(mechanism, len(reports)):
            truths, seeds = unpack_reports(mechanism, state.symbols[start:stop])
            last = unpack_reports(mechanism, state.reports[start:stop])[0] if old else None
            ends: Any = {"lower_reports": last, "upper_reports": truths, "entropy": self._entropy}
            drawn = draw_fresh_bridge_reports(mechanism.alphabet, old, level.retention, TRUTH, **ends)
            reports[start:stop] = pack_reports(mechanism, drawn, seeds)
        return replace(state, epsilon=str(level), threshold=str(level.threshold), reports=reports)

    def _make_reports(self, state: RelaxationState) -> Any:
        """Return the reports as the caller's kind of column."""
        slices = [*iterate_slices(self._mechanism, len(state.reports))] or [(0, 0)]
        parts = (unpack_reports(self._mechanism, state.reports[start:stop]) for start, stop in slices)
        if self._is_one:
            return make_report_list(self._mechanism, *next(parts))[0]
        return make_report_container(self._mechanism, self._given, len(state.reports), parts)

    def _read_state(self) -> RelaxationState:
        """Return the state, or reject one that is not the last one or a successor of it."""
        state, seen = self._store.read(), self._seen
        if state is not None and state.origin == seen.origin:
            now, before = (as_epsilon(each.epsilon, allow_zero=True) for each in (state, seen))
            if now > before or (now == before and np.array_equal(state.reports, seen.reports)):
                return state
        raise self._store.make_error(
            "is missing, or older than the last reports. Going on from it would draw new reports at a released level",
            "Restore the newest copy of the state file.",
        )

    def _check_state(self, state: RelaxationState, initial_state: RelaxationState) -> None:
        """Reject a state that was made for something else."""
        rows, expected = len(state.symbols), len(initial_state.symbols)
        start = (initial_state.start_epsilon, initial_state.start_reports)
        hint = "Pass another state file. The epsilon that you spend with it adds to what you spent before."
        if (state.mechanism, state.params) != (initial_state.mechanism, initial_state.params):
            raise self._store.make_error("was made for another mechanism, or for other declared values", hint)
        if rows != expected:
            raise self._store.make_error(f"was made for {rows:,} values, not for {expected:,}", hint)
        if state.values != initial_state.values:
            raise self._store.make_error("was made for other values. A changed value would show in the reports", hint)
        if start not in (("0", ""), (state.start_epsilon, state.start_reports)):
            what, hint = (
                "started from other reports, or at another epsilon",
                "Leave out `reports` and `reports_epsilon`.",
            )
            raise self._store.make_error(what, hint)
        if not self._is_valid_state(state):
            raise self._store.make_error("is damaged", hint)

    def _is_valid_state(self, state: RelaxationState) -> bool:
        """Tell whether a state is one that this mechanism can have."""
        level = as_epsilon(state.epsilon, allow_zero=True)
        if state.threshold != (str(self._mechanism.level(level).threshold) if level else "0"):
            return False
        try:
            for packed in (state.symbols, state.reports):
                unpack_reports(self._mechanism, read_packed_matrix(packed, get_packed_width(self._mechanism)))
        except EstimationError:
            return False
        return True

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A relaxation cannot be pickled, because it contains true values. Open its state file where you need it."
        )

    def __repr__(self) -> str:
        rows = len(self._seen.symbols)
        return f"<relaxdp.Relaxation of {rows:,} value{'s' * (rows != 1)} at epsilon {self._seen.epsilon}>"


_FORMAT = b"relaxdp relaxation 1\n"
_ARRAYS = ("symbols", "reports")
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RelaxationState:
    """The state that Algorithm 1 keeps. True values follow from it: its `repr` is empty and its file is secret."""

    mechanism: str
    params: str
    """The parameters of the mechanism, in hexadecimal."""
    values: str
    """A digest of the true values, in the form in which the mechanism takes them."""
    origin: str
    """A random text. A second state of the same values has another one."""
    symbols: NDArray[np.uint8]
    """The packed report of each value without noise, with the randomness that is drawn once."""
    reports: NDArray[np.uint8]
    """The last packed report of each value."""
    epsilon: str = "0"
    """The level of the last reports; 0 before the first ones."""
    threshold: str = "0"
    start_epsilon: str = "0"
    """The stated level of the reports that it started from; 0 where there were none."""
    start_reports: str = ""
    """A digest of these reports."""

    def to_bytes(self) -> bytes:
        """Return the content of the state file."""
        rows, width = self.symbols.shape
        texts = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _ARRAYS}
        header = json.dumps({"rows": rows, "width": width, **texts}).encode()
        content = _FORMAT + header + b"\n" + self.symbols.tobytes() + self.reports.tobytes()
        return content + sha256(content).digest()

    @classmethod
    def from_bytes(cls, content: bytes) -> RelaxationState | None:
        """Return the state, or None for anything else: an exception's context would carry the content along."""
        body, check = memoryview(content)[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        if not content.startswith(_FORMAT) or sha256(body).digest() != check:
            return None
        try:
            end = content.index(b"\n", len(_FORMAT)) + 1
            header = json.loads(content[len(_FORMAT) : end])
            shape = (2, header.pop("rows"), header.pop("width"))
            symbols, reports = np.frombuffer(body, np.uint8)[end:].reshape(shape)
            return cls(symbols=symbols, reports=reports, **header)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class MemoryStateStore:
    """Keeps the state in memory, for the process that made it: it must not continue elsewhere."""

    def __init__(self) -> None:
        self._state: RelaxationState | None = None
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Exclude other threads. A forked process is rejected, because it would draw a level a second time."""
        if os.getpid() != self._process:
            raise self.make_error(
                "belongs to the process that created it",
                'Pass a file, such as state="study.state", to share it between processes.',
            )
        with self._lock:
            yield

    def read(self) -> RelaxationState | None:
        """Return the last state, if there is one."""
        return self._state

    def write(self, state: RelaxationState) -> None:
        """Keep a state."""
        self._state = state

    def make_error(self, problem: str, hint: str = "") -> StateFileError:
        """Return an error about the state."""
        return StateFileError("This relaxation {what}.", what=problem, hint=hint)


class StateFileStore:
    """Keeps the state in a file that only its owner can read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: neither a link nor a later change of the working folder may lead to a second state.
        self._path = Path(path).resolve()
        if self._path.is_dir():
            raise self.make_error("is a folder", 'Pass the path of a file, such as state="study.state".')

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except PrivateFileError as problem:
            hint = problem.hint or "Check the owner and the mode of the file and of its folder."
            raise self.make_error(problem.what, hint) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Exclude other processes and threads: two that drew at the same time would draw a level twice."""
        with ExitStack() as stack:
            with self._convert_errors():
                stack.enter_context(lock_folder(self._path.parent))
            yield

    def read(self) -> RelaxationState | None:
        """Return the last state; None where there is no file."""
        with self._convert_errors():
            content = read_private_file(self._path, -1)  # the whole file, however large
        state = None if content is None else RelaxationState.from_bytes(content)
        if content is not None and state is None:
            raise self.make_error(
                "is damaged, or is not a state file",
                "Restore the file from a backup. Epsilon that you spend with a new file adds to what you spent before.",
            )
        return state

    def write(self, state: RelaxationState) -> None:
        """Replace the file as a whole, and wait until it is on disk."""
        with self._convert_errors():
            write_private_file(self._path, state.to_bytes(), replace=True)

    def make_error(self, problem: str, hint: str = "") -> StateFileError:
        """Return an error about the file."""
        return StateFileError("The state file {path!r} {what}.", path=str(self._path), what=problem, hint=hint)
