"""`python -m benchmarks`: measure everything, print the tables, write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console

from benchmarks.calls import call_comparisons, call_race
from benchmarks.encodings import bit_race, encoding_comparisons, fleet_race, unary_race, wave_race
from benchmarks.kernel import histogram_comparisons, histogram_race
from benchmarks.memory import memory_comparison
from benchmarks.path import path_comparisons, path_race
from benchmarks.report import markdown, show
from benchmarks.results import Results
from benchmarks.settings import FULL, QUICK, Settings
from benchmarks.step import step_comparisons, step_race

VALUES = (2, 10)
PAGE = Path("docs", "benchmarks.md")
TABLE_WIDTH = 120


def main() -> None:
    """Turn the arguments into one run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory, against peers.")
    parser.add_argument("--quick", action="store_true", help="a small run that only shows that the suite works")
    parser.add_argument("--output", type=Path, help="where the page goes (docs/benchmarks.md; nowhere if --quick)")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, TABLE_WIDTH))
    results = _measure(console, QUICK if arguments.quick else FULL, quick=arguments.quick)
    show(console, results)
    page = arguments.output or (None if arguments.quick else PAGE)
    if page is not None:
        page.write_text(markdown(results), encoding="utf-8")
        console.print(f"{page} is written.")


def _measure(console: Console, settings: Settings, *, quick: bool) -> Results:
    left_out: list[str] = []

    def note(text: str) -> None:
        # Between timings, never during one: a spinner's thread would take time from what is measured.
        console.print(text, highlight=False)

    def leave_out(text: str) -> None:
        if text not in left_out:
            left_out.append(text)
        note(text)

    if hasattr(os, "sched_setaffinity"):  # one core for everything that is compared, also for threads
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    calls = [call_race(values, settings, note, leave_out) for values in VALUES]
    paths = [path_race(values, settings, note, leave_out) for values in VALUES]
    steps = [step_race(values, settings, note) for values in VALUES]
    memory = [
        memory_comparison(case, values, sizes, note)
        for case, sizes in (("path", settings.path_memory), ("step", settings.step_memory))
        for values in VALUES
    ]
    comparisons = [
        row
        for compare, races in ((call_comparisons, calls), (path_comparisons, paths), (step_comparisons, steps))
        for values, race in zip(VALUES, races, strict=True)
        for row in compare(values, race)
    ]
    fleet, unary = fleet_race(settings, note, leave_out), unary_race(settings, note, leave_out)
    encodings = fleet, unary, bit_race(settings, note), wave_race(settings, note)
    comparisons += encoding_comparisons(*encodings)
    histograms = histogram_race(settings, note)
    comparisons += histogram_comparisons(histograms)
    return Results([*calls, *paths, *steps, *encodings, histograms], comparisons, memory, left_out, settings, quick)


if __name__ == "__main__":
    main()
