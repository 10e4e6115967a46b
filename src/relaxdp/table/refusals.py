"""What is refused before anything is drawn: reports in the place of the truth, an output that cannot be, no rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from relaxdp.errors import DescriptionError, RelaxdpError, TableFileError
from relaxdp.ledger.ledger import Charge
from relaxdp.table.description import FileDescription
from relaxdp.table.formats import Format, Input, format_of, sidecar_of

_NOTHING = "Nothing was released."
_SPARK = "only --engine spark writes a folder."


def refuse_reports(table: Input, columns: Iterable[str]) -> None:
    """Refuse to take the reports of a released file for the truth: their noise would be charged once more.

    Columns that were kept are what they were, and may be released. A description that cannot be read is one, too.
    """
    try:
        description = table.description()
    except (DescriptionError, OSError, UnicodeDecodeError):
        names = list(columns)
    else:
        names = reports_among(description, columns)
    if names:
        told = f" {sidecar_of(table.path).name} says so." if table.format is Format.CSV else ""
        raise no_truth(f"{names[0]!r} of {str(table.path)!r}", told)


def reports_among(description: FileDescription | None, columns: Iterable[str]) -> list[str]:
    """Return those of the columns that a description says to hold reports."""
    return [] if description is None else [name for name in columns if name in description.columns]


def no_truth(what: str, told: str = "") -> DescriptionError:
    """Return the refusal of reports as a truth."""
    return DescriptionError(
        f"{what} was released by relaxdp, and holds reports instead of the truth.{told} To relax it, release the table "
        f"that it was made from at a larger epsilon. {_NOTHING}"
    )


def refuse_rowless(rows: int) -> None:
    """Refuse a table without rows: it would be charged, and nobody would learn anything."""
    if not rows:
        raise TableFileError("the table has no rows: there is nothing to release. Nothing was charged.")


def check_ending(target: Path) -> None:
    """Refuse an output that is no file of a known kind."""
    if target.is_dir():
        raise TableFileError(
            f"{str(target)!r} is a folder, and one file is written: name a file in it, like "
            f"{str(target / 'out.parquet')!r}. {_SPARK.capitalize()} {_NOTHING}",
            path=str(target),
        )
    try:
        format_of(target)
    except TableFileError:
        raise TableFileError(
            f"{str(target)!r}: the name of the output must end in .parquet, .csv or .arrow, because one file is "
            f"written; {_SPARK} {_NOTHING}",
            path=str(target),
        ) from None


def refuse_taken(target: Path, quoted: Callable[[], list[Charge]], *, what: str = "file") -> None:
    """Refuse an output that exists, and say what else can be done: the same level again costs nothing."""
    if not os.path.lexists(target):
        return
    try:
        charges = quoted()
    except RelaxdpError:
        charges = []
    free = ": this level again costs nothing" if charges and not any(charge.cost for charge in charges) else ""
    raise TableFileError(
        f"{str(target)!r} exists already. Name another {what} or remove it{free}. Nothing was written.",
        path=str(target),
    )


def other_description(sidecar: Path) -> TableFileError:
    """Return the refusal to write a CSV file beside the description of something else."""
    return TableFileError(
        f"{str(sidecar)!r} exists already, and is the description of something else. Name another file or remove it. "
        "Nothing was written.",
        path=str(sidecar),
    )
