"""Write web/kit/wire.d.ts, what the service answers with as the pages' types: python -m tests.browser.wire_types.

The types are those of the service's own description, so that a page that reads a field which is not there does not pass
`make check`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.servers.collectors import running

PLACE = Path(__file__).parents[2] / "src" / "relaxdp" / "web" / "kit" / "wire.d.ts"
_HEAD = """/** What the service answers with, made from its own description: python -m tests.browser.wire_types. */
"""
_TYPES = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def types_of(description: dict[str, Any]) -> str:
    """Return an interface for every schema that an answer has or is made of."""
    schemas: dict[str, Any] = description["components"]["schemas"]
    answers = [
        content["schema"]
        for operations in description["paths"].values()
        for operation in operations.values()
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
        if "schema" in content
    ]
    wanted: set[str] = set()
    waiting = [json.dumps(answers)]
    while waiting:
        text = waiting.pop()
        for name in schemas.keys() - wanted:
            if f'"#/components/schemas/{name}"' in text:
                wanted.add(name)
                waiting.append(json.dumps(schemas[name]))
    return _HEAD + "".join(_interface(name, schemas[name]) for name in sorted(wanted))


def _interface(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    lines = [
        f"  {field}{'' if field in required else '?'}: {_type(each)};\n" for field, each in schema["properties"].items()
    ]
    return f"\nexport interface {name} {{\n{''.join(lines)}}}\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        inner = _type(schema["items"]) if schema.get("items") else "unknown"
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if schema.get("type") == "object":
        return f"Record<string, {_type(schema.get('additionalProperties') or {})}>"
    return _TYPES.get(schema.get("type", ""), "unknown")


def main() -> None:
    """Ask a service, and write the file."""
    with tempfile.TemporaryDirectory() as folder, running(f"sqlite:///{folder}/service.db", Path(folder)) as server:
        PLACE.write_text(types_of(server.ask("GET", "/openapi.json").json), "utf-8")


if __name__ == "__main__":
    main()
