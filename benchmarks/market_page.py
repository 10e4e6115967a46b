"""The page about the market's speed, from what was measured."""

from __future__ import annotations

from importlib.metadata import version
from statistics import median
from typing import NamedTuple

from benchmarks.machine import machine

LIBRARY, LIBRARY_ALL, COMMAND = "release, library, one core", "release, library, all cores", "`relaxdp release`"
TARGET = 3.0
DRAWN = ("sell a new level, blur", "sell a new level, bridge", "deliver", "deliver a relaxed level")
"""What goes through all rows, and is held to the target."""


class Turn(NamedTuple):
    """One turn of something: its seconds, and the process's peak of memory in MB."""

    seconds: float
    memory: float


Figures = dict[tuple[str, str], list[Turn]]
"""What and where -> its turns."""

_HEAD = """# Benchmarks of the market

`make bench-market` wrote this page: {rows:,} objects with integer ids and one categorical column of 3 or 10 values,
released at epsilon 1 and later at 2. A new level is 0.5, a blur of the delivery, or 0.75, a bridge between the two.
Medians of {rounds} rounds, after one that is not counted. All take turns, and a ratio is taken within a round: how many
times as long as the release of the same rows in that round. The target for what goes through all rows is at most
{target:g} times, beside the library call as well as beside the command.

The market draws on one core, and so does the release by library that it is compared with; the command uses all cores,
starts Python, and keeps its ledger. *library* is `Market.deliver` and `Market.buy` in the process that measures; *HTTP*
is asked of `relaxdp serve` on the same machine: a delivery with its upload, a sale without its download. Everything is
durable when the time is taken. Memory is the peak of the whole process that does the work: for HTTP, of the service.
"""


def page(found: dict[int, Figures], rows: int, rounds: int, load: float) -> str:
    """Return the page; `load` is what the machine was busy with before."""
    parts = [_HEAD.format(rows=rows, rounds=rounds, target=TARGET)]
    for values, figures in found.items():
        parts += [f"## {values} values", "", *_table(figures), ""]
    parts += ["## Machine", "", "| what | |", "|---|---|"]
    parts += [f"| {name} | {text} |" for name, text in _machine(load)]
    return "\n".join(parts) + "\n"


def _table(figures: Figures) -> list[str]:
    lines = [
        "| what | where | seconds | times the library's release | times the command | memory (MB) | at most 3 |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (what, where), turns in figures.items():
        seconds, memory = median(turn.seconds for turn in turns), max(turn.memory for turn in turns)
        shown = f"{memory:,.0f}" if what != COMMAND else ""  # a process of its own, whose memory is not watched
        if not where:
            lines.append(f"| {what} | | {seconds:.2f} | | | {shown} | |")
            continue
        ratios = [_ratios(turns, figures[base, ""]) for base in (LIBRARY, COMMAND)]
        met = "" if what not in DRAWN else "yes" if all(median(each) <= TARGET for each in ratios) else "**no**"
        cells = [f"{median(each):.2f} ({min(each):.2f} - {max(each):.2f})" for each in ratios]
        lines.append(f"| {what} | {where} | {seconds:.2f} | {' | '.join(cells)} | {shown} | {met} |")
    return lines


def _machine(load: float) -> list[tuple[str, str]]:
    """Return what it was measured on; of the packages, those that matter here."""
    used = [(name, text.removesuffix(" (one is used)")) for name, text in machine() if text != "not installed"]
    return [*used, ("SQLAlchemy", version("sqlalchemy")), ("load of the machine before it began", f"{load:.1f}")]


def _ratios(turns: list[Turn], base: list[Turn]) -> list[float]:
    return [own.seconds / other.seconds for own, other in zip(turns, base, strict=True)]
