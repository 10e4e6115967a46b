"""Play docs/market.md: its commands run in order against a real service. Renew it: python -m tests.docs.market_page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.conftest import require
from tests.servers.collectors import Running, running
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.sampling.keys import Key

PAGE = Path(__file__).parents[2] / "docs" / "market.md"
COLUMNS = "110"
DATABASE = "sqlite:///market.db"
# What nobody can know before: times, digests, fingerprints of new keys, and the port.
_VARYING = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:]{8}Z)?|\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|http://127[.]0[.]0[.]1:[0-9]+"
)
_BLOCK = re.compile(r"^```(text|py|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command, continued after a backslash, and what it printed.
_COMMAND = re.compile(r"^\$ (.*?(?<!\\))\n(.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)


class Played(NamedTuple):
    """A command of the page, what is shown below it, and what it printed now."""

    command: str
    shown: str
    got: str

    @property
    def fits(self) -> bool:
        """Whether the page shows what was printed; a line of three dots stands for any lines."""
        parts = [re.escape(_masked(part)) for part in self.shown.split("...\n")]
        return re.fullmatch("(?:.*\n)*".join(parts), _masked(self.got)) is not None


def play(page: str, server: Running) -> Iterator[Played]:
    """Run everything that a page shows, in the current folder."""
    names: dict[str, Any] = {}
    for kind, block in _BLOCK.findall(page):
        if kind == "text":
            for command, shown in _COMMAND.findall(block):
                yield Played(command, shown, _run(shlex.split(command.replace("\\\n", " "), comments=True), server))
        else:  # `python` needs no service, and tests/docs/test_readme.py looks at what it prints; `py` needs one
            with redirect_stdout(StringIO()):
                exec(compile(block, str(PAGE), "exec"), names)


@contextmanager
def stage() -> Iterator[Running]:
    """Run a service in a folder of its own, with keys and answers that are the same every time."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="relaxdp-page-") as folder, chdir(folder):
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        _fixed_key("market.db.market-key")
        for person, answer in (("ann", "6 to 8"), ("ben", "under 6")):
            Path(f"{person}.answer").touch(0o600)
            Path(f"{person}.answer").write_text(answer, "utf-8")
        try:
            with running(DATABASE, Path("service")) as server:
                server.token_file.rename("operator.token")
                yield server
        finally:
            os.environ.clear()
            os.environ.update(before)


def _run(words: list[str], server: Running) -> str:
    """Run one command and return what it prints."""
    if words[:2] == ["relaxdp", "serve"]:  # it runs already
        return server.said.replace(str(server.token_file), words[words.index("--token-file") + 1])
    if words[0] == "export":
        name, _, content = words[1].partition("=")
        os.environ[name] = server.base if name == "RELAXDP_SERVER" else content
        return ""
    if words[:2] == ["curl", "-s"]:
        return server.ask("GET", words[2].removeprefix("$RELAXDP_SERVER")).body.decode() + "\n"
    if words[0] == "python":
        _fixed_key(words[2].split("'")[1])
        return ""
    if words[0] != "relaxdp":
        return subprocess.run([require(words[0]), *words[1:]], check=True, capture_output=True, text=True).stdout
    # A vault gets the key that gives the same reports as on the page.
    with patch.object(Key, "generate", lambda: _make_key("clinic.key")):
        result = CliRunner(env={"COLUMNS": COLUMNS}).invoke(app, words[1:])
    assert result.exit_code == 0, (words, result.output, result.exception)
    return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())


def _fixed_key(name: str) -> None:
    _make_key(name).save(Path(name))


def _make_key(name: str) -> Key:
    return Key.from_bytes(name.encode().ljust(32, b"."))


def _masked(text: str) -> str:
    return _VARYING.sub("*", text)


def main() -> None:
    """Write what the commands print now below them."""
    page = PAGE.read_text("utf-8")
    with stage() as server:
        for each in play(page, server):
            if not each.fits:
                page = page.replace(f"$ {each.command}\n{each.shown}", f"$ {each.command}\n{each.got}", 1)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
