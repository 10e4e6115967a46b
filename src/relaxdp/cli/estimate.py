"""`relaxdp estimate | compare`: from released files to shares, means and changes with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli import options, results
from relaxdp.cli.messages import get_stderr_console
from relaxdp.cli.result_plots import plot_estimate, plot_result
from relaxdp.errors import EstimationError, MetadataError
from relaxdp.estimation.compare import Change, format_change_rows
from relaxdp.estimation.compare import compare as compare_results
from relaxdp.estimation.counts import Method
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.mean import NonMissingMean
from relaxdp.estimation.result import About, EstimateRow, Result, SelectedRows
from relaxdp.tables.counting import ColumnCounts, CrosstabCounts
from relaxdp.tables.estimate import count
from relaxdp.tables.released_files import CountedColumn

_QUARTILES = (0.25, 0.5, 0.75)
_COLUMN_HELP = "The released column, where there are several."
_TOP_HELP = "Show the largest N of more rows, with intervals that hold for all of them."


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """The options of `relaxdp estimate` and `relaxdp compare` that choose the estimate and its intervals."""

    confidence_level: float
    simultaneous: bool
    about: About
    method: Method = "average"
    consistent: bool = False
    by: str | None = None
    crosstab: str | None = None
    quantiles: Sequence[float] | None = None

    @property
    def intervals(self) -> dict[str, Any]:
        """The keywords of `Result.interval`."""
        return {"confidence_level": self.confidence_level, "simultaneous": self.simultaneous, "about": self.about}


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """The estimate of one group, or of all individuals."""

    name: str | None
    n: int
    levels: Sequence[tuple[str, str | None, int]]
    result: Result
    rows: list[EstimateRow]
    """All rows of the result, or the largest of them."""
    is_simultaneous: bool
    missing: Sequence[EstimateRow]
    """The share of missing numbers, where numbers may be missing."""
    probabilities: Sequence[float]
    quantiles: Sequence[EstimateRow]

    @property
    def all_rows(self) -> list[EstimateRow]:
        """The rows of a table."""
        return [*self.rows, *self.quantiles, *self.missing]

    @property
    def is_truncated(self) -> bool:
        """Whether only the largest rows are left."""
        return len(self.rows) < len(self.result.labels)

    @property
    def is_uninformative(self) -> bool:
        """Whether an interval covers nearly everything that is possible."""
        widest = 0.9 * (self.result.maximum - self.result.minimum)
        return not self.result.is_implausible() and any(row.high - row.low > widest for row in self.rows)


def estimate(
    files: Annotated[list[str], typer.Argument(help="Released files, folders or cloud addresses, of one release.")],
    column: Annotated[str | None, typer.Option("--column", "--release-column", help=_COLUMN_HELP)] = None,
    by: Annotated[str | None, typer.Option(help="Estimate each group of a pass-through column.")] = None,
    crosstab: Annotated[str | None, typer.Option(help="A second released column, for a crosstab.")] = None,
    quantiles: options.QuantilesOption = None,
    confidence_level: options.ConfidenceOption = 0.95,
    simultaneous: options.SimultaneousOption = False,
    about: options.AboutOption = "sample",
    method: options.MethodOption = "average",
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Shares that are not negative and sum to 1, with some bias.")
    ] = False,
    description: Annotated[
        list[Path] | None,
        typer.Option(help="A file that describes a file without a description, or with chosen rows; once for each."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help=_TOP_HELP)] = options.MAX_ROWS,
    plot: options.PlotOption = None,
    as_json: options.JsonOption = False,
    as_csv: options.CsvOption = False,
) -> None:
    """Estimate shares or means of a release, with confidence intervals.

    Files of one release may hold the same individuals at different levels: each individual counts once, at the highest
    level. The files describe their own values and levels.

    Example: relaxdp estimate better.parquet --column diagnosis --by region
    """
    output, asked = results.OutputOptions(as_json, as_csv, plot), options.parse_quantiles(quantiles)
    settings = EstimateSettings(confidence_level, simultaneous, about, method, consistent, by, crosstab, asked)
    with get_stderr_console().status("Counting ..."):
        tally = count(files, column, by=by, crosstab=crosstab, description=description or [])
        groups = list(_estimate_groups(tally, settings, max_rows=top))
        every = list(_estimate_groups(tally, settings, max_rows=None)) if output.is_for_programs else groups
    axis = tally.axis
    if plot is not None:
        plot_estimate(plot, groups, _describe_column(axis, settings), settings)
    results.print_result(_make_estimate_view(tally, axis, every, settings), output)


def compare(
    old: Annotated[str, typer.Argument(help="Released file or folder.")],
    new: Annotated[str, typer.Argument(help="Released file or folder of another release.")],
    column: Annotated[str | None, typer.Option(help=_COLUMN_HELP)] = None,
    quantiles: options.QuantilesOption = None,
    confidence_level: options.ConfidenceOption = 0.95,
    simultaneous: options.SimultaneousOption = False,
    about: options.AboutOption = "sample",
    method: options.MethodOption = "average",
    top: Annotated[int, typer.Option(min=1, help="Show the N rows that changed most.")] = options.MAX_ROWS,
    plot: options.PlotOption = None,
    as_json: options.JsonOption = False,
    as_csv: options.CsvOption = False,
) -> None:
    """Estimate the change between two releases, with confidence intervals.

    The releases must have different names, because two levels of one release share their noise. Intervals about the
    population are for two samples without a common individual.

    Example: relaxdp compare patients-2026.parquet patients-2027.parquet
    """
    output, asked = results.OutputOptions(as_json, as_csv, plot), options.parse_quantiles(quantiles)
    settings = EstimateSettings(confidence_level, simultaneous, about, method, quantiles=asked)
    with get_stderr_console().status("Counting ..."):
        tallies: list[Any] = [count([each], column) for each in (old, new)]
        _require_independent_noise([each.axis for each in tallies])
        change = compare_results(*(each.groups[0][1].estimate(settings.method) for each in tallies))
    if plot is not None:
        plot_result(plot, change.largest(top), **settings.intervals)
    shown = change if output.is_for_programs else change.largest(top)
    results.print_result(_make_change_view(tallies, change, shown, settings), output)


def _estimate_groups(
    tally: ColumnCounts | CrosstabCounts, settings: EstimateSettings, *, max_rows: int | None
) -> Iterator[GroupEstimate]:
    if isinstance(tally, CrosstabCounts):
        pairs = [(one, two, table.n) for (one, two), table in tally.tables.items()]
        yield _estimate_group(None, tally.n, pairs, tally.estimate(settings.method), settings, max_rows)
        return
    for name, counts in tally.groups:
        levels = [(epsilon, None, n) for epsilon, n in counts.levels.items()]
        yield _estimate_group(name, counts.n, levels, counts.estimate(settings.method), settings, max_rows)


def _estimate_group(
    name: str | None,
    n: int,
    levels: Sequence[tuple[str, str | None, int]],
    result: Result,
    settings: EstimateSettings,
    max_rows: int | None,
) -> GroupEstimate:
    shown = result if max_rows is None else result.largest(max_rows)
    rows = shown.to_rows(**settings.intervals)
    if settings.consistent:
        estimates = result.consistent()
        places = shown.indexes if isinstance(shown, SelectedRows) else range(len(rows))
        rows = [row._replace(estimate=float(estimates[place])) for row, place in zip(rows, places, strict=True)]
    missing, quantiles = [], []
    if isinstance(result, NonMissingMean):
        (share,) = result.missing.to_rows(settings.confidence_level, about=settings.about)
        missing = [share._replace(keys=("share of missing numbers",))]
    probabilities = _choose_quantiles(result, settings)
    if probabilities and isinstance(result, Distribution):
        quantiles = result.quantile(probabilities).to_rows(**settings.intervals)
    together = settings.simultaneous or shown.is_chosen
    return GroupEstimate(name, n, levels, result, rows, together, missing, probabilities, quantiles)


def _choose_quantiles(result: Result, settings: EstimateSettings) -> Sequence[float]:
    """Return the quantiles that were asked for; by default the quartiles of a distribution."""
    if isinstance(result, Distribution):
        return settings.quantiles or _QUARTILES
    if settings.quantiles is not None:
        raise EstimationError(
            "--quantiles needs a column of numbers that was released by the square wave, and this one was not.",
            hint="Release the column as rx.SquareWave (--mechanism NAME=wave), or leave --quantiles out.",
        )
    return ()


def _describe_column(axis: CountedColumn, settings: EstimateSettings) -> str:
    name = repr(results.clean_text(axis.name))
    if settings.crosstab is not None:
        return f"{name} and {results.clean_text(settings.crosstab)!r}"
    return name if axis.mechanism.mean_weights is None else f"mean of {name}"


def _make_estimate_view(
    tally: ColumnCounts | CrosstabCounts, axis: CountedColumn, groups: list[GroupEstimate], settings: EstimateSettings
) -> results.ResultView:
    labels = (
        ["value"]
        if settings.crosstab is None
        else [results.clean_text(axis.name), results.clean_text(settings.crosstab)]
    )
    longest, rows = max(map(_get_full_bar_value, groups)), []
    for group in groups:
        name, found = f"{results.format_label(group.name)} ({group.n:,})", group.all_rows
        for place, row in enumerate(found):
            before = () if settings.by is None else ("" if place else name,)
            length = min(max(row.estimate - group.result.minimum, 0.0), longest)
            rows.append(results.make_interval_row(row, length, before=before, ends_group=place == len(found) - 1))
    return results.ResultView(
        _make_heading(tally, axis, groups, settings),
        labels if settings.by is None else [results.clean_text(settings.by), *labels],
        ("estimate", "low", "high"),
        rows,
        _make_json_document(tally, axis, groups, settings),
        [{"group": group.name, "n": group.n, **_row_to_json(row)} for group in groups for row in group.all_rows],
        list(_make_notes(groups, settings)),
        longest,
        is_implausible=any(group.result.is_implausible() for group in groups),
    )


def _get_full_bar_value(group: GroupEstimate) -> float:
    """Return the number of a full bar: the range of a mean, or the largest share."""
    if len(group.result.labels) == 1:
        return group.result.maximum - group.result.minimum
    return min(max(1e-9, *(row.estimate for row in group.rows)), group.result.maximum)


def _make_heading(
    tally: ColumnCounts | CrosstabCounts, axis: CountedColumn, groups: list[GroupEstimate], settings: EstimateSettings
) -> str:
    counted: dict[str, int] = {}
    for group in groups:
        for one, two, n in group.levels:
            level = one if two is None else f"{one} and {two}"
            counted[level] = counted.get(level, 0) + n
    levels = ", ".join(f"{level} ({n:,})" if len(counted) > 1 else level for level, n in counted.items())
    together = any(group.is_simultaneous for group in groups)
    rows = "the mean" if axis.mechanism.mean_weights is not None else "all values at once" if together else "each value"
    return (
        f"{tally.n:,} individuals at epsilon {levels}: {_describe_column(axis, settings)} of release "
        f"{results.clean_text(axis.description.path.release)!r}; {_describe_intervals(rows, settings)}"
    )


def _describe_intervals(rows: str, settings: EstimateSettings) -> str:
    subject = "these individuals" if settings.about == "sample" else "the population that they are a sample of"
    return f"{100 * settings.confidence_level:g} % intervals of {rows}, about {subject}."


def _make_notes(groups: list[GroupEstimate], settings: EstimateSettings) -> Iterator[str]:
    shown, whole = sum(len(group.rows) for group in groups), sum(len(group.result.labels) for group in groups)
    if shown < whole:
        yield (
            f"These are the largest {shown:,} of {whole:,} rows; --json has all of them. They were chosen by "
            "their estimates, so their intervals hold for all values at once."
        )
    if any(group.is_uninformative for group in groups):
        yield "Some intervals cover nearly everything that is possible: the noise is larger than the answer."
    yield from results.describe_stars(
        [row for group in groups if not group.result.is_implausible() for row in group.rows]
    )
    if settings.by is not None:
        yield f"Groups are made of the pass-through column {results.clean_text(settings.by)!r}, released without noise."


def _make_json_document(
    tally: ColumnCounts | CrosstabCounts, axis: CountedColumn, groups: list[GroupEstimate], settings: EstimateSettings
) -> dict[str, Any]:
    path = axis.description.path
    return {
        **{"column": axis.name, "crosstab": settings.crosstab, "by": settings.by, "release": path.release},
        **{"attribute": path.attribute, "encoding": axis.description.encoding, "n": tally.n},
        **settings.intervals,
        **{"method": settings.method, "consistent": settings.consistent},
        "groups": list(map(_group_to_json, groups)),
    }


def _group_to_json(group: GroupEstimate) -> dict[str, Any]:
    found: dict[str, Any] = {
        "group": group.name,
        "n": group.n,
        "levels": [{"epsilon": one, "cross_epsilon": two, "n": n} for one, two, n in group.levels],
        "implausible": group.result.is_implausible(),
        "estimates": list(map(_row_to_json, group.rows)),
    }
    if group.missing:
        found["missing"] = _row_to_json(group.missing[0])
    if group.quantiles:
        rows = zip(group.probabilities, group.quantiles, strict=True)
        found["quantiles"] = [{"probability": probability, **_row_to_json(row)} for probability, row in rows]
    return found


def _row_to_json(row: EstimateRow) -> dict[str, Any]:
    value, other = map(results.label_to_json, row.keys if len(row.keys) > 1 else (*row.keys, None))
    return {"value": value, "crosstab_value": other, **dict(list(row._asdict().items())[1:])}


def _require_independent_noise(axes: Sequence[CountedColumn]) -> None:
    """Reject two levels of one release: their reports share noise, so the interval of a change would be wrong."""
    one, other = (axis.description for axis in axes)
    if (one.path, one.key_fingerprint) == (other.path, other.key_fingerprint):
        raise MetadataError(
            "Both files belong to the release {release!r}, so they share its noise and cannot be compared.",
            hint="Compare releases with different names, or run `relaxdp estimate` on the file with the higher level.",
            release=one.path.release,
        )


def _make_change_view(
    tallies: Sequence[ColumnCounts], change: Change, shown: Change, settings: EstimateSettings
) -> results.ResultView:
    probabilities = _choose_quantiles(change.old, settings)
    quantiles = [change.quantile(probabilities)] if probabilities else []
    rows = [
        results.TableRow((results.clean_text(text.label),), (text.old, text.new, text.change, text.low, text.high))
        for each in (shown, *quantiles)
        for text in format_change_rows(each, **settings.intervals)
    ]
    records = [record for each in (shown, *quantiles) for record in _change_to_json_rows(each, settings)]
    releases = [each.axis.description.path.release for each in tallies]
    together = "all values at once" if settings.simultaneous or shown.is_chosen else "each value"
    counted = " and ".join(f"{each.n:,}" for each in tallies)
    notes = []
    if len(shown.labels) < len(change.labels):
        notes.append(f"These are the {len(shown.labels):,} of {len(change.labels):,} rows that changed most.")
    return results.ResultView(
        f"{results.clean_text(tallies[0].axis.name)!r} from release {results.clean_text(releases[0])!r} to "
        f"{results.clean_text(releases[1])!r}, {counted} individuals; {_describe_intervals(together, settings)}",
        ("value",),
        ("old", "new", "change", "low", "high"),
        rows,
        {
            "column": tallies[0].axis.name,
            "old": {"release": releases[0], "n": tallies[0].n},
            "new": {"release": releases[1], "n": tallies[1].n},
            **settings.intervals,
            "method": settings.method,
            "implausible": change.is_implausible(),
            "changes": records,
        },
        records,
        notes,
        is_implausible=change.is_implausible(),
    )


def _change_to_json_rows(change: Change, settings: EstimateSettings) -> Iterator[dict[str, Any]]:
    sides = (each.value.reshape(-1).tolist() for each in (change.old, change.new))
    for old, new, row in zip(*sides, change.to_rows(**settings.intervals), strict=True):
        numbers = {"change": row.estimate, "std_error": row.std_error, "low": row.low, "high": row.high}
        yield {"value": results.label_to_json(row.keys[0]), "old": old, "new": new, **numbers}
