"""What is changed in the pages that Sphinx and its theme make: names for what has none, a description, a title."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape, unescape
from typing import Any

HOME_TITLE = "Local differential privacy, released gradually"
_MOST = 160  # about as many letters as are shown of a page that somebody looks for
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_EMPTY_HEAD = re.compile(r"<th[^>]*>(?:<p></p>)?</th>")
_SIGNATURE = re.compile(r"<dl>\s*<dd>(?:(?!<d[lt]\b).)*?</dl>", re.DOTALL)
_FOLDED = re.compile(r"(<a [^>]*>(?P<name>(?:(?!</a>).)*)</a>\s*<details[^>]*>\s*<summary)>", re.DOTALL)


def mended(body: str) -> str:
    """Return a page in which no cell without words heads a column, and the lines of a signature are no definitions."""
    return _SIGNATURE.sub(_as_list, _EMPTY_HEAD.sub("<td></td>", body))


def _as_list(signature: re.Match[str]) -> str:
    lines = signature[0].replace("<dd>", "<li>").replace("</dd>", "</li>")
    return lines.replace("<dl>", '<ul class="signature">').replace("</dl>", "</ul>")


def named(navigation: str) -> str:
    """Return a list of pages in which each button that unfolds a part says which."""
    return _FOLDED.sub(lambda it: f'{it[1]} aria-label="Pages of {_words(it["name"])}">', navigation)


def _words(markup: str) -> str:
    return escape(" ".join(unescape(re.sub(r"<[^>]+>", "", markup)).split()))


def description(body: str) -> str:
    """Return the words with which a page begins, whole ones, for those who only see its name in a list."""
    found = _PARAGRAPH.search(body)
    words = _words(found[1]) if found else ""
    return words if len(words) <= _MOST else words[:_MOST].rsplit(" ", 1)[0] + " ..."


def _page(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    navigation: Callable[..., Any] | None = context.get("generate_toctree_html")
    if navigation is not None:
        context["generate_toctree_html"] = lambda *which, **how: named(str(navigation(*which, **how)))
    if name == "index":
        context["title"] = HOME_TITLE
    if context.get("body"):
        context["body"] = mended(context["body"])
        told = description(context["body"])
        if told:
            context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{told}"/>\n'


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx to hand over each page, after its theme had it."""
    app.connect("html-page-context", _page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
