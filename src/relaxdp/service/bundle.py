"""Build the pages' bundles: one script and one style for each page, made by esbuild of the modules that lie in `web`.

The package's build hook, `make bundle` and the tests call this; it must not import relaxdp, which may not be installed
yet. A bundle names the digest of the sources that it was made of, and is served beside no others.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
SOURCES = PACKAGE / "web"
BUNDLE = PACKAGE / "service" / "bundled"
INDEX = "bundle.json"
PAGES = ("dashboard", "market", "survey")
ENDINGS = (".css", ".html", ".js", ".svg")
PACKED = ".br"
MADE = (".css", ".js", PACKED)
ESBUILD = Path("node_modules", ".bin", "esbuild")
# What browsers of the last four years read; missing.js, which speaks to older ones, uses nothing new as it is.
_OPTIONS = ("--bundle", "--minify", "--charset=utf8", "--target=es2022", "--log-level=warning")
# Brotli saves a tenth of gzip's bytes. Node can pack so and Python cannot, so it is done here, once.
_PACK = """const { readFileSync, writeFileSync } = require("node:fs");
const { brotliCompressSync, constants } = require("node:zlib");
const params = { [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT };
for (const name of process.argv.slice(1)) {
  writeFileSync(name + ".br", brotliCompressSync(readFileSync(name), { params }));
}"""
_STYLE = re.compile(r'<link rel="stylesheet" href="[./]*static/([^"]+)">')
PRELOAD = re.compile(r' *<link rel="modulepreload" href="[./]*static/([^"]+)">\n')
"""How a page says that its script will import another one later in any case."""


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return a digest of files with their names.

    >>> digest_of({"a": b"1", "b": b"2"}) == digest_of({"b": b"2", "a": b"1"})
    True
    >>> digest_of({"a": b"1b"}) == digest_of({"a1": b"b"})
    False
    """
    lines = (f"{sha256(content).hexdigest()} {name}\n" for name, content in sorted(files.items()))
    return sha256("".join(lines).encode()).hexdigest()


def read_folder(folder: Path, endings: tuple[str, ...] = ENDINGS) -> dict[str, bytes]:
    """Return the files of a folder and the folders in it, by their names."""
    found = (each for each in sorted(folder.rglob("*")) if each.is_file() and each.name.endswith(endings))
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in found}


def tool(root: Path) -> Path | None:
    """Return esbuild as `package-lock.json` has it; None where it or node is not installed."""
    place = root / ESBUILD
    return place if place.is_file() and shutil.which("node") else None


def build(esbuild: Path, sources: Path = SOURCES, bundle: Path = BUNDLE) -> None:
    """Make the bundles of all pages. They appear whole or not at all, and the same sources give the same bytes."""
    bundle.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bundle.parent) as folder:
        made = Path(folder, "made")
        pages = {page: _bundled(esbuild, sources, made, page) for page in PAGES}
        _run(["node", "-e", _PACK, *(str(each) for each in sorted(made.rglob("*.*")))], made)
        index = {"sources": digest_of(read_folder(sources)), "made": digest_of(read_folder(made, MADE)), "pages": pages}
        (made / INDEX).write_text(f"{json.dumps(index, indent=2)}\n", "utf-8")
        if _whole(bundle) == _whole(made):
            return  # perhaps of somebody who built at the same time
        with suppress(FileNotFoundError):
            bundle.replace(Path(folder, "before"))
        made.replace(bundle)


def _whole(folder: Path) -> dict[str, bytes]:
    return read_folder(folder, (*MADE, INDEX))


def _bundled(esbuild: Path, sources: Path, made: Path, page: str) -> dict[str, Any]:
    """Bundle one page; return its script, its style, and what the script will ask for at once."""
    described = made.parent / f"{page}.json"
    text = (sources / page / "page.html").read_text("utf-8")
    # Apart from what is imported later and only by some people: a language, say.
    scripts = ["--format=esm", "--splitting", "--loader=js", f"--outdir={made / page}", f"--metafile={described}"]
    _run([str(esbuild.resolve()), *_OPTIONS, *scripts], sources / page, _joined(sources, page, PRELOAD.findall(text)))
    (made / page / "stdin.js").replace(made / page / "main.js")
    together = "".join(f'@import "./{name}";\n' for name in _STYLE.findall(text))
    style = made / page / "style.css"
    _run([str(esbuild.resolve()), "--loader=css", *_OPTIONS, f"--outfile={style}"], sources, together)
    return {
        "script": f"{page}/main.js",
        "style": f"{page}/style.css",
        "preload": [f"{page}/{name}" for name in _needed(json.loads(described.read_text("utf-8"))["outputs"])],
    }


def _joined(sources: Path, page: str, early: Sequence[str]) -> str:
    """Return a page's script that imports at once what the page says it will import in any case: one file less."""
    script = (sources / page / "main.js").read_text("utf-8")
    for name in early:
        written = f'"./{posixpath.relpath(name, page)}"'
        later = re.compile(rf"const (\{{[^}}]+\}}) = await import\({re.escape(written)}\);")
        names = later.findall(script)
        if len(names) != 1:
            raise ValueError(f"{page}/main.js does not take names of {name} once, as its page says")
        script = f"import {names[0]} from {written};\n{later.sub('', script)}"
    return script


def _needed(outputs: Mapping[str, Any]) -> list[str]:
    """Return the files that the page's script imports at once, and what these import."""
    imported = {
        Path(name).name: [Path(to["path"]).name for to in each["imports"] if to["kind"] == "import-statement"]
        for name, each in outputs.items()
    }
    found = ["stdin.js"]
    for name in found:
        found += [to for to in imported[name] if to not in found]
    return sorted(found[1:])


def _run(line: list[str], folder: Path, given: str = "") -> None:
    subprocess.run(line, cwd=folder, input=given, text=True, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    found = tool(Path.cwd())
    if found is None:
        sys.exit("esbuild is not here: `make bundle` installs it, and pages come as modules without it.")
    build(found)
    for name, content in read_folder(BUNDLE).items():
        print(sha256(content).hexdigest(), len(content), name)
