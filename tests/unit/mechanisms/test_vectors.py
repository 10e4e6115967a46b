"""The frozen vectors of the encodings hold: by a plain scalar implementation, by the path and by arrays."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from tests.vectors.make import untyped
from tests.vectors.make_encodings import FILE, check

import relaxdp as rx
from relaxdp.mechanisms.registry import create_mechanism

CASES: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["cases"]


def test_scalar() -> None:
    assert check() == 90


@pytest.mark.parametrize("encoding", ["unary-symmetric", "unary-optimised", "local-hash"])
def test_path_and_arrays(encoding: str) -> None:
    chosen = [case for case in CASES if case["encoding"] == encoding]
    assert len(chosen) == 30
    for case in chosen:
        values = [untyped(entry) for entry in case["values"]]
        options = {"buckets": case["buckets"]} if "buckets" in case else {}
        mechanism = create_mechanism(encoding, values=values, options={**options})
        where: Any = {
            "key": rx.Key.from_bytes(bytes.fromhex(case["key"])),
            "name": case["release"],
            "column": case["attribute"],
        }
        truth, object_id = values[case["truth"]], untyped(case["object"])
        path = mechanism.path(truth, id=object_id, **where)
        for level in case["levels"]:
            expected = bytes.fromhex(level["report"])
            assert str(mechanism.threshold(Decimal(level["epsilon"]))) == level["threshold"]
            assert path.at(level["epsilon"]) == expected
            assert mechanism.release([truth], [object_id], epsilon=level["epsilon"], **where) == [expected]
