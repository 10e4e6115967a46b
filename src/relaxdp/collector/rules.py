"""When a campaign opens, relaxes and finishes by itself: a pure function of definition, state and clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relaxdp.collector.campaign import Campaign
from relaxdp.collector.wire import State


@dataclass(frozen=True, slots=True)
class CampaignState:
    """What changes during a campaign's life."""

    state: State
    open_level: int | None
    version: int
    devices: tuple[int, ...]
    """How many devices have each level as their highest."""
    differing: int = 0
    reduced: bool = False
    reports: tuple[int, ...] = ()
    """How many reports were stored at each level and not withdrawn, also of devices that went further."""


def first_state(campaign: Campaign) -> CampaignState:
    """Return the state of a campaign before anything happened."""
    none = (0,) * len(campaign.levels)
    return CampaignState("waiting", None, 0, none, reports=none)


def decided(campaign: Campaign, state: CampaignState, now: float) -> CampaignState:
    """Return the state that follows from the dates and from the numbers of devices; no report is looked at.

    The target is checked before a level is opened, so a campaign ends at the smallest level that suffices.

    Claim: coverage after the stop; tests/statistical/collector/test_stopping.py.
    """
    while True:
        following = _one_step(campaign, state, now)
        if following is state:
            return state
        state = replace(following, version=state.version + 1)


def _one_step(campaign: Campaign, state: CampaignState, now: float) -> CampaignState:
    if state.state == "finished":
        return state
    if campaign.closes is not None and now >= campaign.closes:
        return replace(state, state="finished")
    if state.state == "waiting":
        if campaign.opens is not None and now < campaign.opens:
            return state
        return replace(state, state="open", open_level=0)
    if state.state == "paused" or state.open_level is None:
        return state
    if campaign.target_met(list(state.devices)):
        return replace(state, state="finished")
    above = state.open_level + 1
    if above == len(campaign.levels):
        return state
    dated = campaign.level_opens[above]
    wanted = campaign.definition.devices
    by_date = dated is not None and now >= dated
    # A level with a date waits for it, however many devices there are.
    by_number = dated is None and wanted is not None and state.devices[state.open_level] >= wanted
    return replace(state, open_level=above) if by_date or by_number else state
