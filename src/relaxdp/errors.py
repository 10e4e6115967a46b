"""Every exception of the package: a sentence made from fields, and never a truth or a key.

Whoever raises an error says what is wrong, as a sentence with places for its fields. What did not happen because of it,
and the way out, are added at the boundary where a person stands (`refusing`): a function of the library, a command, a
route.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ContextDecorator
from decimal import Decimal
from typing import Any

# So many hexadecimal digits are a key (64 of them), or nearly one; digits alone are a long number.
_KEY = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{48,}", re.IGNORECASE)
_ROW = re.compile(r"\{row\b")


def without_keys(text: str) -> str:
    """Return text without what looks like a key: people give one where the name of its file belongs.

    >>> without_keys("there is no file '" + "a1" * 32 + "'.")
    "there is no file '(what looks like a key)'."
    """
    return _KEY.sub("(what looks like a key)", text)


class RelaxdpError(Exception):
    """The base of all errors that this package raises on purpose.

    `fields` holds what a program may want to know (never a secret), and all that the sentence says beside its own
    words. `code` is the class name in snake case; it is what a JSON error carries. `remedy` names ways out, for which
    each interface has its own words. Neither the sentence nor a field shows what looks like a key.

    >>> print(EpsilonError("epsilon {epsilon} is too small.", epsilon="1e-30"))
    epsilon 1e-30 is too small.
    """

    def __init__(self, sentence: str, /, *, remedy: str = "", hint: str = "", **fields: Any) -> None:
        super().__init__(sentence)
        self.template, self.remedy, self.hint_template, self.consequence = sentence, remedy, hint, ""
        self.fields = {name: _plain(value) for name, value in fields.items()}
        self._remedies: Mapping[str, str] = {}

    @property
    def code(self) -> str:
        """Return the class name in snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def sentence(self) -> str:
        """What is wrong. A row that is at fault is named first, and how rows are counted if not as they come."""
        said = without_keys(self.template.format(**self.fields))
        if self.fields.get("row") is None or _ROW.search(self.template):
            return said
        counted = " in the order of the ids" if self.fields.get("counted") == "by id" else ""
        column = self.fields.get("of_column")
        return f"row {self.fields['row']:,}{'' if column is None else f' of {column!r}'}{counted}: {said}"

    @property
    def message(self) -> str:
        """What a person reads: what is wrong, the way out, and what did not happen."""
        return " ".join(part for part in (self.sentence, self.hint, self.consequence) if part)

    @property
    def hint(self) -> str:
        """What to do, as an instruction; empty where nothing can be done."""
        ways_out = [self._remedies.get(name, "") for name in self.remedy.split()]
        return without_keys(" ".join(part.format(**self.fields) for part in (self.hint_template, *ways_out) if part))

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> Any:
        return _again, (type(self), self.template, self.remedy, self.hint_template, self.fields, self.consequence)


def _again(
    kind: type[RelaxdpError], template: str, remedy: str, hint: str, fields: Mapping[str, Any], consequence: str
) -> RelaxdpError:
    made = kind(template, remedy=remedy, hint=hint, **fields)
    made.consequence = consequence
    return made


def _plain(value: Any) -> Any:
    """Return a field as JSON knows it: numbers stay numbers, everything else is its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, str):  # NumPy's numbers
        return _plain(value.item())
    return without_keys(str(value))


class refusing(ContextDecorator):  # noqa: N801 (used as a statement)
    """A boundary: what did not happen when something is refused within, and the ways out in the interface's words.

    The innermost boundary knows best what happened; the outermost one knows whom it speaks to.
    """

    def __init__(self, consequence: str = "", remedies: Mapping[str, str] | None = None) -> None:
        self._consequence, self._remedies = consequence, remedies

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, RelaxdpError):
            self.add_to(problem)

    def add_to(self, problem: RelaxdpError) -> None:
        """Add them to an error that passes."""
        problem.consequence = problem.consequence or self._consequence
        if self._remedies is not None:
            problem._remedies = self._remedies


class OtherEncodingError(RelaxdpError, TypeError):
    """Levels, or reports, of two encodings were put together."""


class EpsilonError(RelaxdpError, ValueError):
    """An epsilon is not a positive, finite, exactly written number, or cannot be realised."""


class LevelMismatchError(RelaxdpError, ValueError):
    """An epsilon and a threshold that do not belong together: the threshold tells more than the epsilon allows."""


class LevelError(RelaxdpError, ValueError):
    """A level is out of order: a lower epsilon after a higher one, or ends of a bridge that do not fit."""


class ValuesError(RelaxdpError, ValueError):
    """The declared values are not usable: too few, repeated, or of different kinds."""


class UndeclaredValueError(RelaxdpError, ValueError):
    """A truth is not one of the declared values. The truth itself is never part of the message."""


class RangeError(RelaxdpError, ValueError):
    """A number lies outside of the declared range, or the range is none. The number is never part of the message."""


class ObjectIdError(RelaxdpError, ValueError):
    """An object id is null, of a kind that has no exact bytes, or repeated."""


class ColumnError(RelaxdpError, TypeError):
    """A column is not a list, array or series of one dimension, or hides part of itself behind a mask."""


class PathNameError(RelaxdpError, ValueError):
    """A release or an attribute has no usable name."""


class LengthError(RelaxdpError, ValueError):
    """Two columns that belong together have different lengths."""


class KernelError(RelaxdpError):
    """The compiled path was asked for and is not to be had, or does not draw what it should."""


class KeyFileError(RelaxdpError):
    """A key file is missing, damaged, readable by others, or would be overwritten."""


class ChainFileError(RelaxdpError):
    """The file that keeps the last report of a relaxation is damaged or belongs to something else."""


class EncodingError(RelaxdpError, ValueError):
    """An encoding is unknown, or its name is already taken."""


class CountsError(RelaxdpError, ValueError):
    """Counts are negative, empty or do not fit the declared values, or a question to an estimate makes no sense."""


class MissingPartError(RelaxdpError, ImportError):
    """Something optional is not installed; the sentence says how to install it."""


class ScheduleError(RelaxdpError, ValueError):
    """A schedule of levels makes no sense: it is empty, it falls, or it has too few steps."""


class PlanError(RelaxdpError, ValueError):
    """A question to the planner makes no sense, or nothing can reach what it asks for."""


class TellsNothingError(RelaxdpError, ValueError):
    """A release would be charged and tell next to nothing: too few rows, too small an epsilon, a poor encoding."""


class DescriptionError(RelaxdpError, ValueError):
    """A released file does not say what it holds, or in a way that this version cannot read."""


class TableFileError(RelaxdpError, OSError):
    """A table cannot be read or written; the sentence shows nothing of its content."""


class TableDamagedError(TableFileError):
    """A table is damaged, cut off, or of another kind than its name says."""


class SnapshotError(TableFileError):
    """What a release was drawn from is not at hand: missing, damaged, of another key, or not what the ledger names."""


class DeriveError(RelaxdpError, ValueError):
    """A truth cannot be derived from a column: bins, a map or numbers that do not fit it."""


class UnknownColumnError(RelaxdpError, KeyError):
    """A table does not have a column of that name, or one column is asked for twice."""


class MixedFilesError(RelaxdpError, ValueError):
    """Released files that do not belong together: of other values, another release or another key."""


class LedgerError(RelaxdpError):
    """The ledger cannot be used. This is the base of what can be wrong with the place where it is kept."""


class LedgerAccessError(LedgerError):
    """The ledger is missing, or may not be read or written."""


class LedgerDamagedError(LedgerError):
    """The ledger is damaged, is no ledger, or went back to an earlier state."""


class LedgerFullError(LedgerError):
    """There is no room to write down what would be spent."""


class LedgerLockedError(LedgerError):
    """Another process held the ledger for longer than the timeout."""


class LedgerChangedError(LedgerError):
    """Somebody else changed the ledger between a quote and the charge that relied on it."""


class LedgerVersionError(LedgerError):
    """The ledger was created by another version of this package."""


class StateFolderWarning(UserWarning):
    """The folder in which it is remembered where a key has spent cannot be used. Nobody is stopped by that."""


class BudgetError(RelaxdpError, ValueError):
    """A budget is no number, has no reason, exists already, or would not grow."""


class BudgetMissingError(BudgetError):
    """Something is to be released before a budget was set."""


class BudgetExceededError(BudgetError):
    """A release needs more than what is left of the budget."""


class PathChangedError(RelaxdpError, ValueError):
    """A path is to be continued with something that is not what it was opened with."""


class ValuesChangedError(PathChangedError):
    """The encoding, the declared values or their order are not those that the path was opened with."""


class IdTypeError(PathChangedError):
    """The ids are of another type than those that the path was opened with."""


class UnknownReleaseError(RelaxdpError, LookupError):
    """The ledger knows no release of this name, or not of this column or date."""


class OptionError(RelaxdpError, ValueError):
    """Options of a command exclude or need each other."""


class SparkError(RelaxdpError, RuntimeError):
    """Spark is not there, could not start, or stopped; nothing was charged or released."""


class RapporError(RelaxdpError, ValueError):
    """Parameters, maps, counts or reports of RAPPOR that are not usable, or that do not belong together."""


class LedgerUncertainError(LedgerError):
    """The connection was lost during a commit: what was to be charged may be charged, and nothing was released."""


class AuditError(RelaxdpError, ValueError):
    """A question to the auditor or to an attack makes no sense, or a mechanism does not answer as it must."""


class UnknownClaimError(RelaxdpError, ValueError):
    """A claim of the paper is asked for by a name that none has."""


class OutputFolderError(RelaxdpError, OSError):
    """A folder for results cannot be written, or holds something that no earlier run has written."""


class AddressError(RelaxdpError, ValueError):
    """An address is not that of a server or of a campaign, or its connection could be read by others."""


class UnreachableError(RelaxdpError, OSError):
    """A server cannot be reached, or not safely. Whoever asked may ask again."""


class ServerAnswerError(RelaxdpError, ValueError):
    """A server's answer cannot be used: it is too long, no JSON, or wants to send us elsewhere."""


class RefusedByServerError(RelaxdpError, ValueError):
    """A server understood and refused; `fields` has its status and its own error code."""


class TokenError(RelaxdpError, ValueError):
    """The operator's token is missing, or lies where others can read it."""


class DeviceFileError(RelaxdpError):
    """A device's file is missing, damaged, readable by others, or went back to an earlier state."""


class OfferError(RelaxdpError, ValueError):
    """What a server says of a campaign cannot be relied on, so a device has nothing to do with it."""


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
    """What only an operator may do was asked for without the operator's token."""


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
    """The body of a request says that it is not JSON."""


class TooManyRequestsError(ServiceError):
    """A client asks more often than it may, or the service has more waiting than it can take."""


class StorageUnavailableError(ServiceError):
    """The database cannot be used now. What was not acknowledged may be sent again."""


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
    """What was asked for makes no sense in the state that a campaign is in."""


class CampaignReducedError(ServiceError):
    """The reports of a campaign were reduced to counts and are gone."""


class CampaignClosedError(ServiceError):
    """A campaign takes no reports now."""


class LevelNotOpenError(ServiceError):
    """A report is at a level that the campaign has not opened."""


class ReportDiffersError(ServiceError):
    """A device sent another report at this level before: it is broken or dishonest."""


class ReportOutsideEncodingError(ServiceError, ValueError):
    """What was sent is no report of the campaign's encoding."""


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
    """What was asked for makes no sense in the state that a listing is in."""


class ForgottenSalesError(ServiceError):
    """The market's database was restored from an older copy, and does not know what was sold since."""


class UnknownPurchaseError(ServiceError):
    """There is no purchase with this number, or it is somebody else's."""


class DeliveryError(MarketError):
    """A delivery does not fit what was delivered before: other ids, other values, another key, a smaller level."""


class PriceError(MarketError):
    """Prices fall, cannot be read, do not reach the level on sale, or change what is on sale already."""


class NotAuthorisedError(ServiceError):
    """An epsilon is above the largest one that the seller has delivered."""


class UnknownLevelError(ServiceError, ValueError):
    """An epsilon is none of the levels that a listing sells."""


class NotOwnedError(ServiceError):
    """An upgrade of what the buyer does not own."""


class OwnedAlreadyError(ServiceError):
    """The buyer owns a level of this listing already, which decides what can be bought."""


class CreditsError(ServiceError):
    """An account has fewer credits than what is due."""


class PriceChangedError(ServiceError):
    """What is asked for costs more than the buyer is ready to pay."""


class ReceiptForgedError(MarketError):
    """A receipt was not signed by this market, or was changed after it was signed."""


class VaultError(RelaxdpError):
    """A vault is missing, damaged, open to others, or cannot be created."""


class OldVaultError(VaultError):
    """A vault is older than its last use on this machine, has another history, or was copied here."""


class RowsChangedError(RelaxdpError):
    """Rows of a table have other values than when they were released, or too many ids are new."""


class VaultChangedError(LedgerChangedError):
    """Another process released the same name while this release ran."""


class RetiredError(RelaxdpError):
    """A release is retired: it is neither released nor relaxed again."""


class ExposedColumnError(RelaxdpError, ValueError):
    """A column that left in the clear is to be protected, or a protected one is to leave in the clear."""


class QueryError(RelaxdpError, ValueError):
    """A query about a table is not one SELECT, is rejected by DuckDB, or fails. No cell is part of the message."""
