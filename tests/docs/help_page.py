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


IN_COMMON = """What every command has in common:

- **Exit status**: 0, or 2 with one sentence that says what was refused, what to do next, and what did not happen. A
  check that finds something (`audit`, `reproduce`) ends with 1, and a stop by a signal with 128 and its
  number.
- `--quiet` (`-q`) leaves results and refusals; progress, hints and closing words fall away. `--verbose` (`-v`) adds
  what draws, how long it took, and the fields of a refusal, beside the results. `--json`, where there is one, is for
  programs. Progress is shown to terminals only, and `NO_COLOR=1` takes the colours away.
- **Variables**: `RELAXDP_KEY` names the key *file* and `RELAXDP_LEDGER` the ledger (a file or URL) for all commands
  that take `--key` and `--ledger`, which win over them. A key itself in the variable is refused and not shown.
  `RELAXDP_SERVER` and `RELAXDP_TOKEN` are for campaigns and markets, `RELAXDP_DB` for the service,
  `RELAXDP_KERNEL=off` leaves the compiled path alone, `RELAXDP_BUNDLE=off` the pages' bundles.
- **Completion**: `relaxdp --install-completion` lets your shell complete commands and options.
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
