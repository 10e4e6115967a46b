"""Options that releasing and relaxing share, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.options import LEDGER_VARIABLE

WHAT, LEDGER, WHERE = "What its truth can be", "Who pays", "Where it is drawn"
"""Under which headings options stand in the help text."""

_KINDS = "Table: Parquet, CSV, TSV, a folder of Parquet files, or the address of one"
Source = Annotated[str, typer.Argument(metavar="IN", help=f"{_KINDS}.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="Released table; it must not exist.")]
IdColumn = Annotated[str, typer.Option("--id", help="Column that holds the ids; one id is one person.")]
Level = Annotated[str, typer.Option(help="The level, like 0.5.")]
Keep = Annotated[list[str] | None, typer.Option(help="Column to copy as it is; it is not protected.")]
Name = Annotated[str | None, typer.Option("--release", help="Name of the release  [default: the table's file name]")]
Separator = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="What separates the fields of the table, like ';'  [default: by its ending]"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would cost. No row is read, so none is checked.")]
Yes = Annotated[bool, typer.Option("--yes", help="Release it though it would tell next to nothing.")]
Values = Annotated[
    list[str] | None,
    typer.Option(
        help="Declared values, like a,b,c; COLUMN=a,b,c where there are several columns.", rich_help_panel=WHAT
    ),
]
ValuesFile = Annotated[
    list[str] | None,
    typer.Option(help="File of declared values, one a line; or COLUMN=FILE.", rich_help_panel=WHAT),
]
Bins = Annotated[
    str | None, typer.Option(help="Numbers become bins with these edges, like 18,30,65.", rich_help_panel=WHAT)
]
ValueMap = Annotated[
    Path | None,
    typer.Option(
        "--map", help="CSV of two columns: value, what it becomes before it is released.", rich_help_panel=WHAT
    ),
]
NullValue = Annotated[
    list[str] | None,
    typer.Option(
        "--nulls",
        help="A missing value becomes this value, added to the declared; or COLUMN=NAME.",
        rich_help_panel=WHAT,
    ),
]
MissingAs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="A text that stands for a missing value, like NA; an empty field does.",
        rich_help_panel=WHAT,
    ),
]
Population = Annotated[
    str, typer.Option(help="Whose budget is charged; all its tables add up.", rich_help_panel=LEDGER)
]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        envvar=LEDGER_VARIABLE, help="Ledger file or database URL  [default: KEY.ledger]", rich_help_panel=LEDGER
    ),
]
Budget = Annotated[
    str | None, typer.Option(help="Budget of the population; the first release needs it.", rich_help_panel=LEDGER)
]
NewLedger = Annotated[
    str,
    typer.Option(
        metavar="REASON",
        help="Begin one more ledger for a key that has spent in another; the reason is recorded.",
        rich_help_panel=LEDGER,
    ),
]
Date = Annotated[
    str,
    typer.Option(metavar="DATE", help="Which of the dated releases of a series, like 2026 (`relaxdp budget series`)."),
]
Snapshots = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where what is released is kept, sealed with the key  [default: LEDGER.snapshots]",
        rich_help_panel=LEDGER,
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Cores to use  [default: all]", rich_help_panel=WHERE)]
