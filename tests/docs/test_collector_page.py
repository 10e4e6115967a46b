"""The collector's page names routes that there are, and every limit."""

from __future__ import annotations

import re
from pathlib import Path

from relaxdp.collector.component import CollectorComponent
from relaxdp.service.application import build_application
from relaxdp.service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "collector.md").read_text("utf-8")


def test_routes_that_are_named_exist(tmp_path: Path) -> None:
    """All of them are in the reference, which is made from the service's own description."""
    settings = Settings(database=str(tmp_path / "x.db"))
    app = build_application(settings, lambda resources: [CollectorComponent(resources)])
    paths = {route.path for route in app._inner.routes}  # type: ignore[attr-defined]
    named = set(re.findall(r"(/v1/[^`?, ]*)`", PAGE))
    assert len(named) > 2
    assert named - paths == set()


def test_the_defaults_are_those_of_the_code() -> None:
    settings = Settings(database="x")
    assert f"| {settings.rate:g}, {settings.burst:,.0f} |" in PAGE
    assert settings.body_limit == 1 << 20
