"""Write docs/api.md, which lists every public name: python -m tests.docs.api_page."""

from __future__ import annotations

import inspect
from operator import attrgetter
from pathlib import Path
from typing import Any

import relaxdp as rx
from relaxdp import errors

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
GROUPS = {
    "Vaults and tables": ("Vault", "Release", "estimate", "count", "description"),
    "Mechanisms, for arrays and for one individual": (
        "Categorical", "Unary", "LocalHash", "Numeric", "SquareWave", "Mechanism", "Key", "Relaxation",
    ),
    "Estimates": ("Counts", "compare", "crosstab", "variance"),
    "Fabricated reports": (
        "poisoning", "poisoning.check_reports", "poisoning.ReportPairs", "poisoning.check_pairs",
        "poisoning.PoisoningTest",
    ),
    "Plans and schedules": (
        "plan", "Plan", "schedules", "schedules.Schedule", "schedules.Explicit", "schedules.Linear",
        "schedules.Geometric", "schedules.NoisySampling", "schedules.ByDate", "schedules.UntilPrecise",
        "shuffling", "shuffling.compute_bound", "shuffling.ShufflingBound",
    ),
    "Theory": (
        "theory", "theory.Level", "theory.relaxation_law", "theory.RelaxationLaw", "theory.privacy_loss",
        "theory.PrivacyLoss",
    ),
    "Audits and errors": ("audit", "audit.audit", "audit.AuditResult", "audit.check_exactly", "errors"),
}  # fmt: skip
HEAD = """# The library

This page is for Python programmers. It lists every public name of `import relaxdp as rx`. For more about a name, call
`help(rx.Vault)`. Names that are not listed here are not public and may change. The
[error classes](#error-classes) are public too. Servers and their clients also raise those of `relaxdp.server_errors`.
"""


def first_line(thing: Any) -> str:
    """The first sentence of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def api_page() -> str:
    """Return the page."""
    parts = [HEAD]
    for heading, names in GROUPS.items():
        rows = [f"| `rx.{name}` | {first_line(attrgetter(name)(rx))} |" for name in names]
        parts.append("\n".join([f"## {heading}", "", "| name | description |", "|---|---|", *rows, ""]))
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and each.__module__ == errors.__name__]
    rows = [
        f"| `{each.__name__}` | {first_line(each)} |"
        for each in kinds
        if issubclass(each, errors.RelaxdpError | UserWarning)
    ]
    parts.append("\n".join(["## Error classes", "", "| class | description |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(api_page(), "utf-8")
