"""Gather the site's sources in one folder: the pages of docs/, and pages made from code beside them.

Pages stay as they are where people read them beside the code. What differs on the site is said here: a link to a file
outside of docs/ leads to a page that shows this file, and a link to a folder is text.
"""

from __future__ import annotations

import html
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
_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_MUTANTS = re.compile(
    r"^\| module \| function \| instead of \| planted \|\n\|(?:---\|)+\n(?P<rows>(?:\|.*\|\n)+)", re.MULTILINE
)
_DEFINED = r"^[ \t]*(?:async def|def|class|Theorem|Corollary|Lemma|Definition|Fixpoint) {name}\b"
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
        line = line_of(text, target)
        return f"[{text}]({up}{file})" if line is None else at_line(text, f"{up}{file[:-3]}.html", line)

    def present(found: re.Match[str]) -> str:
        matching = list(source.parent.glob(found["pattern"] + ".md"))
        return found[0] if matching else ""  # a part of the site may be absent

    text = _MUTANTS.sub(as_differences, _GLOB.sub(present, with_pages_of_folder(source)))
    if place.startswith(("proofs/", "reference/")):
        text = outside_fences(text, lambda part: _TABLE.sub('<div class="stacked">\n\n\\g<0>\n</div>\n', part))
    return outside_fences(text, lambda part: _LINK.sub(mended, part))


def line_of(text: str, file: Path) -> int | None:
    """Return where a file defines the name that a link shows as code, or has the words that a link says."""
    name = re.escape(text.strip("`"))
    if not text.startswith("`") and " " not in text:  # the name of the file itself
        return None
    found = re.search(
        _DEFINED.format(name=name) if text.startswith("`") else name, file.read_text("utf-8"), re.MULTILINE
    )
    return None if found is None else found.string.count("\n", 0, found.start()) + 1


def at_line(text: str, page: str, line: int) -> str:
    """Return a link to a line of a shown file."""
    said = html.escape(text.strip("`"))
    said = f'<code class="docutils literal notranslate">{said}</code>' if text.startswith("`") else said
    return f'<a class="reference internal" href="{page}#L-{line}">{said}</a>'


def as_differences(table: re.Match[str]) -> str:
    """Return a table of mutants as what was changed, line by line: it can be read on a phone."""
    rows = [[cell.strip(" `") for cell in row.strip("| \n").split(" | ")] for row in table["rows"].splitlines()]
    blocks = [f"{module}, {function}\n- {was}\n+ {planted}" for module, function, was, planted in rows]
    return "Some that are planted:\n\n```diff\n" + "\n\n".join(blocks) + "\n```\n"


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
    """Return a page that shows a file of the source, each line with a place to lead to."""
    from pygments import highlight  # noqa: PLC0415 (who only looks at pages needs none)
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415

    language = _LANGUAGES.get(source.suffix, "text")
    form = HtmlFormatter(lineanchors="L", linenos="inline", anchorlinenos=True, wrapcode=True)
    lines = highlight(source.read_text("utf-8").rstrip(), get_lexer_by_name(language), form)
    return f"# {source.relative_to(ROOT)}\n\n````{{raw}} html\n{lines}````\n"
