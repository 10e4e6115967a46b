"""The pages, and the routes that every service has: health, metrics and its own description.

A page runs no script and shows no style but those of the package, and it asks nobody but its own service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.errors import ServiceError, UnknownRouteError
from relaxdp.service.operations import Component, Handler, Operation, Section, description
from relaxdp.service.worker import Worker

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors "
)
_SITE = re.compile(r"https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    kind: str
    tag: str


class Pages:
    """All files are read when a worker starts: so an address can name one of them and nothing else."""

    def __init__(self, *, embed: Iterable[str] = ()) -> None:
        """Take the sites that may show the survey in a frame; nobody may frame anything else."""
        self._files = {name: _file(place, kind) for name, place, kind in _found(files("relaxdp") / "web", "")}
        self._embedded = _POLICY + (" ".join(sites_of(embed)) or "'none'")

    def operations(self) -> list[Operation]:
        """Return the routes. They are for browsers, so the description for programs does not list them."""
        return [
            Operation("GET", "/", self._page("dashboard/page.html", f"{_POLICY}'none'"), "The operator's dashboard."),
            Operation("GET", "/market", self._page("market/page.html", f"{_POLICY}'none'"), "The market."),
            Operation(
                "GET", "/survey/{campaign}", self._page("survey/page.html", self._embedded), "A campaign's survey."
            ),
            Operation("GET", "/static/{name:path}", self.show_file, "Scripts and styles of the pages."),
        ]

    async def show_file(self, request: Request) -> Response:
        """Show a script, a style or a picture."""
        name = request.path_params["name"]
        return self._answer(request, "" if name.endswith(".html") else name, f"{_POLICY}'none'")

    def _page(self, name: str, policy: str) -> Handler:
        async def show_page(request: Request) -> Response:
            return self._answer(request, name, policy)

        return show_page

    def _answer(self, request: Request, name: str, policy: str) -> Response:
        found = self._files.get(name)
        if found is None:
            raise UnknownRouteError("there is nothing at this address.")
        headers = page_headers(policy) | {"etag": found.tag}
        if found.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(found.content, media_type=found.kind, headers=headers)


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


def _found(folder: Traversable, prefix: str) -> Iterable[tuple[str, Traversable, str]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _found(each, f"{prefix}{each.name}/")
            continue
        kind = next((kind for ending, kind in _KINDS.items() if each.name.endswith(ending)), None)
        if kind is not None:
            yield f"{prefix}{each.name}", each, kind


def _file(place: Traversable, kind: str) -> _File:
    content = place.read_bytes()
    return _File(content, kind, f'"{sha256(content).hexdigest()[:32]}"')


_JSON = "application/json"


class Health(msgspec.Struct, frozen=True):
    """Whether the service can do its work."""

    status: Literal["ok"]


class OwnRoutes:
    """What whoever runs the service asks for."""

    def __init__(self, worker: Worker, parts: Sequence[Component]) -> None:
        self._worker, self._parts = worker, parts
        self._document = b""

    async def show_health(self, request: Request) -> Response:
        """Tell whether the database answers and every part can do its work."""
        await self._worker.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        for part in self._parts:
            await part.check()
        return Response(msgspec.json.encode(Health("ok")), media_type=_JSON)

    async def show_metrics(self, request: Request) -> Response:
        """Show the metrics of all workers."""
        return Response(await self._worker.compute(self._worker.metrics.text), media_type="text/plain; version=0.0.4")

    async def show_openapi(self, request: Request) -> Response:
        """Show the description."""
        return Response(self._document, media_type=_JSON)

    def operations(self, others: Sequence[Section]) -> list[Operation]:
        """Return what the routes are, after describing them together with those of the parts."""
        own = [
            Operation("GET", "/healthz", self.show_health, "Tell whether the service can do its work.", answer=Health),
            Operation("GET", "/metrics", self.show_metrics, "Show metrics for Prometheus.", media_type="text/plain"),
            Operation("GET", "/openapi.json", self.show_openapi, "Show this description."),
        ]
        self._document = description([*others, (own, {})], title="relaxdp")
        return own
