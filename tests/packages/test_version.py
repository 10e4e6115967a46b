"""One version, wherever it is written."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import relaxdp

ROOT = Path(__file__).parents[2]


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    browser = json.loads((ROOT / "src/relaxdp/web/device/package.json").read_text("utf-8"))["version"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), flags=re.MULTILINE)
    assert cited
    assert {relaxdp.__version__, project, browser, cited[1]} == {project}
