"""One question at several dates: what each date says, and what changed between them, as a frame, a text, a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from relaxdp.estimation.difference import Change
from relaxdp.estimation.result import IMPLAUSIBLE, TOGETHER, About, Result, as_pandas


@dataclass(frozen=True, eq=False)
class Date:
    """What one date says of everybody who was there, and how that date is called."""

    label: str
    column: str
    result: Result = field(repr=False)
    objects: int
    levels: Mapping[str, int]
    """How many objects stand at each epsilon."""
    release: str
    epoch: int
    encoding: str


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """What changed from one date to another.

    `stayed` is about those who were there at both dates, `everybody` about all that each date has; `left` and `joined`
    say how the others stood at the one date that they have. Where ids were not compared there is `everybody` alone.
    """

    old: Date
    new: Date
    everybody: Change
    stayed: Change | None = None
    joined: Result | None = None
    left: Result | None = None
    objects: Mapping[str, int] = field(default_factory=dict)
    """How many objects stayed, joined and left; nothing where ids were not compared."""

    @property
    def change(self) -> Change:
        """The change of those who stayed, or of everybody where nobody did or nobody knows."""
        return self.everybody if self.stayed is None else self.stayed

    @property
    def changes(self) -> dict[str, Change]:
        """The changes by whose they are; nothing is said twice where all stayed."""
        found = {} if self.stayed is None else {"stayed": self.stayed}
        has_others = self.joined is not None or self.left is not None
        return found | ({"everybody": self.everybody} if has_others or not found else {})

    @property
    def others(self) -> dict[str, Result]:
        """The estimates of those who were there at one date alone."""
        found = {"joined": self.joined, "left": self.left}
        return {who: result for who, result in found.items() if result is not None}

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return one pyarrow table: whose, which value, the estimates then and now, the change and all intervals.

        What those who joined were before, and those who left are now, is missing, and so is their change.
        """
        asked: Any = {"simultaneous": simultaneous, "about": about}
        tables = []
        for who, change in (("stayed", self.stayed), ("everybody", self.everybody)):
            if change is not None:
                table = change.to_arrow(confidence_level, **asked).drop_columns(["old", "new"])
                tables.append(_with_dates(table, who, change.old, change.new, confidence_level, asked))
        for who, result in self.others.items():
            keys = pa.table({name: pa.array(column) for name, column in result.keys.items()})
            old, new = (None, result) if who == "joined" else (result, None)
            tables.append(_with_dates(keys, who, old, new, confidence_level, asked))
        return pa.concat_tables(tables, promote_options="default").select(tables[0].column_names)

    def to_frame(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return the same as a pandas data frame."""
        return as_pandas(self.to_arrow(confidence_level, simultaneous=simultaneous, about=about))

    def __repr__(self) -> str:
        names = self.old.label, self.new.label
        lines = [f"from {names[0]} ({self.old.objects:,} objects) to {names[1]} ({self.new.objects:,} objects)"]
        for who, change in self.changes.items():
            lines += [f"{self.whose(who)}:", text_of(change)]
        for who, result in self.others.items():
            lines += [f"{self.whose(who)}:", repr(result)]
        return "\n".join(lines)

    def whose(self, who: str) -> str:
        """Return in words of whom something is said, and how many they are."""
        old, new = self.old, self.new
        if who == "everybody":
            return f"everybody: {old.objects:,} in {old.label}, {new.objects:,} in {new.label}"
        did = {"stayed": f"were there in {old.label} and in {new.label}", "joined": f"joined, in {new.label}"}
        return f"the {self.objects[who]:,} who {did.get(who, f'left, in {old.label}')}"

    def _repr_html_(self) -> str:
        from relaxdp.estimation.html import html_of, html_of_change  # noqa: PLC0415

        names = self.old.label, self.new.label
        parts = [(who, html_of_change(change, *names)) for who, change in self.changes.items()]
        parts += [(who, html_of(result)) for who, result in self.others.items()]
        return "".join(f"<p><b>{escape(self.whose(who))}</b></p>{html}" for who, html in parts)

    def plot(
        self,
        axes: Any = None,
        *,
        top: int | None = None,
        confidence_level: float = 0.95,
        simultaneous: bool = False,
        about: About = "objects",
    ) -> Any:
        """Draw the changes with their intervals, of those who stayed if there are any; returns matplotlib's axes."""
        from relaxdp.estimation.plot import set_title  # noqa: PLC0415

        asked: Any = {"confidence_level": confidence_level, "simultaneous": simultaneous, "about": about}
        axes = self.change.plot(axes, top=top, **asked)
        who = "everybody" if self.stayed is None else "stayed"
        set_title(axes, f"{self.old.column!r}, {self.whose(who)}")
        return axes


def _with_dates(
    table: Any, who: str, old: Result | None, new: Result | None, confidence_level: float, asked: Mapping[str, Any]
) -> Any:
    """Return a table with whose rows these are in front, and the estimates of both dates behind the values."""
    place = next((n for n, name in enumerate(table.column_names) if name == "change"), table.num_columns)
    for name, result in (("new", new), ("old", old)):
        if result is None:
            columns = [pa.nulls(table.num_rows, pa.float64())] * 3
        else:
            numbers = (result.value, *result.interval(confidence_level, **asked))
            columns = [pa.array(np.atleast_1d(each)) for each in numbers]
        for part, column in reversed([*zip(("", "_low", "_high"), columns, strict=True)]):
            table = table.add_column(place, name + part, column)
    return table.add_column(0, "who", pa.array([who] * table.num_rows))


@dataclass(frozen=True, eq=False, repr=False)
class Dates:
    """The same question at more than two dates: what each says of everybody, and what changed from each to the next."""

    dates: Sequence[Date]
    steps: Sequence[Difference]

    def to_arrow(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return one pyarrow table of the estimates with the date in its first column; `steps` have the changes."""
        tables = []
        for date in self.dates:
            table = date.result.to_arrow(confidence_level, simultaneous=simultaneous, about=about)
            tables.append(table.add_column(0, "date", pa.array([date.label] * len(table))))
        return pa.concat_tables(tables)

    def to_frame(self, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects") -> Any:
        """Return the same as a pandas data frame."""
        return as_pandas(self.to_arrow(confidence_level, simultaneous=simultaneous, about=about))

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int) -> Difference:
        return self.steps[place]

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.steps))

    def _repr_html_(self) -> str:
        return "".join(step._repr_html_() for step in self.steps)

    def plot(
        self,
        axes: Any = None,
        *,
        top: int | None = None,
        confidence_level: float = 0.95,
        simultaneous: bool = False,
        about: About = "objects",
    ) -> Any:
        """Draw the estimates of everybody against the dates, in their order; returns matplotlib's axes.

        Of more values than can be told apart the largest are drawn, with intervals that hold although they were chosen.
        """
        from relaxdp.estimation.plot import plot_dates, set_title  # noqa: PLC0415

        asked: Any = {"confidence_level": confidence_level, "simultaneous": simultaneous, "about": about}
        axes = plot_dates([(date.label, date.result) for date in self.dates], axes, top=top, **asked)
        set_title(axes, f"{self.dates[0].column!r}, everybody who was there")
        return axes


# A change in words.


@dataclass(frozen=True, slots=True)
class ChangeText:
    """One row of a change, as people read it: shares in percent and points, means as numbers."""

    label: str
    old: str
    new: str
    change: str
    low: str
    high: str
    is_clear: bool
    """Whether the interval lies on one side of 0."""

    def __str__(self) -> str:
        return f"{self.label}: {self.old} -> {self.new}, {self.change} ({self.low} to {self.high})"


def rows_of(
    change: Change, confidence_level: float = 0.95, *, simultaneous: bool = False, about: About = "objects"
) -> list[ChangeText]:
    """Return the rows of a change in words.

    >>> from relaxdp.estimation.difference import change_between
    >>> from relaxdp import Categorical
    >>> answers = Categorical(["yes", "no"])
    >>> old, new = (answers.estimate(["yes"] * n + ["no"] * (1000 - n), epsilon=8) for n in (412, 440))
    >>> print(rows_of(change_between(old, new))[0])
    yes: 41.19 % -> 44.00 %, +2.80 points (+2.56 to +3.04)
    """
    low, high = change.interval(confidence_level, simultaneous=simultaneous, about=about)
    numbers = [np.atleast_1d(each) for each in (change.old.value, change.new.value, change.value, low, high)]
    write = Writer.of(change, about)
    return [
        ChangeText(
            str(label),
            write.number(old),
            write.number(new),
            write.change(by) + (" points" if change.is_share else ""),
            write.change(a),
            write.change(b),
            is_clear=bool(a > 0 or b < 0),
        )
        for label, old, new, by, a, b in zip(change.labels, *numbers, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Writer:
    """How numbers of one table are written: shares in percent, with as many digits as their errors leave a meaning."""

    is_share: bool
    digits: int

    @classmethod
    def of(cls, result: Result, about: About) -> Writer:
        """Return what writes the numbers of this result."""
        errors = np.atleast_1d(result.standard_error(about)) * (100 if result.is_share else 1)
        finest = float(np.min(errors, initial=np.inf, where=errors > 0))
        least, finer = (1, 0) if result.is_share else (0, 1)
        return cls(
            result.is_share, max(least, finer - int(np.floor(np.log10(finest)))) if np.isfinite(finest) else least
        )

    def number(self, number: float) -> str:
        """Return an estimate of one date, or an end of its interval."""
        return f"{self._rounded(number):,.{self.digits}f}" + (" %" if self.is_share else "")

    def change(self, number: float) -> str:
        """Return a change with its sign."""
        return f"{self._rounded(number):+,.{self.digits}f}"

    def _rounded(self, number: float) -> float:
        return round(float(number) * (100 if self.is_share else 1), self.digits) + 0.0  # without a -0


def text_of(change: Change) -> str:
    """Return a change as it is printed: the largest rows, and what must be known to read them."""
    shown = change.largest(change.most_shown)
    lines = [*map(str, rows_of(shown)), f"(95 % intervals about these objects{TOGETHER if shown.is_chosen else ''})"]
    for more in (change.missing, change.quartiles):
        lines[-1:-1] = [] if more is None else map(str, rows_of(more))
    if shown is not change:
        lines.insert(-1, f"... and {len(change.labels) - len(shown.labels):,} more, none of which changed more")
    return "\n".join([*lines, IMPLAUSIBLE] if change.is_implausible() else lines)
