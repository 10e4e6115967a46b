"""The state of a campaign in the database. Whoever writes to a campaign holds its row first."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from relaxdp.collector.counts import pack, unpack
from relaxdp.collector.rules import CampaignState
from relaxdp.collector.schema import STATES
from relaxdp.server_errors import UnknownCampaignError
from relaxdp.storage.database import SqlStatement

_COLUMNS = "state, open_level, version, devices, differing, reduced, reports"
_LOOK = SqlStatement.shared(f"SELECT {_COLUMNS} FROM collector_state WHERE campaign = ?")  # noqa: S608
_HOLD = SqlStatement(_LOOK.sqlite, f"{_LOOK.postgres} FOR UPDATE")
_WRITE = SqlStatement.shared(
    "UPDATE collector_state SET state = ?, open_level = ?, version = ?, devices = ?, differing = ?, reduced = ?, "
    "reports = ? WHERE campaign = ?"
)


def hold(connection: Connection, campaign: int) -> CampaignState:
    """Return the state, and keep all other writers away until the transaction ends.

    On SQLite the transaction itself does so.
    """
    return _state(_HOLD.run(connection, (campaign,)).fetchone())


def look(connection: Connection, campaign: int) -> CampaignState:
    """Return the state."""
    return _state(_LOOK.run(connection, (campaign,)).fetchone())


def write(connection: Connection, campaign: int, state: CampaignState) -> None:
    """Store a state that was held."""
    _WRITE.run(connection, (*_values(state), campaign))


def create(connection: Connection, campaign: int, state: CampaignState) -> None:
    """Store the first state."""
    values = dict(zip(_COLUMNS.split(", "), _values(state), strict=True))
    connection.execute(insert(STATES).values(campaign=campaign, **values))


def _values(state: CampaignState) -> tuple[Any, ...]:
    numbers = pack(state.devices), state.differing, state.reduced, pack(state.reports)
    return state.state, state.open_level, state.version, *numbers


def _state(row: tuple[Any, ...] | None) -> CampaignState:
    if row is None:
        raise UnknownCampaignError("there is no campaign with this id.")
    state, open_level, version, devices, differing, reduced, reports = row
    at_levels, sent = (tuple(unpack(packed).tolist()) for packed in (devices, reports))
    return CampaignState(state, open_level, version, at_levels, differing, bool(reduced), sent)
