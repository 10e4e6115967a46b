"""Options that mean the same in every command that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help shows options that belong together under a heading of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and then the groups in the order in which they first occur."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", help="Certificates to trust, for a private authority.")]

MOST_ROWS = 50
"""How many estimates a table shows: the largest ones of more."""
