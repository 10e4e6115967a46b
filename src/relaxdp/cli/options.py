"""Options that mean the same in every command that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from relaxdp.errors import OptionError


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


def encoding_and_options(written: str) -> tuple[str, dict[str, int]]:
    """Return the name and the options of an encoding that is written like local-hash:buckets=16.

    >>> encoding_and_options("wave:bins=16,window=4")
    ('wave', {'bins': 16, 'window': 4})
    """
    name, _, rest = written.partition(":")
    options = {}
    for each in filter(None, rest.split(",")):
        option, _, number = each.partition("=")
        if not number.strip().isdecimal() or not number.isascii():
            raise OptionError("an encoding's options are whole numbers, written like local-hash:buckets=16.")
        options[option.strip()] = int(number)
    return name, options


MOST_ROWS = 50
"""How many estimates a table shows: the largest ones of more."""
