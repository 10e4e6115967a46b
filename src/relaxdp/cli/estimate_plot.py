"""Estimates as a picture, one below the other where there are groups."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relaxdp.cli.estimate_parts import Asked, Part, clean, label_of
from relaxdp.errors import CountsError, MissingPartError, TableFileError
from relaxdp.estimate.result import About, Floats, Result

MOST_PICTURES = 20
ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True, eq=False, repr=False)
class _Drawn(Result):
    """Rows as they are shown, for the plot that every estimate has."""

    labels: Sequence[str]
    rows: Part
    places: list[int]

    @property
    def value(self) -> Floats:
        return self.rows.estimate[self.places]

    def standard_error(self, about: About = "objects") -> Floats:
        return self.rows.std_error[self.places]

    def ends(self, tail: float, about: About) -> tuple[Floats, Floats]:
        return self.rows.low[self.places], self.rows.high[self.places]

    @property
    def least(self) -> float:  # type: ignore[override]
        return self.rows.least

    @property
    def most(self) -> float:  # type: ignore[override]
        return self.rows.most


def draw(path: Path, parts: list[Part], name: str, asked: Asked) -> None:
    """Write the picture beside its place, then rename it: nothing half-written."""
    if len(parts) > MOST_PICTURES:
        raise CountsError(f"a plot shows at most {MOST_PICTURES} groups, and there are {len(parts)}.")
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingPartError("plots need matplotlib: pip install 'relaxdp[plot]'.") from None
    places = [part.largest() for part in parts]
    heights = [0.8 + 0.32 * len(each) for each in places]
    figure = Figure(figsize=(7, 0.4 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": heights})[:, 0]
    for part, rows, each in zip(parts, places, axes, strict=True):
        labels = [" & ".join(label_of(label) for label in part.labels[row] if label is not None) for row in rows]
        drawn = _Drawn([label.replace("$", r"\$") for label in labels], part, rows)
        drawn.plot(each, confidence_level=asked.confidence, about=asked.about)
        each.set_xlabel("")
        if len(part.labels) == 1:
            each.set_xlim(part.least, part.most)
        if asked.by is not None:
            each.set_title(f"{clean(asked.by)}: {label_of(part.group)}".replace("$", r"\$"), loc="left", fontsize=10)
    together = ", all values at once" if asked.simultaneous else ""
    subject = "these objects" if asked.about == "objects" else "the population"
    axes[-1].set_xlabel(
        f"{name}, with {100 * asked.confidence:g} % intervals about {subject}{together}".replace("$", r"\$")
    )
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        figure.savefig(aside, format=path.suffix[1:].lower(), dpi=150)
        aside.replace(path)
    except OSError as problem:
        raise TableFileError(
            f"{str(path)!r} cannot be written: {problem.strerror or 'the disk may be full'}.", path=str(path)
        ) from None
    finally:
        aside.unlink(missing_ok=True)
