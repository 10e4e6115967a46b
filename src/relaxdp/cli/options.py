"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from relaxdp.errors import ArgumentError, ValuesError
from relaxdp.mechanisms.registry import parse_mechanism_name

if TYPE_CHECKING:
    from relaxdp.estimation.schedules import Schedule
    from relaxdp.sampling.keys import Key

KEY_VARIABLE, KEY_COMMAND_VARIABLE = "RELAXDP_KEY", "RELAXDP_KEY_COMMAND"
"""Variables that name the key of a seller for all commands. A key itself is never in a variable."""

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
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Plot the result into a .png, .svg or .pdf file.")]
ConfidenceOption = Annotated[float, typer.Option("--confidence-level", help="The confidence level of the intervals.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", help="Certificates to trust, for a private authority.")]


def locate_vault(folder: str | None) -> Path:
    """Locate the vault: the one that is named, or the only one in the current folder."""
    from relaxdp.tables.vault_folder import resolve_vault_path  # noqa: PLC0415 (most commands need no vault)

    if folder == "":  # as an unset variable of a shell gives it: another vault must not be charged
        raise ArgumentError(
            "--vault or RELAXDP_VAULT is empty.", hint="Write --vault study.vault, or run: unset RELAXDP_VAULT"
        )
    return resolve_vault_path(folder)


def load_key(key_file: str | None, key_command: str | None) -> Key:
    """Return the key from the file or the command that the options name; the command line overrides a variable."""
    from relaxdp.sampling.keys import Key  # noqa: PLC0415 (most commands need no key)

    if key_file is not None and key_command is not None:
        is_variable = os.environ.get(KEY_VARIABLE) == key_file
        if is_variable == (os.environ.get(KEY_COMMAND_VARIABLE) == key_command):
            raise ArgumentError(
                "Two keys are given, by --key (RELAXDP_KEY) and by --key-command (RELAXDP_KEY_COMMAND).",
                hint="Leave one of the options out, or unset its environment variable.",
            )
        key_file, key_command = (None, key_command) if is_variable else (key_file, None)
    if key_command is not None:
        return Key.from_command(key_command)
    if key_file is None:
        raise ArgumentError(
            "This command needs a key, but neither --key nor --key-command is given.",
            hint="Add --key study.key, or a command that prints the key, such as --key-command 'pass show study'.",
        )
    return Key.load(key_file)


def parse_mechanism(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of a mechanism that is written like olh:buckets=16.

    >>> parse_mechanism("wave:bins=16,window=4")
    ('wave', {'bins': 16, 'window': 4})
    >>> parse_mechanism("wave:goal=distribution")
    ('wave', {'goal': 'distribution'})
    """
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for each in filter(None, rest.split(",")):
        option, _, number = each.partition("=")
        if option.strip() == "goal":
            options["goal"] = number.strip()
            continue
        if not (number.isdecimal() and number.isascii()):
            raise ArgumentError(
                "The mechanism {text!r} has a setting that is not a whole number.",
                hint="Write whole numbers, such as olh:buckets=16. Only a goal is a word: wave:goal=distribution.",
                text=text,
            )
        options[option.strip()] = int(number)
    return parse_mechanism_name(name), options


def read_values_file(path: Path) -> list[str]:
    """Return declared values from a text file, one a line, in order. Empty lines do not count."""
    from relaxdp.sampling.keys import is_key_text  # noqa: PLC0415 (most commands need no key)

    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ValuesError(
            "The values file {path!r} is missing, cannot be read, or is not text in UTF-8.",
            hint="Name a UTF-8 text file with one value per line.",
            path=str(path),
        ) from None
    if is_key_text(text):
        raise ValuesError(
            "The values file {path!r} contains a key, not a list of values.",
            hint="Name a UTF-8 text file with one value per line.",
            path=str(path),
        )
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        value = line.rstrip("\r")
        if value and lines.setdefault(value, number) != number:  # The value is not shown: the file may be a wrong one.
            raise ValuesError(
                "Line {number:,} of {path!r} repeats the value of line {first:,}.",
                hint="Remove one of the two lines.",
                number=number,
                path=str(path),
                first=lines[value],
            )
    return list(filter(None, lines))


MAX_ROWS = 50
"""The number of rows of a table; of more, the largest are shown."""


AboutOption = Annotated[
    Literal["sample", "population"],
    typer.Option("--about", help="The individuals in the data (sample), or the population they are a sample of."),
]
MethodOption = Annotated[
    Literal["average", "precision"],
    typer.Option("--method", help="Weigh every individual alike, or those with less noise more."),
]
SimultaneousOption = Annotated[bool, typer.Option("--simultaneous", help="Intervals that hold for all values at once.")]
_SCHEDULES = {"linear": "FIRST,LAST,STEPS", "geometric": "FIRST,LAST,STEPS", "noisy-sampling": "ALPHA,BETA,SAMPLES"}
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--schedule", metavar="SCHEDULE",
        help="Levels like 0.1,0.5,1, or linear:FIRST,LAST,STEPS, geometric:FIRST,LAST,STEPS or "
        "noisy-sampling:ALPHA,BETA,SAMPLES.",
    ),
]  # fmt: skip


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that is written like 0.1,0.5,1 or linear:0.1,2,5.

    >>> list(map(str, parse_schedule("linear:0.5,1.5,3")))
    ['0.5', '1', '1.5']
    """
    from relaxdp.estimation import schedules  # noqa: PLC0415 (most commands need none)

    kind, separator, rest = text.rpartition(":")
    parts = [each.strip() for each in rest.split(",")]
    if not separator:
        return schedules.Explicit(parts)
    if kind not in _SCHEDULES or len(parts) != 3 or not parts[2].isdecimal():
        raise ArgumentError(
            "--schedule {text!r} is not a schedule.",
            hint="Write epsilons such as --schedule 0.1,0.5,1, or {kinds}.",
            text=text,
            kinds=" or ".join(f"{name}:{settings}" for name, settings in _SCHEDULES.items()),
        )
    first, second, steps = parts[0], parts[1], int(parts[2])
    if kind == "noisy-sampling":
        return schedules.NoisySampling(first, second, steps)
    return (schedules.Linear if kind == "linear" else schedules.Geometric)(first, second, steps)


QUARTILES = (0.25, 0.5, 0.75)
QuantilesOption = Annotated[
    str | None,
    typer.Option(
        "--quantiles", metavar="NUMBERS", help="Quantiles of numbers released by the square wave, like 0.1,0.5,0.9."
    ),
]


def parse_quantiles(text: str | None) -> list[float] | None:
    """Return the probabilities of --quantiles.

    >>> parse_quantiles("0.1,0.5")
    [0.1, 0.5]
    """
    if text is None:
        return None
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < each < 1 for each in found):
        raise ArgumentError(
            "--quantiles {text!r} is not a list of numbers between 0 and 1.",
            hint="Separate numbers by commas, such as --quantiles 0.1,0.5,0.9.",
            text=text,
        )
    return found
