"""The command line of the market, as tests use it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.unit.market.fake import VALUES
from typer.testing import CliRunner

from relaxdp import Vault
from relaxdp.cli.main import app
from relaxdp.cli.market import app as market_app
from relaxdp.device.client import Client
from relaxdp.errors import RelaxdpError

TOKEN = "token-of-somebody"


def at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of one's own, with a token, on a wide screen, and without waiting between attempts."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("RELAXDP_TOKEN", TOKEN)
    monkeypatch.delenv("RELAXDP_SERVER", raising=False)
    monkeypatch.setattr("relaxdp.cli.campaign_options.Client", partial(Client, sleep=lambda _: None))


def ask(url: str, *words: str, env: dict[str, str] | None = None) -> str:
    """Run a command that succeeds, and return what it says."""
    done = CliRunner().invoke(market_app, words, env={"RELAXDP_SERVER": url, **(env or {})})
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def mistake(url: str, *words: str, env: dict[str, str] | None = None) -> RelaxdpError:
    """Run a command that fails with one sentence (`main` turns it into exit status 2), and return that."""
    done = CliRunner().invoke(market_app, words, env={"RELAXDP_SERVER": url, **(env or {})})
    assert isinstance(done.exception, RelaxdpError), (words, done.output, done.exception)
    assert TOKEN not in done.exception.message
    assert "\n" not in done.exception.message
    return done.exception


def private(path: Path, content: str) -> Path:
    path.write_text(content)
    path.chmod(0o600)
    return path


def release(target: Path, epsilon: str, *more: str) -> Path:
    """A released table of 500 patients, whose truths lie beside it."""
    folder = target.parent
    truth = folder / "patients.parquet"
    if not truth.exists():
        values = np.random.default_rng(1).choice(VALUES, 500)
        pa_parquet.write_table(pa.table({"patient": np.arange(500), "diagnosis": values, "ward": values}), truth)
        Vault.create(folder / "study.vault", budget=9)
    words = ["release", str(truth), str(target), "--id", "patient", "--epsilon", epsilon, "--name", "survey"]
    words += ["--column", f"diagnosis={','.join(VALUES)}", "--vault", str(folder / "study.vault")]
    done = CliRunner().invoke(app, [*words, "--planned-epsilon", "9", *more])
    assert done.exit_code == 0, (done.output, done.exception)
    return target
