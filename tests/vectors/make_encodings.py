"""Make the frozen test vectors of the encodings, or check that they hold: python -m tests.vectors.make_encodings."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

from tests.vectors.make import held, make_or_check, typed, untyped
from tests.vectors.scalar import report

FILE = Path(__file__).with_name("encodings-1.json")


def levels(case: dict[str, Any], epsilons: list[str]) -> list[dict[str, str]]:
    """What the scalar implementation makes of a case."""
    values = [untyped(entry) for entry in case["values"]]
    made = []
    for epsilon in epsilons:
        threshold, packed = report(case, values, untyped(case["object"]), epsilon)
        made.append({"epsilon": epsilon, "threshold": str(threshold), "report": packed.hex()})
    return made


def cases(rng: random.Random) -> list[dict[str, Any]]:
    """Return 90 cases, 30 of each encoding."""
    objects: list[Any] = [0, -7, 2**64 - 1, "", "patient-17", "Straße", b"", b"\x00" * 40, uuid.UUID(int=2**127)]
    made = []
    for place in range(90):
        encoding = ["unary-symmetric", "unary-optimised", "local-hash"][place % 3]
        size = rng.choice([2, 3, 7, 8, 9, 16, 17, 65])
        values: list[Any] = rng.choice(
            [[f"value {each}" for each in range(size)], rng.sample(range(-1000, 1000), size), list(range(size))]
        )
        case: dict[str, Any] = {
            "key": rng.randbytes(32).hex(),
            "release": rng.choice(["survey-2026", "Erhebung-ä", ""]),
            "attribute": rng.choice(["diagnosis", "Größe"]),
            "encoding": encoding,
            "values": [typed(value) for value in values],
            "object": typed(objects[place // 3] if place // 3 < len(objects) else rng.randint(0, 10**9)),
            "truth": rng.randrange(len(values)),
        }
        if encoding == "local-hash":
            case["buckets"] = rng.choice([2, 3, 4, 21, 256, 257, 1000])
        epsilons = [f"0.{rng.randint(1, 99):02d}", f"{rng.randint(1, 4)}.{rng.randint(0, 9)}", "12.5", "60"]
        made.append({**case, "levels": levels(case, epsilons)})
    return made


def check() -> int:
    """Return how many cases hold; raise where one does not."""
    return held(FILE, levels)


if __name__ == "__main__":
    make_or_check(FILE, lambda: cases(random.Random(2)), check)
