"""Counters, gauges and histograms, as Prometheus reads them; several workers add up."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Literal

Labels = tuple[tuple[str, str], ...]
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The numbers of one worker. All of them only grow, but for gauges, which are asked for when they are read."""

    def __init__(self) -> None:
        self._help: dict[str, tuple[str, str]] = {}
        self._counters: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, list[float]]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def counter(self, name: str, meaning: str) -> None:
        """Declare a counter."""
        self._help[name] = ("counter", meaning)
        self._counters[name] = {}

    def histogram(self, name: str, meaning: str) -> None:
        """Declare a histogram of seconds."""
        self._help[name] = ("histogram", meaning)
        self._histograms[name] = {}

    def gauge(
        self, name: str, meaning: str, read: Callable[[], float], *, kind: Literal["gauge", "counter"] = "gauge"
    ) -> None:
        """Declare a number that is asked for: a gauge of this worker, or a counter that somebody else keeps."""
        self._help[name] = (kind, meaning)
        self._gauges[name] = read

    def add(self, name: str, labels: Labels = (), amount: float = 1) -> None:
        """Count something."""
        kept = self._counters[name]
        kept[labels] = kept.get(labels, 0) + amount

    def observe(self, name: str, seconds: float, labels: Labels = ()) -> None:
        """Measure something."""
        kept = self._histograms[name]
        row = kept.get(labels)
        if row is None:
            row = kept[labels] = [0.0] * (len(BOUNDS) + 2)
        row[bisect_left(BOUNDS, seconds)] += 1
        row[-1] += seconds

    def snapshot(self) -> str:
        """Return all numbers as text, for the other workers."""
        counters = [[name, labels, value] for name, kept in self._counters.items() for labels, value in kept.items()]
        rows = [[name, labels, row] for name, kept in self._histograms.items() for labels, row in kept.items()]
        gauges = {name: read() for name, read in self._gauges.items()}
        return json.dumps({"counters": counters, "histograms": rows, "gauges": gauges})

    def text(self, others: Sequence[str] = ()) -> str:
        """Return Prometheus text: the sums over this worker and the snapshots of others."""
        counters: dict[tuple[str, Labels], float] = {}
        histograms: dict[tuple[str, Labels], list[float]] = {}
        gauges = {name: read() for name, read in self._gauges.items()}
        for content in map(json.loads, others):  # what a worker has waiting is its own affair
            for name, value in content["gauges"].items():
                if self._help.get(name, ("",))[0] == "counter":
                    gauges[name] = gauges.get(name, 0) + value
        for content in map(json.loads, [self.snapshot(), *others]):
            for name, labels, value in content["counters"]:
                key = (name, _labels(labels))
                counters[key] = counters.get(key, 0) + value
            for name, labels, row in content["histograms"]:
                key = (name, _labels(labels))
                histograms[key] = [a + b for a, b in zip(histograms.get(key, [0.0] * len(row)), row, strict=True)]
        lines: list[str] = []
        for name, (kind, meaning) in self._help.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            if name in gauges:
                lines.append(f"{name} {gauges[name]:g}")
            lines += [f"{name}{_shown(key[1])} {value:.17g}" for key, value in counters.items() if key[0] == name]
            for key, row in histograms.items():
                if key[0] == name:
                    lines += _histogram(name, key[1], row)
        return "\n".join(lines) + "\n"


def _labels(pairs: list[list[str]]) -> Labels:
    return tuple((name, value) for name, value in pairs)


def _histogram(name: str, labels: Labels, row: list[float]) -> list[str]:
    lines, total = [], 0.0
    for bound, number in zip([*map(str, BOUNDS), "+Inf"], row, strict=False):
        total += number
        lines.append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {total:.17g}")
    return [*lines, f"{name}_sum{_shown(labels)} {row[-1]:.17g}", f"{name}_count{_shown(labels)} {total:.17g}"]


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = [(name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for name, value in labels]
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"
