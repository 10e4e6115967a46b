"""A collector's answers as tables. They come from elsewhere: what is in them is shown, never obeyed or trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.markup import escape
from rich.table import Table

from relaxdp.device.client import tidy
from relaxdp.estimation.distribution import AT_LEAST
from relaxdp.server_errors import ServerAnswerError


@contextmanager
def expected() -> Iterator[None]:
    """Read a server's answer; one that is something else is a sentence, not a traceback."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        if isinstance(problem, ServerAnswerError):
            raise
        raise ServerAnswerError("the server's answer is not what a collector answers. Is the address right?") from None


def text(content: Any, max_length: int = 200) -> str:
    """Return what a server sent as plain text."""
    return escape(tidy(str(content), max_length))


def make_table(left: Iterable[str], right: Iterable[str], rows: Iterable[Iterable[str]], **settings: Any) -> Table:
    """Return a table with words on the left and numbers on the right."""
    table = Table(**settings)
    for heading in left:
        table.add_column(heading, overflow="fold")
    for heading in right:
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def plain(epsilon: Any) -> str:
    """Return an epsilon that may become part of a file's name."""
    if not isinstance(epsilon, str) or not epsilon.replace(".", "").isdigit():
        raise ValueError("no epsilon")
    return epsilon


def _epsilon(status: dict[str, Any]) -> str:
    return "-" if status["open_level"] is None else text(status["levels"][status["open_level"]]["epsilon"])


def _width(width: Any) -> str:
    return "-" if width is None else f"{float(width):.4g}"


def overview(status: dict[str, Any]) -> list[str]:
    """Return a campaign as the row of a list."""
    counts = (f"{int(status['devices']['total']):,}", _width(status["half_width"]))
    return [text(status["id"]), text(status["question"]), text(status["state"]), _epsilon(status), *counts]


def overview_table(rows: Iterable[list[str]], *more: str) -> Table:
    """Return the list of campaigns; `more` heads what stands in front of each."""
    return make_table((*more, "campaign", "question", "state"), ("epsilon", "devices", "half-width"), rows)


def heading(status: dict[str, Any]) -> str:
    """Return where a campaign stands, in two lines."""
    target = status["target"]
    wanted = "" if target is None else f"; the target is a half-width of {_width(target['half_width'])}"
    met = " (met)" if target is not None and status["target_met"] else ""
    devices, refused = int(status["devices"]["total"]), int(status["refused"]["differing"])
    differing = f"\n{refused:,} reports were refused: their devices had sent others before." if refused else ""
    return (
        f"{text(status['id'])}: {text(status['question'])}\n{text(status['state'])} at epsilon {_epsilon(status)}, "
        f"{devices:,} {'device' if devices == 1 else 'devices'}{wanted}{met}{differing}"
    )


def publication(status: dict[str, Any], server: str) -> str | None:
    """Return whether and when a campaign is published; None where nobody asked for it."""
    if status["publish"] is None:
        return None
    least, stage = int(status["publish"]["least"]), status["published"]
    if stage == "later":
        return f"published once, when it has ended by itself: levels with at least {least:,} devices"
    if stage == "never":
        return f"nothing is published: no level has {least:,} devices, or it was ended by hand"
    where = f"{server}/published/{text(status['id'])}"
    return f"published at {where}" if stage == "done" else f"published within seconds at {where}"


def level_table(status: dict[str, Any]) -> Table:
    """Return how many devices have each level as their highest."""
    rows = [
        (f"{place}{' *' if place - 1 == status['open_level'] else ''}", text(level["epsilon"]), f"{int(devices):,}")
        for place, (level, devices) in enumerate(
            zip(status["levels"], status["devices"]["per_level"], strict=True), start=1
        )
    ]
    return make_table((), ("level", "epsilon", "devices"), rows)


def estimate_table(found: dict[str, Any]) -> Table | None:
    """Return what all devices together say, None before there are any."""
    if found["pooled"] is None:
        return None
    largest = f"; the largest {len(found['pooled']):,} of {int(found['values']):,} values"
    kind = "intervals of all values at once" if found["simultaneous"] else "intervals of each value"
    rows = [(text(row["value"]), *numbers(row)) for row in found["pooled"]]
    for row in found["quantiles"] or []:
        share = float(row["probability"])
        rows.append(("median" if share == 0.5 else f"quantile {share:g}", *numbers(row)))
    return make_table(
        ("value",),
        ("estimate", f"{100 * float(found['confidence_level']):g} % interval"),
        rows,
        title=f"from {int(found['devices']):,} devices at their highest levels"
        + (largest if len(found["pooled"]) < int(found["values"]) else ""),
        caption=f"{kind}, about these devices"
        + (". " + AT_LEAST.format(100 * float(found["confidence_level"])) if found["quantiles"] else ""),
    )


def questions_table(found: dict[str, Any]) -> Table:
    """Return what is said to each question of a survey, one below the other."""
    about = "these devices" if found["about"] == "sample" else "those that they are a sample of"
    table = Table(title=f"survey {text(found['survey'])}", caption=f"intervals of each value, about {about}")
    for heading in ("question", "value"):
        table.add_column(heading)
    for heading in ("devices", "estimate", f"{100 * float(found['confidence_level']):g} % interval"):
        table.add_column(heading, justify="right")
    for each in found["questions"]:
        name, devices = text(each["question"]), f"{int(each['devices']):,}"
        lines = [(text(row["value"]), *numbers(row)) for row in each["rows"] or []] or [("no reports yet", "", "")]
        for place, (value, estimate, interval) in enumerate(lines):
            first = (name, value, devices) if place == 0 else ("", value, "")
            table.add_row(*first, estimate, interval, end_section=place == len(lines) - 1)
    return table


def two_way_table(found: dict[str, Any], table: dict[str, Any]) -> Table:
    """Return how two questions that are counted together go together: shares of all devices that answered both."""
    named = {each["campaign"]: text(each["question"]) for each in found["questions"]}
    shown = Table(
        title=f"{named[table['rows']]}  by  {named[table['columns']]}",
        caption=f"shares of the {int(table['devices']):,} devices that answered both, "
        f"with {100 * float(found['confidence_level']):g} % intervals of each cell",
    )
    cells = table["cells"] or []
    shown.add_column("")
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    for column in columns:
        shown.add_column(text(column), justify="right")
    for start in range(0, len(cells), max(1, len(columns))):
        row = cells[start : start + len(columns)]
        shown.add_row(text(row[0]["row"]), *("\n".join(numbers(cell)) for cell in row))
    return shown


def numbers(row: dict[str, Any]) -> tuple[str, str]:
    """Return an estimate and its interval."""
    return f"{float(row['estimate']):.4f}", f"{float(row['low']):.4f} .. {float(row['high']):.4f}"
