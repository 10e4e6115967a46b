"""All claims of the paper that are checked, run one after the other, in its order.

What comes of them is kept in memory until all is done.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from relaxdp.errors import ArgumentError
from relaxdp.paper import (
    discussion,
    experiment_1,
    experiment_2,
    feasibility,
    laws,
    market,
    mean,
    motivation,
    proofs,
    rappor,
    tables,
    utility,
)
from relaxdp.paper.claims import Claim, Data, Judged, Verdict
from relaxdp.paper.lab import Lab, LabSettings
from relaxdp.paper.style import render

CLAIMS: list[Claim] = [
    *motivation.CLAIMS,
    *laws.CLAIMS,
    *tables.CLAIMS,
    *feasibility.CLAIMS,
    *proofs.CLAIMS,
    *discussion.CLAIMS,
    *rappor.CLAIMS,
    *utility.CLAIMS,
    *mean.CLAIMS,
    *market.CLAIMS,
    *experiment_1.CLAIMS,
    *experiment_2.CLAIMS,
]


@dataclass(frozen=True)
class Run:
    """All verdicts of one run."""

    settings: LabSettings
    judged: Sequence[Judged]

    @property
    def passed(self) -> bool:
        """Whether no claim that can be checked fails."""
        return all(each.verdict is not Verdict.FAILS for each in self.judged)

    @property
    def random_checks(self) -> int:
        """How many checks chance entered."""
        return sum(check.false_alarm > 0 for each in self.judged for check in each.outcome.checks)

    @property
    def false_alarm(self) -> float:
        """How likely correct code is to fail anywhere in this run, at most."""
        return sum(each.false_alarm for each in self.judged)

    def summary(self) -> dict[str, object]:
        """Return the verdicts for programs."""
        return {
            "passed": self.passed,
            "seed": self.settings.seed,
            "random_checks": self.random_checks,
            "false_alarm": self.false_alarm,
            "claims": [
                {
                    "name": each.claim.name,
                    "verdict": each.verdict.value,
                    "measured": each.outcome.measured,
                    "false_alarm": each.false_alarm,
                    "failed": [check.name for check in each.outcome.checks if not check.passed],
                }
                for each in self.judged
            ],
        }


def chosen(names: Sequence[str]) -> list[Claim]:
    """Return the claims with these names, in the paper's order; without names, all of them."""
    known = [claim.name for claim in CLAIMS]
    for name in names:
        if name not in known:
            raise ArgumentError(
                "there is no claim {name!r}; the claims are {known}.", known=", ".join(known), name=name
            )
    return [claim for claim in CLAIMS if not names or claim.name in names]


def judge_all(claims: Sequence[Claim], lab: Lab, done: Callable[[], None] = lambda: None) -> Run:
    """Check every claim; `done` is called after each."""
    judged = []
    for claim in claims:
        lab.say(claim.title)
        judged.append(Judged(claim, claim.check(lab)))
        done()
    return Run(lab.settings, judged)


def figure_files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Draw all figures, one after the other, as names and bytes of files."""
    for each in run.judged:
        for name, picture in each.outcome.pictures.items():
            for kind, content in render(picture.draw).items():
                yield f"figures/{name}.{kind}", content


def data_files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Return all data as CSV."""
    for each in run.judged:
        for name, data in each.outcome.data.items():
            yield f"data/{name}.csv", _csv(data)


def _csv(data: Data) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(data.columns)
    writer.writerows([f"{cell:.12g}" if isinstance(cell, float) else cell for cell in row] for row in data.rows)
    return text.getvalue().encode()
