"""`relaxdp audit`: try to break every guarantee, and say how close that came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from secrets import randbits
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from relaxdp.audit.auditor import LEAST_TRIALS, Finding, run
from relaxdp.audit.cases import Case, all_cases
from relaxdp.cli.options import JsonOption
from relaxdp.cli.talk import aside_console
from relaxdp.errors import OptionError
from relaxdp.law.epsilon import as_epsilon

_TITLES = {
    "relaxation": "relaxation",
    "encoding": "encodings",
    "other": "other ways out",
    "planted": "mistakes on purpose",
    "peer": "peers, one report",
}


def audit(
    trials: Annotated[int, typer.Option(min=LEAST_TRIALS, help="Trials of each mechanism; slow ones get fewer.")] = (
        1_000_000
    ),
    seed: Annotated[int | None, typer.Option(min=0, help="Repeat an audit: its seed is printed below it.")] = None,
    confidence: Annotated[
        float, typer.Option(help="With which probability all bounds hold, those of the whole table together.")
    ] = 0.999,
    only: Annotated[
        str | None, typer.Option(help="Only mechanisms whose name, or the name of their group, contains this.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how much of its claimed epsilon every mechanism really gives away; takes about a minute.

    Mistakes that were made on purpose must be flagged, and everything else must not. Where that is not so, the exit
    status is 1. A bound below the claim proves nothing by itself: the proofs are elsewhere, this is the attempt to
    refute them.
    """
    cases = [case for case in all_cases() if only is None or only in case.name or only in _TITLES[case.group]]
    if not cases:
        raise OptionError("no mechanism's or group's name contains {only!r}.", only=only)
    if not 0.5 < confidence < 1:
        raise OptionError("a confidence lies above 0.5 and below 1, not {confidence:g}.", confidence=confidence)
    seed = randbits(32) if seed is None else seed
    findings = _run(cases, trials, confidence, seed, quiet=as_json)
    if as_json:
        rows = [finding.to_dict() for finding in findings]
        typer.echo(json.dumps({"seed": seed, "confidence": confidence, "findings": rows}))
    else:
        _show(findings, confidence, seed)
    if not all(finding.as_expected for finding in findings):
        raise typer.Exit(1)


def _run(cases: Sequence[Case], trials: int, confidence: float, seed: int, *, quiet: bool) -> list[Finding]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    total = sum(case.trials(trials) for case in cases if case.source is not None)
    console = aside_console()
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("trials", total=total)

        def step(case: Case, made: int) -> None:
            bar.update(task, advance=made, description=case.name)

        return list(run(cases, trials=trials, confidence=confidence, seed=seed, progress=step))


def _show(findings: Sequence[Finding], confidence: float, seed: int) -> None:
    console, table = Console(), Table()
    table.add_column("mechanism")
    for column in ("claimed", "measured", "of it", "trials"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    group = None
    for finding in findings:
        if finding.case.group != group:
            group = finding.case.group
            table.add_section()
            table.add_row(f"[bold]{_TITLES[group]}[/bold]")
        style = None if finding.as_expected else "bold red"
        table.add_row(*row(finding), style=style)
    console.print(table)
    console.print(
        f"Measured: a lower bound of epsilon. All of them hold together with a confidence of {confidence:.6g}; "
        f"seed {seed}.",
        highlight=False,
    )


def row(finding: Finding) -> list[str]:
    """Return a finding as the cells of a table."""
    claimed, found = f"{as_epsilon(finding.case.claimed):.5g}", finding.audit
    if found is None:
        return [finding.case.name, claimed, "", "", "", finding.verdict]
    measured = [f"{found.epsilon_low:.4f}", f"{found.share:.1%}", f"{found.trials:,}"]
    return [finding.case.name, claimed, *measured, finding.verdict]
