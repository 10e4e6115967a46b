"""What an index of packages shows: README with links that work there, and addresses of the project.

Where the project is at home stands once, in pyproject.toml: `[tool.relaxdp] home`. As long as nothing stands there, no
address is made up: links to files become their names, and the sources of the package have the files.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
PLACES = {"Documentation": "docs", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
NOTE = "\n\nThe files that are named here are in the source distribution of this package.\n"


def shown(readme: str, home: str | None) -> str:
    """Return the text for an index, where links relative to a folder lead nowhere."""

    def replaced(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if home:
            return f"{picture}[{words}]({home}/{'raw' if picture else 'blob'}/main/{target})"
        if picture:
            return ""
        name = target.partition("#")[0]
        return words if words in (name, "") else f"{words} (`{name}`)"

    return LINK.sub(replaced, readme) + ("" if home else NOTE)


def addresses(home: str | None) -> dict[str, str]:
    """Return what `[project.urls]` would say."""
    return {"Source": home, **{name: f"{home}/blob/main/{file}" for name, file in PLACES.items()}} if home else {}


class IndexPage(MetadataHookInterface):
    """Fill in what is said to be dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Give the text and the addresses to whatever is built."""
        root = Path(self.root)
        home = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["relaxdp"].get("home") or None
        text = shown((root / "README.md").read_text("utf-8"), home)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if home:
            metadata["urls"] = addresses(home)
