"""`relaxdp estimate`: released files -> shares or means with honest intervals, as a table, a picture or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.bars import plain_label
from relaxdp.cli.estimate_render import Asked, Block, MethodChoice, blocks_of, name_of, print_blocks
from relaxdp.cli.options import MOST_ROWS
from relaxdp.cli.pictures import ENDINGS, draw
from relaxdp.cli.plan import AboutChoice
from relaxdp.cli.render import show_json
from relaxdp.cli.talk import aside_console, closing
from relaxdp.errors import CountsError, TableFileError
from relaxdp.estimation.result import IMPLAUSIBLE, EstimateRow
from relaxdp.tables.counting import PairTally, Tally
from relaxdp.tables.estimate import count
from relaxdp.tables.released_files import Axis


def estimate(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Released files, folders or addresses of them, of one path.",
            show_default=False,
        ),
    ],
    column: Annotated[
        str | None, typer.Option("--column", "--release-column", help="The released column, where there are several.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Estimate for each group of a kept column.")] = None,
    cross: Annotated[str | None, typer.Option(help="A second released column: a two-way table.")] = None,
    confidence: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous",
            help="Intervals that hold for all values at once; always so in a table of the largest of many values.",
        ),
    ] = False,
    about: Annotated[
        AboutChoice, typer.Option(help="These objects, or the population that they are a sample of.")
    ] = AboutChoice.OBJECTS,
    method: Annotated[
        MethodChoice, typer.Option(help="Weights of levels: every object the same, or less noise more.")
    ] = MethodChoice.AVERAGE,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Shares that are not negative and sum to 1, with some bias.")
    ] = False,
    description: Annotated[
        list[Path] | None,
        typer.Option(
            help="A released file that says what a file holds that does not say so itself, or whose rows were chosen "
            "without a look at reports; once for each file.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="Show the largest N of more rows, with intervals that hold for all of them.")
    ] = MOST_ROWS,
    plot: Annotated[Path | None, typer.Option(help="Draw the estimates into a .png, .svg or .pdf file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Estimate shares or means from released files; the files say their own values and levels.

    Files of one release may hold the same objects at different levels: each object counts once, at its highest.
    """
    asked = Asked(confidence, simultaneous, about.value, method, consistent, by, cross)
    _check(asked, plot)
    with aside_console().status("Counting ..."):
        tally = count(files, column, by=by, cross=cross, description=description or [])
        parts = blocks_of(tally, asked, most=top)
    axis = tally.axis if isinstance(tally, Tally) else tally.rows
    if plot is not None:
        draw(plot, parts, name_of(axis, asked), asked)
    if as_json:
        every = blocks_of(tally, asked, most=None)
        show_json(_json(tally, axis, every, asked))
        if any(part.is_implausible for part in parts):
            typer.echo(IMPLAUSIBLE, err=True)
    else:
        print_blocks(tally, axis, parts, asked)
        if plot is not None:
            closing(f"wrote the picture {plot}")


def _check(asked: Asked, plot: Path | None) -> None:
    if not 0 < asked.confidence < 1:
        raise CountsError(
            "a confidence level lies between 0 and 1, like 0.95; not {confidence}.", confidence=asked.confidence
        )
    if plot is not None and plot.suffix.lower() not in ENDINGS:
        raise TableFileError("{path!r}: a plot's ending must be .png, .svg or .pdf.", path=str(plot))


# For programs.


def _json(tally: Tally | PairTally, axis: Axis, parts: list[Block], asked: Asked) -> dict[str, Any]:
    description = axis.description
    return {
        "column": axis.name,
        "cross": asked.cross,
        "by": asked.by,
        "release": description.path.release,
        "attribute": description.path.attribute,
        "encoding": description.encoding,
        "objects": tally.objects,
        "confidence": asked.confidence,
        "simultaneous": asked.simultaneous,
        "about": asked.about,
        "method": asked.method.value,
        "consistent": asked.consistent,
        "groups": [
            {
                "group": part.group,
                "objects": part.objects,
                "levels": [
                    {"epsilon": one, "cross_epsilon": two, "objects": objects} for one, two, objects in part.levels
                ],
                "implausible": part.is_implausible,
                "estimates": list(map(_json_row, part.rows)),
                **({} if part.missing is None else {"missing": _json_interval(part.missing)}),
                **({"quantiles": _json_quantiles(part)} if part.quantiles else {}),
            }
            for part in parts
        ],
    }


def _json_row(row: EstimateRow) -> dict[str, Any]:
    value, other = row.keys if len(row.keys) > 1 else (*row.keys, None)
    numbers = row._asdict()
    del numbers["keys"]
    return {"value": plain_label(value), "cross_value": plain_label(other), **numbers}


def _json_interval(row: EstimateRow) -> dict[str, float]:
    return {"estimate": row.estimate, "low": row.low, "high": row.high}


def _json_quantiles(part: Block) -> list[dict[str, float]]:
    quartiles = zip((0.25, 0.5, 0.75), part.quantiles, strict=True)
    return [{"probability": probability, **_json_interval(row)} for probability, row in quartiles]
