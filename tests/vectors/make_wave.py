"""Make the frozen test vectors of the wave, or check that they hold: python -m tests.vectors.make_wave."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

from tests.vectors.make import held, make_or_check, typed, untyped
from tests.vectors.make_kept import RANGES
from tests.vectors.scalar_kept import wave_report

FILE = Path(__file__).with_name("wave-1.json")
SHAPES = [(64, 32), (64, 16), (2, 1), (3, 2), (9, 4), (256, 1), (257, 64), (200, 512), (1024, 1024)]


def levels(case: dict[str, Any], epsilons: list[str]) -> list[dict[str, Any]]:
    """What the scalar implementation makes of a case."""
    made = []
    for epsilon in epsilons:
        level, place = wave_report(case, untyped(case["object"]), epsilon)
        made.append({"epsilon": epsilon, "threshold": str(level), "report": place})
    return made


def cases(rng: random.Random) -> list[dict[str, Any]]:
    """Return 54 cases; numbers are decimal text that reads back exactly."""
    objects: list[Any] = [0, -7, 2**64 - 1, "", "patient-17", "Straße", b"\x00" * 40, uuid.UUID(int=2**127)]
    made = []
    for number in range(54):
        (low, high), (bins, window) = RANGES[number % len(RANGES)], SHAPES[number % len(SHAPES)]
        clip = number % 5 == 0
        inside = [low, high, (low + high) / 2, low + (high - low) / (bins - 1), low + (high - low) * rng.random()]
        truth = rng.choice([low - 1, high * 1.5, *inside] if clip else inside)
        case: dict[str, Any] = {
            "key": rng.randbytes(32).hex(),
            "release": rng.choice(["survey-2026", "Erhebung-ä", ""]),
            "attribute": rng.choice(["age", "Größe"]),
            "encoding": "wave",
            "object": typed(objects[number] if number < len(objects) else rng.randbytes(16).hex()),
            "low": repr(low),
            "high": repr(high),
            "bins": bins,
            "window": window,
            "clip": clip,
            "truth": repr(truth if clip else min(max(truth, low), high)),
        }
        epsilons = [f"0.{rng.randint(1, 99):02d}", f"{rng.randint(1, 4)}.{rng.randint(0, 9)}", "12.5", "600"]
        made.append({**case, "levels": levels(case, epsilons)})
    return made


def check() -> int:
    """Return how many cases hold; raise where one does not."""
    return held(FILE, levels)


if __name__ == "__main__":
    make_or_check(FILE, lambda: cases(random.Random(5)), check)
