"""Gather the site's sources in one folder: the pages of docs/, and pages made from code beside them.

Pages stay as they are where people read them beside the code. What differs on the site is said here: a link to a file
outside of docs/ leads to a page that shows this file, and a link to a folder is text.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = {
    name: f"project/{name.lower()}" for name in ("CHANGELOG.md", "CONTRIBUTING.md", "GOVERNANCE.md", "SECURITY.md")
}
"""Pages from outside of docs/ that are pages of the site as well."""
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>(?![a-z]+:|#)[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_GLOB = re.compile(r"^```\{toctree\}\n(?:[^`]*\n)?:glob:\n[^`]*\n(?P<pattern>[^`:\n]+)\n```\n", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".js": "javascript", ".c": "c", ".h": "c", ".v": "coq", ".json": "json", ".toml": "toml"}


def stage(target: Path, made: dict[str, str]) -> None:
    """Fill `target`: every page and picture of docs/, the project's pages, what links lead to, and what was made."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shown: dict[str, Path] = {}
    for source in sorted(DOCS.rglob("*")):
        place = source.relative_to(DOCS)
        if source.is_dir() or place.parts[0] == "site" or "__pycache__" in place.parts:
            continue
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            (target / place).write_text(for_site(source, str(place), shown), "utf-8")
        else:
            shutil.copyfile(source, target / place)
    for name, place_of_it in PROJECT.items():
        made = {**made, place_of_it: for_site(ROOT / name, place_of_it, shown)}
    for file, page in sorted(made.items()):
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (target / file).write_text(page, "utf-8")
    for file, source in shown.items():
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (target / file).write_text(shown_file(source), "utf-8")
    (target / "source").mkdir(exist_ok=True)
    names = "\n".join(sorted(Path(file).stem for file in shown))
    listing = f"```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n" if names else ""
    (target / "source" / "index.md").write_text(f"# Files that pages point at\n\n{listing}", "utf-8")


def for_site(source: Path, place: str, shown: dict[str, Path]) -> str:
    """Return a page's text with the links as they are on the site; files that must be shown are added to `shown`."""

    def mended(found: re.Match[str]) -> str:
        target = (source.parent / found["target"]).resolve()
        text, anchor = found["text"], found["anchor"] or ""
        up = "../" * (len(Path(place).parts) - 1)
        if not target.is_relative_to(ROOT):
            return found[0]
        name = str(target.relative_to(ROOT))
        if name == "README.md":
            return f"[{text}]({up}index.md)"
        if name in PROJECT:
            return f"[{text}]({up}{PROJECT[name]}{anchor})"
        if target.is_dir():
            index = target / "index.md"
            return f"[{text}]({up}{index.relative_to(DOCS)})" if index.exists() else text
        if target.is_relative_to(DOCS):
            return f"[{text}]({up}{target.relative_to(DOCS)}{anchor})"
        if not target.exists():
            return found[0]  # Sphinx says where it is
        file = f"source/{name.removesuffix('.md').replace('/', '-')}.md"
        shown[file] = target
        return f"[{text}]({up}{file})"

    def present(found: re.Match[str]) -> str:
        matching = list(source.parent.glob(found["pattern"] + ".md"))
        return found[0] if matching else ""  # a part of the site may be absent

    text = _GLOB.sub(present, with_pages_of_folder(source))
    return outside_fences(text, lambda part: _LINK.sub(mended, part))


def with_pages_of_folder(source: Path) -> str:
    """Return a page; the index of a folder that lists no pages for Sphinx lists those beside it, as it names them."""
    text = source.read_text("utf-8")
    if source.name != "index.md" or "{toctree}" in text:
        return text
    beside = sorted(page.name for page in source.parent.glob("*.md") if page != source)
    named = [found["target"] for found in _LINK.finditer(text) if found["target"] in beside]
    pages = "\n".join(dict.fromkeys([*named, *beside]))
    return f"{text}\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n" if pages else text


def outside_fences(page: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of code blocks."""
    parts, at = [], 0
    for fence in _FENCE.finditer(page):
        parts += [change(page[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(page[at:])])


def shown_file(source: Path) -> str:
    """Return a page that shows a file of the source."""
    language = _LANGUAGES.get(source.suffix, "text")
    text = source.read_text("utf-8").rstrip()
    fence = "`" * (3 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    return f"# {source.relative_to(ROOT)}\n\n{fence}{language}\n{text}\n{fence}\n"
