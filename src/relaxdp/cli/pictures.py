"""Estimates as a picture."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import numpy as np

from relaxdp.cli.bars import clean, label_of
from relaxdp.cli.estimate_render import Asked, Block
from relaxdp.errors import CountsError, MissingPartError, TableFileError
from relaxdp.estimation.plot import draw_rows, intervals_named, plain, plot_pairs, size_of_pairs
from relaxdp.estimation.wave import Distribution

MOST_PICTURES = 20
ENDINGS = (".png", ".svg", ".pdf")


def draw(path: Path, parts: list[Block], name: str, asked: Asked) -> None:
    """Write the picture of an answer."""
    if len(parts) > MOST_PICTURES:
        raise CountsError(
            "a plot shows at most {most} groups, and there are {parts}.", most=MOST_PICTURES, parts=len(parts)
        )
    intervals: Any = {"confidence_level": asked.confidence, "about": asked.about}
    whole = parts[0].result
    if len(whole.keys) > 1 and len(whole.labels) == len(parts[0].rows):
        rows, columns = (len(set(map(str, side))) for side in whole.keys.values())
        figure = new_figure(*size_of_pairs(rows, columns))
        plot_pairs(whole, figure.subplots(), simultaneous=asked.simultaneous, **intervals)
        save(figure, path)
        return
    heights = [2.8 if isinstance(part.result, Distribution) else 0.8 + 0.32 * len(part.rows) for part in parts]
    figure = new_figure(7, 0.4 + sum(heights))
    axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    hollow = False
    for part, each in zip(parts, axes, strict=True):
        if isinstance(part.result, Distribution):
            part.result.plot(each, **intervals)
            each.set_xlabel("")
        else:
            labels = [plain(" & ".join(map(label_of, row.keys))) for row in part.rows]
            ends = ([getattr(row, field) for row in part.rows] for field in ("estimate", "low", "high"))
            hollow |= draw_rows(each, labels, *map(np.array, ends))
        if asked.by is not None:
            each.set_title(plain(f"{clean(asked.by)}: {label_of(part.group)}"), loc="left", fontsize=10)
    together = any(part.is_simultaneous for part in parts)
    chosen = any(len(part.rows) < len(part.result.labels) for part in parts)
    which = f"the largest of {len(whole.labels):,}, " if chosen else ""
    if isinstance(whole, Distribution):
        name, which = "density, smoothed", f"line: {name}, "
    axes[-1].set_xlabel(
        plain(f"{name}\n{which}with {intervals_named(simultaneous=together, hollow=hollow, **intervals)}")
    )
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
