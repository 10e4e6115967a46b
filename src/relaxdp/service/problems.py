"""Errors over HTTP: one JSON shape on every route, and one status for every kind of error."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from relaxdp import errors
from relaxdp.errors import RelaxdpError

STATUSES: dict[type[RelaxdpError], int] = {
    errors.MalformedRequestError: 400,
    errors.WrongTokenError: 401,
    errors.InvitationRefusedError: 403,
    errors.WrongRoleError: 403,
    errors.UnknownRouteError: 404,
    errors.UnknownCampaignError: 404,
    errors.UnknownListingError: 404,
    errors.UnknownPurchaseError: 404,
    errors.UnknownAccountError: 404,
    errors.MethodNotAllowedError: 405,
    errors.RequestTimeoutError: 408,
    errors.CampaignExistsError: 409,
    errors.CampaignStateError: 409,
    errors.CampaignReducedError: 409,
    errors.CampaignClosedError: 409,
    errors.LevelNotOpenError: 409,
    errors.ReportDiffersError: 409,
    errors.DeviceWithdrawnError: 409,
    errors.AccountExistsError: 409,
    errors.ListingExistsError: 409,
    errors.ListingStateError: 409,
    errors.ForgottenSalesError: 409,
    errors.NotAuthorisedError: 409,
    errors.NotOwnedError: 409,
    errors.OwnedAlreadyError: 409,
    errors.CreditsError: 409,
    errors.PriceChangedError: 409,
    errors.BodyTooLargeError: 413,
    errors.WrongMediaTypeError: 415,
    errors.ReportOutsideEncodingError: 422,
    errors.CampaignError: 422,
    errors.MissingPartError: 422,
    errors.TooManyRequestsError: 429,
    errors.StorageUnavailableError: 503,
    errors.MarketClosedError: 503,
}
"""Whatever else the package raises on purpose is a mistake of the person who asked: 422."""

_HEADERS: dict[int, dict[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},
    413: {"connection": "close"},
    429: {"retry-after": "1"},
    503: {"retry-after": "2"},
}


class Problem(msgspec.Struct, frozen=True):
    """What every error looks like."""

    error: str
    message: str
    fields: dict[str, Any]


def code_of(kind: type[RelaxdpError]) -> str:
    """Return how a kind of error is called over HTTP.

    >>> code_of(errors.ReportDiffersError)
    'report_differs'
    """
    return kind("").code.removesuffix("_error")


def status_of(kind: type[BaseException]) -> int:
    """Return the status of a kind of error: that of the nearest base class that has one."""
    return next((STATUSES[base] for base in kind.__mro__ if base in STATUSES), 422)


def problem_response(
    problem: RelaxdpError, nothing: str = "Nothing was done.", headers: dict[str, str] | None = None
) -> Response:
    """Return the answer for an error. `nothing` says what did not happen, unless whoever refused has said it."""
    status = status_of(type(problem))
    problem.consequence = problem.consequence or nothing
    content = msgspec.json.encode(Problem(code_of(type(problem)), problem.message, problem.fields))
    return Response(
        content, status, headers={**_HEADERS.get(status, {}), **(headers or {})}, media_type="application/json"
    )
