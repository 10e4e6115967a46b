"""`relaxdp estimate | compare`: from released files to shares, means and changes with confidence intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli import options, results
from relaxdp.cli.terminal import get_stderr_console
from relaxdp.errors import EstimationError, MetadataError
from relaxdp.estimation.compare import Change, format_change_rows
from relaxdp.estimation.compare import compare as compare_results
from relaxdp.estimation.counts import Counts, Method
from relaxdp.estimation.distribution import AT_LEAST, Distribution
from relaxdp.estimation.mean import NonMissingMean
from relaxdp.estimation.result import About, EstimateRow, Result, SelectedRows
from relaxdp.tables.counting import ColumnCounts, CrosstabCounts
from relaxdp.tables.estimate import count
from relaxdp.tables.metadata import ColumnDescription

_COLUMN_HELP = "The released column, where there are several."
_TOP_HELP = "Show the largest N of more rows, with intervals that hold for all of them."


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """The options of `relaxdp estimate` and `relaxdp compare` that choose the estimate and its intervals."""

    confidence_level: float
    simultaneous: bool
    about: About
    method: Method
    quantiles: Sequence[float] | None
    consistent: bool = False
    by: str | None = None
    crosstab: str | None = None
    weights: str | None = None
    totals: bool = False

    @property
    def interval_options(self) -> dict[str, Any]:
        """The keywords of `Result.interval`."""
        return {"confidence_level": self.confidence_level, "simultaneous": self.simultaneous, "about": self.about}


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """The estimate of one group, or of all individuals."""

    name: str | None
    counts: Counts | CrosstabCounts
    result: Result
    rows: list[EstimateRow]
    """All rows of the result, or the largest of them."""
    is_simultaneous: bool
    missing: Sequence[EstimateRow]
    """The share of missing numbers, where numbers may be missing."""
    quantiles: Mapping[float, EstimateRow]

    @property
    def all_rows(self) -> list[EstimateRow]:
        """All rows: of values, quantiles and the share of missing numbers."""
        return [*self.rows, *self.quantiles.values(), *self.missing]


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
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A pass-through column of survey weights, 0 or more.")
    ] = None,
    totals: Annotated[
        bool, typer.Option("--totals", help="Estimate numbers of individuals, and sums of numbers.")
    ] = False,
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
    settings = EstimateSettings(
        confidence_level, simultaneous, about, method, asked, consistent, by, crosstab, weights, totals
    )
    with get_stderr_console().status("Counting ..."):
        chosen: dict[str, Any] = {"by": by, "crosstab": crosstab, "weights": weights}
        counted = count(files, column, **chosen, description=description)
        groups = [_estimate_group(name, counts, settings, top) for name, counts in counted.groups]
        if plot is not None:
            results.plot_estimate(plot, groups, _describe_column(counted, settings), settings)
        if output.is_for_programs:
            groups = [_estimate_group(name, counts, settings, None) for name, counts in counted.groups]
    results.print_result(_make_estimate_view(counted, groups, settings), output)


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
    settings = EstimateSettings(confidence_level, simultaneous, about, method, asked)
    with get_stderr_console().status("Counting ..."):
        counted = [count(each, column) for each in (old, new)]
        _require_independent_noise(*(each.axis.description for each in counted))
        change = compare_results(*(each.groups[0][1].estimate(method) for each in counted))
    if plot is not None:
        results.plot_result(plot, change.largest(top), **settings.interval_options)
    shown = change if output.is_for_programs else change.largest(top)
    results.print_result(_make_change_view(counted, change, shown, settings), output)


def _estimate_group(
    name: str | None, counts: Counts | CrosstabCounts, settings: EstimateSettings, max_rows: int | None
) -> GroupEstimate:
    result = counts.estimate(settings.method)
    result = result.totals() if settings.totals else result
    shown = result if max_rows is None else result.largest(max_rows)
    rows = shown.to_rows(**settings.interval_options)
    if settings.consistent:
        estimates = result.consistent()
        places = shown.indexes if isinstance(shown, SelectedRows) else range(len(rows))
        rows = [row._replace(estimate=float(estimates[place])) for row, place in zip(rows, places, strict=True)]
    missing, quantiles = [], {}
    if isinstance(result, NonMissingMean):
        (share,) = result.missing.to_rows(settings.confidence_level, about=settings.about)
        missing = [share._replace(keys=("share of missing numbers",))]
    probabilities = _choose_quantiles(result, settings)
    if isinstance(result, Distribution) and probabilities:
        found = result.quantile(probabilities).to_rows(**settings.interval_options)
        quantiles = dict(zip(probabilities, found, strict=True))
    together = settings.simultaneous or shown.is_chosen
    return GroupEstimate(name, counts, result, rows, together, missing, quantiles)


def _choose_quantiles(result: Result, settings: EstimateSettings) -> Sequence[float]:
    """Return the quantiles that were asked for; by default the quartiles of a distribution."""
    if isinstance(result, Distribution):
        return settings.quantiles or (options.QUARTILES if result.has_quantiles else ())
    if settings.quantiles is not None and settings.totals:
        raise EstimationError("--quantiles and --totals cannot be combined.", hint="Run the command once with each.")
    if settings.quantiles is not None:
        raise EstimationError(
            "--quantiles needs numbers that were released with the square wave. This column has another mechanism.",
            hint="Leave --quantiles out. For quantiles, release the column with --mechanism NAME=wave (rx.SquareWave).",
        )
    return ()


def _describe_column(counted: ColumnCounts | CrosstabCounts, settings: EstimateSettings) -> str:
    name = repr(results.make_printable(counted.axis.name))
    if settings.crosstab is not None:
        return f"{name} and {results.make_printable(settings.crosstab)!r}"
    if settings.totals:
        return f"total of {name}"
    return name if counted.axis.mechanism.mean_weights is None else f"mean of {name}"


def _make_estimate_view(
    counted: ColumnCounts | CrosstabCounts, groups: list[GroupEstimate], settings: EstimateSettings
) -> results.PrintableResult:
    described = counted.axis.description
    labels = ["value"] if settings.crosstab is None else [counted.axis.name, settings.crosstab]
    labels = labels if settings.by is None else [settings.by, *labels]
    longest, rows = max(map(_get_full_bar_value, groups)), []
    for group in groups:
        name, found = f"{results.format_label(group.name)} ({group.counts.n:,})", group.all_rows
        for place, row in enumerate(found):
            before = () if settings.by is None else ("" if place else name,)
            length = min(max(row.estimate - group.result.minimum, 0.0), longest)
            is_last = place == len(found) - 1
            rows.append(results.make_interval_row(row, length, first_labels=before, ends_group=is_last))
    document = {
        "column": counted.axis.name,
        "crosstab": settings.crosstab,
        "by": settings.by,
        "release": described.path.release,
        "attribute": described.path.attribute,
        "encoding": described.encoding,
        "n": counted.n,
        **settings.interval_options,
        "method": settings.method,
        "consistent": settings.consistent,
        **({} if settings.weights is None else {"weights": settings.weights}),
        **({"totals": True} if settings.totals else {}),
        "groups": list(map(_group_to_dict, groups)),
    }
    return results.PrintableResult(
        _make_heading(counted, groups, settings),
        list(map(results.make_printable, labels)),
        ("estimate", "low", "high"),
        rows,
        document,
        [{"group": group.name, "n": group.counts.n, **_row_to_dict(row)} for group in groups for row in group.all_rows],
        list(_make_notes(groups, settings)),
        longest,
        has_impossible_estimates=any(group.result.has_impossible_estimates() for group in groups),
    )


def _get_full_bar_value(group: GroupEstimate) -> float:
    """Return the number of a full bar: the range of a mean, or the largest share."""
    if len(group.result.labels) == 1:
        return group.result.maximum - group.result.minimum
    return min(max(1e-9, *(row.estimate for row in group.rows)), group.result.maximum)


def _make_heading(
    counted: ColumnCounts | CrosstabCounts, groups: list[GroupEstimate], settings: EstimateSettings
) -> str:
    numbers: Counter[str] = Counter()
    for group in groups:
        numbers.update(group.counts.levels)
    levels = ", ".join(f"{level} ({n:,})" if len(numbers) > 1 else level for level, n in numbers.items())
    is_mean = counted.axis.mechanism.mean_weights is not None
    together = any(group.is_simultaneous for group in groups)
    release = results.make_printable(counted.axis.description.path.release)
    return (
        f"{counted.n:,} individuals at epsilon {levels}: {_describe_column(counted, settings)} of release {release!r}; "
        f"{_describe_intervals(settings, is_simultaneous=together, is_mean=is_mean)}"
    )


def _describe_intervals(settings: EstimateSettings, *, is_simultaneous: bool, is_mean: bool = False) -> str:
    rows = "the mean" if is_mean else "all values at once" if is_simultaneous else "each value"
    subject = "these individuals" if settings.about == "sample" else "the population that they are a sample of"
    return f"{100 * settings.confidence_level:g} % intervals of {rows}, about {subject}."


def _make_notes(groups: list[GroupEstimate], settings: EstimateSettings) -> Iterator[str]:
    shown, whole = sum(len(group.rows) for group in groups), sum(len(group.result.labels) for group in groups)
    if shown < whole:
        yield (
            f"These are the largest {shown:,} of {whole:,} rows; --json has all of them. They were chosen by "
            "their estimates, so their intervals hold for all values at once."
        )
    plausible = [group for group in groups if not group.result.has_impossible_estimates()]
    if any(
        row.high - row.low > 0.9 * (group.result.maximum - group.result.minimum)
        for group in plausible
        for row in group.rows
    ):
        yield "Some intervals cover nearly everything that is possible: the noise is larger than the answer."
    if any(group.quantiles for group in groups):
        yield AT_LEAST.format(100 * settings.confidence_level)
    yield from results.explain_stars([row for group in plausible for row in group.rows])
    if settings.weights is not None:
        sums = ", ".join(f"{group.result.size:,.6g}" for group in groups)
        yield f"Weights are those of the column {results.make_printable(settings.weights)!r}. Their sum is {sums}."
    if settings.by is not None:
        name = results.make_printable(settings.by)
        yield f"Groups are made of the pass-through column {name!r}, released without noise."


def _group_to_dict(group: GroupEstimate) -> dict[str, Any]:
    found: dict[str, Any] = {
        "group": group.name,
        "n": group.counts.n,
        "levels": group.counts.levels,
        **({} if group.result.size == group.counts.n else {"sum_of_weights": group.result.size}),
        "implausible": group.result.has_impossible_estimates(),
        "estimates": list(map(_row_to_dict, group.rows)),
    }
    if group.missing:
        found["missing"] = _row_to_dict(group.missing[0])
    if group.quantiles:
        found["quantiles"] = [{"probability": each, **_row_to_dict(row)} for each, row in group.quantiles.items()]
    return found


def _row_to_dict(row: EstimateRow) -> dict[str, Any]:
    value, other = map(results.make_json_label, row.keys if len(row.keys) > 1 else (*row.keys, None))
    return {"value": value, "crosstab_value": other, **dict(list(row._asdict().items())[1:])}


def _require_independent_noise(one: ColumnDescription, other: ColumnDescription) -> None:
    """Reject two levels of one release: their reports share noise, so the interval of a change would be wrong."""
    if (one.path, one.key_fingerprint) == (other.path, other.key_fingerprint):
        raise MetadataError(
            "Both files belong to the release {release!r}. Their reports share noise, so a comparison would be wrong.",
            hint="Compare files of two releases, or run `relaxdp estimate` on the file with the higher epsilon.",
            release=one.path.release,
        )


def _make_change_view(
    counted: Sequence[ColumnCounts], change: Change, shown: Change, settings: EstimateSettings
) -> results.PrintableResult:
    probabilities = _choose_quantiles(change.old, settings)
    changes = [shown, *([change.quantile(probabilities)] if probabilities else [])]
    rows = [
        results.TableRow((results.make_printable(text.label),), (text.old, text.new, text.change, text.low, text.high))
        for each in changes
        for text in format_change_rows(each, **settings.interval_options)
    ]
    records = [record for each in changes for record in _change_to_dicts(each, settings)]
    releases = [each.axis.description.path.release for each in counted]
    rest = f"These are the {len(shown.labels):,} of {len(change.labels):,} rows that changed most."
    name = counted[0].axis.name
    return results.PrintableResult(
        f"{results.make_printable(name)!r} from release {results.make_printable(releases[0])!r} to "
        f"{results.make_printable(releases[1])!r}, {counted[0].n:,} and {counted[1].n:,} individuals; "
        f"{_describe_intervals(settings, is_simultaneous=settings.simultaneous or shown.is_chosen)}",
        ("value",),
        ("old", "new", "change", "low", "high"),
        rows,
        {
            "column": name,
            "old": {"release": releases[0], "n": counted[0].n},
            "new": {"release": releases[1], "n": counted[1].n},
            **settings.interval_options,
            "method": settings.method,
            "implausible": change.has_impossible_estimates(),
            "changes": records,
        },
        records,
        [
            *([rest] if len(shown.labels) < len(change.labels) else []),
            *([AT_LEAST.format(100 * settings.confidence_level)] if probabilities else []),
        ],
        has_impossible_estimates=change.has_impossible_estimates(),
    )


def _change_to_dicts(change: Change, settings: EstimateSettings) -> Iterator[dict[str, Any]]:
    sides = (each.value.reshape(-1).tolist() for each in (change.old, change.new))
    for old, new, row in zip(*sides, change.to_rows(**settings.interval_options), strict=True):
        numbers = {"change": row.estimate, "std_error": row.std_error, "low": row.low, "high": row.high}
        yield {"value": results.make_json_label(row.keys[0]), "old": old, "new": new, **numbers}
