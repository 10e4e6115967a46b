"""Ingest: many reports of many requests in one transaction, each with an answer of its own.

Counts, pairs, what is counted of two questions together, numbers of devices and the state of the campaign change in
the same transaction as the reports do, so whatever was acknowledged is counted, and nothing is counted that was not
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from msgspec import Struct
from sqlalchemy import Connection

from relaxdp.collector import counts, joint, pairs, publishing, reports, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.invitations import unused, use
from relaxdp.collector.rules import CampaignState, decided
from relaxdp.collector.schema import WITHDRAWN
from relaxdp.service.codecs import Codec, Counted

NEW, SAME = "new", "same"
DIFFERS, CLOSED, NOT_OPEN = "report_differs", "campaign_closed", "level_not_open"
OUTSIDE, UNINVITED, GONE = "report_outside_encoding", "invitation_refused", "device_withdrawn"


class Item(Struct, gc=False):
    """One report that was read and is of the campaign's encoding, or the reason why it is none."""

    device: bytes
    """The digest of its pseudonym, which goes no further than the request."""
    level: int
    report: bytes
    invitation: bytes | None = None
    outcome: str = ""


@dataclass(slots=True)
class _Changes:
    """What a group of reports does to one campaign."""

    rows: dict[int, list[tuple[bytes, bytes]]] = field(default_factory=dict)
    counted: pairs.Changes = field(default_factory=pairs.Changes)
    invitations: list[bytes] = field(default_factory=list)
    differing: int = 0


def ingest(connection: Connection, campaign: Campaign, items: Sequence[Item], now: float) -> CampaignState:
    """Store what is new of the items of one campaign, and write every item's outcome into it."""
    before = states.hold(connection, campaign.number)
    state = decided(campaign, before, now)
    waiting = [item for item in items if not item.outcome]
    changes = _Changes()
    known: reports.Known = {}
    earlier: reports.Known = {}
    if waiting:
        known = reports.find(connection, campaign.number, list({item.device for item in waiting}))
        earlier = {device: dict(own) for device, own in known.items()} if campaign.partners else {}
        invited = _invited(connection, campaign, waiting, known)
        for item in waiting:
            item.outcome = _outcome(campaign, state, item, known, invited, changes)
    for level, rows in changes.rows.items():
        reports.store(connection, campaign.number, level, rows)
    levels: dict[int, Counted] = {}
    if changes.rows:
        use(connection, campaign.number, changes.invitations)
        levels, moved, paired = changes.counted.counted(campaign.codec)
        counts.add(connection, campaign.number, dict(sorted(levels.items())))
        counts.add(connection, campaign.number, dict(sorted(moved.items())), moved=True)
        pairs.add(connection, campaign.number, paired)
        joint.change(connection, campaign, earlier, known)
    if changes.rows or changes.differing:
        devices = tuple(
            number + sum(int(each[0]) for each in levels.get(level, {}).values())
            for level, number in enumerate(state.devices)
        )
        differing = state.differing + changes.differing
        sent = tuple(number + len(changes.rows.get(level, ())) for level, number in enumerate(state.reports))
        state = replace(state, devices=devices, reports=sent, differing=differing, version=state.version + 1)
        state = decided(campaign, state, now)
    if state is not before:
        states.write(connection, campaign.number, state)
        publishing.close(connection, campaign, before, state)
    return state


def _outcome(
    campaign: Campaign, state: CampaignState, item: Item, known: reports.Known, invited: set[bytes], changes: _Changes
) -> str:
    """Return what becomes of a report, and note what it changes."""
    own = known.get(item.device, {})
    answer = CLOSED if state.reduced else _repeated(item, own, campaign.codec)
    if answer is None and state.state != "open":
        answer = CLOSED
    elif answer is None and item.level > (-1 if state.open_level is None else state.open_level):
        answer = NOT_OPEN
    elif answer is None and not own and campaign.definition.invitations:
        answer = _uninvited(item, invited, changes)
    if answer is not None:
        changes.differing += answer == DIFFERS
        return answer
    changes.counted.stored(own, item.level, item.report)
    known.setdefault(item.device, own)[item.level] = item.report
    changes.rows.setdefault(item.level, []).append((item.device, item.report))
    return NEW


def _repeated(item: Item, own: dict[int, bytes], codec: Codec) -> str | None:
    """Return the answer where it follows from what the device has sent before."""
    if WITHDRAWN in own:
        return GONE
    stored = own.get(item.level)
    if stored is not None:
        return SAME if stored == item.report else DIFFERS
    # A seed or a cohort that changes from level to level would put the device on another path.
    return DIFFERS if own and codec.fixed(next(iter(own.values()))) != codec.fixed(item.report) else None


def _uninvited(item: Item, invited: set[bytes], changes: _Changes) -> str | None:
    if item.invitation is None or item.invitation not in invited:
        return UNINVITED
    invited.discard(item.invitation)
    changes.invitations.append(item.invitation)
    return None


def _invited(connection: Connection, campaign: Campaign, items: Sequence[Item], known: reports.Known) -> set[bytes]:
    if not campaign.definition.invitations:
        return set()
    asked = {item.invitation for item in items if item.invitation is not None and item.device not in known}
    return unused(connection, campaign.number, asked)
