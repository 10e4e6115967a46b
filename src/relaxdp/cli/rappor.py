"""`relaxdp rappor`: choose parameters, encode words into reports, relax the reports, and decode them."""

from __future__ import annotations

import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from relaxdp.cli import options, results
from relaxdp.cli.main import CommandGroup
from relaxdp.cli.options import locate_vault, read_values_file
from relaxdp.cli.release import print_release
from relaxdp.cli.terminal import show_progress
from relaxdp.errors import ArgumentError, PlanError, RapporError, TableFileError, add_consequence, replace_os_error
from relaxdp.estimation.schedules import NoisySampling, Schedule
from relaxdp.ledger.account import require_active_release
from relaxdp.mechanisms.bloom import Bloom, compute_bit_epsilon, compute_epsilon, compute_report_epsilon
from relaxdp.rappor.candidate_map import CandidateMap, format_map_rows, read_candidate_map
from relaxdp.rappor.decoding import Correction, DecodedWords, decode_words
from relaxdp.rappor.parameters import (
    POWER,
    RATE,
    RapporParameters,
    RapporPlan,
    plan_parameters,
    plan_parameters_for_share,
)
from relaxdp.rappor.reports import CountedFile, count_report_files
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.tables.release_plan import ReleaseRequest
from relaxdp.tables.table_source import open_source
from relaxdp.tables.vault import Vault
from relaxdp.tables.vault_folder import VaultFolder
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

MAX_PLOTTED = 60

app = CommandGroup(help="Encode, relax and decode words by RAPPOR.")


ParamsOption = Annotated[
    Path, typer.Option("--params", help="Parameter file: k,h,m,f and their numbers.", show_default=False)
]
Output = Annotated[Path, typer.Argument(metavar="OUT", help="File of reports; it must not exist.")]


@app.command("params")
@add_consequence("Nothing was written.")
def choose_parameters(
    devices: Annotated[int, typer.Option(help="How many devices report.", show_default=False)],
    candidates: Annotated[int, typer.Option(help="How many words are looked for.", show_default=False)],
    epsilon: Annotated[str | None, typer.Option(help="The last level that is planned, that of a whole report.")] = None,
    share: Annotated[float | None, typer.Option(help="The smallest share of a word that must be found.")] = None,
    bits: Annotated[int | None, typer.Option(help="Bits of a report (k)  [default: as many as it takes]")] = None,
    hashes: Annotated[int | None, typer.Option(help="Bits that a word sets (h)  [default: 1, 2 and 4]")] = None,
    cohorts: Annotated[int | None, typer.Option(help="Cohorts (m)  [default: as many as it takes]")] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the first row as a parameter file; it must not exist.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Choose k, h, cohorts and epsilon: the smallest share that would be found, or the epsilon that it takes.

    Example: relaxdp rappor params --devices 100000 --candidates 300 --epsilon 4
    """
    if (epsilon is None) == (share is None):
        raise ArgumentError(
            "Expected exactly one of --epsilon and --share, got {given}.",
            hint="Pass --epsilon 4 to get the smallest detected share of a word, or --share 0.01 to get the epsilon.",
            given="neither" if share is None else "both",
        )
    given: dict[str, Any] = {"n_devices": devices, "n_candidates": candidates, "bits": bits, "cohorts": cohorts}
    given |= {} if hashes is None else {"hashes": (hashes,)}
    if share is None:
        plans = plan_parameters(epsilon=epsilon or "", **given)
    else:
        plans = plan_parameters_for_share(share, **given)
    if write is not None:
        _write_parameters(write, plans[0])
    records = [_plan_to_dict(plan) for plan in plans]
    view = results.PrintableResult(
        f"{devices:,} devices, {candidates:,} candidates, the best first.",
        (),
        ("k", "h", "cohorts", "epsilon", "of a bit", "f", "smallest share found"),
        [results.TableRow((), _format_plan_row(plan)) for plan in plans],
        {"devices": devices, "candidates": candidates, "power": POWER, "rate": RATE, "plans": records},
        records,
        [
            f"A word with that share is found with a probability of {POWER:.0%}. The chance of finding even one word "
            f"that no device has is at most {RATE:.0%}."
        ],
    )
    results.print_result(view, results.OutputOptions(as_json, False))


@app.command("map")
@add_consequence("Nothing was written.")
def write_candidate_map(
    candidates: Annotated[Path, typer.Argument(help="File of candidate words, one a line.")], params: ParamsOption
) -> None:
    """Write the candidate map to standard output: a word, then its bits in every cohort.

    Example: relaxdp rappor map words.txt --params params.csv > map.csv
    """
    shape = RapporParameters.read(params).shape
    for row in format_map_rows(read_values_file(candidates), shape):
        sys.stdout.write(row)


@app.command()
@add_consequence("Nothing was released.")
def encode(
    source: Annotated[str, typer.Argument(metavar="IN", help="Table of clients and words: Parquet or CSV.")],
    output: Output,
    params: ParamsOption,
    epsilon: Annotated[
        str | None, typer.Option(help="The level of a whole report  [default: that of the parameters' f]")
    ] = None,
    id_column: Annotated[str, typer.Option("--id", help="Column that holds the clients; each once.")] = "client",
    column: Annotated[str, typer.Option(help="Column that holds the words.")] = "value",
    name: Annotated[str | None, typer.Option(help="Name of the release  [default: IN without its ending]")] = None,
    dry_run: options.DryRun = False,
    vault: options.VaultOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Make the reports of a table: client, cohort and bits. The same level again gives identical reports.

    A cohort is drawn from the client alone. Only the permanent response leaves, at the level that you choose.

    Example: relaxdp rappor encode clients.csv first.csv --params params.csv --epsilon 1
    """
    parameters = RapporParameters.read(params)
    level = compute_epsilon(parameters.shape, parameters.noise) if epsilon is None else as_epsilon(epsilon)
    opened = Vault(locate_vault(vault))
    with open_source(source) as table, show_progress("encoding", "rows") as progress:
        request = ReleaseRequest(
            name=name or table.default_name or "",
            epsilon=level,
            id=id_column,
            columns={column: Bloom(parameters.shape)},
            dry_run=dry_run,
        )
        done = opened.run_request(request, table, output, progress)
    print_release(done, as_json)


@app.command()
@add_consequence("Nothing was released.")
def relax(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release.")],
    output: Output,
    epsilon: Annotated[str | None, typer.Option(help="The new level of a whole report.")] = None,
    schedule: options.ScheduleOption = None,
    dry_run: options.DryRun = False,
    vault: options.VaultOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Relax the reports of an earlier release; all reports together cost the largest level.

    The level is --epsilon, or the next one of a schedule: linear in a whole report, or at the rate at which noisy
    sampling would spend. No table is needed.

    Example: relaxdp rappor relax clients second.csv --epsilon 2
    """
    if (epsilon is None) == (schedule is None):
        raise ArgumentError(
            "Expected exactly one of --epsilon and --schedule for the next level, got {given}.",
            hint="Pass an epsilon, such as --epsilon 2, or a schedule, such as --schedule 0.5,1,2.",
            given="neither" if schedule is None else "both",
        )
    place = locate_vault(vault)
    level = (
        _find_next_level(place, name, options.parse_schedule(schedule))
        if schedule is not None
        else as_epsilon(epsilon or "")
    )
    with show_progress("relaxing", "rows") as progress:
        request = ReleaseRequest(name=name, epsilon=level, dry_run=dry_run)
        done = Vault(place).run_request(request, None, output, progress)
    print_release(done, as_json)


@app.command()
@add_consequence("Nothing was decoded.")
def decode(
    files: Annotated[
        list[Path], typer.Argument(help="Reports; a client in several files counts once, at its highest level.")
    ],
    params: ParamsOption,
    map_file: Annotated[Path | None, typer.Option("--map", help="Candidate map.")] = None,
    candidates: Annotated[Path | None, typer.Option(help="Candidate words, one a line, instead of a map.")] = None,
    method: options.MethodOption = "average",
    rate: Annotated[float, typer.Option(help="The rate of false words that is accepted.")] = RATE,
    correction: Annotated[
        Correction, typer.Option(help="The chance of even one false word (holm), or their share among those found.")
    ] = "holm",
    confidence_level: options.ConfidenceOption = 0.95,
    simultaneous: options.SimultaneousOption = False,
    about: options.AboutOption = "sample",
    everything: Annotated[bool, typer.Option("--all", help="Show candidates that were not found too.")] = False,
    plot: options.PlotOption = None,
    as_json: options.JsonOption = False,
    as_csv: options.CsvOption = False,
) -> None:
    """Find words in reports: their shares with confidence intervals, and which of them are really there.

    Example: relaxdp rappor decode second.csv --params params.csv --candidates words.txt
    """
    output = results.OutputOptions(as_json, as_csv, plot)
    if map_file is not None and candidates is not None:
        raise ArgumentError(
            "--map and --candidates cannot be combined: each lists the candidate words.",
            hint="Pass only --candidates words.txt, or only --map with a file that `relaxdp rappor map` wrote.",
        )
    shape = RapporParameters.read(params).shape
    counts, counted_files = count_report_files(files, shape)
    words = None if map_file is None else read_candidate_map(map_file, shape)
    if candidates is not None:
        words = CandidateMap(read_values_file(candidates), shape)
    decoded = decode_words(counts, words, method=method)
    found = decoded.find_detected_words(rate, correction)
    intervals: dict[str, Any] = {"confidence_level": confidence_level, "simultaneous": simultaneous, "about": about}
    order = np.argsort(-decoded.consistent(), kind="stable")
    if plot is not None:
        if not found.any():
            raise ArgumentError(
                "No candidate word was detected, so there is nothing to plot.",
                hint="Leave --plot out. Add --all to see the estimates of all words.",
            )
        results.plot_result(plot, decoded.select_rows_by_estimate(order[found[order]][:MAX_PLOTTED]), **intervals)
    records = _make_word_records(decoded, found, intervals)
    shown = order if everything else order[found[order]]
    table = decoded.select_rows(shown) if everything else decoded.select_rows_by_estimate(shown)
    rows = [
        row._replace(estimate=float(decoded.share[place]))
        for row, place in zip(table.to_rows(**intervals), shown, strict=True)
    ]
    notes = [_describe_detected_words(decoded, int(found.sum()), rate, correction), *results.explain_stars(rows)]
    if simultaneous or not everything:
        notes.append(f"The intervals hold for all {len(decoded.labels):,} candidates at once.")
    view = results.PrintableResult(
        f"{decoded.n_devices:,} devices: {_describe_levels(counted_files)}; {100 * confidence_level:g} % intervals.",
        ("word", "found"),
        ("share", "low", "high"),
        [
            results.make_interval_row(row, row.estimate, last_labels=("yes" if found[place] else "no",))
            for row, place in zip(rows, shown, strict=True)
        ],
        {
            **intervals,
            "devices": decoded.n_devices,
            "files": [each.description for each in counted_files],
            "counted": [each.n_devices for each in counted_files],
            "rate": rate,
            "correction": correction,
            "unlisted": decoded.unlisted and dict(zip(("estimate", "std_error"), decoded.unlisted, strict=True)),
            "words": records,
        },
        records,
        notes,
        max([row.estimate for row in rows], default=1.0),
    )
    results.print_result(view, output)


def _describe_levels(counted_files: list[CountedFile]) -> str:
    """Describe the levels of the files and, if they differ, the number of devices that count at each."""
    counted: Counter[str] = Counter()
    for file in counted_files:
        counted[file.description] += file.n_devices
    if len(counted) == 1:
        return next(iter(counted))
    return "; ".join(f"{devices:,} by their {what}" for what, devices in counted.items())


def _describe_detected_words(decoded: DecodedWords, found: int, rate: float, correction: Correction) -> str:
    chance = (
        f"the chance that even one of them is false is at most {rate:.3g}"
        if correction == "holm"
        else f"on average at most a share of {rate:.3g} of them is false"
    )
    others = ""
    if decoded.unlisted is not None:
        share, error = decoded.unlisted
        low, high = (min(1.0, max(0.0, share + reach * error)) for reach in (-1.96, 1.96))
        others = f" Words that were not listed: {low:.0%} to {high:.0%} of the devices (95 %)."
    return f"{found:,} of {len(decoded.labels):,} candidates found; {chance}.{others}"


def _make_word_records(decoded: DecodedWords, found: Any, intervals: dict[str, Any]) -> list[dict[str, Any]]:
    low, high = decoded.interval(**intervals)
    columns = (decoded.share, decoded.value, decoded.std_error, low, high, decoded.p_value, found)
    names = ("word", "share", "estimate", "std_error", "low", "high", "p_value", "found")
    rows = zip(decoded.labels, *(column.tolist() for column in columns), strict=True)
    records = [dict(zip(names, row, strict=True)) for row in rows]
    return [{name: None if value == float("inf") else value for name, value in each.items()} for each in records]


def _find_next_level(vault: Path, name: str, schedule: Schedule) -> Decimal:
    """Return the first level of a schedule above the largest one of a release."""
    columns = require_active_release(VaultFolder(vault).read_account(), name).columns.values()
    encodings: list[Any] = [ColumnDescription.from_dict(each.description).mechanism() for each in columns]
    if not all(isinstance(each, Bloom) for each in encodings):
        raise RapporError(
            "The release {name!r} does not contain RAPPOR reports, and `relaxdp rappor relax` relaxes only those.",
            hint="Run `relaxdp relax {name} second.csv --epsilon 2`, with the epsilon that you want.",
            name=name,
        )
    levels = list(schedule)
    if isinstance(schedule, NoisySampling):
        levels = [compute_report_epsilon(encodings[0].shape, each) for each in levels]
    last = max(each.largest for each in columns)
    found = next((level for level in levels if level > last), None)
    if found is None:
        raise PlanError(
            "The release {name!r} is at epsilon {last}, and --schedule has no higher level: it ends at {end}.",
            hint="Pass a schedule with a level above {last}, or one level with --epsilon.",
            name=name,
            last=format_epsilon(last),
            end=format_epsilon(levels[-1]),
        )
    return found


def _write_parameters(target: Path, plan: RapporPlan) -> None:
    sentence, hint = (
        "The parameter file {path!r} cannot be written: {why}.",
        "Choose another file name or folder for --write.",
    )
    with (
        replace_os_error(TableFileError, sentence, hint=hint, path=str(target)),
        target.open("x", encoding="utf-8") as file,
    ):
        file.write(RapporParameters(plan.shape, plan.noise).to_csv())


def _format_plan_row(plan: RapporPlan) -> list[str]:
    shape, bit = plan.shape, float(compute_bit_epsilon(plan.shape, plan.epsilon))
    levels = [format_epsilon(plan.epsilon), f"{bit:.4g}", f"{float(plan.noise):.4g}", f"{plan.smallest_share:.3%}"]
    return [str(shape.bits), str(shape.hashes), str(shape.cohorts), *levels]


def _plan_to_dict(plan: RapporPlan) -> dict[str, Any]:
    return {
        "k": plan.shape.bits,
        "h": plan.shape.hashes,
        "cohorts": plan.shape.cohorts,
        "epsilon": format_epsilon(plan.epsilon),
        "f": f"{plan.noise:f}",
        "std_error": plan.std_error,
        "smallest_share": plan.smallest_share,
    }
