"""Whether the reports of a campaign were made up, from the counts of pairs alone."""

from __future__ import annotations

from typing import Any

from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import EstimateOptions, Integrity, MadeUp, PushedValue, Reach, Row
from relaxdp.collector.pairs import Kept
from relaxdp.collector.rows import rows_of
from relaxdp.collector.rules import CampaignState
from relaxdp.estimation.poisoning import Integrity as Found
from relaxdp.estimation.poisoning import integrity
from relaxdp.estimation.report_pairs import Transitions
from relaxdp.estimation.result import RowIndexes


def inspected(campaign: Campaign, state: CampaignState, kept: Kept) -> Found:
    """Return what the pairs say."""
    pairs = Transitions(campaign.mechanism)
    levels = [campaign.encoding.level(each.epsilon) for each in campaign.levels]
    for place, numbers in kept.items():
        pairs.add_numbers(numbers, (levels[place.older], levels[place.newer]), moved=place.moved)
    schedule = [each.epsilon for each in campaign.levels]
    return integrity(pairs, n=sum(state.devices), levels=schedule)


def integrity_of(
    campaign: Campaign,
    state: CampaignState,
    kept: Kept,
    options: EstimateOptions,
    chosen: RowIndexes | None,
    pooled: list[Row] | None,
) -> Integrity | None:
    """Return the entry of an estimate, with those values that it has; None where there is one level."""
    if len(campaign.levels) < 2:
        return None
    found = inspected(campaign, state, kept)
    reach = found.reach
    shares = None if found.shares is None else pooled if not found.untested else rows_of(found.shares, options, chosen)
    return Integrity(
        tested=found.tested,
        untested=found.untested or 0,
        alarm=found.is_alarm,
        false_alarms=found.false_alarms,
        p_value=found.p_value,
        p_value_ever=found.p_value_ever,
        made_up=_made_up(found.made_up),
        pushed=[PushedValue(each.label, _KINDS[each.kind], _made_up(each.devices)) for each in found.pushed],
        shares=shares,
        without=None if found.without is None else rows_of(found.without, options, chosen),
        reach=None if reach is None else Reach(reach.epsilon, reach.most, reach.at_once),
        limits=found.limits,
    )


_KINDS: dict[str, Any] = {kind: kind for kind in ("repeated", "changed", "older")}


def _made_up(found: Any) -> MadeUp:
    return MadeUp(found.estimate, found.low, found.high)
