"""Schemathesis over the collector's own description, with a campaign of every encoding behind it (`make fuzz`).

Left to itself a fuzzer would meet nothing but unknown campaigns and unknown levels. So it is told the ids, levels,
labels and invitations that exist, beside all that it makes up: every value that it sends is still one that the
description allows, or one that it must refuse.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.servers.collectors import Running, running

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    "ignored_auth",
)  # fmt: skip
ENCODINGS: dict[str, dict[str, Any]] = {
    "fuzz-categorical": {"name": "categorical", "values": ["no", "yes"]},
    "fuzz-unary": {"name": "unary-optimised", "values": [1, 2, 3]},
    "fuzz-hash": {"name": "local-hash", "values": ["a", "b", "c"], "options": {"buckets": 3}},
    "fuzz-numeric": {"name": "numeric", "range": [0, 1]},
    "fuzz-wave": {"name": "wave", "range": [0, 1], "options": {"bins": 3, "window": 2}},
    "fuzz-bloom": {"name": "bloom", "options": {"bits": 8, "hashes": 1, "cohorts": 2}, "candidates": ["a", "b"]},
}
STEPS = "fuzz-steps"  # only this one is paused and finished, so that the others go on
# What is larger than a request may be is refused before anybody looks at it, which is as good; no 5xx ever is.
CONFIGURATION = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422]
"""
# Of a file the fuzzer needs to know that it is bytes.
HOOKS = """
import schemathesis

schemathesis.serializer.alias("application/vnd.apache.parquet", "application/octet-stream")
"""
REPORTS = ["no", "yes", 0, 1, 2, "AA==", "BQ==", "AAAAAAAAAAAB", "AAAAAAAAAAAC"]


def patched(document: Any, levels: list[dict[str, str]], invitation: str) -> Any:
    """Return the description with what exists beside what may be made up."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            own = path.rsplit("/", 1)[1] in ("relax", "pause", "resume", "finish", "reduce")
            known = [STEPS] if own else [*ENCODINGS, STEPS]
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "id":
                    parameter["schema"] = {"anyOf": [{"enum": known}, parameter["schema"]]}
    schemas = document["components"]["schemas"]
    report = schemas["Report"]["properties"]
    report["level"] = {"anyOf": [{"enum": levels}, report["level"]]}
    report["report"] = {"anyOf": [{"enum": REPORTS}, report["report"]]}
    report["cohort"] = {"anyOf": [{"enum": [0, 1]}, report["cohort"]]}
    report["invitation"] = {"anyOf": [{"enum": [invitation]}, report["invitation"]]}
    for name in ("Report", "Withdrawal"):
        schema = schemas[name]["properties"]["device"]
        schemas[name]["properties"]["device"] = {"anyOf": [{"enum": [f"{n:032x}" for n in range(20)]}, schema]}
    return document


def prepare(server: Running) -> Any:
    """Create the campaigns, and return the description for the fuzzer."""
    options: dict[str, Any] = {"levels": [{"epsilon": "0.5"}, {"epsilon": "1"}]}
    levels = [server.create(id=name, encoding=encoding, **options)["levels"] for name, encoding in ENCODINGS.items()]
    server.create(id=STEPS, invitations=True, **options)
    made = server.ask("POST", f"/v1/campaigns/{STEPS}/invitations", {"count": 1}, operator=True).json
    for name in ENCODINGS:
        server.ask("POST", f"/v1/campaigns/{name}/relax", operator=True)
    flat = [level for each in levels for level in each]
    return patched(server.ask("GET", "/openapi.json").json, flat, made["invitations"][0])


def fuzz(server: Running, folder: Path, *, examples: int, seed: int = 1) -> tuple[int, str]:
    """Run the fuzzer with so many examples for each operation; return how many cases it were, and what it printed."""
    (folder / "openapi.json").write_text(json.dumps(prepare(server)), "utf-8")
    (folder / "schemathesis.toml").write_text(CONFIGURATION, "utf-8")
    (folder / "fuzz_hooks.py").write_text(HOOKS, "utf-8")
    command = [
        str(Path(sys.executable).with_name("st")), "run", str(folder / "openapi.json"), "--url", server.base,
        "-H", f"Authorization: Bearer {server.token}", "--checks", ",".join(CHECKS), "--max-examples", str(examples),
        "--seed", str(seed), "--phases", "examples,coverage,fuzzing",
        "--generation-database", "none", "--request-timeout", "30", "--continue-on-failure", "--no-color",
        "--suppress-health-check", "all", "--warnings", "off",
    ]  # fmt: skip
    shown = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, timeout=3000,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(folder)},
    )  # fmt: skip
    text = shown.stdout + shown.stderr
    found = re.search(r"([\d,]+) generated", text)
    assert found, text[-5000:]
    assert shown.returncode == 0, text[:3000] + text[-3000:]
    return int(found[1].replace(",", "")), text


def main() -> None:
    """Fuzz on SQLite until ten thousand cases have passed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(f"sqlite:///{folder}/service.db", folder, "--no-request-log") as server:
            cases, text = fuzz(server, folder, examples=700)
            print(text[-3000:])
            assert server.ask("GET", "/healthz").status == 200
            assert "a request failed" not in server.log.read_text("utf-8")
    print(f"{cases:,} cases")
    assert cases >= 10_000, cases


if __name__ == "__main__":
    main()
