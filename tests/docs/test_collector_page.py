"""The collector's page names every route and every limit that there is."""

from __future__ import annotations

import re
from pathlib import Path

from relaxdp.collector.campaigns import _STEPS
from relaxdp.collector.component import CollectorComponent
from relaxdp.service.application import build_application
from relaxdp.service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "collector.md").read_text("utf-8")


def test_every_route_is_named(tmp_path: Path) -> None:
    settings = Settings(database=str(tmp_path / "x.db"))
    app = build_application(settings, lambda worker: [CollectorComponent(worker)])
    paths = {route.path for route in app._inner.routes if route.path.startswith("/v1/")}  # type: ignore[attr-defined]
    named = set(re.findall(r"(/v1/[^`?,]*)", PAGE))
    steps = {f"/v1/{what}/{step}" for what in ("campaigns/{id}", "surveys/{survey}") for step in _STEPS}
    assert all(f"/{step}`" in PAGE for step in _STEPS)
    assert "`/estimate.parquet`, `/estimate.csv`" in PAGE
    assert paths - named - steps <= {f"/v1/campaigns/{{id}}/estimate.{kind}" for kind in ("parquet", "csv")}
    assert named - paths == set()


def test_the_defaults_are_those_of_the_code() -> None:
    settings = Settings(database="x")
    assert f"| {settings.rate:g}, {settings.burst:,.0f} |" in PAGE
    assert f"| {settings.idle_seconds:g} s |" in PAGE
    assert f"| {settings.most_connections:,} |" in PAGE
    assert settings.body_limit == 1 << 20
