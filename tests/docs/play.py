"""Play pages with shell commands: all blocks run in order in one folder. Renew outputs: python -m tests.docs.play."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from relaxdp.cli.main import app, format_error
from relaxdp.errors import RelaxdpError

ROOT = Path(__file__).parents[2]
QUICKSTART = "docs/quickstart.md"
PAGES = (QUICKSTART, "docs/data-holder.md", "docs/describe-columns.md", "docs/relax.md", "docs/vaults.md")
"""Pages whose blocks depend on each other. A page that makes no patients.parquet begins with that of the quickstart."""
_BLOCK = re.compile(r"^```(python|sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command, continued after a backslash, and what it printed.
_COMMAND = re.compile(r"^\$ (.*?(?<!\\))\n(.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)
_COLUMNS = "100"
_RUN = (["relaxdp"], ["cp"], ["mv"])
"""The commands of `sh` blocks that are run."""
_SHARE = re.compile(r"\b\d\.\d{4}\b")
_NOISE = 0.05
"""Keys of vaults are random. Estimated shares on a page differ from those of a run by less than this."""


class Played(NamedTuple):
    """A command or a Python block, what the page shows of its output, and what it printed now."""

    source: str
    shown: str
    got: str

    @property
    def fits(self) -> bool:
        """Whether the page shows what was printed."""
        return is_like(self.got, self.shown)


def is_like(got: str, shown: str) -> bool:
    """Tell whether two outputs differ in nothing but the noise of estimated shares."""
    one, other = ([float(each) for each in _SHARE.findall(text)] for text in (got, shown))
    same = _SHARE.sub("*", got) == _SHARE.sub("*", shown) and len(one) == len(other)
    return same and all(abs(a - b) < _NOISE for a, b in zip(one, other, strict=True))


def expected_output(block: str) -> list[str]:
    """Return what the comments behind a `print` show, or those in the lines below it."""
    found, below, wrapped = [], False, False
    for line in block.splitlines():
        behind = re.search(r"\)\s+# (.*)$", line) if line.startswith("print(") else None
        if behind:
            found.append(behind[1])
        elif below and line.startswith("# "):
            found.append(line.removeprefix("# "))
        ended = line == ")" if wrapped else line.startswith("print(") and not behind
        wrapped = line == "print(" or (wrapped and not ended)
        below = (ended and not wrapped) or (below and line.startswith("# "))
    return found


def run_python(block: str, names: dict[str, Any], page: str) -> Played:
    """Run a Python block, and return what its comments show and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, page, "exec"), names)
    lines = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    return Played(block, "\n".join(expected_output(block)), lines)


def play(page: str, *, kinds: tuple[str, ...] = ("python", "sh", "console")) -> Iterator[Played]:
    """Run all blocks of a page in the current folder. Commands of `sh` blocks must succeed."""
    text = (ROOT / page).read_text("utf-8")
    names: dict[str, Any] = {}
    if ', "patients.parquet")' not in text:
        first = re.findall(r"```python\n(.*?)```", (ROOT / QUICKSTART).read_text("utf-8"), re.DOTALL)[0]
        run_python(first, {}, QUICKSTART)
    for kind, block in _BLOCK.findall(text):
        if kind == "python" and kind in kinds:
            yield run_python(block, names, page)
        elif kind == "sh" and kind in kinds:
            for line in block.replace("\\\n", " ").splitlines():
                if shlex.split(line, comments=True)[:1] in _RUN:
                    output, problem = run_command(line)
                    assert problem is None, (line, output, problem)
        elif kind == "console" and kind in kinds:
            for command, shown in _COMMAND.findall(block):
                yield Played(command, shown, run_command(command.replace("\\\n", " "))[0])


def run_command(line: str) -> tuple[str, object]:
    """Run a command, and return what it prints and what went wrong."""
    words = shlex.split(line, comments=True)
    if words[0] != "relaxdp":
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        return done.stdout, done.stderr if done.returncode else None
    result = CliRunner(env={"COLUMNS": _COLUMNS}).invoke(app, words[1:])
    lines = [line.rstrip() for line in result.output.splitlines()]
    if isinstance(result.exception, RelaxdpError):
        lines += format_error(result.exception).splitlines()
    return "".join(f"{line}\n" for line in lines), result.exception


def main() -> None:
    """Write what the commands print now below them."""
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ["XDG_STATE_HOME"] = f"{folder}/state"
            for each in play(page):
                if each.fits:
                    continue
                if f"$ {each.source}\n{each.shown}" in text:
                    text = text.replace(f"$ {each.source}\n{each.shown}", f"$ {each.source}\n{each.got}", 1)
                else:
                    print(f"{page} prints something else:\n{each.got}\n")
        (ROOT / page).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
