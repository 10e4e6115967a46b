"""The market's guide and the README: their commands run against a real service, and print what is shown."""

from __future__ import annotations

import re
import shlex

import pyarrow as pa
from tests.docs.market_page import PAGE, play, stage
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.device.address import Server
from relaxdp.market.client import MarketClient
from relaxdp.market.schema import MAX_LEVELS

TEXT = PAGE.read_text("utf-8")
COMMANDS = {"token", "publish", "list", "order", "orders", "approve", "download", "verify", "upgrade", "sales"}


def test_every_command_prints_what_the_page_shows() -> None:
    with stage() as server:
        played = list(play(TEXT, server))
    for each in played:
        assert each.fits, f"$ {each.command}\n{each.got}\nTo renew the page: python -m tests.docs.market_page"
    assert len(played) == len(re.findall(r"^\$ ", TEXT, re.MULTILINE))
    commands = {each.command.split()[2] for each in played if each.command.startswith("relaxdp market")}
    assert commands >= COMMANDS | {"pool", "join"}


def test_the_commands_of_the_readme_cost_what_it_shows() -> None:
    readme = (PAGE.parents[1] / "README.md").read_text("utf-8")
    lines = re.findall(r"^relaxdp (market .*?)  +# (.*)$", readme, re.MULTILINE)
    assert [comment for _, comment in lines] == ["the seller", "a buyer: 60 EUR", "later: the other 100 EUR"]
    shown = []
    with stage() as server:
        table = pa.table({"person": range(500), "diagnosis": ["flu", "none"] * 250})
        vault = rx.Vault.create("seller.vault", budget=1)
        vault.release(table, {"diagnosis": ["flu", "none"]}, id="person", epsilon=1, name="patients")
        operator = MarketClient(Server.parse(server.base), server.token)
        tokens = [operator.create_token(name, name) for name in ("seller", "buyer")]
        for token, (line, _) in zip((tokens[0], tokens[1], tokens[1]), lines, strict=True):
            env = {"RELAXDP_SERVER": server.base, "RELAXDP_TOKEN": token}
            result = CliRunner(env=env).invoke(app, shlex.split(line))
            assert result.exit_code == 0, (line, result.output, result.exception)
            shown.append(result.output)
    assert "for 60 EUR" in shown[1]
    assert "for 100 EUR" in shown[2]


def test_the_limit_is_that_of_the_code() -> None:
    assert f"at most {MAX_LEVELS} levels" in TEXT
