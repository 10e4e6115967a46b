"""Standard input and output in the place of files, written as `-`.

What is read from a pipe is kept in a private folder until the end, because a table is read more than once. What goes
into one is first a whole file there: the ledger is charged before the first byte leaves. Where nobody takes the rest,
the same command again gives the identical bytes and costs nothing; so only what can be drawn again may go there.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.talk import hint
from relaxdp.errors import OptionError

PIPE = "-"


class FormatChoice(StrEnum):
    """What standard input or output holds, by the ending that a file of it would have."""

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


_SAY_IT_THEMSELVES = (FormatChoice.PARQUET, FormatChoice.ARROW)
"""What carries its description, and is nothing that a person reads."""

Format = Annotated[
    FormatChoice | None,
    typer.Option("--format", help="What standard input or output (-) holds; of files their ending says it."),
]


@contextmanager
def taken(source: str, kind: FormatChoice | None) -> Iterator[str]:
    """Give the place of a table: as it was named, or where standard input was kept."""
    if source != PIPE:
        yield source
        return
    from relaxdp.publication.staging import temporary_folder  # noqa: PLC0415
    from relaxdp.table.arriving import take  # noqa: PLC0415

    with temporary_folder() as folder:
        place = folder / f"stdin.{_said(kind).value}"
        take(sys.stdin.buffer, place)
        yield str(place)


@contextmanager
def given(target: Path, kind: FormatChoice | None) -> Iterator[Path]:
    """Give the place to write to: as it was named, or one that goes to standard output when all is written and paid."""
    if str(target) != PIPE:
        yield target
        return
    from relaxdp.publication.staging import temporary_folder  # noqa: PLC0415

    said = _said(kind)
    if sys.stdout.isatty() and said in _SAY_IT_THEMSELVES:
        raise OptionError("a terminal shows no {format}: lead it into a file or a pipe.", format=said.value)
    with temporary_folder() as folder:
        place = folder / f"stdout.{said.value}"
        yield place
        if place.exists():  # a dry run writes none
            with place.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            if said not in _SAY_IT_THEMSELVES:
                hint("No description goes along. To estimate, release to a file as well: that costs nothing.")


def _said(kind: FormatChoice | None) -> FormatChoice:
    if kind is None:
        raise OptionError("what standard input or output holds is to be said.", remedy="format")
    return kind
