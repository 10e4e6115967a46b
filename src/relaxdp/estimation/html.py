"""An estimate in a notebook: a small table, with a bar for each estimate and a line for its interval."""

from __future__ import annotations

from html import escape

import numpy as np

from relaxdp.estimation.compare import Change, describe_rows
from relaxdp.estimation.result import IMPLAUSIBLE, TOGETHER, Result, label_text

_WIDTH, _HEIGHT = 160, 14


def html_of(result: Result) -> str:
    """Return a table of the estimates, the largest of many, without anything that is fetched from elsewhere."""
    shown = result.largest(result.most_shown)
    found = shown.to_rows()
    least, most = shown.least, max(*(row.high for row in found), shown.least + 1e-9)
    heads = [*shown.keys, "estimate", "95 % interval", ""]
    rows = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    for row in found:
        number = f"{row.estimate:.4f}" + (f" <small>({row.beyond} what can be told)</small>" if row.beyond else "")
        cells = [*(escape(label_text(key)) for key in row.keys), number, f"{row.low:.4f} &ndash; {row.high:.4f}"]
        places = [(min(max(each, least), most) - least) / (most - least) for each in (row.estimate, row.low, row.high)]
        rows.append("".join(f"<td>{cell}</td>" for cell in [*cells, _picture(*places)]))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    notes = [f"about these objects{TOGETHER if shown.is_chosen else ''}"]
    if shown is not result:
        notes.append(f"the largest {len(shown.labels):,} of {len(result.labels):,}")
    if result.is_implausible():
        notes.append(IMPLAUSIBLE)
    return f"<table>{body}</table><p><small>{escape('; '.join(notes))}</small></p>"


def html_of_change(change: Change) -> str:
    """Return a table of changes, the largest of many, with the interval of each around a mark at 0."""
    shown = change.largest(change.most_shown)
    low, high = map(np.atleast_1d, shown.interval())
    reach = max(float(np.abs([low, high]).max()), 1e-9)
    rows = ["".join(f"<th>{escape(head)}</th>" for head in ("value", "old", "new", "change", "95 % interval", ""))]
    for row, a, b in zip(describe_rows(shown), low, high, strict=True):
        cells = [escape(each) for each in (row.label, row.old, row.new, row.change, f"{row.low} to {row.high}")]
        ends = [(float(each) / reach + 1) / 2 for each in (a, b)]
        rows.append("".join(f"<td>{cell}</td>" for cell in [*cells, _line(*ends)]))
    notes = [f"about these objects{TOGETHER if shown.is_chosen else ''}"]
    if shown is not change:
        notes.append(f"the {len(shown.labels):,} of {len(change.labels):,} that changed most")
    if change.is_implausible():
        notes.append(IMPLAUSIBLE)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>{body}</table><p><small>{escape('; '.join(notes))}</small></p>"


def _line(low: float, high: float) -> str:
    """Return a line for the interval of a change, and a mark in the middle that is 0."""
    middle, x = _HEIGHT / 2, _WIDTH - 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-hidden="true">'
        f'<line x1="{x / 2:.1f}" x2="{x / 2:.1f}" y1="0" y2="{_HEIGHT}" stroke="#7a7a7a"/>'
        f'<line x1="{low * x:.1f}" x2="{high * x:.1f}" y1="{middle}" y2="{middle}" stroke="#2563a8" stroke-width="2"/>'
        "</svg>"
    )


def _picture(value: float, low: float, high: float) -> str:
    """Return a bar for the estimate and a line for the interval, as a picture in the text."""
    middle, x = _HEIGHT / 2, _WIDTH - 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-hidden="true">'
        f'<rect y="3" width="{value * x:.1f}" height="8" fill="#2563a8" fill-opacity="0.3"/>'
        f'<line x1="{low * x:.1f}" x2="{high * x:.1f}" y1="{middle}" y2="{middle}" stroke="#2563a8" stroke-width="2"/>'
        "</svg>"
    )
