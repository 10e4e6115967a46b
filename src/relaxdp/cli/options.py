"""Options that mean the same in every command that has them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaxdp.errors import OptionError

if TYPE_CHECKING:
    from relaxdp.draw.key import Key

KEY_VARIABLE, KEY_COMMAND_VARIABLE = "RELAXDP_KEY", "RELAXDP_KEY_COMMAND"
"""Where the key of a seller may be named once for all commands. A key itself stands in no variable."""

VaultOption = Annotated[
    str | None,
    typer.Option(
        "--vault", envvar="RELAXDP_VAULT", metavar="FOLDER",
        help="The vault  [default: the only *.vault in this folder]", show_default=False,
    ),
]  # fmt: skip
DryRun = Annotated[bool, typer.Option("--dry-run", help="State the cost and release nothing. No row is read.")]

KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key", envvar=KEY_VARIABLE, metavar="KEY", help="Key file, from rx.Key.generate().save(KEY).",
        show_default=False,
    ),
]  # fmt: skip
KeyCommand = Annotated[
    str | None,
    typer.Option(
        "--key-command", envvar=KEY_COMMAND_VARIABLE, metavar="COMMAND",
        help="Command that prints the key, like 'pass show relaxdp'; no shell reads it.", show_default=False,
    ),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", help="Certificates to trust, for a private authority.")]


def said_key(key: str | None, command: str | None) -> tuple[str | None, str | None]:
    """Return which of the two says where the key is: what stands in the command counts more than a variable."""
    if key is None or command is None:
        return key, command
    is_variable = os.environ.get(KEY_VARIABLE) == key
    if is_variable != (os.environ.get(KEY_COMMAND_VARIABLE) == command):
        return (None, command) if is_variable else (key, None)
    raise OptionError("--key and --key-command cannot be combined.", hint="Leave one of them out.")


def key_of(key: str | None, command: str | None) -> Key:
    """Return the key from where the options say that it is."""
    from relaxdp.draw.key import Key  # noqa: PLC0415 (a look at the options needs none)

    key, command = said_key(key, command)
    if command is not None:
        return Key.from_command(command)
    if key is None:
        raise OptionError(
            "The key is missing.", hint="Name its file with --key, or a command that prints it with --key-command."
        )
    return Key.load(key)


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
