"""The reference of the HTTP service: every route and message, from the description that the service gives itself."""

from __future__ import annotations

import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

from relaxdp.device.client import Client
from relaxdp.device.server import own_server

_WHO = {
    None: "everybody",
    "operator": "the operator",
    "seller": "a seller",
    "buyer": "a buyer",
    "account": "any account, or the operator",
}
_PARTS = {
    "campaigns": ("Campaigns", "What devices and the operator ask for."),
    "market": ("Market", "What buyers, sellers and the operator ask for."),
    "service": ("The service itself", "What whoever runs it asks for."),
}


VISIT: list[tuple[str, str, str, Any]] = [
    ("Is it there?", "GET", "/healthz", None),
    (
        "The operator makes a campaign of two levels.",
        "POST",
        "/v1/campaigns",
        {
            "id": "commute",
            "question": "How do you get to work?",
            "encoding": {"name": "categorical", "values": ["bike", "car", "train"]},
            "levels": [{"epsilon": "0.5"}, {"epsilon": "2"}],
        },
    ),
    (
        "A device sends its report at the first level: never the answer, but what the path shows there.",
        "POST",
        "/v1/campaigns/commute/reports",
        {
            "device": "00112233445566778899aabbccddeeff",
            "level": {"epsilon": "0.5", "threshold": "3279723050338863581"},
            "report": "car",
        },
    ),
    ("What is not there is refused.", "GET", "/v1/campaigns/other", None),
]
"""What the overview shows: who comes first, and what is asked."""
_LONGEST, _LINE = 400, 90


def described() -> tuple[dict[str, Any], str]:
    """Ask a service of our own, started for this on a free port, for its description and by way of example."""
    with tempfile.TemporaryDirectory() as folder, own_server(Path(folder)) as running:
        client = Client()
        found: dict[str, Any] = client.ask_json(running.server, "GET", "/openapi.json")
        lines = []
        for said, method, path, body in VISIT:
            is_operators = "operator" in said
            headers = {"Authorization": f"Bearer {running.token}"} if is_operators else None
            answer = client.ask(running.server, method, path, body, headers=headers).body.decode()
            shown = answer if len(answer) <= _LONGEST else f"{answer[:_LONGEST]}..."
            lines += [said, "", f"```text\n$ {curl(method, path, body, is_operators)}\n{shown}\n```", ""]
    return found, "\n".join(lines)


def curl(method: str, path: str, body: Any, is_known: bool) -> str:
    """Return a request as somebody types it."""
    words = ["curl -s"] if method == "GET" or body is not None else [f"curl -s -X {method}"]
    words += ['-H "Authorization: Bearer $TOKEN"'] if is_known else []
    if body is not None:
        words.append(f"--json {shlex.quote(body if isinstance(body, str) else json.dumps(body))}")
    words.append(f'"$SERVER{path}"')
    return " ".join(words) if sum(map(len, words)) < _LINE else " \\\n    ".join(words)


def http_pages(found: dict[str, Any], visit: str = "") -> dict[str, str]:
    """Return the pages by their place: an overview, the routes of each part, and the messages."""
    parts: dict[str, list[str]] = {name: [] for name in _PARTS}
    rows: dict[str, list[str]] = {name: [] for name in _PARTS}
    for path, methods in found["paths"].items():
        part = part_of(path)
        for method, operation in methods.items():
            name = operation["operationId"].replace("_", "-")
            who = _WHO[who_of(operation)]
            rows[part].append(f"| [`{method.upper()} {path}`]({part}.md#{name}) | {operation['summary']} | {who} |")
            parts[part].append(route(method.upper(), path, operation, name))
    pages = {
        f"reference/http/{part}.md": f"# {title}\n\n{head}\n\n" + "\n".join(parts[part])
        for part, (title, head) in _PARTS.items()
    }
    overview = [_HEAD]
    for part, (title, _) in _PARTS.items():
        listed = ["| route | what it does | whose token |", "|---|---|---|", *rows[part]]
        overview += [f"## {title}\n", *stacked(listed)]
    overview += ["## A visit\n", f"{_VISIT}\n", visit]
    pages["reference/http/index.md"] = "\n".join(overview)
    schemas = found["components"]["schemas"]
    pages["reference/http/messages.md"] = "# Messages\n\nWhat is sent and answered, as JSON.\n\n" + "\n".join(
        message(name, schemas[name]) for name in sorted(schemas)
    )
    return pages


_HEAD = """# HTTP

Every route of `relaxdp serve`, from the description that the service gives of itself at `/openapi.json`. A token goes
into the header `Authorization: Bearer TOKEN`. A refusal is a [`Problem`](messages.md#problem) whose `error` is one
of the names listed with its status; what it means is said of the kind of the same name
in [Errors](../python/errors.md).

After 408, 429 and 503 (with `Retry-After`) the same request may be sent again; every other refusal is final. Bodies are
JSON, and a field that is not known is refused. See it at work: [a visit with curl](#a-visit).

```{toctree}
:hidden:

campaigns
market
service
messages
```
"""
_VISIT = """These requests were made of a service when this page was built. `relaxdp serve` says what `SERVER` is (as
`http://127.0.0.1:8000`), and `TOKEN` is in its token file. A real device is the [Python](../python/beyond.md) or the
[JavaScript](../javascript.md) one: it draws the report, keeps what it sent and never sends more than its limit."""


def stacked(table: list[str]) -> list[str]:
    """Return a table whose cells stand below each other on a phone."""
    return ['<div class="stacked">\n', *table, "\n</div>\n"]


def part_of(path: str) -> str:
    """Return which part of the service a route belongs to."""
    if path.startswith("/v1/market"):
        return "market"
    return "campaigns" if path.startswith(("/v1/", "/published/")) else "service"


def who_of(operation: dict[str, Any]) -> str | None:
    """Return whose token a route asks for."""
    return next((name for each in operation.get("security", []) for name in each), None)


def route(method: str, path: str, operation: dict[str, Any], name: str) -> str:
    """Return the section of one route."""
    lines = [f"({name})=", f"## {method} {path}\n", f"{operation['summary']} For {_WHO[who_of(operation)]}.\n"]
    listed = operation.get("parameters", [])
    if listed:
        rows = ["| parameter | where | what it is |", "|---|---|---|"]
        for each in listed:
            told = " ".join(filter(None, [each.get("description", ""), limits(each["schema"])]))
            must = "" if each["required"] else ", optional"
            rows.append(f"| `{each['name']}` | {each['in']}{must} | {cell(kind(each['schema']))}. {cell(told)} |")
        lines += stacked(rows)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Takes {kind(content.get('schema', {}))} (`{media}`).\n")
    takes = list(operation.get("requestBody", {}).get("content", {}))
    body = "@body.json" if "application/json" in takes else None
    lines.append(f"```text\n{curl(method, path, body, who_of(operation) is not None)}\n```\n")
    refusals = []
    for status, answer in operation["responses"].items():
        contents = answer.get("content", {})
        if status.startswith(("2", "3")):
            shapes = [
                f"{kind(content['schema'])} (`{media}`)" if content.get("schema") else f"`{media}`"
                for media, content in contents.items()
            ]
            lines.append(f"Answers **{status}**, {answer['description']}: {', '.join(shapes) or 'no body'}.\n")
        else:
            refusals.append(f"| {status} | {', '.join(f'`{code}`' for code in answer['description'].split(', '))} |")
    return "\n".join([*lines, "| refused with | error |", "|---|---|", *refusals, ""])


def message(name: str, schema: dict[str, Any]) -> str:
    """Return the section of one message."""
    lines = [f"({name.lower()})=", f"## {name}\n", schema.get("description", ""), ""]
    rows = []
    for field, each in schema.get("properties", {}).items():
        must = "" if field in schema.get("required", []) else " (optional)"
        told = " ".join(filter(None, [each.get("description", ""), limits(each)]))
        rows.append(f"| `{field}`{must} | {cell(kind(each))} | {cell(told)} |")
    if rows:
        lines += stacked(["| field | type | what it is |", "|---|---|---|", *rows])
    return "\n".join([*lines, ""])


def kind(schema: dict[str, Any]) -> str:
    """Return what a value is, in words; messages are links."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](messages.md#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(kind(each) for each in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return f"object with values that are {kind(schema['additionalProperties'])}" if isinstance(
            schema.get("additionalProperties"), dict
        ) else "object"  # fmt: skip
    if schema.get("format") == "binary":
        return "a file"
    return str(schema.get("type", "anything"))


_LIMITS = {
    "pattern": "matches `{}`",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
}


def limits(schema: dict[str, Any]) -> str:
    """Return what bounds a value, and what it is where it is left out."""
    parts = [schema, *schema.get("anyOf", [])]
    found = [words.format(part[name]) for part in parts for name, words in _LIMITS.items() if name in part]
    if schema.get("default") is not None:
        found.append(f"`{schema['default']}` where it is left out")
    return f"({', '.join(found)})" if found else ""


def cell(text: str) -> str:
    """Return a text as part of a table's row."""
    return text.replace("|", "\\|").replace("\n", " ")
