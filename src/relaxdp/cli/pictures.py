"""Estimates as a picture."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from relaxdp.cli.bars import clean, label_of
from relaxdp.cli.estimate_render import Asked, Block
from relaxdp.errors import CountsError, MissingPartError, TableFileError
from relaxdp.estimation.plot import draw_rows, intervals_named, plot_pairs, size_of_pairs
from relaxdp.estimation.result import Result

MOST_PICTURES = 20
ENDINGS = (".png", ".svg", ".pdf")


def draw(path: Path, parts: list[Block], name: str, asked: Asked, pairs: Result | None = None) -> None:
    """Write the picture of an answer; `pairs` is a two-way table."""
    if len(parts) > MOST_PICTURES:
        raise CountsError(
            "a plot shows at most {most} groups, and there are {parts}.", most=MOST_PICTURES, parts=len(parts)
        )
    if pairs is not None and len(pairs.labels) == len(parts[0].labels):
        rows, columns = (len(set(map(str, side))) for side in pairs.keys.values())
        figure = new_figure(*size_of_pairs(rows, columns))
        plot_pairs(
            pairs,
            figure.subplots(),
            confidence_level=asked.confidence,
            simultaneous=asked.simultaneous,
            about=asked.about,
        )
        save(figure, path)
        return
    heights = [0.8 + 0.32 * len(part.labels) if part.distribution is None else 2.8 for part in parts]
    figure = new_figure(7, 0.4 + sum(heights))
    axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    hollow = False
    for part, each in zip(parts, axes, strict=True):
        if part.distribution is not None:
            part.distribution.plot(each, confidence_level=asked.confidence, about=asked.about)
            each.set_xlabel("")
        else:
            labels = [" & ".join(label_of(label) for label in row if label is not None) for row in part.labels]
            labels = [label.replace("$", r"\$") for label in labels]
            hollow |= draw_rows(each, labels, part.estimate, part.low, part.high)
        if asked.by is not None:
            each.set_title(f"{clean(asked.by)}: {label_of(part.group)}".replace("$", r"\$"), loc="left", fontsize=10)
    together = any(part.is_simultaneous for part in parts)
    intervals = intervals_named(asked.confidence, simultaneous=together, about=asked.about, hollow=hollow)
    chosen = sum(len(part.labels) for part in parts) < sum(part.rows_in_all for part in parts)
    which = f"the largest of {parts[0].rows_in_all:,}, " if chosen else ""
    if parts[0].distribution is not None:
        name, which = "density, smoothed", f"line: {name}, "
    axes[-1].set_xlabel(f"{name}\n{which}with {intervals}".replace("$", r"\$"))
    save(figure, path)


def new_figure(width: float, height: float) -> Any:
    """Return an empty picture of so many inches."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("plots need matplotlib: pip install 'relaxdp[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Write the picture beside its place, then rename it: nothing half-written."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        figure.savefig(aside, format=path.suffix[1:].lower(), dpi=150)
        aside.replace(path)
    except OSError as problem:
        raise TableFileError(
            "{path!r} cannot be written: {why}.", why=problem.strerror or "the disk may be full", path=str(path)
        ) from None
    finally:
        aside.unlink(missing_ok=True)
