"""Disease incidence that may be read more sharply as it grows older: the example of the paper's introduction.

In some months, other people each time report a diagnosis. A fresh diagnosis is sensitive, so it starts at a small
epsilon, which grows with its age. Whoever kept every reading knows no more about a person than the last one tells.

Run it: python examples/disease_by_date.py
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import relaxdp as rx
from relaxdp.estimation.planning import find_margin
from relaxdp.estimation.schedules import ByDate

ANSWERS = rx.Categorical(["flu", "covid", "none"])
KEY = rx.Key.from_bytes(bytes(range(32)))  # so that this example can be repeated; yours comes from rx.Key.generate()
PEOPLE = 20_000
AGES = {0: "0.25", 60: "0.5", 180: "1", 365: "2"}  # the epsilon from which age of a diagnosis on, in days
MONTHS = {  # the truth, which only the people themselves know
    date(2026, 1, 1): (0.15, 0.05, 0.80),
    date(2026, 3, 1): (0.08, 0.12, 0.80),
    date(2026, 5, 1): (0.03, 0.17, 0.80),
}
READINGS = [date(2026, 4, 1), date(2026, 9, 15), date(2027, 6, 15)]


def schedule_of(month: date) -> ByDate:
    """Return the levels at which the diagnoses of one month may be released, and from when."""
    return ByDate({month + timedelta(days=age): epsilon for age, epsilon in AGES.items()})


def diagnoses_of(month: date) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the simulated diagnoses of one month, and the ids of its people."""
    place = list(MONTHS).index(month)
    chosen = np.random.default_rng(place).choice(3, PEOPLE, p=MONTHS[month])
    return np.array(ANSWERS.values)[chosen], np.arange(PEOPLE) + PEOPLE * place


def row(month: date, today: date) -> list[str]:
    """Return what may be known about covid in one month, on a day."""
    epsilon = schedule_of(month).get_level(today)
    if epsilon is None:
        return [f"{month:%Y-%m}", "not yet"]
    diagnoses, people = diagnoses_of(month)
    reports = ANSWERS.release(diagnoses, people, key=KEY, epsilon=epsilon, name="incidence", column="diagnosis")
    estimate = ANSWERS.estimate(reports, epsilon=epsilon)
    value, low, high = (float(column[1]) for column in (estimate.value, *estimate.interval()))
    planned = find_margin(n=PEOPLE, planned_values=3, epsilon=epsilon, share=0.1)
    truth = (diagnoses == "covid").mean()
    return [
        f"{month:%Y-%m}",
        f"{epsilon}",
        f"{planned:.3f}",
        f"{value:.3f}",
        f"{low:.3f} .. {high:.3f}",
        f"{truth:.3f}",
    ]


def main() -> None:
    """Print what is known on each day of reading, and what it cost."""
    console = Console()
    for today in READINGS:
        table = Table(title=f"Share of covid, as it may be read on {today}")
        for heading in ("month", "epsilon", "planned half-width", "estimate", "95 % interval", "truth"):
            table.add_column(heading, justify="right")
        for month in MONTHS:
            table.add_row(*row(month, today))
        console.print(table)
    for month in MONTHS:
        read = [level for today in READINGS if (level := schedule_of(month).get_level(today)) is not None]
        levels = " then ".join(map(str, read))
        console.print(f"{month:%Y-%m} was read at {levels}: it cost each person {read[-1]}, not the sum {sum(read)}.")


if __name__ == "__main__":
    main()
