"""The limits of individuals: either all levels of a listing are limited or none, also those that are added later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.servers.collectors import running

import relaxdp as rx
from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.publish import Terms, publish
from relaxdp.server_errors import RefusedByServerError

EURO = Terms(currency="EUR")


@pytest.fixture
def seller(tmp_path: Path) -> Iterator[MarketClient]:
    """The market of a running service, as a seller sees it."""
    with running(f"sqlite:///{tmp_path}/service.db", tmp_path / "service") as server:
        address = Server.parse(server.base)
        token = MarketClient(address, server.token).create_token("clinic", "seller")
        yield MarketClient(address, token)


@pytest.mark.parametrize("limits", [None, "limit"])
def test_limits_are_stated_with_every_level_or_with_none(
    seller: MarketClient, tmp_path: Path, limits: str | None
) -> None:
    """All limits are above the first level, so nothing in its rows shows whether they were stated."""
    table = pa.table({"person": range(400), "answer": ["no", "yes"] * 200, "limit": ["0.5"] * 200 + ["1"] * 200})
    vault, columns = rx.Vault.create(tmp_path / "clinic.vault", budget=2), {"answer": ["no", "yes"]}
    vault.release(table, columns, id="person", epsilon="0.1", planned_epsilon=2, name="survey", passthrough=["limit"])
    publish(vault, "survey", seller, {"0.1": "1"}, EURO, limits=limits)
    spent = vault.spent

    other = "limit" if limits is None else None
    with pytest.raises(RefusedByServerError, match="--limits"):
        publish(vault, "survey", seller, {"2": "9"}, EURO, limits=other)
    assert vault.spent == spent
    assert [each["epsilon"] for each in seller.listing("survey")["levels"]] == ["0.1"]

    found = publish(vault, "survey", seller, {"2": "9"}, EURO, limits=limits)
    rows = found.listing["levels"][-1]["rows_by_level"]
    assert rows == ({"2": 400} if limits is None else {"0.5": 200, "1": 200})
