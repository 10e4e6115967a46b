"""Options that mean the same in every command that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relaxdp.errors import OptionError

KEY_VARIABLE, LEDGER_VARIABLE = "RELAXDP_KEY", "RELAXDP_LEDGER"
"""Where a key's file and the ledger may be named once for all commands. A key itself stands in no variable."""

KeyFile = Annotated[
    Path, typer.Option("--key", envvar=KEY_VARIABLE, help="Key file, from `relaxdp keygen`.", show_default=False)
]
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
