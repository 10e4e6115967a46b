# ruff: noqa: E501 (a page is written here, with figures in it)
"""The page and the picture about scale, from what was measured; the plan's figures are computed, not written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

BILLION = 1_000_000_000


def picture(found: dict[str, Any], path: Path) -> None:
    """Draw seconds against objects, and nanoseconds an object against level and number of values."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rows = [each["rows"] for each in found["objects"]]
    for name, label in (
        ("release", "release, sorted by id"),
        ("shuffled", "release, shuffled"),
        ("estimate", "estimate"),
    ):
        left.loglog(rows, [each[name] for each in found["objects"]], "o-", label=label, markersize=4)
    per_row = found["objects"][-1]["release"] / rows[-1]
    left.loglog(rows, [per_row * each for each in rows], ":", color="grey", label="proportional")
    left.set(xlabel="objects", ylabel="seconds, one core")
    left.legend(fontsize=8)
    levels = {float(epsilon): cost for epsilon, cost in found["levels"].items()}
    middle.semilogx(list(levels), list(levels.values()), "o-", markersize=4)
    middle.set(xlabel="epsilon", ylabel="nanoseconds an object, ten values", ylim=(0, None))
    right.semilogx(list(found["values"]), list(found["values"].values()), "o-", markersize=4)
    right.set(xlabel="number of values", ylabel="nanoseconds an object, epsilon 1", ylim=(0, None))
    for axes in (left, middle, right):
        axes.grid(alpha=0.3)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def write_page(found: dict[str, Any], path: Path) -> None:
    """Write the page."""
    objects = found["objects"]
    largest = objects[-1]
    rate = largest["rows"] / largest["release"]
    in_row, out_row = largest["bytes_in"] / largest["rows"], largest["bytes_out"] / largest["rows"]
    gigabytes = BILLION / 1e9
    table = [
        f"| 10^{round(math.log10(each['rows']))} | {each['release']:.2f} | {each['memory']:.0f} | "
        f"{each['shuffled']:.2f} | {each['shuffled_memory']:.0f} | {each['estimate']:.3f} |"
        for each in objects
    ]
    levels = " | ".join(found["levels"]), " | ".join(f"{cost:.0f}" for cost in found["levels"].values())
    values = (
        " | ".join(f"{m:,}" for m in found["values"]),
        " | ".join(f"{cost:.0f}" for cost in found["values"].values()),
    )
    text = f"""# Scale: what a release costs, and what a billion objects would take

`make scale` measured and wrote this page, on one machine with two cores. Times are of one core unless said otherwise.

![seconds against objects, epsilon and values](figures/scale.png)

## Objects

A Parquet table of integer ids and a text column of ten values, released at epsilon 1.

| objects | release, sorted (s) | memory (MB) | release, shuffled (s) | memory (MB) | estimate (s) |
|---:|---:|---:|---:|---:|---:|
{chr(10).join(table)}

The time is proportional to the rows: {rate / 1e6:.1f} million rows a second and core at {largest["rows"]:,} rows. Memory is
that of the batches under way; a shuffled table is sorted on disk by DuckDB within its 600 MB.

## Levels

A path at a small epsilon makes more jumps before it stops (about 1.6 + ln(1/retention) draws). Nanoseconds an object,
the array function alone, ten values:

| epsilon | {levels[0]} |
|---|{"---:|" * len(found["levels"])}
| ns | {levels[1]} |

Every release draws for itself: nothing is kept between levels, so ten levels cost ten releases, and no more because they
are ten. What is stored does not grow either: the ledger has one row for each path, whatever its number of levels.

## Values

The number of declared values m enters through the retention (e - 1)/(e - 1 + m) at epsilon 1, that is through the number
of jumps: 2.4 draws an object at m = 2, 10.3 at m = 10,000, like ln m. The time grows a little faster, because few objects
are left in the late rounds and each round costs something of its own. ([Other mechanisms](mechanisms.md) do better there.)
Nanoseconds an object:

| values | {values[0]} |
|---|{"---:|" * len(found["values"])}
| ns | {values[1]} |

## A plan for a billion objects

From the rates above; {in_row:.1f} bytes a row come in and {out_row:.1f} go out, as measured at {largest["rows"]:,} rows.

| | one core |
|---|---:|
| sorted by id | {BILLION / rate / 60:.0f} minutes |
| shuffled | {BILLION / (largest["rows"] / largest["shuffled"]) / 60:.0f} minutes |
| bytes read | {in_row * gigabytes:.1f} GB |
| bytes written | {out_row * gigabytes:.1f} GB |

A sort is taken to grow in proportion, which the column "shuffled" shows up to {largest["rows"]:,} rows. A second level
costs the same again. An estimate from the released file takes {largest["estimate"] / largest["rows"] * BILLION:.0f} seconds on one
core. The ledger commits once for a release, not once for a row.
"""
    path.write_text(text, "utf-8")
