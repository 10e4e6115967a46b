"""Play docs/market.md: its commands run in order against a real service. Renew it: python -m tests.docs.market_page."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tests.servers.collectors import Running, running
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.sampling.keys import Key

PAGE = Path(__file__).parents[2] / "docs" / "market.md"
COLUMNS = "100"
# New for each market: names of orders, the public key and its fingerprint, times, and the port.
_VARYING = re.compile(
    r"\b(?:[0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{10})\b|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{5}|http://127[.]0[.]0[.]1:[0-9]+"
)
_BLOCK = re.compile(r"^```(text|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
        parts = [re.escape(_VARYING.sub("*", part)) for part in self.shown.split("...\n")]
        return re.fullmatch("(?:.*\n)*".join(parts), _VARYING.sub("*", self.got)) is not None


def play(page: str, server: Running) -> Iterator[Played]:
    """Run everything that a page shows, in the current folder."""
    now: dict[str, str] = {}  # for each name on the page the name here
    for kind, block in _BLOCK.findall(page):
        if kind == "python":
            exec(compile(block, str(PAGE), "exec"), {})
            continue
        for command, shown in _COMMAND.findall(block):
            line = _replace(command.replace("\\\n", " "), now)
            got = _run(shlex.split(line), server)
            old, new = _VARYING.findall(shown), _VARYING.findall(got)
            if len(old) == len(new):
                now |= dict(zip(old, new, strict=True))
                got = _replace(got, {there: here for here, there in now.items()})
            yield Played(command, shown, got)


@contextmanager
def stage() -> Iterator[Running]:
    """Run a service in a new folder, with keys that are the same every time."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="relaxdp-page-") as folder, chdir(folder):
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        _make_key("ann.key").save(Path("ann.key"))
        Path("ann.answer").touch(0o600)
        Path("ann.answer").write_text("6 to 8\n", "utf-8")
        try:
            with running("sqlite:///market.db", Path("service")) as server:
                server.token_file.rename("operator.token")
                yield server
        finally:
            os.environ.clear()
            os.environ.update(before)


def _run(words: list[str], server: Running) -> str:
    """Run one command and return what it prints."""
    if words[0] == "export":
        os.environ["RELAXDP_SERVER"] = server.base
        return ""
    if words[:2] == ["relaxdp", "serve"]:
        if (url := words[words.index("--db") + 1]) != server.url:
            server.stop()
            server.url = url
            server.start()
            os.environ["RELAXDP_SERVER"] = server.base
        return server.said.replace(str(server.token_file), "operator.token")
    # A vault gets the key that gives the same reports as on the page.
    with patch.object(Key, "generate", lambda: _make_key("clinic.key")):
        result = CliRunner(env={"COLUMNS": COLUMNS}).invoke(app, words[1:])
    assert result.exit_code == 0, (words, result.output, result.exception)
    return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())


def _replace(text: str, names: dict[str, str]) -> str:
    return _VARYING.sub(lambda found: names.get(found[0], found[0]), text)


def _make_key(name: str) -> Key:
    return Key.from_bytes(name.encode().ljust(32, b"."))


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
