"""Write docs/commands.md, which shows the help of every command: python -m tests.docs.help_page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from relaxdp.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the words of every command, the outermost first."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


def help_page() -> str:
    """Return the page."""
    os.environ["COLUMNS"] = "100"
    parts = ["# The command line\n"]
    for words in commands(typer.main.get_command(app)):
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="relaxdp", terminal_width=100).output
        lines = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## `{' '.join(('relaxdp', *words))}`\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(help_page(), "utf-8")
