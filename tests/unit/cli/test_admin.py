"""`relaxdp serve` and `relaxdp admin`: start, TLS, tokens, backup and restore."""

from __future__ import annotations

import contextlib
import datetime
import json
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.patience import PATIENCE, until
from tests.servers.collectors import running
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.errors import RelaxdpError
from relaxdp.service.maintenance import prepare
from relaxdp.service.settings import Settings
from relaxdp.service.tokens import digest_for, digest_of
from relaxdp.storage.database import Database

RUNNER = CliRunner()


def report(campaign: dict[str, object], device: str) -> dict[str, object]:
    return {"device": device * 32, "level": campaign["levels"][0], "report": "yes"}  # type: ignore[index]


def test_what_the_service_needs_is_missed_before_anything_is_made(tmp_path: Path) -> None:
    script = "import sys; sys.modules['prometheus_client'] = None; from relaxdp.cli.main import main; main()"
    command = [sys.executable, "-c", script, "serve", "--db", f"sqlite:///{tmp_path}/service.db", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, "pip install 'relaxdp[server]'" in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("renewed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_backup_restore_and_a_new_token(tmp_path: Path, renewed: bool) -> None:
    """A running service looks for a new token every few seconds, for which only the long version waits."""
    url, copy = f"sqlite:///{tmp_path}/service.db", tmp_path / "copy.db"
    with running(url, tmp_path / "a") as server:
        campaign = server.create(id="kept")
        assert server.ask("POST", "/v1/campaigns/kept/reports", report(campaign, "a")).status == 200
        assert RUNNER.invoke(app, ["admin", "backup", str(copy), "--db", url]).exit_code == 0
        assert copy.stat().st_mode & 0o077 == 0
        assert server.ask("POST", "/v1/campaigns/kept/reports", report(campaign, "b")).status == 200
        shown = RUNNER.invoke(app, ["admin", "token", "--db", url]).output.splitlines()
        assert shown[1:] == ["It is shown this once; only its digest is kept."]
        old, server.token = server.token, shown[0].removeprefix("operator token: ")
        if renewed:
            assert until(lambda: server.ask("GET", "/v1/campaigns", operator=True).status == 200)
            server.token = old
            assert server.ask("GET", "/v1/campaigns", operator=True).status == 401
    again = f"sqlite:///{tmp_path}/again.db"
    assert RUNNER.invoke(app, ["admin", "restore", str(copy), "--db", again]).exit_code == 0
    refused = RUNNER.invoke(app, ["admin", "restore", str(copy), "--db", again])
    assert isinstance(refused.exception, RelaxdpError)
    assert refused.exception.message.endswith("Nothing was restored.")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text(old)  # the copy is older than the new token
    with running(again, tmp_path / "b") as server:
        seen = server.ask("GET", "/v1/campaigns/kept/status", operator=True).json
        assert seen["devices"]["total"] == 1
        assert server.ask("POST", "/v1/campaigns/kept/reports", report(campaign, "a")).json == {"status": "same"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["backup", "x", "--db", "postgresql://h/d"], "a PostgreSQL database is backed up and restored with pg_dump"),
        (["backup", "x", "--db", "nothing.db"], "there is no database"),
        (["restore", "nothing.db", "--db", "new.db"], "there is no database"),
        (["restore", __file__, "--db", "new.db"], "is damaged, or no database of a service"),
        (["token", "--db", "nope.db"], "nope.db'. No token was made."),
        (["token", "--db", "sqlite:///nope.db"], "nope.db'. No token was made."),
        (["token", "--db", f"sqlite:///{__file__}"], "is not a SQLite database. No token was made."),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = RUNNER.invoke(app, ["admin", *words]).exception
    assert isinstance(found, RelaxdpError)
    assert sentence in found.message
    assert list(tmp_path.iterdir()) == []


def test_a_token_goes_to_a_private_file(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path}/service.db", tmp_path / "token"
    first = prepare(Settings(database=url))
    words = ["admin", "token", "--db", url, "--token-file", str(file)]
    assert RUNNER.invoke(app, words).output == f"operator token written to {file}\n"
    written = file.read_text("utf-8")
    assert written.strip() not in ("", first)
    assert file.stat().st_mode & 0o777 == 0o600
    refused = RUNNER.invoke(app, words).exception
    assert isinstance(refused, RelaxdpError)
    assert refused.message.endswith("exists already. No token was made.")
    assert file.read_text("utf-8") == written
    database = Database(url)
    with database.reading() as connection:  # the refused one did not replace it
        assert digest_for(connection, "operator") == digest_of(written.strip())
    database.close()


def test_no_token_of_a_database_without_a_service(tmp_path: Path) -> None:
    place = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(place)) as other:
        other.execute("CREATE TABLE service (x)")
        other.commit()
    refused = RUNNER.invoke(app, ["admin", "token", "--db", str(place)]).exception
    assert isinstance(refused, RelaxdpError)
    assert refused.message.endswith("holds no service. No token was made.")
    with contextlib.closing(sqlite3.connect(place)) as other:
        assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("service",)]


def test_what_a_start_says(tmp_path: Path) -> None:
    def start(*options: str) -> list[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "relaxdp", "serve", "--db", str(tmp_path / "x.db"), "--port", "0", *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or lines[-1].startswith(("operator", "dashboard")):
                lines.append(process.stdout.readline().rstrip())
            process.terminate()
            assert process.wait(PATIENCE) in (0, 128 + signal.SIGTERM)  # it may not serve yet
        return lines

    first = start("--token-file", str(tmp_path / "token"))
    place = first[-1].removeprefix("listening on ")
    assert first == [
        f"operator token written to {tmp_path}/token",
        f"dashboard {place}/   market {place}/market",
        f"listening on {place}",
    ]
    again = start("--token-file", str(tmp_path / "token"))  # nothing is new, so nothing is written
    assert [line.partition(" ")[0] for line in again] == ["dashboard", "listening"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_that_comes_before_the_server_listens_for_it(number: signal.Signals) -> None:
    script = (
        "import signal; from relaxdp.service.run import _end_in_peace; _end_in_peace(); "
        f"signal.raise_signal({int(number)}); print('goes on')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_start_that_cannot_be(tmp_path: Path) -> None:
    def start(*words: str) -> str:
        place = str(tmp_path / "x.db")
        found = RUNNER.invoke(app, ["serve", "--port", "0", "--db", place, *words]).exception
        assert isinstance(found, RelaxdpError), found
        assert found.message.endswith("Nothing was started.")
        return found.message

    assert "TLS needs both" in start("--certificate", "c.pem")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"Cannot listen on 127.0.0.1:{port} for metrics" in start("--metrics-port", port)
    assert "there is no file" in start("--certificate", "c.pem", "--certificate-key", "k.pem")
    assert "cannot be listened on" in start("--host", "203.0.113.1")
    assert "trusted proxy" in start("--trusted-proxy", "somebody")
    (tmp_path / "taken").touch()
    assert "exists already" in start("--token-file", str(tmp_path / "taken"))
    (tmp_path / "n.csv").write_text("patient,diagnosis\n1,flu\n", "utf-8")
    assert "n.csv' is not a SQLite database." in start("--db", f"sqlite:///{tmp_path}/n.csv")
    assert (tmp_path / "n.csv").read_text("utf-8") == "patient,diagnosis\n1,flu\n"
    assert "the database is a SQLite file" in start("--db", "mysql://x/y")


def test_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    _self_signed(certificate, key)
    options = ("--certificate", str(certificate), "--certificate-key", str(key))
    with running(f"sqlite:///{tmp_path}/service.db", tmp_path, *options) as server:
        assert server.base.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(f"{server.base}/healthz", context=context, timeout=PATIENCE) as answer:
            assert json.loads(answer.read()) == {"status": "ok"}


def _self_signed(certificate: Path, key: Path) -> None:
    import ipaddress  # noqa: PLC0415

    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
