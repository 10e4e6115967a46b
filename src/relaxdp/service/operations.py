"""Operations: what a route takes and answers, said once, for the router and for the OpenAPI description.

By hand, since the reports of devices are decoded by msgspec, which also gives the schemas: a framework that describes
itself, like FastAPI, would check every request by pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relaxdp import __version__
from relaxdp.errors import RelaxdpError
from relaxdp.server_errors import (
    BodyTooLargeError,
    HeadTooLargeError,
    MalformedRequestError,
    MethodNotAllowedError,
    RequestTimeoutError,
    StorageUnavailableError,
    TooManyRequestsError,
    UnknownRouteError,
    WrongMediaTypeError,
    WrongRoleError,
    WrongTokenError,
)
from relaxdp.service.lost_page import asks_for_page, lost_page
from relaxdp.service.observe import Problem, code_of, problem_response, status_of

Handler = Callable[[Request], Awaitable[Response]]
Problems = tuple[type[RelaxdpError], ...]
Security = Literal["operator", "seller", "buyer", "account"]
"""Whose token a route asks for; an account is any of them."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query parameter."""

    name: str
    schema: dict[str, Any]
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one route."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    summary: str
    body: Any = None
    answer: Any = None
    media_type: str = "application/json"
    body_media_type: str | None = None
    """What the body is where it is a file, and not JSON of the type `body`."""
    status: int = 200
    also: tuple[int, ...] = ()
    """Further statuses where nothing is new: 304 without a body, any other with the same answer."""
    problems: Problems = ()
    security: Security | None = None
    queries: tuple[Query, ...] = field(default=())
    nothing: str = "Nothing was done."
    """What did not happen where it is refused, unless whoever refused knows that better."""


class Component(Protocol):
    """A part of the application, like the collector: its routes, and what starts and stops with the service."""

    def operations(self) -> list[Operation]:
        """Return the routes; the part that comes first is looked through first."""

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the schemas of what stands in the paths of these routes, by name."""

    async def start(self) -> None:
        """Begin, within the running loop."""

    async def stop(self) -> None:
        """Finish what is waiting, and end. Everything that the parts share is still there."""

    async def check(self) -> None:
        """Raise StorageUnavailableError where the part could not do its work."""


def application(operations: Sequence[Operation], **options: Any) -> tuple[Starlette, Callable[[Any], str]]:
    """Return the application, and a function from an endpoint to the template of its route."""
    routes: dict[str, list[Operation]] = {}
    for operation in operations:
        routes.setdefault(operation.path, []).append(operation)
    templates: dict[Any, str] = {}
    consequences: dict[Any, str] = {}
    made = []
    for path, own in routes.items():
        for operation in own:
            handler = operation.handler if operation.security is None else _unkept(operation.handler)
            templates[handler] = path
            consequences[handler] = operation.nothing
            made.append(Route(path, handler, methods=[operation.method]))
    handlers: dict[Any, Any] = {RelaxdpError: _on_error, HTTPException: _on_http, Exception: _on_mistake}
    allowed = {path: _allowed(own) for path, own in routes.items()}
    app = Starlette(routes=made, exception_handlers=handlers, **options)
    app.state.allowed, app.state.consequences = allowed, consequences
    app.router.redirect_slashes = False
    return app, lambda endpoint: templates.get(endpoint, "unknown")


def _unkept(handler: Handler) -> Handler:
    """Return a handler whose answer is kept by no browser and no proxy: it is for whoever has the token."""

    @wraps(handler)
    async def answered(request: Request) -> Response:
        response = await handler(request)
        response.headers.setdefault("cache-control", "no-store")
        return response

    return answered


def read_queries(request: Request, operation_queries: Sequence[Query], kind: Any) -> Any:
    """Return the query parameters as a struct; unknown and repeated ones are refused."""
    pairs = request.query_params.multi_items()
    names = {query.name for query in operation_queries}
    found = dict(pairs)
    if len(found) != len(pairs) or not set(found) <= names:
        raise MalformedRequestError("the query has a parameter that is not known, or one twice.")
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError:
        raise MalformedRequestError("a parameter of the query has no possible value.") from None


def _allowed(own: Sequence[Operation]) -> str:
    methods = {operation.method for operation in own}
    return ", ".join(sorted({*methods, *({"HEAD"} if "GET" in methods else set())}))


async def _on_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RelaxdpError)  # noqa: S101 (that is what it is registered for)
    if status_of(type(problem)) == 404 and asks_for_page(request):
        return lost_page(request)
    return problem_response(problem, request.app.state.consequences[request.scope["endpoint"]])


async def _on_mistake(request: Request, problem: Exception) -> Response:
    """Answer for a mistake of ours, in the shape of every error; the shell logs it."""
    sentence, nothing = "The service made a mistake.", "Nothing was acknowledged."
    content = Problem("internal", f"{sentence} {nothing}", {}, sentence, "", nothing)
    return Response(msgspec.json.encode(content), 500, media_type="application/json")


async def _on_http(request: Request, problem: Exception) -> Response:
    """Answer for the router: an unknown address, or a method that it does not have."""
    if getattr(problem, "status_code", 404) == 405:
        matches = [route for route in request.app.routes if route.path_regex.match(request.url.path)]
        allowed = request.app.state.allowed[matches[0].path] if matches else ""
        wrong = MethodNotAllowedError("this address does not have this method.", allowed=allowed)
        return problem_response(wrong, headers={"allow": allowed})
    if asks_for_page(request):
        return lost_page(request)
    return problem_response(UnknownRouteError("there is nothing at this address."))


Parameters = dict[str, dict[str, Any]]
Section = tuple[Sequence[Operation], Parameters]
"""Operations, and the schemas of what stands in their paths: one name may mean different things in two sections."""

_REF = "#/components/schemas/{name}"
_FILE = {"type": "string", "format": "binary"}
_TOKENS: dict[Security, str] = {
    "operator": "The operator's token, shown at the first start of the service.",
    "seller": "The token of a seller's account.",
    "buyer": "The token of a buyer's account.",
    "account": "The token of any account, or the operator's.",
}
_REFUSALS: dict[Security, tuple[type[RelaxdpError], ...]] = {
    "operator": (WrongTokenError,),
    "seller": (WrongTokenError, WrongRoleError),
    "buyer": (WrongTokenError, WrongRoleError),
    "account": (WrongTokenError,),
}


def description(sections: Sequence[Section], *, title: str) -> bytes:
    """Return the document as JSON."""
    operations = [operation for own, _ in sections for operation in own]
    kinds = [kind for each in operations for kind in (each.body, each.answer) if kind is not None]
    found, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REF)
    schemas = dict(zip([*kinds, Problem], found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for own, parameters in sections:
        for operation in own:
            described = _operation(operation, parameters, schemas)
            paths.setdefault(operation.path, {})[operation.method.lower()] = described
    used = {operation.security for operation in operations}
    document = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": meaning}
                for name, meaning in _TOKENS.items()
                if name in used
            },
        },
    }
    return msgspec.json.encode(document)


def _operation(operation: Operation, parameters: Parameters, schemas: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": getattr(operation.handler, "__name__", operation.summary),
        "responses": _responses(operation, schemas),
    }
    names = re.findall(r"{(\w+)}", operation.path)
    listed = [{"name": name, "in": "path", "required": True, "schema": parameters[name]} for name in names]
    listed += [
        {"name": query.name, "in": "query", "required": query.required, "schema": query.schema,
         "description": query.meaning}
        for query in operation.queries
    ]  # fmt: skip
    if listed:
        found["parameters"] = listed
    if operation.body_media_type is not None:
        found["requestBody"] = {"required": True, "content": {operation.body_media_type: {"schema": _FILE}}}
    elif operation.body is not None:
        schema = schemas[operation.body]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.security is not None:
        found["security"] = [{operation.security: []}]
    return found


def _responses(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    problems: list[type[RelaxdpError]] = [TooManyRequestsError, HeadTooLargeError, StorageUnavailableError]
    problems += operation.problems
    if "{" in operation.path:  # a name with a slash or a question mark in it leads to another address
        problems += [UnknownRouteError, MethodNotAllowedError]
    if operation.body is not None or operation.body_media_type is not None:
        problems += [MalformedRequestError, RequestTimeoutError, BodyTooLargeError, WrongMediaTypeError]
    if operation.queries:
        problems.append(MalformedRequestError)
    if operation.security is not None:
        problems += _REFUSALS[operation.security]
    schema: Any = {} if operation.answer is None else {"schema": schemas[operation.answer]}
    content = {"content": {operation.media_type: schema}}
    responses: dict[str, Any] = {str(operation.status): {"description": "done", **content}}
    for status in operation.also:
        responses[str(status)] = {"description": "nothing new", **({} if status == 304 else content)}
    codes: dict[int, list[str]] = {}
    for problem in dict.fromkeys(problems):
        codes.setdefault(status_of(problem), []).append(code_of(problem))
    for status, names in sorted(codes.items()):
        responses[str(status)] = {
            "description": ", ".join(names),
            "content": {"application/json": {"schema": schemas[Problem]}},
        }
    return responses
