"""Waves that a browser draws are those of the package, whatever the range, the bins and the window are."""

from __future__ import annotations

import json
import math
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE

import relaxdp as rx

ADAPTER = Path(__file__).with_name("wave_adapter.mjs")
RANGES = [(0.0, 120.0), (-7.0, -2.5), (-1e300, 1e300), (0.0, 3e-290), (0.1, 0.3), (1e15, 1e15 + 1), (-5e-324, 1e-200)]
BINS, WINDOWS = [2, 3, 64, 1000, 1024], [1, 2, 64, 1024]
EPSILONS = ["1e-16", "0.01", "0.7", "1.234567890123456789", "3", "9", "44", "46", "90"]


def cases(count: int) -> list[dict[str, Any]]:
    """Cases that go through all ranges, and through the extremes of bins and window; many truths are on a bin."""
    drawn, made = random.Random(11), []
    for number in range(count):
        low, high = RANGES[number % len(RANGES)]
        bins, window = drawn.choice(BINS), drawn.choice(WINDOWS)
        on_bin = low + (high - low) * (drawn.randrange(bins) / (bins - 1))
        near = math.nextafter(on_bin, drawn.choice([low, high]))
        truth = drawn.choice([low, high, on_bin, near, low + (high - low) * drawn.random()])
        clip = drawn.random() < 0.2
        truth = truth * drawn.choice([1, 3]) if clip else min(max(truth, low), high)
        shape = {"bins": bins, "window": window, "clip": clip}
        made.append({"low": low, "high": high, "shape": shape, "key": drawn.randbytes(32).hex(), "truth": truth})
    return made


@pytest.mark.parametrize("count", [140, pytest.param(2_100, marks=pytest.mark.long)])
def test_browsers_draw_the_same(node: str, count: int) -> None:
    asked = cases(count)
    done = subprocess.run(
        [node, str(ADAPTER)],
        input="".join(json.dumps({**case, "epsilons": EPSILONS}) + "\n" for case in asked),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == count
    for case, made in zip(asked, found, strict=True):
        wave = rx.SquareWave(case["low"], case["high"], **case["shape"])
        key = rx.Key.from_bytes(bytes.fromhex(case["key"]))
        path = wave.path(case["truth"], key=key, id="o", name="r", column="a")
        assert made["params"] == wave.params.hex()
        thresholds = [str(wave.level(epsilon).threshold) for epsilon in EPSILONS]
        assert made["reports"] == [[T, path.at(epsilon)] for T, epsilon in zip(thresholds, EPSILONS, strict=True)]
