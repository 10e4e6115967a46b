"""What the options of `relaxdp release` declare about columns, as `rx.Vault.release` takes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relaxdp.errors import ArgumentError, ValuesError
from relaxdp.estimation.mechanism_choice import NumberRange
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.categorical import Categorical
from relaxdp.mechanisms.local_hash import LocalHash
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.mechanisms.unary import Unary
from relaxdp.sampling.keys import is_key_text
from relaxdp.tables.table_columns import convert_declared_values
from relaxdp.tables.table_source import TableSource
from relaxdp.theory.epsilon import Epsilon

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})", re.ASCII)
_MECHANISMS = {"k-ary": (), "oue": (), "sue": (), "olh": ("buckets",), "numeric": (), "wave": ("bins", "window")}
"""The mechanisms by their names on the command line, and the settings of each."""
_OF_NUMBERS = ("numeric", "wave")


def declare_columns(
    columns: Sequence[str], values_files: Sequence[str], clip: Sequence[str], missing: Sequence[str]
) -> dict[str, Any]:
    """Return what each column can be: a list of values or a range of numbers.

    >>> declare_columns(["diagnosis=flu,covid"], [], [], ["diagnosis"])
    {'diagnosis': ['flu', 'covid', None]}
    """
    declared: dict[str, Any] = {}
    for option, texts in (("--column", columns), ("--values-file", values_files)):
        for text in texts:
            name, rest = _split_setting(option, text)
            if name in declared:
                raise ArgumentError(
                    "The column {column!r} is declared twice.",
                    hint="Declare it once, with --column or with --values-file.",
                    column=name,
                )
            declared[name] = _parse_column(name, rest) if option == "--column" else read_values(Path(rest))
    if not declared:
        raise ArgumentError(
            "No column is declared.",
            hint="Add --column diagnosis=flu,covid,none for values, or --column age=0..120 for numbers.",
        )
    _require_declared("--clip", clip, declared)
    _require_declared("--missing", missing, declared)
    for name in clip:
        if not isinstance(declared[name], tuple):
            raise ArgumentError(
                "--clip {column} needs a range, and {column!r} has declared values.",
                hint="Leave --clip out, or declare a range such as --column {column}=0..120.",
                column=name,
            )
    for name, what in declared.items():
        if isinstance(what, tuple):
            declared[name] = NumberRange(what[0], what[1], clip=name in clip, missing=name in missing)
        elif name in missing:
            declared[name] = [*what, None]
    return declared


def choose_mechanisms(
    declared: Mapping[str, Any],
    mechanisms: Sequence[str],
    source: TableSource,
    *,
    epsilon: Epsilon,
    planned_epsilon: Epsilon | None,
) -> dict[str, Any]:
    """Return what is declared, with the mechanism in place of a column for which one is named."""
    found = dict(declared)
    for text in mechanisms:
        column, written = _split_setting("--mechanism", text)
        _require_declared("--mechanism", [column], declared)
        if isinstance(found[column], Mechanism):
            raise ArgumentError(
                "{column!r} has two mechanisms.", hint="Name one: --mechanism {column}=MECHANISM.", column=column
            )
        name, settings = _parse_mechanism(column, written)
        source.names.check(column)
        what, kind = found[column], source.schema.field(column).type
        if isinstance(what, NumberRange) != (name in _OF_NUMBERS):
            fitting = [each for each in _MECHANISMS if (each in _OF_NUMBERS) == isinstance(what, NumberRange)]
            raise ArgumentError(
                "The mechanism {mechanism!r} does not fit {column!r}, which is declared by {what}.",
                hint="Use one of: {fitting}.",
                mechanism=name,
                column=column,
                what="a range" if isinstance(what, NumberRange) else "its values",
                fitting=", ".join(fitting),
            )
        planned = planned_epsilon if "buckets" not in settings and "window" not in settings else None
        if isinstance(what, NumberRange):
            found[column] = _make_for_numbers(name, column, what, settings, planned, epsilon)
        else:
            found[column] = _make_for_values(
                name, column, convert_declared_values(what, kind), settings, planned, epsilon
            )
    return found


def _make_for_values(
    name: str, column: str, values: Sequence[Any], settings: dict[str, Any], planned: Epsilon | None, epsilon: Epsilon
) -> Mechanism:
    if name == "olh":
        if not settings and planned is None:
            best = LocalHash(values, epsilon=epsilon).alphabet
            raise _missing_setting(name, column, "buckets", f"olh:buckets={best}", epsilon)
        return LocalHash(values, epsilon=planned, **settings)
    return Categorical(values) if name == "k-ary" else Unary(values, optimised=name == "oue")


def _make_for_numbers(
    name: str, column: str, what: NumberRange, settings: dict[str, Any], planned: Epsilon | None, epsilon: Epsilon
) -> Mechanism:
    if name == "numeric":
        return Numeric(what.low, what.high, clip=what.clip, missing=what.missing)
    if what.missing:
        raise ArgumentError(
            "The mechanism 'wave' has no report for a missing number.",
            hint="Use --mechanism {column}=numeric, or leave --mechanism out.",
            column=column,
        )
    if "window" not in settings and planned is None:
        best = SquareWave(what.low, what.high, epsilon=epsilon, **settings)
        raise _missing_setting(name, column, "window", f"wave:bins={best.bins},window={best.window}", epsilon)
    return SquareWave(what.low, what.high, epsilon=planned, clip=what.clip, **settings)


def _missing_setting(name: str, column: str, setting: str, best: str, epsilon: Epsilon) -> ArgumentError:
    return ArgumentError(
        "The mechanism {mechanism!r} needs a setting that the first release fixes: {setting}.",
        hint="The best for epsilon {epsilon}: --mechanism {column}={best}. Or add --planned-epsilon.",
        mechanism=name,
        column=column,
        setting=setting,
        best=best,
        epsilon=epsilon,
    )


def _split_setting(option: str, text: str) -> tuple[str, str]:
    name, sign, rest = text.partition("=")
    if not sign or not name or not rest:
        example = {"--values-file": "city=cities.txt", "--mechanism": "age=wave:bins=64,window=32"}.get(option)
        raise ArgumentError(
            "{option} {text!r} is not of the form NAME={what}.",
            hint="For example: {option} {example}."
            if example
            else "Write {option} {column}=a,b,c for values, or {option} {column}=0..120 for numbers.",
            option=option,
            text=text,
            what={"--values-file": "FILE", "--mechanism": "MECHANISM"}.get(option, "VALUES"),
            example=example,
            column=name or "diagnosis",
        )
    return name, rest


def _require_declared(option: str, names: Iterable[str], declared: Mapping[str, Any]) -> None:
    for name in names:
        if name not in declared:
            raise ArgumentError(
                "{option} names {column!r}, which is not declared.",
                hint="Declared columns: {declared}.",
                option=option,
                column=name,
                declared=", ".join(declared),
            )


def _parse_column(name: str, text: str) -> Any:
    """Return the values, or the two ends of a range, that are written after `NAME=`."""
    found = _RANGE.fullmatch(text)
    if found:
        return float(found[1]), float(found[2])
    values = text.split(",")
    if len(values) == 1:
        raise ValuesError(
            "--column {column}={text} declares a single value.",
            hint="Separate values by commas (--column {column}=a,b,c), or write a range (--column {column}=0..120).",
            column=name,
            text=text,
        )
    for value in values:
        if value[:1] == '"' or value[-1:] == '"' or value != value.strip():
            raise ValuesError(
                "--column {column} would declare the value {value!r}: commas separate values, and blanks and quotation "
                "marks belong to them.",
                hint="Write --column {column}={without}, or one value a line in a file: --values-file {column}=FILE.",
                column=name,
                value=value,
                without=",".join(each.strip().strip('"') for each in values),
            )
        if not value:
            raise ValuesError(
                "--column {column} would declare an empty value.",
                hint="Remove the extra comma. If values may be missing, add --missing {column}.",
                column=name,
            )
    return values


def read_values(path: Path) -> list[str]:
    """Return declared values from a text file, one a line, in order. Empty lines do not count."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ValuesError(
            "The values file {path!r} cannot be read as text.",
            hint="Name a UTF-8 file with one value a line.",
            path=str(path),
        ) from None
    if is_key_text(text):
        raise ValuesError(
            "{path!r} is a key file, not a list of values.", hint="Name a file with one value a line.", path=str(path)
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


def _parse_mechanism(column: str, written: str) -> tuple[str, dict[str, int]]:
    """Return the name and the settings of a mechanism that is written like olh:buckets=16."""
    name, _, rest = written.partition(":")
    if name not in _MECHANISMS:
        raise ArgumentError(
            "There is no mechanism {mechanism!r} for {column!r}.",
            hint="Use one of: {known}.",
            mechanism=name,
            column=column,
            known=", ".join(_MECHANISMS),
        )
    settings: dict[str, int] = {}
    for each in filter(None, rest.split(",")):
        setting, _, number = each.partition("=")
        if setting not in _MECHANISMS[name] or not (number.isdecimal() and number.isascii()):
            takes = ",".join(f"{one}=16" for one in _MECHANISMS[name])
            raise ArgumentError(
                "{text!r} is not a setting of the mechanism {mechanism!r}.",
                hint="Write --mechanism {column}={example}.",
                text=each,
                mechanism=name,
                column=column,
                example=f"{name}:{takes}" if takes else name,
            )
        settings[setting] = int(number)
    return name, settings
