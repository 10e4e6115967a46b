"""The state of a campaign in the database. Whoever writes to a campaign holds its row first."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from relaxdp.collector.counts import pack, unpack
from relaxdp.collector.rules import CampaignState
from relaxdp.collector.schema import STATES
from relaxdp.errors import UnknownCampaignError

_ALL = select(STATES)


def hold(connection: Connection, campaign: int) -> CampaignState:
    """Return the state, and keep all other writers away until the transaction ends.

    On SQLite the transaction itself does so.
    """
    query = _ALL.where(STATES.c.campaign == campaign)
    if connection.dialect.name != "sqlite":
        query = query.with_for_update()
    return _state(connection.execute(query).one_or_none())


def look(connection: Connection, campaign: int) -> CampaignState:
    """Return the state."""
    return _state(connection.execute(_ALL.where(STATES.c.campaign == campaign)).one_or_none())


def write(connection: Connection, campaign: int, state: CampaignState) -> None:
    """Store a state that was held."""
    connection.execute(update(STATES).where(STATES.c.campaign == campaign).values(**_values(state)))


def create(connection: Connection, campaign: int, state: CampaignState) -> None:
    """Store the first state."""
    connection.execute(insert(STATES).values(campaign=campaign, **_values(state)))


def _values(state: CampaignState) -> dict[str, Any]:
    return {
        "state": state.state,
        "open_level": state.open_level,
        "version": state.version,
        "devices": pack(state.devices),  # type: ignore[arg-type]
        "differing": state.differing,
        "reduced": state.reduced,
    }


def _state(row: Row[Any] | None) -> CampaignState:
    if row is None:
        raise UnknownCampaignError("there is no campaign with this id. Nothing was done.")
    return CampaignState(
        row.state, row.open_level, row.version, tuple(unpack(row.devices).tolist()), row.differing, row.reduced
    )
