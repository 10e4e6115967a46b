"""The files of the pages as they go over the wire: packed once, under addresses that change with any of them.

Where a bundle lies beside the very sources that it was made of, pages load it; otherwise they load the modules, and say
in advance which.
"""

from __future__ import annotations

import gzip
import json
import os
import posixpath
import re
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from relaxdp.service.bundle import BUNDLE, ENDINGS, INDEX, MADE, PACKED, PRELOAD, SOURCES, digest_of, read_folder

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
SETTING = "RELAXDP_BUNDLE"
_REFUSED = {"q=0", "q=0.0", "q=0.00", "q=0.000"}
_ICON = "kit/icon.svg"
_LINK = re.compile(r'href="[./]*static/(?P<name>[^"]+)"')
_STYLES = re.compile(r'( *<link rel="stylesheet" href="[./]*static/[^"]+">\n)+')
_SCRIPT = re.compile(r' *<script type="module" src="(?P<up>[./]*)static/(?P<name>[^"]+)"></script>\n')
_IMPORT = re.compile(r'^(?:import|export)(?:\s+[\w*${},\s]+?\bfrom)?\s*"(\.[^"]+)"', re.MULTILINE)


class PageFile:
    """One file: its bytes, and the same packed, by whoever bundled it or here, once and only if somebody asks."""

    def __init__(self, content: bytes, kind: str, brotli: bytes | None = None) -> None:
        self.content, self.kind, self._brotli = content, kind, brotli

    @cached_property
    def stem(self) -> str:
        """What the tags of both forms begin with."""
        return sha256(self.content).hexdigest()[:16]

    def form(self, accepted: str) -> tuple[bytes, str]:
        """Return the bytes for a browser that accepts these codings, and the coding; nothing for plain bytes.

        >>> PageFile(b"", "text/plain").form("br, gzip;q=0")
        (b'', '')
        """
        codings = {name.strip(): quality for name, _, quality in (each.partition(";") for each in accepted.split(","))}
        possible = {name for name, quality in codings.items() if quality.replace(" ", "") not in _REFUSED}
        if self._brotli is not None and "br" in possible:
            return self._brotli, "br"
        return (self._gzip, "gzip") if "gzip" in possible else (self.content, "")

    @cached_property
    def _gzip(self) -> bytes:
        return gzip.compress(self.content, 9, mtime=0)


class PageFiles:
    """All files are read when the service starts: so an address can name one of them and nothing else."""

    def __init__(self, sources: Path = SOURCES, bundle: Path | None = None) -> None:
        """Take the folder of the modules, and that of the bundle; without one `RELAXDP_BUNDLE` is asked."""
        own = read_folder(sources, tuple(KINDS))
        index, made = _bundle(bundle, {name: each for name, each in own.items() if name.endswith(ENDINGS)})
        served = own | {f"bundle/{name}": content for name, content in made.items()}
        self.digest = digest_of(served)[:16]
        self._files = {
            name: PageFile(content, KINDS[posixpath.splitext(name)[1]], served.get(f"{name}{PACKED}"))
            for name, content in served.items()
            if not name.endswith(PACKED)
        }
        self._pages = index["pages"] if index else {}

    @property
    def bundled(self) -> bool:
        """Whether pages load bundles."""
        return bool(self._pages)

    def find(self, name: str) -> tuple[PageFile | None, bool]:
        """Return a file and whether its address stands for these bytes for ever; pages have addresses of their own."""
        first, _, rest = name.partition("/")
        lasting = first == self.digest
        found = rest if lasting else name
        return (None if found.endswith(".html") else self._files.get(found)), lasting

    def page(self, name: str) -> str:
        """Return a page that names its files by addresses that last, and all that its script will need at once."""
        text = self._files[f"{name}/page.html"].content.decode()
        icon = quote(self._files[_ICON].content.decode(), safe="")
        text = text.replace(f"static/{_ICON}", f"data:image/svg+xml,{icon}").replace("../data:", "data:")
        script = _SCRIPT.search(text)
        if script is None:
            return text
        place = f"{script['up']}static/{self.digest}/"
        if name in self._pages:
            own = self._pages[name]
            main, needed = f"bundle/{own['script']}", [f"bundle/{each}" for each in own["preload"]]
            text = _STYLES.sub(f'    <link rel="stylesheet" href="{place}bundle/{own["style"]}">\n', text, count=1)
        else:
            main, needed = script["name"], self._modules([script["name"], *PRELOAD.findall(text)])
            text = _LINK.sub(lambda link: f'href="{place}{link["name"]}"', text)
        lines = [f'    <script type="module" src="{place}{main}"></script>\n']
        lines += [f'    <link rel="modulepreload" href="{place}{each}">\n' for each in needed]
        text = _SCRIPT.sub(lambda _: "".join(lines), PRELOAD.sub("", text))
        return re.sub(r"\n +", "\n", text)  # indentation, which only readers of the sources need

    def _modules(self, scripts: list[str]) -> list[str]:
        """Return some scripts and all that they import at once, without the first one."""
        found = [*scripts]
        for name in found:
            found += [each for each in self._imports(name) if each not in found]
        return sorted(found[1:])

    def _imports(self, name: str) -> list[str]:
        found = _IMPORT.findall(self._files[name].content.decode())
        return [posixpath.normpath(posixpath.join(posixpath.dirname(name), each)) for each in found]


def enclosing(page: str, content: bytes, tag: str) -> bytes:
    """Return a page with what its script would ask for first; it is text in an attribute, so no part of it can act."""
    enclosed = f'{{"tag":{json.dumps(tag)},"content":{content.decode()}}}'
    return page.replace("</head>", f'  <meta name="enclosed" content="{escape(enclosed)}">\n  </head>', 1).encode()


def _bundle(place: Path | None, sources: Mapping[str, bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the index and the files of a bundle; nothing where there is none, or it was made of other sources."""
    setting = os.environ.get(SETTING, "")
    folder = place or (Path(setting) if setting else BUNDLE)
    if setting == "off" or not (folder / INDEX).is_file():
        return {}, {}
    index = json.loads((folder / INDEX).read_bytes())
    made = read_folder(folder, MADE)
    if (index.get("sources"), index.get("made")) != (digest_of(sources), digest_of(made)):
        return {}, {}
    return index, made
