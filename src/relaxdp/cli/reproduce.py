"""`relaxdp reproduce`: every table, figure and experiment of the paper, with a verdict per claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from relaxdp.cli.terminal import get_stderr_console

if TYPE_CHECKING:
    from relaxdp.paper.runner import Run


def reproduce(
    out: Annotated[
        Path, typer.Option(help="Folder for the results; it may hold an earlier run, which is replaced.")
    ] = Path("relaxdp-reproduce"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same results, to the byte.")] = 1,
    only: Annotated[
        list[str] | None, typer.Option(help="Check only this claim; may be repeated.", metavar="NAME")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON, for programs.")] = False,
) -> None:
    """Run the paper's tables, figures and experiments again, and judge every claim; takes under a minute.

    Writes report.html, report.md, figures (PNG and SVG) and data (CSV). Everything relaxed is drawn twice, on the keyed
    path and with Algorithm 1. The exit status is 0 if no claim fails, 1 otherwise.
    """
    # matplotlib, linear programming and attacks are not needed by any other command.
    from relaxdp.paper import report, runner  # noqa: PLC0415
    from relaxdp.paper.lab import Lab, LabSettings  # noqa: PLC0415

    claims = runner.chosen(only or [])
    report.refuse_foreign(out)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=get_stderr_console(), transient=True) as progress:
        task = progress.add_task("", total=len(claims) + 1)
        lab = Lab(LabSettings(seed=seed), say=lambda text: progress.update(task, description=text))
        run = runner.judge_all(claims, lab, done=lambda: progress.advance(task))
        progress.update(task, description="drawing figures")
        files = {**dict(runner.data_files(run)), **dict(runner.figure_files(run))}
    files["report.md"] = report.markdown(run).encode()
    files["report.html"] = report.html(run, files).encode()
    files["summary.json"] = json.dumps(run.summary(), indent=1, ensure_ascii=False).encode()
    report.write_folder(out, files)
    if as_json:
        typer.echo(json.dumps(run.summary()))
    else:
        _show(run, out)
    raise typer.Exit(0 if run.passed else 1)


def _show(run: Run, out: Path) -> None:
    from relaxdp.paper.claims import Verdict  # noqa: PLC0415

    colours = {
        Verdict.HOLDS: "green",
        Verdict.CORRECTED: "green",
        Verdict.FAILS: "bold red",
        Verdict.UNCHECKABLE: "dim",
    }
    table = Table()
    for heading in ("claim", "verdict"):
        table.add_column(heading)
    for each in run.judged:
        table.add_row(each.claim.name, f"[{colours[each.verdict]}]{each.verdict}[/]")
    console = Console()
    console.print(table)
    for each in run.judged:
        for check in each.outcome.checks:
            if not check.passed:
                console.print(f"{each.claim.name}: {check.name}: {check.detail}", markup=False)
    console.print(
        f"{run.random_checks} checks that chance enters, together a false alarm at most once in "
        f"{1 / max(run.false_alarm, 1e-12):,.0f} runs.",
        markup=False,
        highlight=False,
    )
    console.print(f"The report: {out / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
