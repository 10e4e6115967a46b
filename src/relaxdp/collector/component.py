"""The collector as a part of the application: its routes, its writer and its duties."""

from __future__ import annotations

from typing import Any

from relaxdp.collector.advice_routes import AdviceRoutes
from relaxdp.collector.duties import Duties
from relaxdp.collector.operator_routes import OperatorRoutes
from relaxdp.collector.public_routes import PublicRoutes
from relaxdp.collector.report_routes import ReportRoutes
from relaxdp.collector.service import Collector
from relaxdp.collector.survey_routes import SurveyRoutes
from relaxdp.server_errors import StorageUnavailableError
from relaxdp.service.operations import Operation
from relaxdp.service.resources import Resources
from relaxdp.service.wire import ID_PATTERN


class CollectorComponent:
    """The part that comes first: the route that is asked most often is the first of its routes."""

    def __init__(self, resources: Resources) -> None:
        self._collector, self._limits = Collector(resources), resources.limits
        self._duties = Duties(self._collector)

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        return [
            *ReportRoutes(self._collector, self._limits).operations(),
            *OperatorRoutes(self._collector, self._limits).operations(),
            *AdviceRoutes(self._collector, self._limits).operations(),
            *PublicRoutes(self._collector).operations(),
            *SurveyRoutes(self._collector, self._limits).operations(),
        ]

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return what a campaign's id and the name of a survey look like."""
        return {name: {"type": "string", "pattern": ID_PATTERN} for name in ("id", "survey")}

    async def start(self) -> None:
        """Begin to write, and to do what nobody asks for."""
        self._collector.writer.start()
        self._duties.start()

    async def stop(self) -> None:
        """Write what is waiting, and end."""
        await self._duties.stop()
        await self._collector.writer.stop()

    async def check(self) -> None:
        """Refuse where nobody would write."""
        if not self._collector.writer.is_alive:
            raise StorageUnavailableError("the service does not write.")
