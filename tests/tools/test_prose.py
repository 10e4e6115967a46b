"""The text that people read is found, with its lines, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterable

from tools import prose

MARKDOWN = """---
title: Left out
---
# A heading

A paragraph that goes on
in a second line.
- An item
  in two lines
- Another item

| head | other head |
|---|---|
| a cell | |

```python
code = "left out"
```

```{note}
A note is read.
```

After the note.
"""
PYTHON = '''"""A module docstring is left out."""

LIMIT = 3
"""A string next to a constant is left out."""


def release(name: str) -> None:
    """Release a column at a level.

    Args:
        name: the column.
        other: another one.

    >>> print("an example is left out")
    an example is left out

    The end.
    """
    # A comment is left out of it.
    raise ReleaseError("the column {name!r} is "
                       "not in the table.", name=name)


def _help() -> str:
    """A private docstring is left out."""
    def inner() -> str:
        """An inner docstring is left out."""
        return "SELECT a FROM b WHERE c ORDER BY d"
    return f"Between {LIMIT} and {LIMIT + 1} rows are needed." + "short text" + inner()


class Table:
    """Document the table."""

    def read(self) -> str:
        """Read the table."""
        return "<p>The first page of it</p><p>The second page of it</p>"

    def _private(self) -> None:
        """A private method is left out."""
'''
JAVASCRIPT = """// A comment that is left out
/* "a second comment left out" */
import { h } from "../kit/a.js";
export const words = {
  "page.title": "A title of four words",
  long:
    "The first half of it, " +
    'and the second half.',
};
const told = `There are ${count} devices in it`;
"""
HTML = """<!doctype html>
<html lang="en">
  <style>p { color: red }</style>
  <body>
    <p>Text with <b>bold</b> words.</p>
    <p lang="de">Deutscher Text</p>
    <!-- A comment -->
    <li>An item</li>
  </body>
</html>
"""


def show(blocks: Iterable[prose.Block]) -> list[tuple[int, str]]:
    return sorted((line, " ".join(text.split())) for line, text in blocks if text.strip())


def test_markdown_has_blocks_with_lines() -> None:
    assert show(prose.read_markdown(MARKDOWN)) == [
        (4, "# A heading"),
        (6, "A paragraph that goes on in a second line."),
        (8, "- An item in two lines"),
        (10, "- Another item"),
        (12, "head"),
        (12, "other head"),
        (14, "a cell"),
        (21, "A note is read."),
        (24, "After the note."),
    ]


def test_python_has_public_docstrings_and_sentences() -> None:
    assert show(prose.read_python(PYTHON)) == [
        (8, "Release a column at a level."),
        (10, "Args:"),
        (11, "name: the column."),
        (12, "other: another one."),
        (17, "The end."),
        (20, "the column {name!r} is not in the table."),
        (29, "Between {} and {} rows are needed."),
        (33, "Document the table."),
        (36, "Read the table."),
        (37, "The first page of it"),
        (37, "The second page of it"),
    ]


def test_a_program_that_writes_a_page_has_sentences_only() -> None:
    found = [text for _, text in show(prose.read_program(PYTHON))]
    assert "Read the table." not in found
    assert "the column {name!r} is not in the table." in found


def test_javascript_has_sentences_and_joins_them() -> None:
    assert show(prose.read_javascript(JAVASCRIPT)) == [
        (5, "A title of four words"),
        (7, "The first half of it, and the second half."),
        (10, "There are ${count} devices in it"),
    ]


def test_html_has_english_text_by_element() -> None:
    found = [text for _, text in show(prose.read_html(HTML)) if not text.startswith("<")]
    assert found == ["Text with <b>bold</b> words.", "An item"]
