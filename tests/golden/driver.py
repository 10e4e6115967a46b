"""The adapter between the golden scenarios and the product: it changes when names and commands change.

It translates calls and results into plain data, and computes nothing. Scenarios speak of data holders, releases, levels
and estimates, which last longer than function names. Keys are given as bytes, so that reports can be compared.
The files `driver_*.py` belong to it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet
import pytest

import relaxdp as rx
from relaxdp import errors
from relaxdp.estimation import mechanism_choice
from relaxdp.estimation.mechanism_choice import rank_number_mechanisms
from relaxdp.hazmat import bridge_once, relax_once
from relaxdp.ledger.account import Account
from relaxdp.mechanisms.bloom import Bloom, BloomShape, release_bloom
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.sampling.kernel.c_library import get_kernel
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables.vault_folder import VaultFolder

ENCODINGS = {
    "k-ary": "categorical",
    "OUE": "unary-optimised",
    "SUE": "unary-symmetric",
    "OLH": "local-hash",
    "numeric": "numeric",
    "square wave": "wave",
}
KINDS = {encoding: kind for kind, encoding in ENCODINGS.items()} | {"numeric-missing": "numeric"}


# Mechanisms.


@dataclass(frozen=True)
class Mechanism:
    """How answers become reports."""

    kind: str
    values: tuple[Any, ...] = ()
    ends: tuple[float, float] | None = None
    clip: bool = False
    missing: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        """Return the product's own mechanism."""
        if self.kind == "k-ary":
            return rx.Categorical(self.values)
        if self.kind in ("OUE", "SUE"):
            return rx.Unary(self.values, optimised=self.kind == "OUE")
        if self.kind == "OLH":
            return rx.LocalHash(self.values, **self.options)
        assert self.ends is not None
        if self.kind == "numeric":
            return rx.Numeric(*self.ends, clip=self.clip, missing=self.missing)
        return rx.SquareWave(*self.ends, clip=self.clip, **self.options)

    def read_reports(self, column: Any) -> list[Any]:
        """Return reports as plain values: None is a missing one."""
        reports = as_list(column)
        if self.missing:
            return [None if report == "missing" else float(report) for report in reports]
        return reports


def k_ary(values: Sequence[Any]) -> Mechanism:
    """Return k-ary randomized response."""
    return Mechanism("k-ary", tuple(values))


def unary(values: Sequence[Any], *, optimised: bool = True) -> Mechanism:
    """Return optimised (OUE) or symmetric (SUE) unary randomized response."""
    return Mechanism("OUE" if optimised else "SUE", tuple(values))


def local_hash(values: Sequence[Any], buckets: int) -> Mechanism:
    """Return local hashing (OLH)."""
    return Mechanism("OLH", tuple(values), options={"buckets": buckets})


def numeric(low: float, high: float, *, clip: bool = False, missing: bool = False) -> Mechanism:
    """Return randomized response of a number that is rounded to an end of its range."""
    return Mechanism("numeric", ends=(low, high), clip=clip, missing=missing)


def square_wave(low: float, high: float, *, bins: int, window: int, clip: bool = False) -> Mechanism:
    """Return the square wave mechanism."""
    return Mechanism("square wave", ends=(low, high), clip=clip, options={"bins": bins, "window": window})


def read_levels(
    mechanism: Mechanism, value: Any, epsilons: Sequence[str], *, key: bytes, id: Any, name: str, column: str
) -> list[Any]:
    """Return the reports of one individual at these levels, read in this order."""
    path = mechanism.build().path(value, key=rx.Key.from_bytes(key), id=id, name=name, column=column)
    return [mechanism.read_reports([path.at(epsilon)])[0] for epsilon in epsilons]


def draw_column(
    mechanism: Mechanism, values: Any, ids: Any, epsilon: str, *, key: bytes, name: str, column: str
) -> Any:
    """Return the reports of many individuals in the container of the values; no budget is involved."""
    where: Any = {"key": rx.Key.from_bytes(key), "name": name, "column": column}
    return mechanism.build().release(values, ids, epsilon=epsilon, **where)


def draw_reports(
    mechanism: Mechanism, values: Any, ids: Any, epsilon: str, *, key: bytes, name: str, column: str
) -> list[Any]:
    """Return the same as a plain list."""
    return mechanism.read_reports(draw_column(mechanism, values, ids, epsilon, key=key, name=name, column=column))


def as_list(column: Any) -> list[Any]:
    """Return a column of any library as a list; packed reports are bytes."""
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return [row.tobytes() for row in column]
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    return column.tolist() if hasattr(column, "tolist") else list(column)


def draw_bloom(
    words: Sequence[str], ids: Sequence[Any], epsilon: str, *, key: bytes, name: str, column: str, **shape: int
) -> tuple[list[int], list[bytes]]:
    """Return the cohorts and the packed RAPPOR reports of many individuals."""
    filters = BloomShape(**shape)
    found = release_bloom(
        filters, words, ids, key=rx.Key.from_bytes(key), level=Bloom(filters).level(epsilon),
        path=PathId(name, column),
    )  # fmt: skip
    return found.cohorts.tolist(), as_list(found.packed)


def has_kernel() -> bool:
    """Return whether the compiled kernel can be used here."""
    return get_kernel() is not None


@contextmanager
def draw_with(kernel: str) -> Iterator[None]:
    """Draw with the compiled kernel, or with NumPy alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAXDP_KERNEL", "off" if kernel == "numpy" else "")
        yield


# Rejections.

REASONS: Mapping[str, type[Exception] | tuple[type[Exception], ...]] = {
    "budget exceeded": errors.BudgetExceededError,
    "budget not raised": errors.BudgetError,
    "tells next to nothing": errors.UselessReleaseError,
    "changed row": errors.RowsChangedError,
    "undeclared value": errors.UndeclaredValueError,
    "outside the range": errors.UndeclaredValueError,
    "missing number": errors.UndeclaredValueError,
    "unusable id": errors.IdError,
    "other type of id": errors.ReleaseChangedError,
    "other mechanism": errors.ReleaseChangedError,
    "unknown name": (errors.UnknownReleaseError, errors.ColumnError),
    "unknown column": errors.ColumnError,
    "level may only grow": errors.LevelError,
    "state of another value": errors.StateFileError,
    "account behind a released file": errors.OldVaultError,
    "schedule falls": errors.PlanError,
    "unreachable plan": errors.PlanError,
    "epsilon": errors.EpsilonError,
}


@contextmanager
def rejected(reason: str) -> Iterator[None]:
    """Require that a call is rejected for this reason."""
    with pytest.raises(REASONS[reason]):
        yield


# Data holders: a key, a budget, and every release that was made with them.


@dataclass(frozen=True)
class Released:
    """Reports in the order of the ids, and the cost of each column."""

    ids: list[Any]
    reports: dict[str, list[Any]]
    costs: dict[str, str]
    passthrough: dict[str, list[Any]]
    table: Any = field(repr=False)
    """The released data frame or file."""


class DataHolder:
    """Releases columns of data frames and files under one key and one budget, in Python."""

    def __init__(self, folder: Path, *, key: bytes, budget: str, ledger: str | None = None) -> None:
        folder.mkdir(parents=True)
        self._state = folder / "state"
        self._declared: dict[tuple[str, str], Any] = {}
        key_file, worker_key = folder / "key", folder / "worker-key"
        rx.Key.from_bytes(key).save(key_file)
        rx.Key.from_bytes(key).save_for_vault(worker_key)
        command = f"cat {shlex.quote(str(key_file))}"
        places: Any = {"key_command": command, "worker_key_file": worker_key, "ledger": ledger}
        with self._at_home():
            self._vault = rx.Vault.create(folder / "study.vault", budget=budget, **places)

    def release(
        self,
        data: Any,
        columns: Mapping[str, Mechanism | Sequence[Any]],
        *,
        id: str,
        epsilon: str,
        name: str,
        output: Path | None = None,
        passthrough: Sequence[str] = (),
        planned_epsilon: str | None = None,
        rows_may_change: bool = False,
    ) -> Released:
        """Release columns of a data frame, or of a file to the file `output`.

        `rows_may_change` says that rows may join and leave between releases of this name.
        """
        self._declared |= {(name, column): declared for column, declared in columns.items()}
        with self._at_home():
            made = self._vault.release(
                data, _declare(columns), id=id, epsilon=epsilon, name=name, output=output, passthrough=passthrough,
                planned_epsilon=planned_epsilon, accept_new_rows=rows_may_change,
            )  # fmt: skip
        return self._released(made)

    def quote(
        self,
        data: Any,
        columns: Mapping[str, Mechanism | Sequence[Any]],
        *,
        id: str,
        epsilon: str,
        name: str,
        planned_epsilon: str | None = None,
    ) -> dict[str, dict[str, str]]:
        """Return what a release would cost and which mechanism each column would have; nothing is released."""
        asked: Any = {"id": id, "epsilon": epsilon, "name": name, "planned_epsilon": planned_epsilon}
        with self._at_home():
            found = self._vault.release(data, _declare(columns), dry_run=True, **asked)
        return {
            each.column: {"cost": str(each.cost), "mechanism": KINDS[each.mechanism.name]} for each in found.columns
        }

    def relax(
        self, name: str, epsilon: str, *, columns: Sequence[str] | None = None, output: Path | None = None
    ) -> Released:
        """Release at another level without the table."""
        with self._at_home():
            return self._released(self._vault.relax(name, epsilon, columns=columns, output=output))

    def raise_budget(self, budget: str, *, reason: str) -> None:
        """Raise the budget."""
        with self._at_home():
            self._vault.raise_budget(budget, reason=reason)

    @contextmanager
    def use_vault(self) -> Iterator[rx.Vault]:
        """Give the vault to another part of the product."""
        with self._at_home():
            yield self._vault

    def account(self) -> dict[str, Any]:
        """Return the budget, the epsilon spent, the rest, and the level of each released column."""
        account = self._account()
        levels = {f"{release.name}: {each.column}": each.largest for release, each in _columns_of(account)}
        return {"budget": account.budget, "spent": account.spent, "remaining": account.remaining, "levels": levels}

    def mechanisms(self) -> dict[str, list[Any]]:
        """Return which mechanism each released column has, with its options."""
        columns = [each for _, each in _columns_of(self._account())]
        return {each.column: [KINDS[each.mechanism], each.description.get("options", {})] for each in columns}

    def history(self) -> list[list[str]]:
        """Return every event that changed the account, oldest first: what, and for a release its name and cost."""
        return [line for event in self._vault.events() for line in _lines_of(event)]

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """Give every data holder a separate machine: state that the product keeps outside of the folder is there."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(self._state))
            yield

    def _account(self) -> Account:
        with self._at_home():
            return VaultFolder(self._vault.path).read_account()

    def _released(self, made: rx.Release) -> Released:
        table = made.output or made.to_frame()
        found = read_table(table)
        reports = {each.column: self._reports(made.name, each.column, found[each.output]) for each in made.columns}
        costs = {each.column: str(each.cost) for each in made.columns}
        return Released(
            as_list(found[made.id]), reports, costs, {each: found[each] for each in made.passthrough}, table
        )

    def _reports(self, name: str, column: str, reports: list[Any]) -> list[Any]:
        declared = self._declared[name, column]
        return declared.read_reports(reports) if isinstance(declared, Mechanism) else reports


def _declare(columns: Mapping[str, Mechanism | Sequence[Any]]) -> dict[str, Any]:
    return {column: each.build() if isinstance(each, Mechanism) else each for column, each in columns.items()}


def _columns_of(account: Account) -> list[tuple[Any, Any]]:
    return [(release, each) for release in account.releases.values() for each in release.columns.values()]


def _lines_of(event: Any) -> list[list[str]]:
    if hasattr(event, "budget"):
        return [["budget", str(event.budget)]]
    charged = (each for each in getattr(event, "columns", ()) if each.cost)
    return [["release", event.name, each.column, str(each.epsilon), str(each.cost)] for each in charged]


# Tables.


def write_table(columns: Mapping[str, list[Any]], file: Path) -> Path:
    """Write a table as its ending says: Parquet, CSV, TSV, or text that is compressed by gzip or zstd."""
    table = pa.table(dict(columns))
    if file.suffix == ".parquet":
        pa_parquet.write_table(table, file)
        return file
    separator = "\t" if ".tsv" in file.suffixes else ","
    compression = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix)
    with pa.output_stream(file, compression=compression) as stream:
        pa_csv.write_csv(table, stream, pa_csv.WriteOptions(delimiter=separator))
    return file


def read_table(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a data frame of any library, or of a released file, as lists."""
    if isinstance(table, Path):
        if table.is_dir():
            table = pa_dataset.dataset(table).to_table()
        elif table.suffix == ".parquet":
            table = pa_parquet.read_table(table)
        else:
            separator = "\t" if ".tsv" in table.suffixes else ","
            table = pa_csv.read_csv(table, parse_options=pa_csv.ParseOptions(delimiter=separator))
    library = type(table).__module__.partition(".")[0]
    if library == "polars":
        return dict(table.lazy().collect().to_dict(as_series=False))
    if library in ("duckdb", "_duckdb"):
        table = table.to_arrow_table()
    if library == "pyspark":
        table = table.orderBy(table.columns[0]).toArrow()
    if isinstance(table, pa.Table):
        return dict(table.to_pydict())
    return {str(name): table[name].tolist() for name in table.columns}


# Estimates.


class Estimate:
    """An estimate with one row for each label."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def table(
        self, confidence: float = 0.95, *, simultaneous: bool = False, about: str = "sample"
    ) -> dict[str, list[Any]]:
        """Return labels, unbiased estimates, standard errors and confidence intervals."""
        low, high = self._result.interval(confidence, simultaneous=simultaneous, about=about)
        columns = {"estimate": self._result.value, "std_error": self._result.compute_std_error(about)}
        columns |= {"low": low, "high": high}
        numbers = {name: np.atleast_1d(column).tolist() for name, column in columns.items()}
        return {"labels": self._labels, **numbers} if self._has_values else numbers

    @property
    def _has_values(self) -> bool:
        return self._result.is_share and len(self._result.labels) > 1

    @property
    def _labels(self) -> list[Any]:
        """Return the value of each row, or both values of a pair."""
        sides = list(self._result.key_columns.values())
        return list(sides[0]) if len(sides) == 1 else [list(pair) for pair in zip(*sides, strict=True)]

    def frame(self) -> dict[str, list[Any]]:
        """Return the columns of the estimate as a data frame."""
        return read_table(self._result.to_frame())

    def consistent(self) -> list[float]:
        """Return shares that are not negative and sum to 1."""
        return list(self._result.consistent().tolist())

    def largest(self, number: int) -> Estimate:
        """Return the largest rows, with intervals that hold although they were chosen."""
        return Estimate(self._result.largest(number))

    def quantiles(self, *probabilities: float) -> Estimate:
        """Return quantiles of a number."""
        return Estimate(self._result.quantile(probabilities))

    def share_between(self, low: float, high: float) -> Estimate:
        """Return the share of numbers in a part of the range."""
        return Estimate(self._result.share(low, high))

    def variance(self) -> Estimate:
        """Return the variance of a number, from its distribution."""
        return Estimate(self._result.variance)

    def missing_share(self) -> Estimate:
        """Return the share of missing numbers."""
        return Estimate(self._result.missing)

    def compare(self, later: Estimate) -> Estimate:
        """Return the change from this result to an independent later one."""
        return Estimate(rx.compare(self._result, later._result))

    def variance_with(self, mean_of_square: Estimate) -> Estimate:
        """Return the variance of x, where this is the mean of x, from the mean of x squared."""
        return Estimate(rx.variance(self._result, mean_of_square._result))


def estimate(
    source: Any, column: str | None = None, *, crosstab: str | None = None, weights: str = "average"
) -> Estimate:
    """Estimate from released data; of a list each id counts at its highest level."""
    method: Any = weights
    return Estimate(rx.estimate(_tables(source), column, crosstab=crosstab, method=method))


def estimate_groups(source: Any, column: str | None = None, *, by: str) -> dict[str, Estimate]:
    """Estimate for each group of a pass-through column."""
    return {str(group): Estimate(each) for group, each in rx.estimate(_tables(source), column, by=by).items()}


def estimate_reports(mechanism: Mechanism, reports: Any, epsilon: str) -> Estimate:
    """Estimate from a column of reports at one level."""
    return Estimate(mechanism.build().estimate(reports, epsilon=epsilon))


def estimate_crosstab(rows: tuple[Mechanism, Any, str], columns: tuple[Mechanism, Any, str]) -> Estimate:
    """Estimate the crosstab of two columns of reports, each with its mechanism and level."""
    (row, row_reports, row_epsilon), (column, column_reports, column_epsilon) = rows, columns
    levels = {"row_epsilon": row_epsilon, "column_epsilon": column_epsilon}
    return Estimate(rx.crosstab(row.build(), row_reports, column.build(), column_reports, **levels))


def estimate_counts(
    mechanism: Mechanism, counted: Sequence[tuple[str, Sequence[int], int]], *, weights: str = "average"
) -> Estimate:
    """Estimate from counts that were made elsewhere: of each level, how often each value, and how many individuals."""
    counts, method = rx.Counts(mechanism.build()), weights
    for epsilon, numbers, individuals in counted:
        counts.add_counts(numbers, epsilon=epsilon, n=individuals)
    return Estimate(counts.estimate(method))  # type: ignore[arg-type]


def _tables(source: Any) -> Any:
    if isinstance(source, list):
        return [_tables(each) for each in source]
    return source.table if isinstance(source, Released) else source


# Plans and schedules.


def plan(
    mechanism: Mechanism,
    *,
    epsilon: str | None = None,
    n: int | None = None,
    margin: float | None = None,
    share: float | None = None,
    confidence: float = 0.95,
    simultaneous: bool = False,
    about: str = "sample",
) -> dict[str, Any]:
    """Return epsilon, number of individuals and margin of error: two are given, the third is found."""
    asked: Any = {"share": share, "confidence_level": confidence, "simultaneous": simultaneous, "about": about}
    found = rx.plan(values=mechanism.build(), epsilon=epsilon, n=n, margin=margin, **asked)
    return {"epsilon": found.epsilon, "n": found.n, "margin": found.margin}


def choose_mechanism(values: int, epsilon: str) -> list[Any]:
    """Return the best mechanism of so many values for the last planned epsilon, with its options."""
    name = mechanism_choice.rank_mechanisms(values, epsilon).best
    encoding = create_mechanism(name, values=range(values), epsilon=epsilon)
    return [KINDS[encoding.name], get_mechanism_arguments(encoding)["options"]]


def choose_for_numbers(low: float, high: float, epsilon: str) -> list[Any]:
    """Return the best mechanism of numbers for the last planned epsilon, with its options."""
    encoding = create_mechanism(rank_number_mechanisms(epsilon).best, range=(low, high), epsilon=epsilon)
    return [KINDS[encoding.name], get_mechanism_arguments(encoding)["options"]]


def rank_mechanisms(values: int, epsilon: str) -> list[list[Any]]:
    """Return the mechanisms of so many values, best first, with the standard error of a rare share for n = 1."""
    return [[KINDS[each.name], each.std_error] for each in mechanism_choice.rank_mechanisms(values, epsilon).mechanisms]


def schedule_linear(first: str, last: str, steps: int) -> list[str]:
    """Return levels with equal differences."""
    return list(map(str, rx.schedules.Linear(first, last, steps)))


def schedule_geometric(first: str, last: str, steps: int) -> list[str]:
    """Return levels with equal ratios."""
    return list(map(str, rx.schedules.Geometric(first, last, steps)))


def schedule_explicit(levels: Sequence[str]) -> list[str]:
    """Return levels that were written down."""
    return list(map(str, rx.schedules.Explicit(levels)))


def schedule_noisy_sampling(alpha: str, beta: str, samples: int) -> list[str]:
    """Return the rate at which noisy sampling spends."""
    return list(map(str, rx.schedules.NoisySampling(alpha, beta, samples)))


def schedule_by_date(levels: Mapping[date, str], days: Sequence[date]) -> list[str | None]:
    """Return the level that is allowed on each of these days."""
    schedule = rx.schedules.ByDate(levels)
    return [None if (level := schedule.get_level(day)) is None else str(level) for day in days]


def schedule_until_precise(
    levels: Sequence[str], *, margin: float, n: int, values: int, simultaneous: bool = False, about: str = "sample"
) -> tuple[list[str], bool]:
    """Return the levels up to the first with this margin of error, and whether one has it."""
    asked: Any = {"simultaneous": simultaneous, "about": about}
    schedule = rx.schedules.UntilPrecise(rx.schedules.Explicit(levels), margin=margin, n=n, values=values, **asked)
    return list(map(str, schedule)), schedule.is_reached


# The distribution of relaxed reports, and Algorithm 1.


def relaxation_probabilities(values: int, old_epsilon: str, new_epsilon: str) -> dict[str, Fraction]:
    """Return the paper's exact probabilities of one relaxation: aa, ba and bb."""
    law = rx.theory.relaxation_law(m=values, old_epsilon=old_epsilon, new_epsilon=new_epsilon)
    return {"aa": law.p_aa, "ba": law.p_ba, "bb": law.p_bb}


def privacy_loss(epsilons: Sequence[str], reports: Sequence[int], *, values: int) -> dict[str, Decimal]:
    """Return the loss of a transcript, the largest of these levels, and that of basic composition."""
    loss = rx.theory.privacy_loss(epsilons, reports, m=values)
    return {"spent": loss.spent, "guarantee": loss.guarantee, "basic composition": loss.basic_composition}


class Source:
    """Randomness that a scenario provides: `read` returns a uniform number of so many bytes."""

    def __init__(self, read: Callable[[int], int]) -> None:
        self._read = read

    def make_keystream(self) -> Source:
        """Return itself, for arrays."""
        return self

    def fill(self, buffer: Any) -> None:
        """Fill an array of bytes."""
        if len(buffer):
            buffer[:] = np.frombuffer(self._read(len(buffer)).to_bytes(len(buffer), "little"), np.uint8)


class Relaxation:
    """Algorithm 1 for one individual, with a state file or in memory."""

    def __init__(
        self, mechanism: Mechanism, value: Any, *, state: Path | None = None, read: Callable[[int], int] | None = None
    ) -> None:
        self._relaxation = rx.Relaxation(mechanism.build(), value, state=state)
        if read is not None:
            self._relaxation._entropy = Source(read)

    def relax(self, epsilon: str) -> Any:
        """Return the report at this level."""
        return self._relaxation.relax(epsilon)

    @property
    def epsilon(self) -> str:
        """Return the level of the last report, which is what all reports cost together."""
        return str(self._relaxation.epsilon)


def relax_many(
    mechanism: Mechanism,
    answers: Sequence[Any],
    epsilon: str,
    *,
    last: Sequence[Any] | None = None,
    last_epsilon: str | None = None,
    read: Callable[[int], int] | None = None,
) -> list[Any]:
    """Return the next reports of many individuals by Algorithm 1, from their last reports; None is the first step."""
    values = list(mechanism.values)
    encoding = mechanism.build()
    answer_codes, last_codes = (
        np.array([values.index(each) for each in column], np.uint8) for column in (answers, last or [])
    )
    old = Fraction(0) if last_epsilon is None else encoding.level(last_epsilon).retention
    found = relax_once(
        len(values), old, encoding.level(epsilon).retention, truths=answer_codes,
        last_reports=None if last is None else last_codes, entropy=None if read is None else Source(read),
    )  # fmt: skip
    return [values[code] for code in found.tolist()]


def bridge_many(
    values: int,
    middle: Fraction,
    upper: tuple[Fraction, Sequence[int]],
    *,
    lower: tuple[Fraction, Sequence[int]] | None = None,
    read: Callable[[int], int],
) -> list[int]:
    """Return reports at a retention between two others, without the answers; without a lower one this is a blur.

    Reports are given with their retentions, as places of the values.
    """
    retention, reports = upper
    below, last = lower or (Fraction(0), None)
    ends: Any = {
        "lower_reports": None if last is None else np.array(last, np.uint8),
        "upper_reports": np.array(reports, np.uint8),
    }
    return list(bridge_once(values, below, middle, retention, **ends, entropy=Source(read)).tolist())


# Fabricated reports, and amplification by shuffling.


def find_fabrication(
    mechanism: Mechanism, reports: Mapping[str, Sequence[Any]], *, levels: Sequence[str] = ()
) -> dict[str, Any]:
    """Test the reports of the same individuals at growing levels.

    `levels` are all that are planned, where the test is made again and again while reports arrive.
    """
    counted = rx.poisoning.ReportPairs(mechanism.build())
    counted.add(list(reports.values()), epsilons=list(reports))
    found = rx.poisoning.check_pairs(counted, levels=levels)
    assert found.uncleaned_shares is not None
    return {
        "alarm": found.is_alarm,
        "p_value": found.p_value,
        "p_value_of_all_looks": found.anytime_p_value,
        "values": [[each.label, each.kind] for each in found.suspicious_values],
        "fabricated": [found.fabricator_count.estimate, found.fabricator_count.low, found.fabricator_count.high],
        "shares": found.uncleaned_shares.value,
        "shares_without": None if found.cleaned_shares is None else found.cleaned_shares.value,
        "influence_of_one": None if found.undetected_influence is None else found.undetected_influence.individuals,
    }


def amplify_by_shuffling(epsilon: str, n: int, *, delta: float, mechanism: Mechanism | None = None) -> Decimal:
    """Return the epsilon at delta of one publication of n shuffled reports; without a mechanism for any of them."""
    return rx.shuffling.compute_bound(
        epsilon, n=n, delta=delta, values=None if mechanism is None else mechanism.build()
    ).epsilon


# Examples.


def run_example(name: str) -> list[str]:
    """Return the lines that an example prints, in a separate process."""
    root = Path(__file__).parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"COLUMNS": "120", "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(root / "examples" / f"{name}.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
