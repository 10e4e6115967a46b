"""Make the frozen test vectors of Bloom filters and numbers, or check them: python -m tests.vectors.make_kept."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

from tests.vectors.make import held, make_or_check, typed, untyped
from tests.vectors.scalar_kept import bloom_report, numeric_report

FILE = Path(__file__).with_name("bloom-numeric-1.json")
WORDS = ["", "cheese", "Käse", "漢字", "🙂", "a\u0000b", "x" * 7, "x" * 8, "x" * 9, "y" * 100]
SHAPES = [(8, 1, 1), (16, 2, 64), (64, 2, 8), (100, 3, 3), (128, 2, 64), (256, 16, 5), (257, 1, 7), (300, 16, 1000)]
RANGES = [(0.0, 120.0), (-1.0, 1.0), (-0.0, 5e-300 * 1e12), (0.1, 0.3), (-1e300, 1e300), (1e15, 1e15 + 1)]


def levels(case: dict[str, Any], epsilons: list[str]) -> list[dict[str, Any]]:
    """What the scalar implementation makes of a case."""
    made: list[dict[str, Any]] = []
    for epsilon in epsilons:
        if case["encoding"] == "bloom":
            level, cohort, packed = bloom_report(case, untyped(case["object"]), epsilon)
            made.append({"epsilon": epsilon, "threshold": str(level), "cohort": cohort, "report": packed.hex()})
        else:
            level, end = numeric_report(case, untyped(case["object"]), epsilon)
            made.append({"epsilon": epsilon, "threshold": str(level), "report": repr(end)})
    return made


def cases(rng: random.Random) -> list[dict[str, Any]]:
    """Return 80 cases, 40 of each encoding; numbers are decimal text that reads back exactly."""
    objects: list[Any] = [0, -7, 2**64 - 1, "", "patient-17", "Straße", b"\x00" * 40, uuid.UUID(int=2**127)]
    made = []
    for place in range(80):
        case: dict[str, Any] = {
            "key": rng.randbytes(32).hex(),
            "release": rng.choice(["survey-2026", "Erhebung-ä", ""]),
            "attribute": rng.choice(["word", "Größe"]),
            "encoding": ["bloom", "numeric"][place % 2],
            "object": typed(objects[place // 2] if place // 2 < len(objects) else rng.randbytes(16).hex()),
        }
        if place % 2:
            low, high = RANGES[place // 2 % len(RANGES)]
            number = rng.choice([low, high, (low + high) / 2, low + (high - low) * rng.random(), -0.0 + low])
            case |= {"low": repr(low), "high": repr(high), "truth": repr(number)}
        elif place % 16 == 0:
            case |= {"bits": 1, "hashes": 1, "cohorts": rng.choice([1, 4]), "truth": rng.choice(["false", "true"])}
        else:
            bits, hashes, cohorts = SHAPES[place // 2 % len(SHAPES)]
            case |= {"bits": bits, "hashes": hashes, "cohorts": cohorts, "truth": rng.choice(WORDS)}
        epsilons = [f"0.{rng.randint(1, 99):02d}", f"{rng.randint(1, 4)}.{rng.randint(0, 9)}", "12.5", "600"]
        made.append({**case, "levels": levels(case, epsilons)})
    return made


def check() -> int:
    """Return how many cases hold; raise where one does not."""
    return held(FILE, levels)


if __name__ == "__main__":
    make_or_check(FILE, lambda: cases(random.Random(3)), check)
