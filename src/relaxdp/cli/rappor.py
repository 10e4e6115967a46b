"""`relaxdp rappor`: parameters, maps and decoding for RAPPOR's users; encoding and relaxing are in `rappor_encode`."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from relaxdp.cli.column_options import read_values
from relaxdp.cli.commands import Commands
from relaxdp.cli.options import JsonOption
from relaxdp.cli.plan import AboutChoice
from relaxdp.cli.rappor_encode import encode, relax
from relaxdp.errors import OptionError, TableFileError, refusing
from relaxdp.law.epsilon import epsilon_text
from relaxdp.rappor.candidates import CandidateMap
from relaxdp.rappor.counting import Taken, count_files
from relaxdp.rappor.decode import Decoded
from relaxdp.rappor.decode import decode as decode_counts
from relaxdp.rappor.files import Parameters, map_rows, read_map
from relaxdp.rappor.filter import bit_epsilon
from relaxdp.rappor.plan import POWER, RATE, Plan, advise, advise_share

app = Commands(help="RAPPOR with relaxation instead of noisy sampling.")


class MethodChoice(StrEnum):
    """How levels are weighted."""

    AVERAGE = "average"
    PRECISION = "precision"


class CorrectionChoice(StrEnum):
    """What the rate of false words means."""

    HOLM = "holm"
    BENJAMINI_HOCHBERG = "benjamini-hochberg"


@app.command()
@refusing("Nothing was written.")
def params(
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
    as_json: JsonOption = False,
) -> None:
    """Choose k, h, cohorts and epsilon: the smallest share that would be found, or the epsilon that it takes."""
    if (epsilon is None) == (share is None):
        raise OptionError("give --epsilon to learn the smallest share that is found, or --share to learn the epsilon.")
    given: dict[str, Any] = {"devices": devices, "candidates": candidates, "bits": bits, "cohorts": cohorts}
    given |= {} if hashes is None else {"hashes": (hashes,)}
    plans = advise(epsilon=epsilon, **given) if epsilon is not None else advise_share(float(share or 0), **given)
    if write is not None:
        _write_parameters(write, plans[0])
    if as_json:
        rows = [_plan_row(plan) for plan in plans]
        answer = {"devices": devices, "candidates": candidates, "power": POWER, "rate": RATE, "plans": rows}
        typer.echo(json.dumps(answer))
        return
    console, table = Console(), Table()
    for heading in ("k", "h", "cohorts", "epsilon", "of a bit", "f", "smallest share found"):
        table.add_column(heading, justify="right")
    for plan in plans:
        shape, level = plan.shape, plan.epsilon
        table.add_row(
            str(shape.bits), str(shape.hashes), str(shape.cohorts), epsilon_text(level),
            f"{float(bit_epsilon(shape, level)):.4g}", f"{float(plan.noise):.4g}", f"{plan.smallest_share:.3%}",
        )  # fmt: skip
    console.print(f"{devices:,} devices, {candidates:,} candidates, the best first.")
    console.print(table)
    console.print(
        f"A word with that share is found with a probability of {POWER:.0%}; the chance of finding even one word that "
        f"nobody has is at most {RATE:.0%}."
    )


@app.command("map")
@refusing("Nothing was written.")
def candidate_map(
    candidates: Annotated[Path, typer.Argument(help="File of candidate words, one a line.")],
    params: Annotated[Path, typer.Option(help="Parameter file: k,h,m,f and their numbers.", show_default=False)],
) -> None:
    """Write the candidate map to standard output: a word, then its bits in every cohort."""
    shape = Parameters.read(params).shape
    for row in map_rows(read_values(candidates), shape):
        sys.stdout.write(row)


app.command()(encode)
app.command()(relax)


@app.command()
@refusing("Nothing was decoded.")
def decode(
    files: Annotated[
        list[Path], typer.Argument(help="Reports; a client in several files counts once, at its highest level.")
    ],
    params: Annotated[Path, typer.Option(help="Parameter file: k,h,m,f and their numbers.", show_default=False)],
    map_file: Annotated[Path | None, typer.Option("--map", help="Candidate map.")] = None,
    candidates: Annotated[Path | None, typer.Option(help="Candidate words, one a line, instead of a map.")] = None,
    method: Annotated[
        MethodChoice, typer.Option(help="Weights of levels: every device the same, or less noise more.")
    ] = MethodChoice.AVERAGE,
    rate: Annotated[float, typer.Option(help="The rate of false words that is accepted.")] = RATE,
    correction: Annotated[
        CorrectionChoice,
        typer.Option(help="The chance of even one false word (holm), or their share among those found."),
    ] = CorrectionChoice.HOLM,
    confidence: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous", help="Intervals that hold for all candidates at once; always so for the words found."
        ),
    ] = False,
    about: Annotated[
        AboutChoice, typer.Option(help="These devices, or the population that they are a sample of.")
    ] = AboutChoice.OBJECTS,
    everything: Annotated[bool, typer.Option("--all", help="Show candidates that were not found too.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the words that were found into a .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs: all candidates.")] = False,
) -> None:
    """Find words: their shares with intervals, and which of them are really there."""
    shape = Parameters.read(params).shape
    counts, notes = count_files(files, shape)
    if map_file is not None and candidates is not None:
        raise OptionError("give --map or --candidates, not both.")
    words = None if map_file is None else read_map(map_file, shape)
    if candidates is not None:
        words = CandidateMap.of_words(read_values(candidates), shape)
    decoded = decode_counts(counts, words, method=method.value)
    found = decoded.detected(rate, correction.value)
    asked: dict[str, Any] = {"simultaneous": simultaneous, "about": about.value}
    order = np.argsort(-decoded.consistent(), kind="stable")
    if plot is not None:
        _plot(decoded, order[found[order]], plot, confidence, asked)
    if as_json:
        answer = {"confidence": confidence, **asked} | _answer(
            decoded, found, decoded.interval(confidence, **asked), rate, correction, notes
        )
        typer.echo(json.dumps(answer))
        return
    shown = order if everything else order[found[order]]
    table_of = decoded if everything else decoded.choose(shown)
    (low, high), beyond = table_of.interval(confidence, **asked), table_of.beyond(confidence, **asked)
    rows = shown if everything else np.arange(len(shown))
    console, table = Console(), Table()
    for heading in ("word", "share", f"{100 * confidence:g} % interval", *(["found"] if everything else [])):
        table.add_column(heading, justify="left" if heading == "word" else "right")
    for place, row in zip(shown, rows, strict=True):
        cells = [
            escape(str(decoded.labels[place])),
            f"{decoded.share[place]:.2%}",
            f"{low[row]:.2%} .. {high[row]:.2%}" if not beyond[row] else f"at most {high[row]:.2%}",
        ]
        table.add_row(*cells, *(["yes" if found[place] else "no"] if everything else []))
    console.print(f"{decoded.devices:,} devices: {_levels(notes)}.")
    console.print(table)
    console.print(_conclusion(decoded, int(found.sum()), rate, correction))
    if simultaneous or not everything:
        console.print(f"The intervals hold for all {len(decoded.labels):,} candidates at once.")


def _levels(notes: list[Taken]) -> str:
    """Say what the files hold, and where they differ how many devices count in each: every one counts once."""
    counted: dict[str, int] = {}
    for note in notes:
        counted[note.what] = counted.get(note.what, 0) + note.devices
    if len(counted) == 1:
        return next(iter(counted))
    return "; ".join(f"{devices:,} by their {what}" for what, devices in counted.items())


def _conclusion(decoded: Decoded, found: int, rate: float, correction: CorrectionChoice) -> str:
    what = (
        f"the chance that even one of them is false is at most {rate:.3g}"
        if correction is CorrectionChoice.HOLM
        else f"on average at most a share of {rate:.3g} of them is false"
    )
    strange = ""
    if decoded.unlisted is not None:
        share, error = decoded.unlisted
        low, high = (min(1.0, max(0.0, share + reach * error)) for reach in (-1.96, 1.96))
        strange = f" Words that were not listed: {low:.0%} to {high:.0%} of the devices (95 %)."
    return f"{found:,} of {len(decoded.labels):,} candidates found; {what}.{strange}"


def _answer(
    decoded: Decoded, found: Any, ends: Any, rate: float, correction: CorrectionChoice, notes: list[Taken]
) -> dict[str, Any]:
    low, high = ends
    rows = zip(
        decoded.labels, decoded.share.tolist(), decoded.value.tolist(), decoded.std_error.tolist(), low.tolist(),
        high.tolist(), decoded.p_value.tolist(), found.tolist(), strict=True,
    )  # fmt: skip
    names = ("word", "share", "estimate", "std_error", "low", "high", "p_value", "found")
    words = [dict(zip(names, row, strict=True)) for row in rows]
    for word in words:
        if word["std_error"] == float("inf"):
            word["std_error"] = None
    return {
        "devices": decoded.devices,
        "files": [each.what for each in notes],
        "counted": [each.devices for each in notes],
        "rate": rate,
        "correction": correction.value,
        "unlisted": None
        if decoded.unlisted is None
        else {"estimate": decoded.unlisted[0], "std_error": decoded.unlisted[1]},
        "words": words,
    }


def _plot(decoded: Decoded, places: Any, target: Path, confidence: float, asked: dict[str, Any]) -> None:
    if not len(places):
        raise OptionError("no word was found, so there is nothing to draw.")
    axes = decoded.choose(places[:60]).plot(confidence_level=confidence, **asked)
    try:
        axes.figure.savefig(target, dpi=120)
    except (OSError, ValueError):
        raise TableFileError(
            "the plot {path!r} cannot be written: check its folder and its ending.", path=str(target)
        ) from None


def _write_parameters(target: Path, plan: Plan) -> None:
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(Parameters(plan.shape, Fraction(plan.noise)).dumps())
    except FileExistsError:
        raise TableFileError("{path!r} exists already.", path=str(target)) from None
    except OSError as problem:
        raise TableFileError("{path!r} cannot be written: {why}.", why=problem.strerror, path=str(target)) from None


def _plan_row(plan: Plan) -> dict[str, Any]:
    return {
        "k": plan.shape.bits,
        "h": plan.shape.hashes,
        "cohorts": plan.shape.cohorts,
        "epsilon": epsilon_text(plan.epsilon),
        "f": f"{plan.noise:f}",
        "std_error": plan.standard_error,
        "smallest_share": plan.smallest_share,
    }
