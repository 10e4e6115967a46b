"""The whole service: collector, market and pages in one application."""

from __future__ import annotations

from starlette.types import ASGIApp

from relaxdp.collector.part import CollectorPart
from relaxdp.market.part import MarketPart
from relaxdp.service.app import build_application
from relaxdp.service.settings import Settings


def build(settings: Settings) -> ASGIApp:
    """Return the application of one worker; its database is prepared and its market opened already."""
    return build_application(settings, lambda worker: [CollectorPart(worker), MarketPart(worker)])
