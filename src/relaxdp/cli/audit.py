"""`relaxdp audit`: attack every mechanism, and print the lower bound of its privacy loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from secrets import randbits
from typing import Annotated

import typer

from relaxdp.audit.audit_cases import AuditCase, AuditFinding, list_all_cases, run_audits
from relaxdp.audit.auditor import MIN_TRIALS
from relaxdp.cli.options import CsvOption, JsonOption
from relaxdp.cli.results import OutputOptions, PrintableResult, TableRow, print_result
from relaxdp.cli.terminal import show_progress
from relaxdp.errors import ArgumentError
from relaxdp.theory.epsilon import as_epsilon

_TITLES = {
    "relaxation": "relaxation",
    "encoding": "mechanisms",
    "other": "other releases",
    "planted": "deliberate mistakes",
    "peer": "other libraries, one report",
}


def audit(
    trials: Annotated[int, typer.Option(min=MIN_TRIALS, help="Trials of each mechanism; slow ones get fewer.")] = 10**6,
    seed: Annotated[int | None, typer.Option(min=0, help="Repeat an audit: its seed is printed below it.")] = None,
    confidence: Annotated[
        float, typer.Option(help="With which probability all bounds hold, those of the whole table together.")
    ] = 0.999,
    only: Annotated[
        str | None, typer.Option(help="Only mechanisms whose name, or the name of their group, contains this.")
    ] = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Measure a lower bound of the privacy loss of every mechanism, in a minute.

    Mechanisms with a planted mistake must be flagged, and all others must not. The exit status is 1 otherwise. A bound
    below the claimed epsilon proves nothing by itself: the audit tries to refute the proofs.

    Example: relaxdp audit --only relaxation
    """
    cases = [case for case in list_all_cases() if only is None or only in case.name or only in _TITLES[case.group]]
    if not cases:
        raise ArgumentError(
            "No mechanism or group has {only!r} in its name.",
            hint="Pass a part of a name, such as --only relaxation. `relaxdp audit` without --only prints all names.",
            only=only,
        )
    if not 0.5 < confidence < 1:
        raise ArgumentError(
            "--confidence must lie between 0.5 and 1, not {confidence:g}.",
            hint="Pass a probability, such as --confidence 0.999.",
            confidence=confidence,
        )
    seed = randbits(32) if seed is None else seed
    total, done = sum(case.choose_trials(trials) for case in cases if case.source is not None), 0
    with show_progress("auditing", "trials") as advance:

        def count_trials(_: AuditCase, made: int) -> None:
            nonlocal done
            done += made
            if advance is not None:
                advance(done, total)

        findings = list(run_audits(cases, trials=trials, confidence_level=confidence, seed=seed, progress=count_trials))
    print_result(_make_audit_view(findings, confidence, seed), OutputOptions(as_json, as_csv))
    if not all(finding.is_expected for finding in findings):
        raise typer.Exit(1)


def _make_audit_view(findings: Sequence[AuditFinding], confidence: float, seed: int) -> PrintableResult:
    records, rows = [finding.to_dict() for finding in findings], []
    for group, members in groupby(findings, lambda finding: finding.case.group):
        rows.append(TableRow((f"{_TITLES[group]}:", ""), [""] * 4))
        for finding in members:
            name, *numbers, verdict = format_finding_cells(finding)
            rows.append(TableRow((name, verdict), numbers))
    return PrintableResult(
        "Lower bounds of the privacy loss of every mechanism.",
        ("mechanism", "verdict"),
        ("claimed", "measured", "of it", "trials"),
        rows,
        {"seed": seed, "confidence": confidence, "findings": records},
        records,
        [f"All bounds hold together with a confidence of {confidence:.6g}; seed {seed}."],
    )


def format_finding_cells(finding: AuditFinding) -> list[str]:
    """Return a finding as the cells of a table."""
    claimed, found = f"{as_epsilon(finding.case.claimed_epsilon):.5g}", finding.result
    if found is None:
        return [finding.case.name, claimed, "", "", "", finding.verdict]
    measured = [f"{found.epsilon_lower_bound:.4f}", f"{found.share_of_claim:.1%}", f"{found.trials:,}"]
    return [finding.case.name, claimed, *measured, finding.verdict]
