"""Tables as text and as HTML, for results, plans, releases and balances, and the risk that an epsilon stands for."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from html import escape
from math import ceil, exp

from relaxdp.theory.epsilon import format_epsilon

_WIDTH, _HEIGHT = 160, 14
_NEARLY_ALWAYS = 99.95


def describe_risk(epsilon: Decimal, n_values: int = 2, subject: str = "") -> str:
    """Describe the risk in one sentence: how often a guess of an answer is right at most.

    The number is rounded up, because it is a promise.

    >>> describe_risk(Decimal(1))
    'Risk at epsilon 1: a guess between two answers is right at most 73.2 % of the time, instead of 50 %.'
    >>> describe_risk(Decimal("0.5"), n_values=4)
    'Risk at epsilon 0.5: a guess among 4 answers is right at most 35.5 % of the time, instead of 25 %.'
    """
    answers = "between two answers" if n_values == 2 else f"among {n_values:,} answers"
    rate = f"{_format_guessing_rate(epsilon, n_values)} of the time, instead of {100 / n_values:.3g} %"
    return f"Risk at epsilon {format_epsilon(epsilon)}{subject}: a guess {answers} is right {rate}."


def format_risk(epsilon: Decimal, n_values: int = 2) -> str:
    """Return the risk, how often a guess is right at most, for a cell of a table.

    >>> format_risk(Decimal(2)), format_risk(Decimal(20))
    ('at most 88.1 %', 'nearly always')
    """
    return _format_guessing_rate(epsilon, n_values).replace("nearly 100 %", "nearly always")


def _format_guessing_rate(epsilon: Decimal, n_values: int) -> str:
    rate = 100 / (1 + (n_values - 1) * exp(-float(epsilon)))
    return "nearly 100 %" if rate > _NEARLY_ALWAYS else f"at most {ceil(10 * rate - 1e-9) / 10:g} %"


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Return a table as text: the columns in `left` start at the left, the others end at the right.

    >>> print(format_table(["value", "share"], [["flu", "0.15"], ["covid", "0.05"]]))
    value  share
    flu     0.15
    covid   0.05
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = []
    for row in (headings, *rows):
        cells = (
            f"{cell:<{width}}" if place in left else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def format_html_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = (), pictures: Sequence[str] = ()
) -> str:
    """Return a table for notebooks, with a picture at the end of each row and notes below; nothing is fetched."""
    lines = ["".join(f"<th>{escape(each)}</th>" for each in (*headings, *([""] if pictures else [])))]
    for place, row in enumerate(rows):
        cells = [*map(escape, row), *pictures[place : place + 1]]
        lines.append("".join(f"<td>{cell}</td>" for cell in cells))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{body}</table><p><small>{'<br/>'.join(map(escape, notes))}</small></p>"


def draw_estimate_bar(value: float, low: float, high: float) -> str:
    """Return a bar for an estimate and a line for its interval, as a picture. All numbers are in 0 .. 1."""
    x = _WIDTH - 2
    bar = f'<rect y="3" width="{value * x:.1f}" height="8" fill="#2563a8" fill-opacity="0.3"/>'
    return _draw_interval(bar, low, high)


def draw_change_interval(low: float, high: float) -> str:
    """Return a line for the interval of a change, and a mark in the middle that is 0."""
    x = (_WIDTH - 2) / 2
    return _draw_interval(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}" stroke="#7a7a7a"/>', low, high)


def _draw_interval(background: str, low: float, high: float) -> str:
    middle, x = _HEIGHT / 2, _WIDTH - 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-hidden="true">{background}'
        f'<line x1="{low * x:.1f}" x2="{high * x:.1f}" y1="{middle}" y2="{middle}" stroke="#2563a8" stroke-width="2"/>'
        "</svg>"
    )
