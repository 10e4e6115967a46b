"""Questions that are counted together: of each device its newest reports to both, in the transaction that stores them.

Only of questions whose survey said so before the first report. No row says which device a count is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from relaxdp.collector import reports
from relaxdp.collector.campaign import Campaign, Membership, Partner
from relaxdp.collector.counts import pack, unpack
from relaxdp.collector.schema import CAMPAIGNS, SURVEYS, WITHDRAWN
from relaxdp.collector.survey_wire import SurveyDefinition
from relaxdp.collector.wire import CampaignRequest
from relaxdp.estimation.crosstab import PairSupportCounts
from relaxdp.mechanisms.base import Mechanism
from relaxdp.server_errors import UnknownCampaignError
from relaxdp.service.codecs import Codec, Integers
from relaxdp.service.wire import encoding_of
from relaxdp.storage.database import SqlStatement

Newest = tuple[int, bytes]
"""The highest level that a device has reported at, and its report there."""
Levels = tuple[int, int]
"""Of the rows, and of the columns."""

_SURVEY, _CAMPAIGN = msgspec.json.Decoder(SurveyDefinition), msgspec.json.Decoder(CampaignRequest)
_HOLD = SqlStatement(
    "SELECT name FROM collector_survey WHERE name = ?", "SELECT name FROM collector_survey WHERE name = %s FOR UPDATE"
)
_READ = SqlStatement.shared(
    "SELECT row_level, column_level, counts FROM collector_joint WHERE row_campaign = ? AND column_campaign = ?"
)
_READ_ONE = SqlStatement.shared(
    "SELECT counts FROM collector_joint "
    "WHERE row_campaign = ? AND column_campaign = ? AND row_level = ? AND column_level = ?"
)
_WRITE = SqlStatement.shared(
    "INSERT INTO collector_joint (row_campaign, column_campaign, row_level, column_level, counts) "
    "VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (row_campaign, column_campaign, row_level, column_level) DO UPDATE SET counts = excluded.counts"
)


def definition(connection: Connection, survey: str) -> SurveyDefinition:
    """Return a survey as it is stored."""
    found = connection.execute(select(SURVEYS.c.definition).where(SURVEYS.c.name == survey)).scalar()
    if found is None:
        raise UnknownCampaignError("there is no survey with this name.")
    return _SURVEY.decode(found)


def membership(connection: Connection, survey: str, campaign: str) -> Membership:
    """Return with which other questions a campaign is counted together. It never changes."""
    found = []
    for rows, columns in definition(connection, survey).cross:
        if campaign in (rows, columns):
            other = columns if campaign == rows else rows
            query = select(CAMPAIGNS.c.number, CAMPAIGNS.c.definition).where(CAMPAIGNS.c.id == other)
            row = connection.execute(query).one()
            encoding = encoding_of(_CAMPAIGN.decode(row.definition).encoding)
            found.append(Partner(other, row.number, encoding, Codec(encoding), other == rows))
    return Membership(survey, tuple(found))


def hold(connection: Connection, campaigns: Iterable[Campaign]) -> None:
    """Keep others from the joint counts of these campaigns, before any campaign itself is held.

    Two services that store one device's reports to two questions at the same time would each miss the other's.
    """
    for survey in sorted({each.member.survey for each in campaigns if each.member and each.partners}):
        _HOLD.run(connection, (survey,)).fetchone()


def change(connection: Connection, campaign: Campaign, before: reports.Known, after: reports.Known) -> None:
    """Follow what became of devices' reports to a campaign in all tables that it is a side of.

    The other question's reports are read as they are stored now, so whichever of a device's two comes second makes the
    pair, and whichever is relaxed or withdrawn takes its older pair away.
    """
    if not campaign.partners:
        return
    olds, news = newest(before), newest(after)
    moved = [device for device in after if olds.get(device) != news.get(device)]
    for partner in campaign.partners if moved else ():
        theirs = newest(reports.find(connection, partner.number, moved))
        changes: dict[Levels, Integers] = {}
        for sign, own in ((-1, olds), (1, news)):
            pairs = [(own[device], theirs[device]) for device in moved if device in own and device in theirs]
            for levels, numbers in counted(campaign, partner, pairs).items():
                changes[levels] = changes.get(levels, 0) + sign * numbers
        where = (partner.number, campaign.number) if partner.is_rows else (campaign.number, partner.number)
        _add(connection, where, changes)


def newest(known: reports.Known) -> dict[bytes, Newest]:
    """Return the newest report of each device that has one and did not withdraw."""
    return {device: (max(own), own[max(own)]) for device, own in known.items() if own and WITHDRAWN not in own}


def counted(campaign: Campaign, partner: Partner, pairs: Iterable[tuple[Newest, Newest]]) -> dict[Levels, Integers]:
    """Return what is kept of pairs of reports, this campaign's first, for each pair of levels."""
    groups: dict[Levels, tuple[list[bytes], list[bytes]]] = {}
    for (own_level, own), (their_level, their) in pairs:
        levels = (their_level, own_level) if partner.is_rows else (own_level, their_level)
        mine, others = groups.setdefault(levels, ([], []))
        mine.append(own)
        others.append(their)
    found = {}
    for levels, (mine, others) in groups.items():
        sides: list[tuple[Mechanism, Any]] = [
            (campaign.encoding, campaign.codec.codes(mine)),
            (partner.encoding, partner.codec.codes(others)),
        ]
        (rows, row_codes), (columns, column_codes) = reversed(sides) if partner.is_rows else sides
        joint = PairSupportCounts(rows, columns)
        joint.add_reports(row_codes, column_codes)
        found[levels] = joint.numbers
    return found


def _add(connection: Connection, campaigns: tuple[int, int], changes: Mapping[Levels, Integers]) -> None:
    """Add to the joint counts; the caller holds the survey, so nobody else does at the same time."""
    for levels in sorted(changes):
        found = _READ_ONE.run(connection, (*campaigns, *levels)).fetchone()
        known = changes[levels] if found is None else unpack(found[0]) + changes[levels]
        _WRITE.run(connection, (*campaigns, *levels, pack(known)))


def read(connection: Connection, rows: int, columns: int) -> dict[Levels, Integers]:
    """Return the joint counts of two campaigns: a few rows, however many reports there are."""
    found = _READ.run(connection, (rows, columns)).fetchall()
    return {(row, column): unpack(packed) for row, column, packed in found}
