"""A run of the fuzzer over the collector's description, on both stores; `make fuzz` has a longer one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.collector.collector_fuzz import fuzz
from tests.servers.collectors import running, url_of


@pytest.mark.long
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_no_undocumented_answer(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with running(url_of(store, request), tmp_path, "--no-request-log") as server:
        cases, _ = fuzz(server, tmp_path, examples=5, seed=7)
        assert cases >= 500
        assert server.ask("GET", "/healthz").status == 200
        assert "a request failed" not in server.log.read_text("utf-8")
