"""The vault: one folder with a key, a ledger and sealed snapshots, and everything that is released from it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

from relaxdp.errors import ArgumentError, add_consequence
from relaxdp.estimation.display import describe_risk, format_html_table, format_risk, format_table
from relaxdp.ledger.account import check_reason, make_budget_raise_event, make_retirement_event
from relaxdp.ledger.events import CopyAdopted, Event, VaultCreated, parse_budget
from relaxdp.mechanisms.registry import get_mechanism_title
from relaxdp.tables.data_frames import convert_name_to_text
from relaxdp.tables.release_output import FileSink, MemorySink
from relaxdp.tables.release_plan import ReleaseRequest, plan_relaxation, plan_release
from relaxdp.tables.release_result import Release, make_data_frame
from relaxdp.tables.table_source import open_source
from relaxdp.tables.transaction import LocalStager, Progress, Stager, run_release
from relaxdp.tables.vault_check import CheckResult, check_vault
from relaxdp.tables.vault_folder import VaultFolder, copy_vault
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon

PathLike = str | os.PathLike[str]
_LOG = logging.getLogger("relaxdp")


class Vault:
    """A data holder's secret state: key, ledger and snapshots of everything released about one group of people.

    Everything released from a vault composes: each column costs the largest epsilon at which it was released, and
    columns and release names add up. Costs of two vaults about the same people are not added up by anyone.

    Args:
        path: The folder of the vault. It must exist; `Vault.create` makes a new one.

    Raises:
        VaultError: There is no vault, or others can read it.
        OldVaultError: This machine has seen a newer copy of the vault.

    Example:
        >>> import pyarrow as pa, relaxdp as rx
        >>> vault = rx.Vault.create("study.vault", budget=2)  # doctest: +SKIP
        >>> table = pa.table({"patient": range(1000), "smoker": ["no", "yes"] * 500})  # doctest: +SKIP
        >>> release = vault.release(table, {"smoker": ["no", "yes"]}, id="patient", epsilon=1, name="patients")
        ... # doctest: +SKIP
        >>> print(vault)  # doctest: +SKIP
        Vault 'study.vault': spent 1 of the budget 2, 1 remaining.
        name      column  mechanism                  epsilon   rows
        patients  smoker  k-ary randomized response        1  1,000
        Risk at epsilon 1 of all releases together: a guess between two answers is right at most 73.2 % of the time, ...
    """

    def __init__(self, path: PathLike) -> None:
        self._folder = VaultFolder(_require_path(path, "path"))

    @classmethod
    @add_consequence("Nothing was created.")
    def create(
        cls,
        path: PathLike,
        *,
        budget: Epsilon,
        key_file: PathLike | None = None,
        key_command: str | None = None,
        ledger: str | None = None,
        worker_key_file: PathLike | None = None,
        reason: str = "",
    ) -> Vault:
        """Create a vault.

        Args:
            path: The folder to create, such as "study.vault".
            budget: The largest total epsilon that may be spent on any individual. It may be raised later.
            key_file: Where the key is written, if not into the vault. A copy of a vault with its key *is* the data.
            key_command: A command that prints the key, such as "pass show study". No shell reads it.
            ledger: The URL of a PostgreSQL database, for a ledger that several machines share.
            worker_key_file: Where Spark's workers find the key, if not where the vault does.
            reason: Why, for the history.

        Returns:
            The open vault.

        Raises:
            VaultError: The folder exists, or cannot be created.
        """
        exact, place, now = parse_budget(budget), _require_path(path, "path"), datetime.now(UTC)
        if reason:
            check_reason(reason)
        VaultFolder.create(
            place,
            lambda settings: VaultCreated(1, now, exact, reason, settings.vault, settings.key_fingerprint),
            key_file=None if key_file is None else _require_path(key_file, "key_file"),
            key_command=None if key_command is None else str(key_command),
            ledger=None if ledger is None else str(ledger),
            worker_key_file=None if worker_key_file is None else str(_require_path(worker_key_file, "worker_key_file")),
        )
        return cls(path)

    @add_consequence("Nothing was released.")
    def release(
        self,
        data: Any,
        columns: Mapping[str, Any],
        *,
        id: str,
        epsilon: Epsilon,
        name: str,
        output: PathLike | None = None,
        passthrough: Sequence[str] = (),
        planned_epsilon: Epsilon | None = None,
        accept_new_rows: bool = False,
        dry_run: bool = False,
    ) -> Release:
        """Release columns of a table at a level: ids, reports and pass-through columns, in the order of the ids.

        Each row is compared with all rows ever released under this name. Rows may join and leave; a changed value
        rejects the whole release. The same call again gives the same reports and costs nothing, a larger epsilon costs
        the difference, and a lower one is free.

        Args:
            data: A data frame (pandas, polars, pyarrow, DuckDB, Spark, or anything with `__arrow_c_stream__`), or the
                path of a Parquet or CSV file.
            columns: For each column the list of its values, in which None stands for a missing one, or a mechanism
                such as `rx.Numeric(0, 120)`.
            id: The column that identifies the individuals. Each id occurs once.
            epsilon: The level of each column. Costs of several columns add up.
            name: The name of the release. Use a new one for a next survey; its cost is added.
            output: The file to write. Without it, the rows stay in memory: `Release.to_frame()`.
            passthrough: Columns that leave unprotected.
            planned_epsilon: The largest level that you plan. It decides which mechanism a list of values gets.
            accept_new_rows: Accept that many rows have left and joined at once. It is recorded.
            dry_run: State the cost and release nothing.

        Returns:
            What was released, with its cost.

        Raises:
            RelaxdpError: Nothing was released, and nothing was charged.
        """
        if isinstance(columns, Mapping):
            columns = {convert_name_to_text(each): declared for each, declared in columns.items()}
        request = ReleaseRequest(
            name=name,
            epsilon=as_epsilon(epsilon),
            id=convert_name_to_text(id),
            columns=columns,
            passthrough=() if passthrough is None else _parse_names(passthrough),
            planned_epsilon=None if planned_epsilon is None else as_epsilon(planned_epsilon),
            accept_new_rows=_require_bool(accept_new_rows, "accept_new_rows"),
            dry_run=_require_bool(dry_run, "dry_run"),
        )
        with open_source(data) as source:
            return self.run_request(request, source, output)

    def run_request(
        self, request: ReleaseRequest, source: Any, output: PathLike | None, progress: Progress | None = None
    ) -> Release:
        """Release from an open source, or without one relax, with a progress bar if you pass one."""
        is_spark = source is not None and source.library == "spark"
        if is_spark and output is not None:
            raise ArgumentError(
                "`output` cannot be used with a Spark DataFrame.",
                hint="Write the returned Spark DataFrame yourself: release.to_frame().write.parquet(...).",
            )
        sink = MemorySink() if output is None else FileSink(_require_path(output, "output"))
        plan = plan_relaxation(self._folder, request) if source is None else plan_release(self._folder, request, source)
        if is_spark:
            from relaxdp.tables.spark_release import SparkStager  # noqa: PLC0415 (Spark may be missing)

            stager: Stager = SparkStager(plan, source)
        else:
            stager = LocalStager(plan, source, sink, progress)
        release = run_release(plan, stager, source)
        if not release.is_dry_run:
            _LOG.info("%s", release.summary)
        return release

    @add_consequence("Nothing was released.")
    def relax(
        self,
        name: str | Release,
        epsilon: Epsilon,
        *,
        columns: Sequence[str] | None = None,
        output: PathLike | None = None,
        dry_run: bool = False,
    ) -> Release:
        """Release the rows of the last release again at another level, without the table.

        A larger epsilon costs the difference; an equal or lower one is free. All levels together cost the largest.

        Args:
            name: The name of the release, or the `Release`.
            epsilon: The new level.
            columns: The columns to relax. By default all.
            output: The file to write. Without it, the rows stay in memory.
            dry_run: State the cost and release nothing.

        Returns:
            What was released, with its cost.

        Raises:
            RelaxdpError: Nothing was released, and nothing was charged.
        """
        request = ReleaseRequest(
            name=name.name if isinstance(name, Release) else name,
            epsilon=as_epsilon(epsilon),
            columns=None if columns is None else _parse_names(columns),
            dry_run=_require_bool(dry_run, "dry_run"),
        )
        return self.run_request(request, None, output)

    @property
    def path(self) -> Path:
        """The folder of the vault."""
        return self._folder.path

    @property
    def id(self) -> str:
        """The id of the vault: random, and the same in every copy."""
        return self._folder.id

    @property
    def key_fingerprint(self) -> str:
        """The public name of the key, as released files state it."""
        return self._folder.key.fingerprint

    @property
    def budget(self) -> Decimal:
        """The largest total epsilon that may be spent."""
        return self._folder.read_account().budget

    @property
    def spent(self) -> Decimal:
        """The epsilon spent: the largest level of each column, summed over columns and names."""
        return self._folder.read_account().spent

    @property
    def remaining(self) -> Decimal:
        """The rest of the budget."""
        return self._folder.read_account().remaining

    @add_consequence("The budget was not raised.")
    def raise_budget(self, budget: Epsilon, *, reason: str) -> None:
        """Raise the budget. It can never be lowered: a part of it may have been promised already.

        Args:
            budget: The new budget.
            reason: Why, for the history.

        Raises:
            BudgetError: The budget is not larger than before, or there is no reason.
        """
        exact = parse_budget(budget)
        self._append_event(lambda account: make_budget_raise_event(account, exact, reason, datetime.now(UTC)))

    @add_consequence("Nothing was retired.")
    def retire(self, name: str, *, reason: str) -> None:
        """Erase the snapshots of a release. Its name is never released or relaxed again, and its cost stays.

        Args:
            name: The name of the release.
            reason: Why, for the history.

        Raises:
            UnknownReleaseError: The vault has no such release.
        """
        self._append_event(lambda account: make_retirement_event(account, name, reason, datetime.now(UTC)))
        with self._folder.lock_snapshots(self._folder.read_account()):
            pass  # which removes what interrupted releases of it left

    @add_consequence("Nothing was adopted.")
    def adopt(self, *, reason: str) -> None:
        """Accept this copy of the vault as the newest one, although this machine has seen another.

        Do this after a restored backup or a move to another machine. Releases that an older copy lacks are lost: check
        released files with `check`.

        Args:
            reason: Why, for the history.

        Raises:
            ArgumentError: This is the newest copy already.
        """
        check_reason(reason)
        _, found = self._folder.read_account_and_problem()
        if found is None:
            raise ArgumentError(
                "This vault is already the newest copy on this machine, so there is nothing to adopt.",
                hint="Use the vault as it is, without `adopt` (--adopt).",
            )
        self._folder.adopt_copy(lambda account: CopyAdopted(account.number + 1, datetime.now(UTC), reason, found))

    def _append_event(self, make_event: Any) -> None:
        before = self._folder.read_account()
        after = self._folder.append_event(make_event)
        self._folder.remove_superseded_snapshots(before, after)

    def releases(self) -> Any:
        """Return a data frame with a row for each released column.

        Returns:
            A pandas data frame, or a pyarrow table without pandas. `risk` is how often a guess between two answers is
            right at most. Columns may depend on one another, so it follows from everything that was spent.
        """
        account = self._folder.read_account()
        rows = [
            {
                "name": release.name, "column": column.column, "mechanism": get_mechanism_title(column.mechanism),
                "largest_epsilon": float(column.largest), "last_epsilon": float(column.epsilon), "rows": release.rows,
                "risk": format_risk(account.spent), "passthrough": ", ".join(release.passthrough),
                "retired": release.retired,
            }
            for release in account.releases.values()
            for column in release.columns.values()
        ]  # fmt: skip
        names = ["name", "column", "mechanism", "largest_epsilon", "last_epsilon", "rows", "risk", "passthrough"]
        return make_data_frame(rows, [*names, "retired"])

    def history(self) -> Any:
        """Return a data frame with a row for each event of the ledger, oldest first.

        Returns:
            A pandas data frame, or a pyarrow table without pandas.
        """
        rows = [{"event": event.number, "time": event.time, "what": event.describe()} for event in self.events()]
        return make_data_frame(rows, ["event", "time", "what"])

    def events(self) -> list[Event]:
        """Return the events of the ledger."""
        return self._folder.ledger.read_events()

    def check(self, files: PathLike | Sequence[PathLike] = ()) -> CheckResult:
        """Verify the chain of events, snapshots, file modes and released files.

        Args:
            files: Released files. Their reports are drawn again and compared.

        Returns:
            What was verified, and the problems that were found.
        """
        listed = files if isinstance(files, Sequence) and not isinstance(files, str) else [files]
        return check_vault(self._folder, [_require_path(file, "files") for file in listed])

    @add_consequence("Nothing was backed up.")
    def backup(self, folder: PathLike, *, with_key: bool = False) -> Path:
        """Copy ledger, snapshots and settings to a new folder. The key is left out unless you ask for it.

        Args:
            folder: The folder to create.
            with_key: Copy the key as well. Such a copy *is* the data.

        Returns:
            The folder.

        Raises:
            VaultError: The folder exists, or cannot be created.
        """
        return copy_vault(self._folder, _require_path(folder, "folder"), with_key=_require_bool(with_key, "with_key"))

    def _format_repr_parts(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        account = self._folder.read_account()
        spent, budget, left = map(format_epsilon, (account.spent, account.budget, account.remaining))
        rows = [
            [
                release.name, column.column, get_mechanism_title(column.mechanism), format_epsilon(column.largest),
                f"{release.rows:,}",
            ]
            for release in account.releases.values()
            for column in release.columns.values()
        ]  # fmt: skip
        first = f"Vault {self.path.name!r}: spent {spent} of the budget {budget}, {left} remaining."
        notes = (
            [describe_risk(account.spent, subject=" of all releases together")]
            if rows
            else ["Nothing was released yet."]
        )
        return first, ["name", "column", "mechanism", "epsilon", "rows"], rows, notes

    def __repr__(self) -> str:
        first, headings, rows, notes = self._format_repr_parts()
        return "\n".join([first, *([format_table(headings, rows, left=(0, 1, 2))] if rows else []), *notes])

    def _repr_html_(self) -> str:
        first, headings, rows, notes = self._format_repr_parts()
        return f"<p>{escape(first)}</p>{format_html_table(headings, rows, notes)}"

    def __reduce__(self) -> Any:
        raise TypeError(
            "A vault cannot be pickled, because it holds a key. Open it where it is needed: rx.Vault(path)."
        )


def _require_bool(value: Any, option: str) -> bool:
    """Return True or False; reject a text such as "no", which Python takes for True."""
    if isinstance(value, str) or value not in (True, False):
        raise ArgumentError(
            "`{option}` must be True or False, got {type}.",
            hint="Pass {option}=True or leave it out.",
            option=option,
            type=type(value).__name__,
        )
    return bool(value)


def _parse_names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, Iterable) or isinstance(names, str):
        names = [names]
    return tuple(map(convert_name_to_text, names))


_PATH_HINTS = {
    "output": "Pass a path such as 'out.parquet', or leave it out to get a data frame.",
    "folder": "Pass a path such as 'study-backup'.",
}


def _require_path(given: Any, option: str) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise ArgumentError(
            "Expected a path (str or Path) as `{option}`, got {type}.",
            hint=_PATH_HINTS.get(option, "Pass a path such as 'study/file'."),
            option=option,
            type=type(given).__name__,
        )
    return Path(given)
