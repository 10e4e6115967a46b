"""The errors of the library: a message made from fields, and never a true value or a key.

An error has a message that states the problem and a hint that states what to do, for Python and the command line. Both
have places for fields. A public function, a command or a route adds what did not happen (`add_consequence`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from decimal import Decimal
from typing import Any

# A key has 64 hexadecimal digits. Text with 48 or more, not all of them decimal, may be a damaged key.
_KEY = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{48,}", re.IGNORECASE)
_ROW = re.compile(r"\{row\b")


def hide_secret_keys(text: str) -> str:
    """Remove text that looks like a key: people pass a key where the path of its file belongs.

    >>> hide_secret_keys("there is no file '" + "a1" * 32 + "'.")
    "there is no file '(a key was removed)'."
    """
    return _KEY.sub("(a key was removed)", text)


class RelaxdpError(Exception):
    """The base of all errors that the library and its servers raise on purpose.

    `code` is the class name in snake case, as in a JSON error. `fields` holds the details for programs, and everything
    variable in the message and the hint. Text that looks like a key is removed from all of them.

    >>> print(EpsilonError("Epsilon {epsilon} is too small.", hint="Pass 0.1 or more.", epsilon="1e-30"))
    Epsilon 1e-30 is too small. Pass 0.1 or more.
    """

    def __init__(self, sentence: str, /, *, hint: str = "", **fields: Any) -> None:
        super().__init__(sentence)
        self.template, self.hint_template, self.consequence = sentence, hint, ""
        self.fields = {name: _convert_field_for_json(value) for name, value in fields.items()}

    @property
    def code(self) -> str:
        """Return the class name in snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def sentence(self) -> str:
        """The problem, without the hint. The field `row` makes it "Row 7 of 'age': the number is missing."."""
        text = hide_secret_keys(self.template.format(**self.fields))
        if self.fields.get("row") is None or _ROW.search(self.template):
            return text
        counted = " in the order of the ids" if self.fields.get("counted") == "by id" else ""
        column = self.fields.get("of_column")
        if not text[1:2].isupper():  # a word, and not an abbreviation
            text = text[:1].lower() + text[1:]
        return f"Row {self.fields['row']:,}{'' if column is None else f' of {column!r}'}{counted}: {text}"

    @property
    def message(self) -> str:
        """The problem, the hint, and the consequence."""
        return " ".join(part for part in (self.sentence, self.hint, self.consequence) if part)

    @property
    def hint(self) -> str:
        """An instruction to solve the problem; empty where there is no solution."""
        return hide_secret_keys(self.hint_template.format(**self.fields))

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> Any:
        return _rebuild_error, (type(self), self.template, self.hint_template, self.fields, self.consequence)


def _rebuild_error(
    error_type: type[RelaxdpError], template: str, hint: str, fields: Mapping[str, Any], consequence: str
) -> RelaxdpError:
    made = error_type(template, hint=hint, **fields)
    made.consequence = consequence
    return made


def _convert_field_for_json(value: Any) -> Any:
    """Return a field as JSON knows it: numbers stay numbers, everything else is its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, list | tuple):
        return [_convert_field_for_json(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, str):  # NumPy's numbers
        return _convert_field_for_json(value.item())
    return hide_secret_keys(str(value))


class add_consequence(ContextDecorator):  # noqa: N801 (used as a statement)
    """Add to every error what did not happen because of it, unless an inner `add_consequence` has added that."""

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, RelaxdpError):
            problem.consequence = problem.consequence or self._consequence


@contextmanager
def replace_os_error(error_type: type[RelaxdpError], sentence: str, *, hint: str, **fields: Any) -> Iterator[None]:
    """Raise this error in place of one of the operating system, whose reason is the field `why`."""
    try:
        yield
    except OSError as problem:
        if isinstance(problem, RelaxdpError):
            raise
        raise error_type(sentence, hint=hint, why=problem.strerror or "the disk may be full", **fields) from None


class EpsilonError(RelaxdpError, ValueError):
    """An epsilon is not a positive, finite, exactly written number, or is too small."""


class LevelError(RelaxdpError, ValueError):
    """A level is lower than the last one, of another mechanism, or has a threshold above its epsilon."""


class ValuesError(RelaxdpError, ValueError):
    """The declared values are too few, repeated or of different kinds, or the declared range is not one."""


class UndeclaredValueError(RelaxdpError, ValueError):
    """A true value is not declared, is outside of the declared range, or is missing. The message never shows it."""


class IdError(RelaxdpError, ValueError):
    """An id is missing, repeated, or of a type that has no exact bytes."""


class ColumnError(RelaxdpError, ValueError):
    """A column is missing, is named twice, has the wrong type or length, or hides values behind a mask."""


class MechanismError(RelaxdpError, ValueError):
    """A mechanism is unknown, its options are wrong, or it reveals more than it claims."""


class ArgumentError(RelaxdpError, ValueError):
    """An argument or option is missing, unknown or unusable, or excludes another one."""


class MissingDependencyError(RelaxdpError, ImportError):
    """An optional package is not installed. The hint shows how to install it."""


class KeyFileError(RelaxdpError):
    """A key file is missing, damaged, readable by others, or would be overwritten."""


class StateFileError(RelaxdpError):
    """The state file of a relaxation is damaged, or was made for something else."""


class KernelError(RelaxdpError):
    """The compiled sampler was requested and is not available, or draws wrong values."""


class EstimationError(RelaxdpError, ValueError):
    """Reports or counts do not fit the mechanism, or an estimate cannot answer the question."""


class PlanError(RelaxdpError, ValueError):
    """A plan or a schedule is contradictory, or cannot reach its goal."""


class MetadataError(RelaxdpError, ValueError):
    """A released file or frame has no readable metadata, or files that do not belong together are combined."""


class TableFileError(RelaxdpError, OSError):
    """A file or a folder cannot be read or written, is damaged, or exists already. The message shows no content."""


class QueryError(RelaxdpError, ValueError):
    """A query about a table is not one SELECT, is rejected by DuckDB, or fails. No cell is part of the message."""


class SparkError(RelaxdpError, RuntimeError):
    """Spark is not there, could not start, or stopped; nothing was charged or released."""


class VaultError(RelaxdpError):
    """A vault or a snapshot is missing, damaged or readable by others, or cannot be created."""


class OldVaultError(VaultError):
    """A vault is older than its last use on this machine, has another history, or was copied here."""


class StateFolderWarning(UserWarning):
    """The folder that records where a key was used cannot be written. The release continues."""


class DeterminedColumnWarning(UserWarning):
    """A pass-through column determines a protected column, so it may show the true values. The release continues."""


class LedgerError(RelaxdpError):
    """The ledger is missing, damaged, full or of another version, or cannot be opened."""


class LedgerBusyError(LedgerError):
    """Another process held the ledger for longer than the timeout, or released the same name meanwhile. Try again."""


class LedgerUncertainError(LedgerError):
    """The connection was lost during a commit. The release may be charged, and nothing was handed over."""


class BudgetError(RelaxdpError, ValueError):
    """A budget is not a number, has no reason, exists already, or would not grow."""


class BudgetExceededError(BudgetError):
    """A release needs more than what is left of the budget."""


class UnknownReleaseError(RelaxdpError, LookupError):
    """The vault has no release with this name or column, or the release is retired."""


class ReleaseChangedError(RelaxdpError, ValueError):
    """A release contradicts an earlier one: another mechanism, other values, ids of another type, other protection."""


class RowsChangedError(RelaxdpError):
    """Rows of a table have other values than when they were released, or too many ids are new."""


class UselessReleaseError(RelaxdpError, ValueError):
    """A release would cost epsilon and reveal almost nothing: too few rows, or too small an epsilon."""


class RapporError(RelaxdpError, ValueError):
    """Parameters, maps, counts or reports of RAPPOR that are not usable, or that do not belong together."""
