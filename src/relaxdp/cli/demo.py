"""`relaxdp demo`: one object relaxed through four levels, then a simulated population."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from relaxdp import Categorical, Key, privacy_loss
from relaxdp.law.epsilon import as_epsilon

LEVELS = ("0.1", "0.5", "1", "2")
TRUE_SHARES = {"flu": 0.15, "covid": 0.05, "none": 0.80}
RELEASE, ATTRIBUTE = "demo", "diagnosis"


def run(objects: int) -> None:
    """Print the two tables."""
    console = Console()
    answers, key = Categorical(list(TRUE_SHARES)), Key.generate()
    _one_object(console, answers, key)
    _population(console, answers, key, objects)


def _one_object(console: Console, answers: Categorical, key: Key) -> None:
    path = answers.path("covid", key=key, object_id="patient-17", release=RELEASE, attribute=ATTRIBUTE)
    table = Table(title="One person (truth: covid), relaxed through four levels")
    for column in ("epsilon", "report", "privacy loss of all reports so far", "what adding up would claim"):
        table.add_column(column, justify="right")
    reports = [path.at(level) for level in LEVELS]
    indices = [answers.values.index(report) for report in reports]
    for place, level in enumerate(LEVELS, 1):
        loss = privacy_loss(LEVELS[:place], indices[:place], m=len(answers.values))
        table.add_row(level, reports[place - 1], f"at most {loss.guarantee:.3f}", f"{loss.basic_composition:.3f}")
    console.print(table)
    again = [path.at(level) for level in reversed(LEVELS)]
    same = "the same reports" if again[::-1] == reports else "OTHER REPORTS"
    console.print(f"Asked again, in another order, the path gives {same}: nothing is drawn twice.\n")


def _population(console: Console, answers: Categorical, key: Key, objects: int) -> None:
    size = len(TRUE_SHARES)
    chosen = np.random.default_rng(1).choice(size, size=objects, p=list(TRUE_SHARES.values()))
    truths = pa.DictionaryArray.from_arrays(pa.array(chosen), pa.array(answers.values))
    columns = [np.bincount(chosen, minlength=size) / objects]
    for level in LEVELS:
        released = answers.release(
            truths, np.arange(objects), key=key, epsilon=level, release=RELEASE, attribute=ATTRIBUTE
        )
        columns.append(answers.estimate(released, epsilon=level).value)
    table = Table(title=f"{objects:,} simulated people: estimated shares at each level")
    table.add_column("value")
    for heading in ("truth", *(f"eps {level}" for level in LEVELS)):
        table.add_column(heading, justify="right")
    for row, value in enumerate(TRUE_SHARES):
        table.add_row(value, *(f"{column[row]:.4f}" for column in columns))
    console.print(table)
    total = sum(map(as_epsilon, LEVELS))
    console.print(f"Total privacy loss of everybody: {LEVELS[-1]} (the last level), not {total} (the sum).")
