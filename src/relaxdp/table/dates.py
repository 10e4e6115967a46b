"""Released tables of several dates: opened, called by names that tell them apart, and compared step by step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from relaxdp.errors import CountsError
from relaxdp.estimation.counts import Method
from relaxdp.estimation.dates import Date, Difference
from relaxdp.estimation.difference import change_of
from relaxdp.publication.derive import check_name
from relaxdp.table.arriving import arrived
from relaxdp.table.change_counting import axes_of, count_apart, count_joined
from relaxdp.table.counting import whole_files
from relaxdp.table.frame_estimate import told, whole_frames
from relaxdp.table.frame_kinds import as_text, by_text
from relaxdp.table.kinds import is_file, is_spark, stem_of
from relaxdp.table.released_files import ReleasedFile


def differences(
    dates: Sequence[Any],
    column: str | int | None,
    new_column: str | int | None,
    *,
    independent: bool,
    method: Method,
    description: Sequence[Any] | None,
    labels: Sequence[str] | None,
) -> list[Difference]:
    """Return what changed from each date to the next one."""
    with ExitStack() as stack:
        opening = _Opening(stack, column, new_column, ids=not independent)
        said = [None] * len(dates) if description is None else description
        sides = [opening.side(date, each, place) for place, (date, each) in enumerate(zip(dates, said, strict=True))]
        called = _labels(sides) if labels is None else [str(label) for label in labels]
        steps = []
        for place in range(1, len(sides)):
            names = called[place - 1], called[place]
            steps.append(_step(sides[place - 1], sides[place], names, independent=independent, method=method))
    return steps


@dataclass(frozen=True, slots=True)
class _Side:
    """One date: its files, or frames in their place, and the column that is meant."""

    files: list[ReleasedFile]
    column: str | None
    is_other: bool
    """Whether a person said that this is the column of another attribute."""
    stem: str | None
    """What its file is called, the first of several; None for frames."""

    @property
    def names(self) -> list[str | None]:
        """How the date may be called: by the day that it was released as of, its file, its release, its attribute."""
        description = self.files[0].description
        column = description.columns[self.files[0].released_name(self.column)]
        path, epoch = column.path, f"{column.path.release}, epoch {column.path.epoch}"
        return [path.date or None, column.as_of, self.stem, path.release, epoch, path.attribute]


@dataclass(frozen=True, slots=True)
class _Opening:
    """How tables become sides: fetched, described, and checked for the rows that they were released with."""

    stack: ExitStack
    column: Any
    new_column: Any
    ids: bool

    def side(self, source: Any, said: Any, place: int) -> _Side:
        """Open one date."""
        tables = list(source) if isinstance(source, list | tuple) else [source]
        texts = [(table, {}) if is_file(table) or is_spark(table) else by_text(table) for table in tables]
        is_other = bool(place) and self.new_column is not None
        wanted = self.new_column if is_other else self.column
        if any(numbers for _, numbers in texts):
            wanted = as_text(wanted)
        if wanted is not None:
            check_name(wanted)
        if tables and all(map(is_file, tables)):
            listed = [] if said is None else [said] if is_file(said) else list(said)
            paths, described = ([self.stack.enter_context(arrived(each)) for each in some] for some in (tables, listed))
            return _Side(whole_files(paths, described), wanted, is_other, stem_of(paths[0]))
        if any(map(is_spark, tables)):
            raise CountsError("changes are not offered on Spark: write the frames, and read them as files.")
        if not tables or any(map(is_file, tables)):
            raise CountsError("a date is a file, a frame, or a list of either: not of both, nor of nothing.")
        frames = [table for table, _ in texts]
        names = [] if wanted is None else [wanted]
        descriptions = told(len(frames), wanted, said, None, None)
        files = whole_frames(frames, descriptions, names, ids=self.ids, called=f" of date {place + 1}")
        return _Side(files, wanted, is_other, None)


def _labels(sides: Sequence[_Side]) -> list[str]:
    """Return how the dates are called: all of them by the first kind of name that tells them apart."""
    for names in zip(*(side.names for side in sides), strict=True):
        if None not in names and len(set(names)) == len(names):
            return [str(name) for name in names]
    return [f"date {number}" for number in range(1, len(sides) + 1)]


def _step(old: _Side, new: _Side, labels: tuple[str, str], *, independent: bool, method: Method) -> Difference:
    axes = axes_of(old.files, new.files, (old.column, new.column), is_other=new.is_other)
    if independent:
        tally = count_apart(old.files, new.files, axes, (old.column, new.column))
    else:
        tally = count_joined(old.files, new.files, axes)
    order: Any = {"method": method, "order": tally.order}
    everybody = change_of(*tally.everybody, tally.pairs, **order)
    dates = [
        Date(
            label=label,
            column=axis.name,
            result=result,
            objects=counts.objects,
            levels=counts.levels,
            release=axis.description.path.release,
            epoch=axis.description.path.epoch,
            encoding=axis.description.encoding,
        )
        for label, axis, counts, result in zip(
            labels, axes, tally.everybody, (everybody.old, everybody.new), strict=True
        )
    ]
    stayed = None if tally.stayed is None else change_of(*tally.stayed, tally.pairs, **order)
    parts = {"stayed": tally.stayed and tally.stayed[0], "joined": tally.joined, "left": tally.left}
    joined, left = (None if counts is None else counts.estimate(method) for counts in (tally.joined, tally.left))
    if joined is not None and tally.order is not None:
        joined = joined.only(tally.order)
    objects = {} if independent else {who: counts.objects if counts else 0 for who, counts in parts.items()}
    return Difference(dates[0], dates[1], everybody, stayed, joined, left, objects)
