"""The digest of a level by the rules of docs/reference/files.md alone, beside that of the market."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import relaxdp as rx
from relaxdp.market.level_file import compute_level_digest, read_level_file
from relaxdp.market.publish import Terms, publish

HEADER = b"relaxdp market level 1\n"
N = 400
IDS = {
    "integer": pa.array(range(-200, 200)),
    "large integer": pa.array([*range(200), *range(2**63, 2**63 + 200)], pa.uint64()),
    "text": pa.array([f"{'ü' * (number % 3)}{number}" for number in range(N)]),
    "bytes": pa.array([bytes([number // 2, number % 2]) for number in range(N)]),
    "uuid": pa.array([UUID(int=number * 2**100 + 7).bytes for number in range(N)], pa.uuid()),
}
MECHANISMS: dict[str, tuple[Any, Any]] = {
    "labels": (["no", "yes"], ["no", "yes"]),
    "many labels": (list(range(300)), [3, 299]),
    "bits": (rx.Unary([f"v{number}" for number in range(11)]), ["v0", "v9"]),
    "hashes": (rx.LocalHash([f"v{number}" for number in range(50)], buckets=5), ["v0", "v49"]),
    "two ends": (rx.Numeric(0, 10), [2.5, 10.0]),
    "places": (rx.SquareWave(0, 10, epsilon=2), [2.5, 10.0]),
}


def digest(path: Path, compute_threshold: Any, alphabet: int) -> str:
    """Follow the four steps for a file. Thresholds and the number of codes are those of the mechanism."""
    metadata = json.loads(pq.read_schema(path).metadata[b"relaxdp"])
    ((name, column),) = metadata["columns"].items()
    table = pq.read_table(path)
    ids = [each.bytes if isinstance(each, UUID) else each for each in table[metadata["id"]].to_pylist()]
    reports = table[name].to_pylist()
    stated = table[column["level_column"]].to_pylist() if "level_column" in column else [column["epsilon"]] * len(ids)
    # 1. Path.
    bare = {key: value for key, value in column.items() if key not in ("level_column", "row_epsilons")}
    bare |= {"epsilon": "1", "threshold": str(compute_threshold("1"))}
    path_digest = sha256(HEADER + json.dumps(bare, sort_keys=True).encode("ascii")).hexdigest()
    # 2. Rows.
    payloads = [each.encode() if isinstance(each, str) else each for each in ids]
    rows = sorted(zip(payloads, stated, reports, strict=True), key=lambda row: row[0])
    # 3. Columns.
    width = next(each for each in (1, 2, 4, 8) if alphabet <= 256**each)
    strings = lengths, letters, thresholds, codes, seeds = [bytearray() for _ in range(5)]
    for payload, epsilon, report in rows:
        if isinstance(payload, bytes):
            lengths += len(payload).to_bytes(8, "little")
            letters += payload
        else:
            lengths += bytes([payload >= 2**63])
            letters += (payload % 2**64).to_bytes(8, "little")
        thresholds += compute_threshold(epsilon).to_bytes(8, "little")
        if column["encoding"].startswith("unary"):
            bits = int.from_bytes(report, "little")
            codes += bytes(bits >> place & 1 for place in range(len(column["values"])))
            continue
        if column["encoding"] == "local-hash":
            seeds += report[:8]
            code = int.from_bytes(report[8:], "little")
        elif column["encoding"] == "wave":
            code = report
        else:
            code = (column["values"] if "values" in column else column["range"]).index(report)
        codes += code.to_bytes(width, "little")
    # 4. Level.
    level = {
        "path": path_digest,
        "threshold": column["threshold"],
        "rows": len(rows),
        "columns": [sha256(each).hexdigest() for each in strings],
    }
    return sha256(HEADER + json.dumps(level, sort_keys=True).encode("ascii")).hexdigest()


class FakeMarket:
    """A market that keeps the file of the level that is published."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def create_listing(self, listing: str, **terms: Any) -> dict[str, Any]:
        return {"id": listing, "levels": []}

    def add_level(self, listing: str, file: Path, price: str) -> dict[str, Any]:
        self.file.write_bytes(file.read_bytes())
        return {"id": listing, "levels": []}


@pytest.mark.parametrize("limits", [None, "limit"])
@pytest.mark.parametrize(
    ("ids", "mechanism"), [*((each, "labels") for each in IDS), *(("integer", each) for each in MECHANISMS)]
)
def test_the_rules_give_the_digest(tmp_path: Path, ids: str, mechanism: str, limits: str | None) -> None:
    declared, (low, high) = MECHANISMS[mechanism]
    table = pa.table(
        {
            "id": IDS[ids],
            "answer": pa.array([low, low, high, high] * 100),
            "limit": pa.array(["0.5", "4"] * 200),
        }
    )
    vault = rx.Vault.create(tmp_path / "v.vault", budget=9)
    vault.release(table, {"answer": declared}, id="id", epsilon=9, name="survey", passthrough=["limit"])
    market: Any = FakeMarket(tmp_path / "level.parquet")
    publish(vault, "survey", market, {"2": "60"}, Terms(currency="EUR"), limits=limits)

    level = read_level_file(market.file)
    assert len(level.count_rows()) == (1 if limits is None else 2)
    found = digest(market.file, lambda epsilon: level.mechanism.level(epsilon).threshold, level.mechanism.alphabet)
    assert found == compute_level_digest(level)
