"""Make the frozen test vectors of lists with a missing category, or check that they hold.

Run it with: python -m tests.vectors.make_missing.
"""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

from tests.vectors.make import held, make_or_check
from tests.vectors.make import typed as present_typed
from tests.vectors.make import untyped as present_untyped
from tests.vectors.scalar import report

FILE = Path(__file__).with_name("missing-1.json")
ENCODINGS = ("categorical", "unary-symmetric", "unary-optimised", "local-hash")


def typed(value: Any) -> dict[str, str]:
    """Return a declared value with its kind; None is of the kind `missing`."""
    return {"type": "missing", "value": ""} if value is None else present_typed(value)


def untyped(entry: dict[str, str]) -> Any:
    """Return the value behind `typed`."""
    return None if entry["type"] == "missing" else present_untyped(entry)


def levels(case: dict[str, Any], epsilons: list[str]) -> list[dict[str, str]]:
    """Return what the scalar implementation makes of a case."""
    values = [untyped(entry) for entry in case["values"]]
    made = []
    for epsilon in epsilons:
        threshold, packed = report(case, values, untyped(case["object"]), epsilon)
        made.append({"epsilon": epsilon, "threshold": str(threshold), "report": packed.hex()})
    return made


def cases(rng: random.Random) -> list[dict[str, Any]]:
    """Return 80 cases, 20 of each encoding: every kind of values, and None first, last and in the middle."""
    made = []
    for number in range(80):
        encoding, size = ENCODINGS[number % 4], rng.choice([1, 2, 3, 7, 16])
        kinds: list[list[Any]] = [
            [f"value {each}" for each in range(size)],
            rng.sample(range(-1000, 1000), size),
            [each / 8 - 1 for each in range(size)],
            [bytes([each]) for each in range(size)],
            [uuid.UUID(int=each) for each in range(size)],
        ]
        values, place = kinds[number // 4 % 5], [0, size, size // 2][number % 3]
        values.insert(place, None)
        case: dict[str, Any] = {
            "key": rng.randbytes(32).hex(),
            "release": rng.choice(["survey-2026", "Erhebung-ä"]),
            "attribute": rng.choice(["diagnosis", "Größe"]),
            "encoding": encoding,
            "values": [typed(value) for value in values],
            "object": typed(rng.choice([rng.randint(0, 10**9), f"patient-{number}"])),
            "truth": rng.choice([place, rng.randrange(len(values))]),
        }
        if encoding == "local-hash":
            case["buckets"] = rng.choice([2, 3, 21, 257])
        epsilons = [f"0.{rng.randint(1, 99):02d}", f"{rng.randint(1, 4)}.{rng.randint(0, 9)}", "12.5", "60"]
        made.append({**case, "levels": levels(case, epsilons)})
    return made


def check() -> int:
    """Return how many cases hold; raise where one does not."""
    return held(FILE, levels)


if __name__ == "__main__":
    make_or_check(FILE, lambda: cases(random.Random(35)), check)
