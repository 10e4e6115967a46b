"""Every exception of the package: a message made from fields, and never a true value or a key.

An error has a message that states the problem and a hint that states what to do, for Python and the command line. Both
have places for fields. A public function, a command or a route adds what did not happen (`on_error`).
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


def remove_keys(text: str) -> str:
    """Remove text that looks like a key: people pass a key where the path of its file belongs.

    >>> remove_keys("there is no file '" + "a1" * 32 + "'.")
    "there is no file '(a key was removed)'."
    """
    return _KEY.sub("(a key was removed)", text)


class RelaxdpError(Exception):
    """The base of all errors that this package raises on purpose.

    `code` is the class name in snake case, as in a JSON error. `fields` holds the details for programs, and everything
    variable in the message and the hint. Text that looks like a key is removed from all of them.

    >>> print(EpsilonError("Epsilon {epsilon} is too small.", hint="Pass 0.1 or more.", epsilon="1e-30"))
    Epsilon 1e-30 is too small. Pass 0.1 or more.
    """

    def __init__(self, sentence: str, /, *, hint: str = "", **fields: Any) -> None:
        super().__init__(sentence)
        self.template, self.hint_template, self.consequence = sentence, hint, ""
        self.fields = {name: _convert_field(value) for name, value in fields.items()}

    @property
    def code(self) -> str:
        """Return the class name in snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def sentence(self) -> str:
        """The problem, without the hint. The field `row` makes it "Row 7 of 'age': the number is missing."."""
        text = remove_keys(self.template.format(**self.fields))
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
        return remove_keys(self.hint_template.format(**self.fields))

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> Any:
        return _rebuild_error, (type(self), self.template, self.hint_template, self.fields, self.consequence)


def _rebuild_error(
    kind: type[RelaxdpError], template: str, hint: str, fields: Mapping[str, Any], consequence: str
) -> RelaxdpError:
    made = kind(template, hint=hint, **fields)
    made.consequence = consequence
    return made


def _convert_field(value: Any) -> Any:
    """Return a field as JSON knows it: numbers stay numbers, everything else is its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, list | tuple):
        return [_convert_field(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, str):  # NumPy's numbers
        return _convert_field(value.item())
    return remove_keys(str(value))


class on_error(ContextDecorator):  # noqa: N801 (used as a statement)
    """Add to every error what did not happen because of it, unless an inner `on_error` has added that."""

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, RelaxdpError):
            problem.consequence = problem.consequence or self._consequence


@contextmanager
def replace_os_error(kind: type[RelaxdpError], sentence: str, *, hint: str, **fields: Any) -> Iterator[None]:
    """Raise this error in place of one of the operating system, whose reason is the field `why`."""
    try:
        yield
    except OSError as problem:
        if isinstance(problem, RelaxdpError):
            raise
        raise kind(sentence, hint=hint, why=problem.strerror or "the disk may be full", **fields) from None


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


class KernelError(RelaxdpError):
    """The compiled sampler was requested and is not available, or draws wrong values."""


class KeyFileError(RelaxdpError):
    """A key file is missing, damaged, readable by others, or would be overwritten."""


class StateFileError(RelaxdpError):
    """The state file of a relaxation is damaged, or was made for something else."""


class MechanismError(RelaxdpError, ValueError):
    """A mechanism is unknown, its options are wrong, or it reveals more than it claims."""


class EstimationError(RelaxdpError, ValueError):
    """Reports or counts do not fit the mechanism, or an estimate cannot answer the question."""


class MissingDependencyError(RelaxdpError, ImportError):
    """An optional package is not installed. The hint shows how to install it."""


class PlanError(RelaxdpError, ValueError):
    """A plan or a schedule is contradictory, or cannot reach its goal."""


class UselessReleaseError(RelaxdpError, ValueError):
    """A release would cost epsilon and reveal almost nothing: too few rows, or too small an epsilon."""


class MetadataError(RelaxdpError, ValueError):
    """A released file or frame has no readable metadata, or files that do not belong together are combined."""


class TableFileError(RelaxdpError, OSError):
    """A table cannot be read or written, or is damaged. The message shows nothing of its content."""


class LedgerError(RelaxdpError):
    """The ledger is missing, damaged, full or of another version, or cannot be opened."""


class LedgerBusyError(LedgerError):
    """Another process held the ledger for longer than the timeout, or released the same name meanwhile. Try again."""


class StateFolderWarning(UserWarning):
    """The folder that records where a key was used cannot be written. The release continues."""


class BudgetError(RelaxdpError, ValueError):
    """A budget is not a number, has no reason, exists already, or would not grow."""


class BudgetMissingError(BudgetError):
    """Something is to be released before a budget was set."""


class BudgetExceededError(BudgetError):
    """A release needs more than what is left of the budget."""


class ReleaseChangedError(RelaxdpError, ValueError):
    """A release contradicts an earlier one: another mechanism, other values, ids of another type, other protection."""


class PathChangedError(RelaxdpError, ValueError):
    """A path is to be continued with something that is not what it was opened with."""


class ValuesChangedError(PathChangedError):
    """The mechanism, the declared values or their order differ from those of the path."""


class UnknownReleaseError(RelaxdpError, LookupError):
    """The vault has no release with this name or column, or the release is retired."""


class ArgumentError(RelaxdpError, ValueError):
    """An argument or option is missing, unknown or unusable, or excludes another one."""


class SparkError(RelaxdpError, RuntimeError):
    """Spark is not there, could not start, or stopped; nothing was charged or released."""


class RapporError(RelaxdpError, ValueError):
    """Parameters, maps, counts or reports of RAPPOR that are not usable, or that do not belong together."""


class LedgerUncertainError(LedgerError):
    """The connection was lost during a commit. The release may be charged, and nothing was handed over."""


class OutputFolderError(RelaxdpError, OSError):
    """A folder for results cannot be written, or holds something that no earlier run has written."""


class AddressError(RelaxdpError, ValueError):
    """An address is not that of a server or of a campaign, or its connection could be read by others."""


class UnreachableError(RelaxdpError, OSError):
    """A server cannot be reached, or not safely. The client may try again."""


class ServerAnswerError(RelaxdpError, ValueError):
    """A server's answer cannot be used: it is too long, no JSON, or wants to send us elsewhere."""


class RefusedByServerError(RelaxdpError, ValueError):
    """A server understood and rejected the request; `fields` has its status and its own error code."""


class TokenError(RelaxdpError, ValueError):
    """The operator's token is missing, or is in a file that others can read."""


class DeviceFileError(RelaxdpError):
    """A device's file is missing, damaged, readable by others, or went back to an earlier state."""


class OfferError(RelaxdpError, ValueError):
    """The description of a campaign is not valid, so a device does not join it."""


class ConsentError(RelaxdpError, ValueError):
    """A campaign asks for more than what its person agreed to when joining it."""


class ParticipationError(RelaxdpError, ValueError):
    """A device has not joined a campaign, has left it, or the campaign is over."""


class AnswerMissingError(ParticipationError):
    """A report was asked for before there is an answer."""


class AnswerChangedError(PathChangedError):
    """A second answer differs from the first. Neither is part of the message."""


class SimulationError(RelaxdpError, ValueError):
    """A simulation makes no sense, or its server did not do what was expected of it."""


# Service and collector. Over HTTP their name travels without "_error": `report_differs`.


class ServiceError(RelaxdpError):
    """A service cannot start, or cannot do what it was asked for. This is the base of what it answers with."""


class MalformedRequestError(ServiceError, ValueError):
    """A request is not what the description of the service says: no JSON, another type, an unknown field."""


class WrongTokenError(ServiceError):
    """The request needs the operator's token, and has another one or none."""


class UnknownRouteError(ServiceError):
    """There is nothing at this address."""


class MethodNotAllowedError(ServiceError):
    """The address exists, but not for this method."""


class RequestTimeoutError(ServiceError):
    """A request did not arrive in time."""


class HeadTooLargeError(ServiceError):
    """The request line and the headers of a request are larger than the limit."""


class BodyTooLargeError(ServiceError):
    """The body of a request is larger than the limit."""


class WrongMediaTypeError(ServiceError):
    """The content type of a request is not JSON."""


class TooManyRequestsError(ServiceError):
    """A client asks more often than it may, or the service has more waiting than it can take."""


class StorageUnavailableError(ServiceError):
    """The database cannot be used now. Send requests again that were not acknowledged."""


class StorageVersionError(ServiceError):
    """The database was created by another version of this package."""


class CampaignError(ServiceError, ValueError):
    """A campaign is described in a way that makes no sense."""


class CampaignExistsError(ServiceError):
    """There is another campaign with this id."""


class UnknownCampaignError(ServiceError):
    """There is no campaign with this id."""


class NotPublishedError(ServiceError):
    """Nothing is published of a campaign: not yet, or never."""


class CampaignStateError(ServiceError):
    """The request is not possible in the current state of the campaign."""


class CampaignReducedError(ServiceError):
    """The reports of a campaign were reduced to counts and are gone."""


class CampaignClosedError(ServiceError):
    """A campaign takes no reports now."""


class LevelNotOpenError(ServiceError):
    """A report is at a level that the campaign has not opened."""


class ReportDiffersError(ServiceError):
    """A device sent another report at this level before: it is broken or dishonest."""


class ReportOutsideEncodingError(ServiceError, ValueError):
    """The report does not fit the mechanism of the campaign."""


class InvitationRefusedError(ServiceError):
    """An invitation is missing, unknown or used."""


class DeviceWithdrawnError(ServiceError):
    """A device has withdrawn from a campaign, which is final."""


# The market.


class MarketError(ServiceError, ValueError):
    """Something that a seller, a buyer or the operator asked of the market makes no sense."""


class MarketClosedError(ServiceError):
    """The service was started without a key for the market."""


class MarketKeyError(ServiceError):
    """The market of this database was opened with another key."""


class WrongRoleError(ServiceError):
    """A token is known, but its account has another role than what was asked for needs."""


class UnknownAccountError(ServiceError):
    """There is no account with this name."""


class AccountExistsError(ServiceError):
    """There is another account with this name."""


class UnknownListingError(ServiceError):
    """There is no listing with this id."""


class ListingExistsError(ServiceError):
    """There is another listing with this id, or of this very release: one path is sold in one place."""


class ListingStateError(ServiceError):
    """The request is not possible in the current state of the listing."""


class ForgottenSalesError(ServiceError):
    """The market's database was restored from an older copy, and does not know what was sold since."""


class UnknownPurchaseError(ServiceError):
    """There is no purchase with this number, or it belongs to someone else."""


class DeliveryError(MarketError):
    """A delivery does not fit what was delivered before: other ids, other values, another key, a smaller level."""


class PriceError(MarketError):
    """Prices fall, cannot be read, do not reach the level on sale, or change what is on sale already."""


class NotAuthorisedError(ServiceError):
    """An epsilon is above the largest one that the seller has delivered."""


class UnknownLevelError(ServiceError, ValueError):
    """The listing does not sell a level with this epsilon."""


class NotOwnedError(ServiceError):
    """An upgrade of what the buyer does not own."""


class OwnedAlreadyError(ServiceError):
    """The buyer owns a level of this listing already, which decides what can be bought."""


class CreditsError(ServiceError):
    """An account has fewer credits than what is due."""


class PriceChangedError(ServiceError):
    """The price is higher than the maximum that the buyer accepts."""


class ReceiptForgedError(MarketError):
    """A receipt was not signed by this market, or was changed after it was signed."""


class VaultError(RelaxdpError):
    """A vault or a snapshot is missing, damaged or readable by others, or cannot be created."""


class OldVaultError(VaultError):
    """A vault is older than its last use on this machine, has another history, or was copied here."""


class RowsChangedError(RelaxdpError):
    """Rows of a table have other values than when they were released, or too many ids are new."""


class QueryError(RelaxdpError, ValueError):
    """A query about a table is not one SELECT, is rejected by DuckDB, or fails. No cell is part of the message."""
