"""Look at the built site: every link inside leads to a page and an anchor, and a reader's browser asks nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data",
}  # fmt: skip
_FETCHING_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
    "prefetch",
}
_OUTSIDE_IN_STYLES = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])\s*(?:https?:)?//""", re.IGNORECASE)


class Page(HTMLParser):
    """What a page fetches, links to, and can be linked to at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of one element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in _FETCHED and _FETCHED[tag] in found:
            self.fetched.append(found[_FETCHED[tag]])
        if tag == "link" and _FETCHING_LINKS & set(found.get("rel", "").split()):
            self.fetched.append(found["href"])


def problems(site: Path) -> Iterator[str]:
    """Yield a sentence for each link that leads nowhere, and each thing that would be fetched from elsewhere."""
    pages = {
        page: Page(page.read_text("utf-8")) for page in sorted(site.rglob("*.html")) if "_static" not in page.parts
    }
    for page, found in pages.items():
        name = page.relative_to(site)
        for address in [*found.links, *found.fetched]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in found.fetched and parts.scheme != "data":
                    yield f"{name} fetches {address} from elsewhere"
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{name} leads to {address}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} leads to {address}, and that page has no such place"
    for style in site.rglob("*.css"):
        if _OUTSIDE_IN_STYLES.search(style.read_text("utf-8")):
            yield f"{style.relative_to(site)} fetches something from elsewhere"
