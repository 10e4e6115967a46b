"""The tables of the collector. Of a report there is neither a time nor a number: nothing says when it came."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, SmallInteger, Table, Text

from relaxdp.service.schema import METADATA


def _campaign() -> Column[int]:
    return Column("campaign", Integer, primary_key=True, autoincrement=False)


CAMPAIGNS = Table(
    "collector_campaign",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("definition", Text, nullable=False),
    Column("survey", Text),
)

# Several questions that are asked together. Whoever changes what is counted of two of them holds the row.
SURVEYS = Table(
    "collector_survey",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("definition", Text, nullable=False),
)

# The row of a campaign is what every writer to it holds.
STATES = Table(
    "collector_state",
    METADATA,
    _campaign(),
    Column("state", Text, nullable=False),
    Column("open_level", Integer),
    Column("version", BigInteger, nullable=False),
    Column("devices", LargeBinary, nullable=False),
    Column("differing", BigInteger, nullable=False),
    Column("reduced", Boolean, nullable=False),
    Column("reports", LargeBinary, nullable=False),
)

# Of a device there is a digest, not the pseudonym, by which whoever reads this could report and withdraw for it.
# A device that withdrew leaves one row, at the level WITHDRAWN and with an empty report.
REPORTS = Table(
    "collector_report",
    METADATA,
    _campaign(),
    Column("device_digest", LargeBinary, primary_key=True),
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("report", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# `moved` is 0 for reports that are a device's highest, and 1 for those of devices that have moved on.
COUNTS = Table(
    "collector_count",
    METADATA,
    _campaign(),
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("moved", SmallInteger, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("counts", LargeBinary, nullable=False),
)

# Of all pairs of a device's reports at two neighbouring levels of its own; `moved` is 1 for devices that went on.
PAIRS = Table(
    "collector_pair",
    METADATA,
    _campaign(),
    Column("older", SmallInteger, primary_key=True, autoincrement=False),
    Column("newer", SmallInteger, primary_key=True, autoincrement=False),
    Column("moved", SmallInteger, primary_key=True, autoincrement=False),
    Column("counts", LargeBinary, nullable=False),
)

# Of devices that answered two questions which are counted together: their newest reports to both, by their levels.
JOINT = Table(
    "collector_joint",
    METADATA,
    Column("row_campaign", Integer, primary_key=True, autoincrement=False),
    Column("column_campaign", Integer, primary_key=True, autoincrement=False),
    Column("row_level", SmallInteger, primary_key=True, autoincrement=False),
    Column("column_level", SmallInteger, primary_key=True, autoincrement=False),
    Column("counts", LargeBinary, nullable=False),
)

# What a finished campaign publishes: counts of closed groups, kept once and never changed; and the words made of them.
PUBLICATIONS = Table(
    "collector_publication",
    METADATA,
    _campaign(),
    Column("counts", LargeBinary, nullable=False),
    Column("content", LargeBinary),
)

# Only a digest, and whether it was used: not by which device.
INVITATIONS = Table(
    "collector_invitation",
    METADATA,
    _campaign(),
    Column("digest", LargeBinary, primary_key=True),
    Column("used", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

WITHDRAWN = -1
