"""Routes of the public: what a campaign has published, for programs and as a page. It never changes."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.collector import publishing
from relaxdp.collector.published_page import page_of
from relaxdp.collector.publishing import Publication
from relaxdp.collector.service import Collector
from relaxdp.collector.views import tagged
from relaxdp.server_errors import NotPublishedError, UnknownCampaignError
from relaxdp.service.operations import Operation
from relaxdp.service.pages import page_headers

_DECODER = msgspec.json.Decoder(Publication)


class PublicRoutes:
    """What everybody may ask for."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    async def show_published(self, request: Request) -> Response:
        """Show what is published, as JSON."""
        return tagged(request, await self._content(request))

    async def show_page(self, request: Request) -> Response:
        """Show what is published, as a page."""
        content = page_of(_DECODER.decode(await self._content(request)))
        return tagged(request, content, "text/html; charset=utf-8", page_headers())

    async def _content(self, request: Request) -> bytes:
        campaign = await self._collector.campaign(request)
        return await self._collector.read(lambda connection: publishing.read(connection, campaign))

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        return [
            Operation("GET", "/v1/campaigns/{id}/published", self.show_published,
                      "Show what is published of a campaign: once, when it has ended.", answer=Publication, also=(304,),
                      nothing="Nothing was shown.", problems=(UnknownCampaignError, NotPublishedError)),
            Operation("GET", "/published/{id}", self.show_page, "Show what is published of a campaign, as a page.",
                      media_type="text/html", also=(304,),
                      nothing="Nothing was shown.", problems=(UnknownCampaignError, NotPublishedError)),
        ]  # fmt: skip
