"""The application of a service that is a collector and nothing else."""

from __future__ import annotations

from starlette.types import ASGIApp

from relaxdp.collector.part import CollectorPart
from relaxdp.service.app import build_application
from relaxdp.service.settings import Settings


def build(settings: Settings) -> ASGIApp:
    """Return the application of one worker; its database is prepared already."""
    return build_application(settings, lambda worker: [CollectorPart(worker)])
