"""Counts per level: a summary that can be added to, merged, saved, and turned into one estimate."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relaxdp.encodings.protocol import Encoding, Measure
from relaxdp.errors import CountsError, refusing
from relaxdp.estimation.frequency import Frequency, check_counts
from relaxdp.estimation.mean import answer
from relaxdp.estimation.result import Result
from relaxdp.estimation.simplex import likelihood_shares
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.law.level import Level

_FORMAT = "relaxdp counts 1"
Method = Literal["average", "precision"]


@dataclass(slots=True)
class _Tally:
    level: Level
    counts: NDArray[np.int64]
    objects: int


class Counts:
    """How many objects support each value, at each level. Every object counts once, at its highest level.

    Counts of disjoint objects may be merged, so data larger than memory and many machines work.

    >>> from relaxdp import Categorical
    >>> counts = Counts(Categorical(["no", "yes"]))
    >>> counts.add(["no", "yes", "yes"], epsilon=1)
    >>> counts.add_counts([10, 20], epsilon=2)
    >>> counts.objects
    33
    """

    def __init__(self, mechanism: Any) -> None:
        """Start with nothing; `mechanism` says which values there are."""
        self._encoding: Encoding = mechanism.encoding
        self._levels: dict[Level, _Tally] = {}

    @property
    def objects(self) -> int:
        """How many objects were counted."""
        return sum(tally.objects for tally in self._levels.values())

    @property
    def levels(self) -> dict[str, int]:
        """How many objects stand at each epsilon, ascending."""
        return {str(tally.level): tally.objects for tally in self._ascending()}

    def add(self, reports: Any, *, epsilon: Epsilon) -> None:
        """Count a column of reports that were released at `epsilon`."""
        counts, objects = self._encoding.count_reports(reports)
        self._add(counts, objects, self._encoding.level(epsilon))

    def add_counts(self, counts: Any, *, epsilon: Epsilon, objects: int | None = None) -> None:
        """Add counts that were made elsewhere; `objects` where a report may support several values, or none."""
        if objects is None and self._encoding.joint != "exclusive":
            raise CountsError("where a report may support several values, the number of objects must be said.")
        checked = check_counts(counts, len(self._encoding.labels), objects)
        total = int(checked.sum())
        if objects is not None and self._encoding.joint == "exclusive" and total != objects:
            raise CountsError(
                "every report is one value, but {objects:,} objects have {total:,} reports.",
                objects=objects,
                total=total,
            )
        self._add(checked, total if objects is None else int(objects), self._encoding.level(epsilon))

    def merge(self, other: Counts) -> None:
        """Add the counts of other objects."""
        if self._description() != other._description():
            raise CountsError("counts of other values or of another encoding cannot be merged.")
        for tally in other._levels.values():
            self._add(tally.counts, tally.objects, tally.level)

    def _add(self, counts: NDArray[np.int64], objects: int, level: Level) -> None:
        kept = self._levels.setdefault(level, _Tally(level, np.zeros(len(self._encoding.labels), np.int64), 0))
        kept.counts = kept.counts + counts
        kept.objects += objects

    def estimate(self, method: Method = "average") -> Result:
        """Return one estimate from all levels.

        "average": the mean of every object's own debiased report. Unbiased whatever an object's level depends on (its
        truth, its group, *other* objects' reports), except on its own earlier reports. A few objects at a very low
        level can make it noisy.
        "precision": levels weighted by how little noise they have. Less noise, but unbiased only if objects at all
        levels have the same shares, that is if the level does not depend on the truth.
        The likeliest shares under that same assumption: `likelihood`.
        """
        return answer(self._encoding.measure, *self.weighted(method))

    def weighted(self, method: Method = "average") -> tuple[list[Frequency], list[float]]:
        """Return the shares at each level, and what each level counts for in the estimate."""
        parts = self._parts()
        if method == "average":
            weights = [float(part.objects) for part in parts]
        elif method == "precision":
            # From the noise alone: weights that looked at the estimates would bias them.
            weights = [
                float(part.objects * part.support.gain**2 / (part.support.noise * (1 - part.support.noise)))
                for part in parts
            ]
        else:
            raise CountsError("the method is 'average' or 'precision', not {method!r}.", method=method)
        return parts, [weight / sum(weights) for weight in weights]

    @property
    def measure(self) -> Measure | None:
        """What the labels count for where the answer is a mean; None where it is their shares."""
        return self._encoding.measure

    def likelihood(self) -> NDArray[np.float64]:
        """Return the likeliest shares: not negative, summing to 1, at all levels together.

        The least error, some bias, no interval; like "precision" it assumes levels that do not depend on the truth.
        """
        parts = self._parts()
        silent = None if self._encoding.joint == "exclusive" else [part.objects - part.counts for part in parts]
        return likelihood_shares([part.counts for part in parts], [part.support for part in parts], silent)

    def _parts(self) -> list[Frequency]:
        parts = [self._frequency(tally) for tally in self._ascending() if tally.objects]
        if not parts:
            raise CountsError("there are no reports to estimate from.")
        return parts

    def _ascending(self) -> list[_Tally]:
        return [tally for _, tally in sorted(self._levels.items(), key=lambda item: item[0])]

    def _frequency(self, tally: _Tally) -> Frequency:
        return Frequency(
            labels=self._encoding.labels,
            counts=tally.counts,
            objects=tally.objects,
            support=self._encoding.support(tally.level.retention),
            epsilon=tally.level.epsilon,
            joint=self._encoding.joint,
        )

    def _description(self) -> dict[str, str]:
        return {"encoding": self._encoding.name, "params": self._encoding.params.hex()}

    @refusing("Nothing was written.")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts as JSON. They are as public as the reports."""
        levels = [
            {"epsilon": str(tally.level), "objects": tally.objects, "counts": tally.counts.tolist()}
            for tally in self._ascending()
        ]
        Path(path).write_text(json.dumps({"format": _FORMAT, **self._description(), "levels": levels}), "utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Any) -> Counts:
        """Read saved counts of the same values."""
        result = cls(mechanism)
        try:
            content = json.loads(Path(path).read_text("utf-8"))
            found = {name: content[name] for name in ("format", *result._description())}
            levels = [(level["counts"], level["objects"], level["epsilon"]) for level in content["levels"]]
        except OSError as problem:
            raise CountsError(
                "the counts file {path!r} cannot be read: {why}.", path=str(path), why=problem.strerror
            ) from None
        except (ValueError, KeyError, TypeError):
            raise CountsError("{path!r} is not a file of relaxdp counts, or it is damaged.", path=str(path)) from None
        if found != {"format": _FORMAT, **result._description()}:
            raise CountsError("the counts in {path!r} are of other values or of another encoding.", path=str(path))
        for counts, objects, epsilon in levels:
            result.add_counts(counts, epsilon=epsilon, objects=objects)
        return result


def highest_only(object_ids: Any, epsilons: Any, reports: Any) -> tuple[list[Any], list[Any]]:
    """Return (epsilons, reports) with each object once, at its highest level: the others add nothing to it.

    `object_ids`, `epsilons` and `reports` belong together row by row. A report at a lower level that was made later, by
    blurring, is newer and worse: it is the level that counts.

    >>> highest_only(["a", "b", "a"], ["0.5", "0.5", 2], ["no", "no", "yes"])
    ([2, '0.5'], ['yes', 'no'])
    """
    best: dict[Any, tuple[Decimal, Any, Any]] = {}
    for object_id, epsilon, report in zip(object_ids, epsilons, reports, strict=True):
        exact = as_epsilon(epsilon)
        if object_id not in best or exact > best[object_id][0]:
            best[object_id] = (exact, epsilon, report)
    return [epsilon for _, epsilon, _ in best.values()], [report for _, _, report in best.values()]
