"""`relaxdp release | relax`: release columns of a table, or relax an earlier release, and charge the vault."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.options import DryRun, JsonOption, VaultOption, locate_vault, parse_mechanism, read_values_file
from relaxdp.cli.terminal import IS_QUIET, print_json, print_note, show_progress
from relaxdp.errors import ArgumentError, ValuesError
from relaxdp.estimation.mechanism_choice import NumberRange
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_arguments
from relaxdp.tables.release_plan import ReleaseRequest
from relaxdp.tables.release_result import Release
from relaxdp.tables.table_columns import convert_declared_values
from relaxdp.tables.table_source import TableSource, open_source
from relaxdp.tables.vault import Vault
from relaxdp.theory.epsilon import Epsilon, as_epsilon

Output = Annotated[Path, typer.Argument(metavar="OUT", help="Released table (.parquet or .csv); it must not exist.")]
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})", re.ASCII)


def _make_column_option(metavar: str, help_text: str) -> Any:
    return typer.Option(metavar=metavar, help=help_text, rich_help_panel="Columns to release")


def release(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="Table: Parquet, CSV, TSV, a folder of Parquet files, or a cloud address of one."
        ),
    ],
    output: Output,
    id_column: Annotated[str, typer.Option("--id", help="Column that identifies the individuals; each id once.")],
    epsilon: Annotated[str, typer.Option(help="The level of each column, like 0.5. Costs of several columns add up.")],
    name: Annotated[str | None, typer.Option(help="Name of the release  [default: IN without its ending]")] = None,
    passthrough: Annotated[
        list[str] | None, typer.Option(help="Column that leaves unprotected; repeat it, or separate names by commas.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="QUERY", help="Shape the table first, like 'SELECT id, hour(t) AS hour FROM input'."),
    ] = None,
    accept_new_rows: Annotated[
        bool, typer.Option("--accept-new-rows", help="Accept that many rows left and joined at once; it is recorded.")
    ] = False,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
    column: Annotated[
        list[str] | None,
        _make_column_option(
            "NAME=VALUES",
            "Column to release: diagnosis=flu,covid,none or, for numbers, age=0..120. Repeat it for more.",
        ),
    ] = None,
    values_file: Annotated[
        list[str] | None,
        _make_column_option(
            "NAME=FILE", "Column to release, with a file of its values, one a line; also for values with commas."
        ),
    ] = None,
    clip: Annotated[
        list[str] | None, _make_column_option("NAME", "Move numbers outside of the range to its ends.")
    ] = None,
    missing: Annotated[
        list[str] | None, _make_column_option("NAME", "Values may be missing; that is reported under protection too.")
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        _make_column_option(
            "NAME=MECHANISM",
            "k-ary, oue, sue, olh:buckets=16, numeric, wave:bins=64,window=32 or wave:goal=distribution  "
            "[default: as before, or best]",
        ),
    ] = None,
    planned_epsilon: Annotated[
        str | None,
        _make_column_option(
            "NUMBER", "The largest level that you plan; it decides the mechanism  [default: the remaining budget]"
        ),
    ] = None,
) -> None:
    r"""Release columns of a table at a level, and charge the vault.

    Epsilon is per column: two columns at 0.5 cost 1. The same level again gives identical reports for free, and a
    larger one costs the difference. Ids and pass-through columns leave as they are. Rows may join and leave between
    releases of one name; if a value has changed, the release is rejected.

    Example: relaxdp release patients.parquet out.parquet --id patient \
        --column diagnosis=flu,covid,none --epsilon 0.1
    """
    declared = parse_declared_columns(column or [], values_file or [], clip or [], missing or [])
    level, planned = as_epsilon(epsilon), None if planned_epsilon is None else as_epsilon(planned_epsilon)
    opened = Vault(locate_vault(vault))
    with open_source(source, sql=sql) as table:
        found = table.default_name if name is None else name
        if not found:
            raise ArgumentError(
                "The release has no name, and the input has no file name to derive it from.",
                hint="Add a name, such as --name patients.",
            )
        request = ReleaseRequest(
            name=found,
            epsilon=level,
            id=id_column,
            columns=create_named_mechanisms(declared, mechanism or [], table, epsilon=level, planned_epsilon=planned),
            passthrough=tuple(each for text in passthrough or () for each in text.split(",")),
            planned_epsilon=planned,
            accept_new_rows=accept_new_rows,
            dry_run=dry_run,
        )
        with show_progress("releasing", "rows") as progress:
            done = opened.run_request(request, table, output, progress)
    print_release(done, as_json)


def relax(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release.")],
    output: Output,
    epsilon: Annotated[str, typer.Option(help="The new level of each column, like 0.5.")],
    column: Annotated[
        list[str] | None, typer.Option(help="Column to relax; repeat it for more  [default: all of the release]")
    ] = None,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Relax an earlier release to a larger epsilon, without the table.

    A larger level costs the difference, for each column. An equal or lower one is free.

    Example: relaxdp relax patients better.parquet --epsilon 0.5
    """
    opened = Vault(locate_vault(vault))
    with show_progress("relaxing", "rows") as progress:
        request = ReleaseRequest(name=name, epsilon=as_epsilon(epsilon), columns=column, dry_run=dry_run)
        done = opened.run_request(request, None, output, progress)
    print_release(done, as_json)


def print_release(release: Release, as_json: bool) -> None:
    """Print what was released and what it cost. How many rows joined and left is for a terminal only."""
    if as_json:
        print_json(release.to_dict())
    elif not IS_QUIET.get() or release.is_dry_run:
        typer.echo(str(release))
    changes = release.describe_joined_and_left()
    if changes and is_interactive():
        print_note(f"{changes} Keep these numbers to yourself: they are about individuals.")


def is_interactive() -> bool:
    """Tell whether the command runs at a terminal, so that its messages end in no log."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def parse_declared_columns(
    columns: Sequence[str], values_files: Sequence[str], clip: Sequence[str], missing: Sequence[str]
) -> dict[str, Any]:
    """Parse --column, --values-file, --clip and --missing into a list of values or a range for each column.

    >>> parse_declared_columns(["diagnosis=flu,covid"], [], [], ["diagnosis"])
    {'diagnosis': ['flu', 'covid', None]}
    """
    declared: dict[str, Any] = {}
    for option, texts in (("--column", columns), ("--values-file", values_files)):
        for text in texts:
            name, rest = _split_assignment(option, text)
            if name in declared:
                raise ArgumentError(
                    "The column {column!r} is declared twice.",
                    hint="Declare it once, with --column or with --values-file.",
                    column=name,
                )
            is_listed = option == "--column"
            declared[name] = _parse_declared_values(name, rest) if is_listed else read_values_file(Path(rest))
    if not declared:
        raise ArgumentError(
            "No column to release is declared.",
            hint="Add --column diagnosis=flu,covid,none for values, or --column age=0..120 for numbers.",
        )
    _require_declared("--clip", clip, declared)
    _require_declared("--missing", missing, declared)
    for name, what in declared.items():
        if isinstance(what, NumberRange):
            declared[name] = replace(what, clip=name in clip, missing=name in missing)
        elif name in clip:
            raise ArgumentError(
                "--clip {column} needs a range, but {column!r} is declared with a list of values.",
                hint="Leave --clip out, or declare a range such as --column {column}=0..120.",
                column=name,
            )
        elif name in missing:
            declared[name] = [*what, None]
    return declared


def create_named_mechanisms(
    declared: Mapping[str, Any],
    mechanisms: Sequence[str],
    source: TableSource,
    *,
    epsilon: Epsilon,
    planned_epsilon: Epsilon | None,
) -> dict[str, Any]:
    """Return the declared columns, with a mechanism for each column that --mechanism names."""
    found = dict(declared)
    for text in mechanisms:
        column, written = _split_assignment("--mechanism", text)
        _require_declared("--mechanism", [column], declared)
        if isinstance(found[column], Mechanism):
            raise ArgumentError(
                "--mechanism names the column {column!r} twice.", hint="Remove one of the two options.", column=column
            )
        name, settings = parse_mechanism(written)
        source.names.require_column(column)
        what: Any = found[column]
        if isinstance(what, NumberRange):
            answers: Any = {"range": (what.low, what.high), "clip": what.clip}
            if what.missing and name != "numeric":
                raise ArgumentError(
                    "--missing names {column!r}, but the mechanism {mechanism!r} cannot report missing numbers.",
                    hint="Use --mechanism {column}=numeric, or leave --missing {column} out.",
                    mechanism=name,
                    column=column,
                )
            name = "numeric-missing" if what.missing else name
        else:
            answers = {"values": convert_declared_values(what, source.schema.field(column).type)}
        made = create_mechanism(name, options=settings, epsilon=planned_epsilon or epsilon, **answers)
        options = get_mechanism_arguments(made)["options"]
        best = ",".join(f"{setting}={number}" for setting, number in options.items())
        if planned_epsilon is None and not set(options) <= {*settings, "bins"}:
            raise ArgumentError(
                "The mechanism {mechanism!r} of {column!r} needs a setting, which stays the same when epsilon grows.",
                hint="Add the largest epsilon that you plan, such as --planned-epsilon 2. If that is {epsilon}, write "
                "--mechanism {column}={mechanism}:{best}.",
                mechanism=name,
                column=column,
                best=best,
                epsilon=epsilon,
            )
        found[column] = made
    return found


_EXAMPLES = {
    "--column": "diagnosis=flu,covid,none",
    "--values-file": "city=cities.txt",
    "--mechanism": "age=wave:bins=64,window=32",
}


def _split_assignment(option: str, text: str) -> tuple[str, str]:
    name, _, rest = text.partition("=")
    if not name or not rest:
        raise ArgumentError(
            "{option} {text!r} is incomplete: expected a column name, an equals sign and what belongs to it.",
            hint="Write, for example, {option} {example}.",
            option=option,
            text=text,
            example=_EXAMPLES[option],
        )
    return name, rest


def _require_declared(option: str, names: Iterable[str], declared: Mapping[str, Any]) -> None:
    for name in names:
        if name not in declared:
            raise ArgumentError(
                "{option} names the column {column!r}, which no --column or --values-file declares.",
                hint="Name one of the declared columns ({declared}), or add --column {column}=VALUES.",
                option=option,
                column=name,
                declared=", ".join(declared),
            )


def _parse_declared_values(name: str, text: str) -> list[str] | NumberRange:
    """Return the values or the range after `NAME=`."""
    found = _RANGE.fullmatch(text)
    if found:
        return NumberRange(float(found[1]), float(found[2]))
    values = text.split(",")
    if len(values) == 1:
        raise ValuesError(
            "--column {column}={text} declares a single value. A column needs at least two.",
            hint="Separate values by commas (--column {column}=a,b,c), or write a range (--column {column}=0..120).",
            column=name,
            text=text,
        )
    if any(value != value.strip().strip('"') for value in values):
        raise ValuesError(
            "--column {column} declares a value with blanks or quotation marks around it.",
            hint="Write --column {column}={without}. If your data contain them, write one value a line in a file: "
            "--values-file {column}=FILE.",
            column=name,
            without=",".join(each.strip().strip('"') for each in values),
        )
    if "" in values:
        raise ValuesError(
            "--column {column} declares an empty value.",
            hint="Remove the extra comma. If values may be missing, add --missing {column}.",
            column=name,
        )
    return values
