"""The pages, and the routes that every service has: health, metrics and its own description.

A page runs no script and shows no style but those of the package, and it asks nobody but its own service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.errors import RelaxdpError
from relaxdp.server_errors import ServiceError, UnknownRouteError
from relaxdp.service.observe import METRICS_TYPE
from relaxdp.service.operations import Component, Handler, Operation, Section, description
from relaxdp.service.page_files import KINDS, PageFile, PageFiles, enclosing
from relaxdp.service.resources import Resources

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors "
)
# A file that somebody opens by itself needs nothing and may do nothing; short, since it is said with every one.
_FILE_POLICY = "default-src 'none'; sandbox"
_HTML = KINDS[".html"]
_LASTING = "max-age=31536000, immutable"
_SITE = re.compile(r"https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?")


class Pages:
    """The routes of the pages and of what they load."""

    def __init__(self, *, embed: Iterable[str] = (), campaign: Handler | None = None) -> None:
        """Take the sites that may show the survey in a frame, since nobody may frame anything else.

        And the route that shows a campaign: the survey's page encloses its answer, so that the script need not ask.
        """
        self._files, self._campaign = PageFiles(), campaign
        self._embedded = _POLICY + (" ".join(sites_of(embed)) or "'none'")
        self._survey = self._files.page("survey")

    def operations(self) -> list[Operation]:
        """Return the routes. They are for browsers, so the description for programs does not list them."""
        return [
            Operation("GET", "/", self._page("dashboard"), "The operator's dashboard."),
            Operation("GET", "/market", self._page("market"), "The market."),
            Operation("GET", "/survey/{id}", self.show_survey, "A campaign's survey."),
            Operation("GET", "/surveys/{survey}", self.show_questions, "A survey of several questions."),
            Operation("GET", "/static/{name:path}", self.show_file, "Scripts and styles of the pages."),
        ]

    async def show_file(self, request: Request) -> Response:
        """Show a script, a style or a picture."""
        found, lasting = self._files.find(request.path_params["name"])
        if found is None:
            raise UnknownRouteError("there is nothing at this address.")
        headers = page_headers(_FILE_POLICY) | ({"cache-control": _LASTING} if lasting else {})
        return _answer(request, found, headers)

    async def show_survey(self, request: Request) -> Response:
        """Show the survey, with its campaign enclosed where there is one; where there is none, the script finds out."""
        page = self._survey.encode()
        with suppress(RelaxdpError):
            told = await self._campaign(request) if self._campaign else None
            if told is not None and told.status_code == 200:
                page = enclosing(self._survey, bytes(told.body), told.headers["etag"])
        return _answer(request, PageFile(page, _HTML), page_headers(self._embedded))

    async def show_questions(self, request: Request) -> Response:
        """Show the same page for a survey of several questions, which its script asks for."""
        return _answer(request, PageFile(self._survey.encode(), _HTML), page_headers(self._embedded))

    def _page(self, name: str) -> Handler:
        page = PageFile(self._files.page(name).encode(), _HTML)

        async def show_page(request: Request) -> Response:
            return _answer(request, page, page_headers())

        return show_page


def _answer(request: Request, found: PageFile, headers: dict[str, str]) -> Response:
    """Answer with a file, packed for whoever can unpack it; nothing is packed that holds a secret."""
    content, coding = found.form(request.headers.get("accept-encoding", ""))
    headers |= {"etag": f'"{found.stem}{coding and f"-{coding}"}"', "vary": "accept-encoding"}
    if found.stem in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if coding:
        headers["content-encoding"] = coding
    return Response(content, media_type=found.kind, headers=headers)


def page_headers(policy: str = f"{_POLICY}'none'") -> dict[str, str]:
    """Return what is said with every page; without a policy of its own, one that nobody may frame."""
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }


def sites_of(embed: Iterable[str]) -> list[str]:
    """Return sites as they stand in a policy, or refuse what is none: a policy has no room for anything else.

    >>> sites_of(["https://example.org", "https://*.example.org:8443"])
    ['https://example.org', 'https://*.example.org:8443']
    """
    sites = list(embed)
    if any(_SITE.fullmatch(site) is None for site in sites):
        raise ServiceError("a site that shows the survey is written like https://example.org, without a path.")
    return sites


_JSON = "application/json"


class Health(msgspec.Struct, frozen=True):
    """Whether the service can do its work."""

    status: Literal["ok"]


class OwnRoutes:
    """What whoever runs the service asks for."""

    def __init__(self, resources: Resources, parts: Sequence[Component]) -> None:
        self._resources, self._parts = resources, parts
        self._document = b""

    async def show_health(self, request: Request) -> Response:
        """Tell whether the database answers and every part can do its work."""
        await self._resources.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        for part in self._parts:
            await part.check()
        return Response(msgspec.json.encode(Health("ok")), media_type=_JSON)

    async def show_metrics(self, request: Request) -> Response:
        """Show the metrics to the operator: they change with single reports."""
        await self._resources.check_operator(request)
        return Response(await self._resources.compute(self._resources.metrics.text), media_type=METRICS_TYPE)

    async def show_openapi(self, request: Request) -> Response:
        """Show the description."""
        return Response(self._document, media_type=_JSON)

    def operations(self, others: Sequence[Section]) -> list[Operation]:
        """Return what the routes are, after describing them together with those of the parts."""
        own = [
            Operation("GET", "/healthz", self.show_health, "Tell whether the service can do its work.", answer=Health),
            Operation(
                "GET",
                "/metrics",
                self.show_metrics,
                "Show metrics for Prometheus.",
                media_type="text/plain",
                security="operator",
            ),
            Operation("GET", "/openapi.json", self.show_openapi, "Show this description."),
        ]
        self._document = description([*others, (own, {})], title="relaxdp")
        return own
