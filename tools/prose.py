"""Find the text that people read: blocks of prose in Markdown, Python, JavaScript and HTML, with their lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
_NOTE = re.compile(
    r"^(`{3,})\{(?:note|tip|hint|important|warning|admonition|seealso)\}[^\n]*(\n.*?)^\1 *$", re.MULTILINE | re.DOTALL
)
_NEW_BLOCK = re.compile(r"^\s*(?:[-*+] |\d+\. |#+ )|^\s{4,}\w+: ")
_DOCTEST = re.compile(r"^ *>>>.*?(?=\n *\n|\Z)", re.MULTILINE | re.DOTALL)
_PROSE = re.compile(r"(?:[A-Za-z{][\w'’{}!:,-]*[,:;]? +){3}[A-Za-z{]")
_SQL = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|LOCK|COPY|BEGIN)\b")
_JS_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)(?P<joined>\s*\+\s*(?=[\"'`]))?",
    re.DOTALL,
)
_HTML_HIDDEN = re.compile(
    r"<(script|style)\b.*?</\1>|<(\w+)[^<>]*\blang=\"(?!en)\w+\".*?</\2>|<!--.*?-->|<![^>]*>", re.DOTALL
)
_HTML_BLOCK = re.compile(
    r"</?(?:p|div|h\d|li|ul|ol|dl|dt|dd|section|main|header|title|button|label|summary|td|th)\b[^<>]*>"
)


class Block(NamedTuple):
    """A paragraph, list item, table cell, heading or message, and the line it starts at."""

    line: int
    text: str


def keep_lines(found: re.Match[str]) -> str:
    """Return the line ends of what is left out, so that lines keep their numbers."""
    return "\n" * found[0].count("\n")


def read_markdown(text: str, first_line: int = 1) -> Iterator[Block]:
    """Yield the blocks of a Markdown text, without code blocks and front matter."""
    text = _NOTE.sub(r"\2", _FRONT_MATTER.sub(keep_lines, text))
    block, fence = list[str](), ""
    for number, line in enumerate([*text.split("\n"), ""], first_line):
        opened, is_row = _FENCE.match(line), line.lstrip().startswith("|")
        is_prose = line.strip() and not (fence or opened or is_row or line.startswith(":"))
        if block and (not is_prose or _NEW_BLOCK.match(line)):
            yield Block(number - len(block), "\n".join(block))
            block = []
        if is_prose:
            block.append(line)
        elif fence:
            fence = "" if opened and opened[1].startswith(fence) and not opened[2].strip() else fence
        elif opened:
            fence = opened[1]
        elif is_row:
            yield from (Block(number, cell) for cell in line.replace("\\|", " ").split("|") if cell.strip(" -:"))


def read_python(text: str) -> Iterator[Block]:
    """Yield the docstrings of public names, and every other string that reads like a sentence."""
    tree = ast.parse(text)
    yield from read_docstrings(tree)
    yield from read_strings(tree)


def read_program(text: str) -> Iterator[Block]:
    """Yield the strings of a program that writes a page."""
    return read_strings(ast.parse(text))


def read_docstrings(node: ast.AST) -> Iterator[Block]:
    """Yield the docstrings of public classes and functions inside of a node, without their examples."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            if docstring := ast.get_docstring(child):
                text = _DOCTEST.sub(keep_lines, docstring)
                yield from read_markdown(text, child.body[0].lineno)
            if isinstance(child, ast.ClassDef):
                yield from read_docstrings(child)


def read_strings(tree: ast.Module) -> Iterator[Block]:
    """Yield every string of at least four words, except strings that stand alone, and SQL."""
    seen: set[ast.expr] = set()
    for node in ast.walk(tree):  # A parent comes before its children.
        if isinstance(node, ast.Expr):
            seen.add(node.value)
        elif node not in seen and isinstance(node, ast.JoinedStr | ast.Constant):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            seen.update(parts)
            found = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
            if _PROSE.search(found) and not _SQL.match(found):
                yield from (read_html if found.lstrip().startswith("<") else read_markdown)(found, node.lineno)


def read_javascript(text: str) -> Iterator[Block]:
    """Yield every string that reads like a sentence; strings that are added up are one."""
    start, joined = 0, ""
    for token in _JS_TOKEN.finditer(text):
        if token["text"] is None:
            continue
        start = start if joined else token.start()
        joined += token["text"][1:-1]
        if token["joined"] is None:
            if _PROSE.search(joined):
                yield Block(text.count("\n", 0, start) + 1, joined)
            joined = ""


def read_html(text: str, first_line: int = 1) -> Iterator[Block]:
    """Yield the English text of a page, element by element."""
    for part in _HTML_BLOCK.split(_HTML_HIDDEN.sub(keep_lines, text)):
        yield Block(first_line, part)
        first_line += part.count("\n")


READERS: dict[str, Callable[[str], Iterator[Block]]] = {
    ".md": read_markdown,
    ".py": read_python,
    ".js": read_javascript,
    ".ts": read_javascript,
    ".tsx": read_javascript,
    ".html": read_html,
}
