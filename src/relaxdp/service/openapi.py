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
    WrongTokenError,
)
from relaxdp.service.operations import Operation
from relaxdp.service.problems import Problem, code_of, status_of

_REF = "#/components/schemas/{name}"


def description(operations: Sequence[Operation], *, title: str, parameters: dict[str, dict[str, Any]]) -> bytes:
    """Return the document as JSON; `parameters` are the schemas of what stands in paths."""
    kinds = [kind for each in operations for kind in (each.body, each.answer) if kind is not None]
    _, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, parameters)
    document = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"operator": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


def _operation(operation: Operation, parameters: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": getattr(operation.handler, "__name__", operation.summary),
        "responses": _responses(operation),
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
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(operation.body)}}}
    if operation.operator:
        found["security"] = [{"operator": []}]
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    problems: list[type[RelaxdpError]] = [TooManyRequestsError, StorageUnavailableError, *operation.problems]
    if "{" in operation.path:  # a name with a slash or a question mark in it leads to another address
        problems += [UnknownRouteError, MethodNotAllowedError]
    if operation.body is not None:
        problems += [MalformedRequestError, RequestTimeoutError, BodyTooLargeError, WrongMediaTypeError]
    if operation.queries:
        problems.append(MalformedRequestError)
    if operation.operator:
        problems.append(WrongTokenError)
    schema: Any = {} if operation.answer is None else {"schema": _ref(operation.answer)}
    responses: dict[str, Any] = {
        str(operation.status): {"description": "done", "content": {operation.media_type: schema}}
    }
    for status in operation.also:
        responses[str(status)] = {"description": "nothing new"}
    codes: dict[int, list[str]] = {}
    for problem in dict.fromkeys(problems):
        codes.setdefault(status_of(problem), []).append(code_of(problem))
    for status, names in sorted(codes.items()):
        responses[str(status)] = {
            "description": ", ".join(names),
            "content": {"application/json": {"schema": _ref(Problem)}},
        }
    return responses


def _ref(kind: Any) -> dict[str, Any]:
    return {"$ref": _REF.format(name=kind.__name__)}
