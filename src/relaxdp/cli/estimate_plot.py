"""Estimates as a picture, one below the other where there are groups."""

from __future__ import annotations

import secrets
from pathlib import Path

from relaxdp.cli.estimate_parts import Asked, Block, clean, label_of
from relaxdp.errors import CountsError, MissingPartError, TableFileError
from relaxdp.estimation.plot import draw_rows, intervals_named

MOST_PICTURES = 20
ENDINGS = (".png", ".svg", ".pdf")


def draw(path: Path, parts: list[Block], name: str, asked: Asked) -> None:
    """Write the picture beside its place, then rename it: nothing half-written."""
    if len(parts) > MOST_PICTURES:
        raise CountsError(
            "a plot shows at most {most} groups, and there are {parts}.", most=MOST_PICTURES, parts=len(parts)
        )
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("plots need matplotlib: pip install 'relaxdp[plot]'.") from None
    heights = [0.8 + 0.32 * len(part.labels) for part in parts]
    figure = Figure(figsize=(7, 0.4 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    hollow = False
    for part, each in zip(parts, axes, strict=True):
        labels = [" & ".join(label_of(label) for label in row if label is not None) for row in part.labels]
        labels = [label.replace("$", r"\$") for label in labels]
        hollow |= draw_rows(each, labels, part.estimate, part.low, part.high)
        if part.rows_in_all == 1:
            each.set_xlim(part.least, part.most)
        if asked.by is not None:
            each.set_title(f"{clean(asked.by)}: {label_of(part.group)}".replace("$", r"\$"), loc="left", fontsize=10)
    together = any(part.is_simultaneous for part in parts)
    intervals = intervals_named(asked.confidence, simultaneous=together, about=asked.about, hollow=hollow)
    axes[-1].set_xlabel(f"{name}, with {intervals}".replace("$", r"\$"))
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
