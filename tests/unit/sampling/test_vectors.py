"""The frozen vectors of stream version 1 hold in Python, by the scalar path and by arrays."""

from __future__ import annotations

import json

from tests.vectors.make import FILE, check, untyped

from relaxdp import Categorical, Key


def test_scalar() -> None:
    assert check() >= 300


def test_arrays() -> None:
    for case in json.loads(FILE.read_text("utf-8"))["cases"]:
        values = [untyped(entry) for entry in case["values"]]
        for level in case["levels"]:
            released = Categorical(values).release(
                [values[case["truth"]]],
                [untyped(case["object"])],
                key=Key.from_bytes(bytes.fromhex(case["key"])),
                epsilon=level["epsilon"],
                name=case["release"],
                column=case["attribute"],
            )
            assert released == [values[level["report"]]]


def test_every_id_type_is_there() -> None:
    types = {case["object"]["type"] for case in json.loads(FILE.read_text("utf-8"))["cases"]}
    assert types == {"integer", "text", "bytes", "uuid"}
