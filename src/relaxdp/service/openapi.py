"""The OpenAPI description, made from the operations and the structs that they take and answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from relaxdp import __version__
from relaxdp.errors import (
    BodyTooLargeError,
    MalformedRequestError,
    MethodNotAllowedError,
    RelaxdpError,
    RequestTimeoutError,
    StorageUnavailableError,
    TooManyRequestsError,
    UnknownRouteError,
    WrongMediaTypeError,
    WrongRoleError,
    WrongTokenError,
)
from relaxdp.service.operations import Operation, Security
from relaxdp.service.problems import Problem, code_of, status_of

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
    problems: list[type[RelaxdpError]] = [TooManyRequestsError, StorageUnavailableError, *operation.problems]
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
