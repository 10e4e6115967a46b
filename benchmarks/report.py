"""The results as tables on the terminal and as docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.machine import machine
from benchmarks.results import Comparison, MemoryComparison, Results
from benchmarks.timing import Ratio

Rows = list[tuple[str, ...]]

RATIOS = ("race", "contender", "compared with", "ratio", "extremes", "target", "met")
SPEEDS = ("race", "contender", "million objects/s")
MEMORY = ("call", "objects", "resident", "allocated", "per object more", "target", "met")

INTRODUCTION = """\
# Benchmarks

`make bench` wrote this page. It builds an environment of its own with the peers, takes a few minutes, and prints the
same tables; `python -m benchmarks --quick` only shows that the suite works.

Times differ from machine to machine and from minute to minute, so the figures to look at are ratios. All contenders of
a race run in one process on one core and take turns, after a first turn that is not counted (compilers, caches); a
ratio is taken within each round, and the table shows the median of {rounds} rounds and the extremes.
"""

WHAT = """\
## What is measured

**What you call.** Whole calls at epsilon 1 with {path_objects:,} rows: `Categorical(labels).release(...)` with Arrow
columns of labels and with ids in any order, and `vault.release(...)` of a pandas frame with text labels. The vault is
new, in memory, and keeps a snapshot. Ids ascend unless the name states otherwise.

**Path.** `Categorical(range(m)).release(...)`, the public call: {path_objects:,} values of one byte, ascending 64-bit
integer ids unless said otherwise, a key. It checks values and ids, refuses repeated ids and draws the exact keyed
reports of stream version 1. The smaller epsilon, the longer the path that an object walks. Text ids have mixed
lengths of up to 24 bytes; they come as a pyarrow array and as a NumPy array of text, at epsilon 1.

**NumPy.** What is called so was measured in the same run with `RELAXDP_KERNEL=off`; targets are for the compiled path,
on a machine with VAES. The same AES blocks are as many as NumPy's path of these objects encrypts, in pieces that
stay in the cache, by the `cryptography` library: what no path through it could go below.

**Peers.** One-shot randomized response at epsilon 1. None of them relaxes. What is called once per value gets fewer
values, and objects per second are compared.

- multi-freq-ldpy: its client takes one value per call. Numba compiles it, so a caller who compiles the loop as well
  saves most of what a call from Python costs, and that is its fastest form. Both are shown; the target is for calls
  from Python. Its randomness is a Mersenne Twister: not secure.
- pure-ldp: one value per call; items count from 1 unless told otherwise. Importing it needs scikit-learn and
  statsmodels, which it does not declare. Its randomness is a Mersenne Twister: not secure.
- opendp: secure, one value per call; a whole vector of answers exists for bits only.
- NumPy line: `np.where(rng.random(n) < keep, x, rng.integers(0, m, n, dtype=x.dtype))`. Neither secure nor exact, and
  it needs 10 to 17 bytes of temporary memory per object. The faster of its two forms is compared with.

**Step.** One step of Algorithm 1, from epsilon 0.5 to 1, for {step_objects:,} objects of one byte, drawn securely and
exactly. The limit is to make as many secure bytes (AES-256 in counter mode) and to copy as many, both into memory
that is mapped already. The NumPy line knows no last report, so it does less than the step.

**Histogram.** {step_objects:,} codes of one byte, beside `np.bincount`.

**Memory.** One call in a fresh process, at its peak, beyond its inputs and its result: what the process grew by
(resident), and what Python and NumPy asked for (allocated). If it does not grow with the number of objects, both
sizes show the same up to noise. Ids are ascending integers: to find a repeat among others, all have to be kept.
"""

# Written by hand, from profiles: a run does not measure it.
LIMITS = """\
## What limits it

For what misses its target, or meets it narrowly: shares of samples (`perf record`, with VAES) and processor time, on
a machine at about 3.4 GHz, which others used as well. A block of AES takes the compiled path 1.02 ns there; its 14
instructions alone take 0.98 ns, in registers of 32 bytes as well as of 64. A processor with wider units needs half of
that with registers of 64 bytes: [cycles for each block, and goals](decisions/0024-avx512.md).

- **Path, m = 2.** 3.1 blocks an object: of its id, of a first try and of 1.1 later ones. The first two take 1.6 ns
  each, a later one 2.6 ns: who walks on is known only when a try is drawn, so rows are gathered, and reports put back
  one by one. All that is 74 % of the call (walks 35 %, first tries 19 %, ids 20 %). The rest is Python and NumPy,
  above all the order of the ids (5 %) and indices of 8 bytes (5 %).
- **Optimised unary, m = 1,024, keyed.** 2.1 blocks a bit are three quarters of the call: walks 47 %, first tries
  29 %. With AVX-512 the draws take two thirds of the time.
- **Text ids of Arrow, m = 2.** 1.7 blocks an id instead of one, and they begin anywhere: laying them out takes 20 %
  of the call, encrypting them 8 %. Arrow's comparison, which proves them distinct, is 16 %; one of our own took a
  fifth less, 4 % of the call, and was not worth its lines.
- **Step, m = 2.** 32 % of the samples are the system's, which clears the memory of the result; the limit writes into
  memory that is there already. In such memory the step draws 5,700 to 6,000 million objects a second. At m = 10 it is
  14 %; the rest is drawing three times as many bytes.
- **Histogram, m = 256.** A load, an addition and a store for each code: 3,300 to 3,500 million a second, one in a
  cycle, whether there are 4, 8 or 16 tables, of 4 or of 8 bytes, read by bytes or by words. A table of pairs of codes
  halves the stores and does not fit into the fastest cache: 3,000. `np.bincount` takes seven cycles, so ten times its
  speed would be less than a cycle a code.
"""


def show(console: Console, results: Results) -> None:
    """Print the tables."""
    _print(console, "Raw speeds", SPEEDS, _speed_rows(results), left=2)
    _print(console, "Memory beyond inputs and result", MEMORY, _memory_rows(results.memory), left=1)
    _print(console, "Ratios", RATIOS, _ratio_rows(results.comparisons), left=3)
    for line in results.left_out:
        console.print(line)
    if results.quick:
        console.print("A quick run: it shows that the suite works, and its figures mean nothing.")


def markdown(results: Results) -> str:
    """Return the page of the documentation."""
    settings = results.settings
    parts = [
        INTRODUCTION.format(rounds=settings.rounds),
        "## Ratios and targets\n",
        _table(RATIOS, _ratio_rows(results.comparisons), left=3),
        "## Memory beyond inputs and result\n",
        _table(MEMORY, _memory_rows(results.memory), left=1),
        "## Raw speeds\n",
        _table(SPEEDS, _speed_rows(results), left=2),
        WHAT.format(path_objects=settings.path_objects, step_objects=settings.step_objects),
        LIMITS,
        "## Machine\n",
        _table(("what", "this run"), machine(), left=2),
    ]
    if results.left_out:
        parts.insert(3, "\n".join(results.left_out) + "\n")
    return "\n".join(parts)


def _ratio_rows(comparisons: Sequence[Comparison]) -> Rows:
    return [
        (
            row.race,
            row.contender,
            row.rival,
            _number(row.ratio.median),
            _extremes(row.ratio),
            "" if row.target is None else f"≥ {row.target:g}",
            "" if row.met is None else _yes(row.met),
        )
        for row in comparisons
    ]


def _memory_rows(comparisons: Sequence[MemoryComparison]) -> Rows:
    rows: Rows = []
    for comparison in comparisons:
        for size in (comparison.few, comparison.many):
            resident = "unknown" if size.resident is None else _megabytes(size.resident)
            rows.append((comparison.what, f"{size.objects:,}", resident, _megabytes(size.allocated), "", "", ""))
        verdict = (f"{comparison.growth:.2f} bytes", f"≤ {comparison.TOLERANCE:g}", _yes(comparison.met))
        rows[-1] = rows[-1][:4] + verdict
    return rows


def _speed_rows(results: Results) -> Rows:
    return [(race.title, name, _number(race.speed(name) / 1e6)) for race in results.races for name in race.names]


def _yes(met: bool) -> str:
    return "yes" if met else "**no**"


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _extremes(ratio: Ratio) -> str:
    return f"{_number(ratio.lowest)} - {_number(ratio.highest)}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _print(console: Console, title: str, headings: Sequence[str], rows: Rows, *, left: int) -> None:
    table = Table(title=title)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right")
    for row in rows:
        table.add_row(*(cell.replace("**", "") for cell in row))
    console.print(table)


def _table(headings: Sequence[str], rows: Sequence[tuple[str, ...]], *, left: int) -> str:
    marks = ["---" if place < left else "---:" for place in range(len(headings))]
    lines = [" | ".join(cells) for cells in (headings, marks, *rows)]
    return "".join(f"| {line} |\n" for line in lines)
