"""`relaxdp plan --published`: what a publication of the planned reports costs towards the public."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rich.table import Table

from relaxdp.errors import PlanError
from relaxdp.estimation.planning import Asked, Plan
from relaxdp.estimation.shuffled import Shuffled, encoding_for, shuffled
from relaxdp.estimation.sides import Planned
from relaxdp.law.epsilon import epsilon_text, plain


def published(
    made: Plan, of: Planned, asked: Asked, delta: str | None, dates: int | None, *, one_path: bool
) -> list[Shuffled]:
    """Return what publishing costs at each level, if one stops there; on `one_path` the last one chose the encoding."""
    if asked["stops"]:
        raise PlanError("who stops at a level is published with the others of that level: plan each part on its own.")
    try:
        exact = None if delta is None else float(delta)
    except ValueError:
        raise PlanError("delta lies between 0 and 1, like 1e-6.") from None
    levels = [step.epsilon for step in made.steps] if made.epsilon is None else [made.epsilon]
    found = []
    for level in levels:
        law: Any = {"values": of, "encoding": asked.get("encoding")}
        fixed = encoding_for(of, asked.get("encoding"), max(levels)) if one_path else None
        if fixed is not None:
            law = {"values": SimpleNamespace(encoding=fixed)}
        cost = level
        if asked["cross"] is not None:  # a row has a report of either column: one report of both epsilons
            cost, law = plain(2 * level), {}
        found.append(shuffled(cost, objects=made.objects, delta=exact, publications=dates or 1, **law))
    return found


def published_table(found: list[Shuffled]) -> Table:
    """Return what each level costs, towards whoever has the reports and towards the public."""
    first = found[0]
    times = f"{first.publications:,} dates" if first.publications > 1 else "one publication"
    title = f"Published: {times} of a closed group of {first.objects:,}, delta {first.delta:g}"
    table = Table(title=title, min_width=len(title) + 4)
    for column in ("epsilon of a report", "towards the public, at most"):
        table.add_column(column, justify="right")
    for each in found:
        table.add_row(epsilon_text(each.reports), epsilon_text(each.epsilon))
    return table


def published_json(found: list[Shuffled]) -> dict[str, Any]:
    """Return the same as plain JSON; what is assumed stands beside it once."""
    rows = [each.to_dict() for each in found]
    return {"assumes": rows[0]["assumes"], "levels": [{k: v for k, v in row.items() if k != "assumes"} for row in rows]}
