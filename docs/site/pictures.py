"""Draw the pictures of the first pages: python -m docs.site.pictures writes those of PICTURES.

Every number in them is computed here, by the functions that the library offers for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from docs.site.staging import DOCS

from relaxdp.paper.baselines import relaxation_variance, split_budget_variance

LEVELS = ("0.1", "0.5", "1", "2")
PEOPLE = 100_000
_BLUE, _ORANGE, _INK, _GREY, _PALE = "#1f5fa8", "#b3540a", "#1c2430", "#5d6875", "#dfe3e8"
_GAIN = "Relaxed, four releases cost 2 and not 3.6; at equal cost the last interval is half as wide."
_CHAIN = "Truth, newest report, older reports: each is a blurred copy of the one before."
_FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"


def why() -> str:
    """Return the picture of what relaxing gains: cost on the left, precision at equal cost on the right."""
    return _svg(792, 344, [*_cost(), *_precision()], _GAIN)


def why_narrow() -> str:
    """Return the same for a phone, one below the other."""
    below = _element("g", "\n".join(_precision()), transform="translate(-412 344)")
    return _svg(372, 616, [*_cost(), below], _GAIN)


def _cost() -> list[str]:
    relaxed = [float(level) for level in LEVELS]
    fresh = list(accumulate(relaxed))
    places = [76 + 78 * number for number in range(len(LEVELS))]
    height = {mark: 286 - 49 * mark for mark in range(4)}
    parts = [_text(24, 34, "What all releases cost together", 16, weight=600)]
    for mark, y in height.items():
        parts += [_line(56, y, 328, y, stroke=_PALE), _text(48, y + 5, str(mark), 13, _GREY, "end")]
    parts += [_text(x, 310, level, 13, _GREY, "middle") for x, level in zip(places, LEVELS, strict=True)]
    parts.append(_text(193, 332, "epsilon of each release, year after year", 13, _GREY, "middle"))
    for costs, colour, words, below in ((fresh, _ORANGE, "fresh answers", -12), (relaxed, _BLUE, "relaxed", 64)):
        points = [(x, 286 - 49 * cost) for x, cost in zip(places, costs, strict=True)]
        drawn = " ".join(f"{x:g},{y:g}" for x, y in points)
        parts.append(_element("polyline", points=drawn, fill="none", stroke=colour, stroke_width=3))
        parts += [_element("circle", cx=x, cy=y, r=5, fill=colour) for x, y in points]
        parts.append(_text(314, points[-1][1] + below, f"{words}: {costs[-1]:g}", 14, colour, "end", 600))
    return parts


def _precision() -> list[str]:
    parts = [_text(436, 34, "The last answer, at a total cost of 2", 16, weight=600)]
    parts.append(_text(436, 58, f"95 % interval of one share, {PEOPLE:,} people", 13, _GREY))
    shown = {"relaxed": (relaxation_variance, _BLUE, 124), "budget split": (split_budget_variance, _ORANGE, 208)}
    half = {
        name: 1.96 * variance(LEVELS, values=2, objects=PEOPLE, share=0.5) ** 0.5
        for name, (variance, *_) in shown.items()
    }
    parts.append(_line(601, 86, 601, 262, stroke="#c3c9d1", stroke_dasharray="4 4"))
    for name, (_, colour, y) in shown.items():
        long = 150 * half[name] / max(half.values())
        parts.append(_line(601 - long, y, 601 + long, y, stroke=colour, stroke_width=10, stroke_linecap="round"))
        parts.append(_text(601, y + 28, f"{name}: ± {half[name]:.2%}", 14, colour, "middle", 600))
    return parts


def chain() -> str:
    """Return the picture of the chain: truth, newest report, and older ones as blurred copies."""
    parts = [
        _text(16, 28, "All reports together say no more than the newest: every older one is a blurred copy of it.", 15)
    ]
    for number, (name, when) in enumerate(_boxes()):
        x = 16 + 156 * number
        parts += _box(x, 52, name, when, number)
        if number < len(LEVELS):
            parts.append(_arrow(x + 119, 84, x + 152, 84))
            parts.append(_text(x + 136, 70, "blur" if number else "report", 11, _GREY, "middle"))
    told = "They are handed out from right to left. Each is drawn so that the chain fits what is out already."
    parts.append(_text(16, 148, told, 13, _GREY))
    return _svg(772, 168, [_TIP, *parts], _CHAIN)


def chain_narrow() -> str:
    """Return the same for a phone, from top to bottom."""
    parts = [_text(16, 28, "All reports together say no more than the", 15)]
    parts.append(_text(16, 48, "newest: every older one is a blurred copy.", 15))
    for number, (name, when) in enumerate(_boxes()):
        y = 68 + 104 * number
        parts += _box(92, y, name, when, number)
        if number < len(LEVELS):
            parts.append(_arrow(150, y + 67, 150, y + 100))
            parts.append(_text(162, y + 88, "blur" if number else "report", 13, _GREY))
    parts.append(_text(16, 576, "They are handed out from the bottom up. Each is", 13, _GREY))
    parts.append(_text(16, 594, "drawn so that the chain fits what is out already.", 13, _GREY))
    return _svg(340, 610, [_TIP, *parts], _CHAIN)


def _boxes() -> list[tuple[str, str]]:
    years = range(2026 + len(LEVELS) - 1, 2025, -1)
    reports = [(f"epsilon {level}", f"in {year}") for level, year in zip(reversed(LEVELS), years, strict=True)]
    return [("truth", "never leaves"), *reports]


def _box(x: float, y: float, name: str, when: str, number: int) -> list[str]:
    colour, fill = (_BLUE, "#e6effa") if number else (_INK, "#eef1f5")
    return [
        _element("rect", x=x, y=y, width=116, height=64, rx=8, fill=fill, stroke=colour),
        _text(x + 58, y + 28, name, 15, colour, "middle", 600),
        _text(x + 58, y + 49, when, 13, _GREY, "middle"),
    ]


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return _line(x, y, to_x, to_y, stroke=_GREY, stroke_width=2, marker_end="url(#tip)")


def _element(tag: str, content: str = "", **attributes: Any) -> str:
    said = " ".join(f'{name.replace("_", "-")}="{_plain(value)}"' for name, value in attributes.items())
    return f"<{tag}{' ' * bool(said)}{said}>{content}</{tag}>" if content else f"<{tag} {said}/>"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _text(x: float, y: float, words: str, size: int, colour: str = _INK, anchor: str = "start", weight: int = 0) -> str:
    bold = {"font_weight": weight} if weight else {}
    return _element("text", words, x=x, y=y, font_size=size, fill=colour, text_anchor=anchor, **bold)


def _line(x: float, y: float, to_x: float, to_y: float, **attributes: Any) -> str:
    return _element("line", x1=x, y1=y, x2=to_x, y2=to_y, **attributes)


def _svg(width: int, height: int, parts: Sequence[str], meaning: str) -> str:
    paper = _element("rect", width=width, height=height, rx=8, fill="#ffffff")
    body = "\n".join([f"<title>{meaning}</title>", paper, *parts])
    space = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "font_family": _FONT}
    return _element("svg", f"\n{body}\n", **space, width=width, height=height, role="img") + "\n"


_TIP = _element(
    "defs",
    _element(
        "marker",
        _element("path", d="M0,0 L8,4 L0,8 z", fill=_GREY),
        id="tip", viewBox="0 0 8 8", refX=7, refY=4, markerWidth=8, markerHeight=8, orient="auto",
    ),
)  # fmt: skip
PICTURES = {
    "figures/why.svg": why,
    "figures/chain.svg": chain,
    "site/static/why-narrow.svg": why_narrow,
    "site/static/chain-narrow.svg": chain_narrow,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (DOCS / name).write_text(draw(), "utf-8")
