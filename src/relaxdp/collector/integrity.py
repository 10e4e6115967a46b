"""Whether reports of a campaign were fabricated, from the counts of pairs alone."""

from __future__ import annotations

from typing import Any

from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import EstimateOptions, Integrity, MadeUp, PushedValue, Reach, Row
from relaxdp.collector.pairs import Kept
from relaxdp.collector.rows import rows_of
from relaxdp.collector.rules import CampaignState
from relaxdp.estimation.poisoning import PoisoningTest, ReportPairs, check_pairs
from relaxdp.estimation.result import RowIndexes


def inspected(campaign: Campaign, state: CampaignState, kept: Kept) -> PoisoningTest:
    """Return what the pairs say."""
    pairs = ReportPairs(campaign.mechanism)
    levels = [campaign.encoding.level(each.epsilon) for each in campaign.levels]
    for place, numbers in kept.items():
        pairs.add_counts(numbers, (levels[place.older], levels[place.newer]), superseded=place.moved)
    schedule = [each.epsilon for each in campaign.levels]
    return check_pairs(pairs, n=sum(state.devices), levels=schedule)


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
    reach = found.undetected_influence
    shares = (
        None
        if found.uncleaned_shares is None
        else pooled
        if not found.n_untested_individuals
        else rows_of(found.uncleaned_shares, options, chosen)
    )
    return Integrity(
        tested=found.n_tested_individuals,
        untested=found.n_untested_individuals or 0,
        alarm=found.is_alarm,
        false_alarms=found.false_alarm_rate,
        p_value=found.p_value,
        p_value_ever=found.anytime_p_value,
        unnoticed=found.n_unnoticed_repeaters,
        made_up=_made_up(found.fabricator_count),
        pushed=[
            PushedValue(each.label, _KINDS[each.kind], _made_up(each.individuals)) for each in found.suspicious_values
        ],
        shares=shares,
        without=None if found.cleaned_shares is None else rows_of(found.cleaned_shares, options, chosen),
        reach=None if reach is None else Reach(reach.epsilon, reach.individuals, reach.values),
        limits=found.limitations,
    )


_KINDS: dict[str, Any] = {kind: kind for kind in ("repeated", "changed", "older")}


def _made_up(found: Any) -> MadeUp:
    return MadeUp(found.estimate, found.low, found.high)
