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


IN_COMMON = """\
This page is for everyone who uses the shell. It shows the help of every command. All commands have this in common:

- **Exit status**: 0 if the command succeeded. 2 after an error, which is printed as `Error:`, `Hint:` and what did
  not happen. 1 if a check found a problem (`check`, `audit`, `reproduce`). 128 plus the number of the signal if it
  was stopped.
- **Output**: `--quiet` (`-q`) prints only results and errors. `--verbose` (`-v`) adds the sampler, the time and the
  fields of an error. `--json` is for programs. Progress is shown at terminals only. `NO_COLOR=1` switches colours
  off.
- **Variables**: `RELAXDP_VAULT` names the vault, and `RELAXDP_KEY` the key file for `market join`. `RELAXDP_SERVER`
  and `RELAXDP_TOKEN` are for campaigns and markets, and `RELAXDP_DB` for the service. `RELAXDP_KERNEL=off` switches
  the compiled sampler off, and `RELAXDP_BUNDLE=off` the bundles of the pages.
- **Completion**: `relaxdp --install-completion` installs completion for your shell.
"""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the words of every command, the outermost first."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


def help_page() -> str:
    """Return the page."""
    os.environ["COLUMNS"] = "100"
    parts = [f"# The command line\n\n{IN_COMMON}"]
    for words in commands(typer.main.get_command(app)):
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="relaxdp", terminal_width=100).output
        lines = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## `{' '.join(('relaxdp', *words))}`\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(help_page(), "utf-8")
