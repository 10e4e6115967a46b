"""What people see of a campaign: everybody, and its operator."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from sqlalchemy import Connection

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


def etag_of(content: bytes) -> str:
    """Return a tag that changes with the content.

    >>> etag_of(b"") == etag_of(b"")
    True
    """
    return f'"{sha256(content).hexdigest()[:32]}"'


ENCODER = msgspec.json.Encoder()
