"""What people see of a campaign: everybody, and its operator."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.collector import publishing
from relaxdp.collector.campaign import ATTRIBUTE, Campaign
from relaxdp.collector.introduction import introduction_of
from relaxdp.collector.invitations import numbers
from relaxdp.collector.rules import CampaignState
from relaxdp.collector.wire import (
    Devices,
    InvitationNumbers,
    OperatorCampaign,
    PublicCampaign,
    Readable,
    Refused,
    SurveyPlace,
)

_FRESH = {"cache-control": "no-cache"}


def public_view(campaign: Campaign, state: CampaignState) -> PublicCampaign:
    """Return what a device needs."""
    asked, member = campaign.definition, campaign.member
    return PublicCampaign(
        id=campaign.id,
        question=asked.question,
        encoding=campaign.public_encoding,
        release=campaign.id,
        attribute=ATTRIBUTE,
        levels=campaign.levels,
        open_level=state.open_level,
        state=state.state,
        opens=asked.opens,
        closes=asked.closes,
        largest_epsilon=str(asked.largest_epsilon),
        needs_invitation=asked.invitations,
        publish=asked.publish,
        survey=None if member is None else SurveyPlace(member.survey, [each.id for each in member.partners]),
        learns=campaign.learning,
        **introduction_of(asked),
    )


def operator_view(connection: Connection, campaign: Campaign, state: CampaignState) -> OperatorCampaign:
    """Return what the operator sees."""
    public = public_view(campaign, state)
    own = {name: getattr(public, name) for name in public.__struct_fields__}
    issued, used = numbers(connection, campaign.number)
    return OperatorCampaign(
        **own,
        devices=Devices(sum(state.devices), list(state.devices), list(state.reports)),
        half_width=campaign.precision.half_width(state.devices),
        readable=_readable(campaign, state),
        target=campaign.definition.target,
        target_met=campaign.target_met(list(state.devices)),
        automatic_devices=campaign.definition.devices,
        level_opens=[level.opens for level in campaign.definition.levels],
        reduced=state.reduced,
        refused=Refused(state.differing),
        invitations=InvitationNumbers(issued, used),
        version=state.version,
        published=publishing.stage(connection, campaign, state),
    )


def _readable(campaign: Campaign, state: CampaignState) -> Readable:
    target, precision = campaign.definition.target, campaign.precision
    wanted = precision.readable if target is None else max(precision.readable, target.half_width)
    return Readable(wanted, precision.more_for(wanted, state.devices, state.open_level or 0))


def tagged(
    request: Request, content: bytes, media_type: str = "application/json", headers: Mapping[str, str] = _FRESH
) -> Response:
    """Answer with content and an entity tag that changes with it; with 304 where the client has this content."""
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={**headers, "etag": tag})
    return Response(content, media_type=media_type, headers={**headers, "etag": tag})


ENCODER = msgspec.json.Encoder()
