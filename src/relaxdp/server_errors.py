"""Errors of servers and of their clients: devices, operators, sellers and buyers.

Over HTTP an error is called by its `code` without "_error", such as `report_differs`.
"""

from __future__ import annotations

from relaxdp.errors import BudgetError, RelaxdpError

# Clients and devices.


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


class BudgetMissingError(BudgetError):
    """Something is to be released before a budget was set."""


class ParticipationError(RelaxdpError, ValueError):
    """A device has not joined a campaign, has left it, or the campaign is over."""


class AnswerMissingError(ParticipationError):
    """A report was asked for before there is an answer."""


class PathChangedError(RelaxdpError, ValueError):
    """A path is to be continued with something that is not what it was opened with."""


class ValuesChangedError(PathChangedError):
    """The mechanism, the declared values or their order differ from those of the path."""


class AnswerChangedError(PathChangedError):
    """A second answer differs from the first. Neither is part of the message."""


class SimulationError(RelaxdpError, ValueError):
    """A simulation makes no sense, or its server did not do what was expected of it."""


# Servers and campaigns.


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
    """A request to the market makes no sense: an amount, falling prices, too many levels, a member's name."""


class WrongRoleError(ServiceError):
    """A token is known, but the request needs the token of another role."""


class UnknownListingError(ServiceError):
    """There is no listing with this name, or it belongs to someone else."""


class ListingExistsError(ServiceError):
    """The path is listed already, or the name of the listing is taken."""


class LevelFileError(MarketError):
    """A file is not that of one level of a listing: it is damaged, or has other columns, ids or reports."""


class LevelDiffersError(ServiceError):
    """A published level is sent again with other ids or reports. It is never replaced."""


class UnknownLevelError(ServiceError, ValueError):
    """The listing does not sell a level with this epsilon."""


class UnknownOrderError(ServiceError):
    """There is no order with this name, or it belongs to someone else."""


class OrderStateError(ServiceError):
    """The request is not possible in the current state of the order, or with what the buyer has already."""


class ReceiptError(MarketError):
    """A receipt was not signed by this market, was changed, or belongs to another file."""
