"""Campaigns in the database: created, found, relaxed, paused, finished, reduced; and devices that withdraw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from relaxdp.collector import counts, joint, pairs, publishing, reports, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.invitations import unused, use
from relaxdp.collector.rules import CampaignState, decided, first_state
from relaxdp.collector.schema import CAMPAIGNS, INVITATIONS, WITHDRAWN
from relaxdp.collector.wire import CampaignRequest
from relaxdp.server_errors import CampaignExistsError, CampaignReducedError, CampaignStateError, UnknownCampaignError
from relaxdp.storage.database import hold_creation

Step = Literal["relax", "pause", "resume", "finish", "reduce"]

_DECODER = msgspec.json.Decoder(CampaignRequest)


def prepared(request: CampaignRequest) -> Campaign:
    """Return a campaign that is not stored yet, or refuse it. This is work for a thread of its own."""
    campaign = Campaign(0, complete(request))
    publishing.check(campaign)
    return campaign


def create(connection: Connection, campaign: Campaign, now: float, survey: str | None = None) -> Campaign:
    """Store a new campaign; of a survey, if it is a question of one."""
    hold_creation(connection)
    if connection.execute(select(CAMPAIGNS.c.number).where(CAMPAIGNS.c.id == campaign.id)).first() is not None:
        raise CampaignExistsError("there is a campaign with the id {id!r} already.", id=campaign.id)
    number = (connection.execute(select(func.max(CAMPAIGNS.c.number))).scalar() or 0) + 1
    text = msgspec.json.encode(campaign.definition).decode()
    row = {"number": number, "id": campaign.id, "definition": text, "survey": survey}
    connection.execute(insert(CAMPAIGNS).values(row))
    campaign.number = number
    states.create(connection, number, decided(campaign, first_state(campaign), now))
    return campaign


def find(connection: Connection, campaign_id: str) -> Campaign:
    """Return a campaign by its id."""
    table = CAMPAIGNS.c
    query = select(table.number, table.definition, table.survey).where(table.id == campaign_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownCampaignError("there is no campaign with this id.")
    member = None if row.survey is None else joint.membership(connection, row.survey, campaign_id)
    return Campaign(row.number, _DECODER.decode(row.definition), member)


def all_ids(connection: Connection) -> list[str]:
    """Return the ids of all campaigns, the oldest first."""
    return list(connection.execute(select(CAMPAIGNS.c.id).order_by(CAMPAIGNS.c.number)).scalars())


def step(
    connection: Connection, campaign: Campaign, what: Step, now: float, *, with_survey: bool = False
) -> CampaignState:
    """Do what an operator asks for."""
    if what == "reduce" and campaign.partners and not with_survey:
        raise CampaignStateError(
            "questions that are counted together are reduced together, with their survey.",
            state=states.look(connection, campaign.number).state,
        )
    held = states.hold(connection, campaign.number)
    state = decided(campaign, held, now)
    following = _STEPS[what](campaign, state)
    following = decided(campaign, replace(following, version=state.version + 1), now)
    states.write(connection, campaign.number, following)
    if what != "finish":  # whoever ends it by hand may have looked at reports
        publishing.close(connection, campaign, held, following)
    return following


def tick(connection: Connection, campaign: Campaign, now: float) -> CampaignState:
    """Do what the dates say."""
    state = states.hold(connection, campaign.number)
    following = decided(campaign, state, now)
    if following is not state:
        states.write(connection, campaign.number, following)
        publishing.close(connection, campaign, state, following)
    return following


def withdraw(
    connection: Connection, campaign: Campaign, device: bytes, now: float, invitation: bytes | None = None
) -> CampaignState:
    """Remove all reports of a device and what they counted for; later ones are refused.

    A device of which nothing is stored may have a report on its way, so it is remembered as well, but only where that
    report would be taken, at the same price: in an open campaign, by an invitation where the campaign has those. So
    nobody writes more by withdrawing than by reporting, and nothing where no reports are taken.
    """
    joint.hold(connection, [campaign])
    state = states.hold(connection, campaign.number)
    if state.reduced:
        raise CampaignReducedError(
            "the reports of this campaign were reduced to counts: nobody can tell any more which were this device's."
        )
    own = reports.find(connection, campaign.number, [device]).get(device, {})
    current = decided(campaign, state, now)
    if not own:
        if current.state == "open" and _admitted(connection, campaign, invitation):
            reports.remove(connection, campaign.number, device)
    elif WITHDRAWN not in own:
        reports.remove(connection, campaign.number, device)
        changes = pairs.Changes()
        changes.withdrawn(own)
        levels, moved, paired = changes.counted(campaign.codec)
        counts.add(connection, campaign.number, levels)
        counts.add(connection, campaign.number, moved, moved=True)
        pairs.add(connection, campaign.number, paired)
        joint.change(connection, campaign, {device: own}, {device: {}})
        devices = tuple(number - (level == max(own)) for level, number in enumerate(state.devices))
        sent = tuple(number - (level in own) for level, number in enumerate(state.reports))
        following = replace(state, devices=devices, reports=sent, version=state.version + 1)
        states.write(connection, campaign.number, following)
    return current


def _admitted(connection: Connection, campaign: Campaign, invitation: bytes | None) -> bool:
    """Tell whether a device that is not known could report, and use its invitation up."""
    if not campaign.definition.invitations:
        return True
    found = unused(connection, campaign.number, set() if invitation is None else {invitation})
    use(connection, campaign.number, found)
    return bool(found)


def sweep(connection: Connection, campaign: Campaign, most: int) -> int:
    """Remove some of the reports of a campaign that was reduced; return how many."""
    connection.execute(delete(INVITATIONS).where(INVITATIONS.c.campaign == campaign.number))
    return reports.remove_some(connection, campaign.number, most)


def _relax(campaign: Campaign, state: CampaignState) -> CampaignState:
    if state.state != "open" or state.open_level is None:
        raise _refused(state)
    if state.open_level + 1 == len(campaign.levels):
        raise CampaignStateError("the campaign is at its last level.", state=state.state)
    if campaign.definition.publish is not None:
        raise CampaignStateError(
            "levels of a campaign that is published open by dates and by numbers of devices only.", state=state.state
        )
    return replace(state, open_level=state.open_level + 1)


def _pause(campaign: Campaign, state: CampaignState) -> CampaignState:
    if state.state != "open":
        raise _refused(state)
    return replace(state, state="paused")


def _resume(campaign: Campaign, state: CampaignState) -> CampaignState:
    if state.state != "paused":
        raise _refused(state)
    return replace(state, state="open")


def _finish(campaign: Campaign, state: CampaignState) -> CampaignState:
    if state.state == "finished":
        raise _refused(state)
    return replace(state, state="finished")


def _reduce(campaign: Campaign, state: CampaignState) -> CampaignState:
    if state.state != "finished":
        raise CampaignStateError("the campaign is {state}: only a finished one is reduced.", state=state.state)
    return replace(state, reduced=True)


def _refused(state: CampaignState) -> CampaignStateError:
    return CampaignStateError("the campaign is {state}.", state=state.state)


_STEPS: dict[Step, Callable[[Campaign, CampaignState], CampaignState]] = {
    "relax": _relax,
    "pause": _pause,
    "resume": _resume,
    "finish": _finish,
    "reduce": _reduce,
}
