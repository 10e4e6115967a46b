"""The frozen vectors of Bloom filters and numbers hold: by a plain scalar implementation, and by the path."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tests.vectors.make import untyped
from tests.vectors.make_kept import FILE, check

from relaxdp import Key
from relaxdp.mechanisms.bloom import Bloom, BloomShape, release_bloom
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.sampling.keyed_stream import PathId

CASES: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["cases"]


def where(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "key": Key.from_bytes(bytes.fromhex(case["key"])),
        "path": PathId(case["release"], case["attribute"]),
    }


def test_scalar() -> None:
    assert check() == 80


def test_bloom() -> None:
    chosen = [case for case in CASES if case["encoding"] == "bloom"]
    assert len(chosen) == 40
    assert {case["bits"] for case in chosen} >= {1, 256, 257}
    for case in chosen:
        shape, object_id = BloomShape(case["bits"], case["hashes"], case["cohorts"]), untyped(case["object"])
        for level in case["levels"]:
            epsilon, expected = Decimal(level["epsilon"]), bytes.fromhex(level["report"])
            encoding = Bloom(shape, level["cohort"])
            assert str(encoding.threshold(epsilon)) == level["threshold"]
            assert ReportPath(encoding, case["truth"], object_id=object_id, **where(case)).at(epsilon) == expected
            many = release_bloom(shape, [case["truth"]], [object_id], level=encoding.level(epsilon), **where(case))
            assert (int(many.cohorts[0]), many.packed.tobytes()) == (level["cohort"], expected)


def test_numeric() -> None:
    chosen = [case for case in CASES if case["encoding"] == "numeric"]
    assert len(chosen) == 40
    for case in chosen:
        encoding = Numeric(float(case["low"]), float(case["high"]))
        path = ReportPath(encoding, float(case["truth"]), object_id=untyped(case["object"]), **where(case))
        for level in case["levels"]:
            assert str(encoding.threshold(Decimal(level["epsilon"]))) == level["threshold"]
            assert repr(path.at(level["epsilon"])) == level["report"]
