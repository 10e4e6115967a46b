"""HTTP for devices: patience with a jitter, deadlines, certificates, and a sentence for everything that goes wrong."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.patience import PATIENCE
from tests.servers.fake_collector import FakeCollector, Reply, Request, fake_collector

from relaxdp.device import client as client_module
from relaxdp.device.address import CampaignAddress, Server
from relaxdp.device.client import Client, tidy
from relaxdp.server_errors import AddressError, RefusedByServerError, ServerAnswerError, UnreachableError


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with fake_collector() as one:
        one.open()
        yield one


def test_waits_double_are_drawn_and_end(collector: FakeCollector) -> None:
    waits: list[float] = []
    collector.instead = lambda _: Reply(503, {})
    client = Client(attempts=6, first_wait=1, longest_wait=5, sleep=waits.append, chance=lambda: 0.5)
    with pytest.raises(RefusedByServerError):
        client.ask_json(Server.parse(collector.url), "GET", "/v1/campaigns/snacks")
    assert waits == [0.5, 1, 2, 2.5, 2.5]
    assert len(collector.requests) == 6


def test_jitter_is_between_nothing_and_the_bound(collector: FakeCollector) -> None:
    collector.instead = lambda _: b""
    waits: list[float] = []
    client = Client(attempts=200, first_wait=1, longest_wait=1, sleep=waits.append)
    with pytest.raises(UnreachableError):
        client.ask(Server.parse(collector.url), "GET", "/")
    assert all(0 <= wait < 1 for wait in waits)
    assert max(waits) - min(waits) > 0.5


@pytest.mark.parametrize(("said", "wait"), [("7", 7), ("99999999", 30), ("soon", 0), ("-5", 0), ("9" * 400, 0)])
def test_what_a_server_asks_for_is_heard_but_not_obeyed_forever(
    collector: FakeCollector, said: str, wait: float
) -> None:
    waits: list[float] = []
    answers = iter([Reply(429, {}, {"Retry-After": said})])
    collector.instead = lambda _: next(answers, None)
    client = Client(sleep=waits.append, chance=lambda: 0)
    assert client.ask(Server.parse(collector.url), "GET", "/v1/campaigns/snacks").status == 200
    assert waits == [wait]


@pytest.mark.parametrize("cut", [1, 20])
def test_an_answer_that_breaks_off_is_asked_for_again(collector: FakeCollector, cut: int) -> None:
    whole = Reply(200, {"several": "words"}).data()
    answers = iter([Reply(raw=whole[:-cut])])
    collector.instead = lambda _: next(answers, Reply(raw=whole))
    client = Client(sleep=lambda _: None)
    assert client.ask_json(Server.parse(collector.url), "GET", "/") == {"several": "words"}
    assert len(collector.requests) == 2


def test_what_must_not_be_asked_twice_is_not(collector: FakeCollector) -> None:
    collector.instead = lambda _: b""
    client = Client(sleep=lambda _: None)
    with pytest.raises(UnreachableError):
        client.ask(Server.parse(collector.url), "POST", "/v1/campaigns/a/relax", again=False)
    assert len(collector.requests) == 1


def test_a_server_that_was_not_reached_was_not_asked() -> None:
    """Then even what must not be asked twice goes on: to a server that is still starting."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    waits: list[float] = []
    client = Client(attempts=3, sleep=waits.append)
    with pytest.raises(UnreachableError, match=r"127.0.0.1:\d+ cannot be reached \(connection refused\)."):
        client.ask(Server("http", "127.0.0.1", port), "POST", "/", again=False)
    assert len(waits) == 2
    with pytest.raises(UnreachableError, match="cannot be reached"):
        client.ask(Server("http", "no-such-host.invalid", 80), "GET", "/")


def test_a_server_that_dribbles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps every timeout from striking; the deadline does not care."""
    stop, sent_everything = threading.Event(), threading.Event()

    def dribble(listening: socket.socket) -> None:
        taken, _ = listening.accept()
        with taken:
            taken.recv(10_000)
            for byte in b"HTTP/1.1 200 OK\r\nA: " + b"b" * 10_000:
                if stop.wait(0.02):
                    return
                try:
                    taken.send(bytes([byte]))
                except OSError:
                    return
        sent_everything.set()

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=dribble, args=[listening])
        thread.start()
        with pytest.raises(UnreachableError):
            Client(attempts=1, timeout=PATIENCE).ask(
                Server("http", "127.0.0.1", listening.getsockname()[1]), "GET", "/", longest=0.3
            )
        stop.set()
        thread.join()
        assert not sent_everything.is_set()


def test_an_answer_that_is_too_long_is_not_read(collector: FakeCollector) -> None:
    collector.instead = lambda _: Reply(200, b" " * (10 << 20))
    with pytest.raises(ServerAnswerError, match="longer than 4,194,304 bytes"):
        Client().ask_json(Server.parse(collector.url), "GET", "/")


def test_what_a_server_says_is_shown_as_one_tame_line(collector: FakeCollector) -> None:
    said = {"error": "odd\n", "message": "\x1b[31mrm -rf /\r\n" + "x" * 5000}
    collector.instead = lambda _: Reply(400, said)
    with pytest.raises(RefusedByServerError) as refused:
        Client().ask_json(Server.parse(collector.url), "GET", "/")
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 300
    shown = " [31mrm -rf /  " + "x" * 5000
    assert refused.value.fields == {"host": "127.0.0.1", "status": 400, "error": "odd ", "said": shown[:200]}
    assert tidy("a\u202eb\u2028c") == "a b c"


def test_a_path_in_front_of_the_routes(collector: FakeCollector) -> None:
    address = CampaignAddress.parse(f"{collector.url}/survey/v1/campaigns/snacks")
    with pytest.raises(RefusedByServerError):
        Client().ask_json(address.server, "GET", address.path())
    assert collector.requests[-1].path == "/survey/v1/campaigns/snacks"


def test_addresses() -> None:
    assert str(Server.parse("HTTPS://Collect.Example:443")) == "https://collect.example"
    assert str(Server.parse("http://[::1]:8000/")) == "http://[::1]:8000"
    assert str(Server.parse("http://127.9.9.9")) == "http://127.9.9.9"
    assert str(Server.parse("http://collect.example", allow_http=True)) == "http://collect.example"
    with pytest.raises(AddressError, match="unencrypted"):
        Server.parse("http://collect.example")
    with pytest.raises(AddressError, match="unencrypted"):
        Server.parse("http://127.0.0.1.example")


@contextmanager
def tls_server(folder: Path, name: str) -> Iterator[tuple[Server, Path, list[bytes]]]:
    """A server with a certificate that it signed itself, for a host of this name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    host: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "certificate.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = folder / "key.pem"
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    received: list[bytes] = []

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                taken, _ = listening.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(taken, server_side=True) as safe:
                    received.append(safe.recv(10_000))
                    safe.send(Reply(200, {"fine": True}).data())
            except OSError:
                taken.close()

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=serve, args=[listening])
        thread.start()
        try:
            yield Server("https", "127.0.0.1", listening.getsockname()[1]), pem, received
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_certificates(tmp_path: Path) -> None:
    with tls_server(tmp_path, "127.0.0.1") as (server, pem, received):
        with pytest.raises(UnreachableError, match=r"cannot be trusted \(self-signed certificate\). Nothing was sent."):
            Client(sleep=lambda _: None).ask(server, "GET", "/")
        assert received == []
        assert Client(ca_file=str(pem)).ask_json(server, "GET", "/") == {"fine": True}
        plain = Server("http", server.host, server.port)
        with pytest.raises(UnreachableError):
            Client(attempts=1).ask(plain, "GET", "/")
    with (
        tls_server(tmp_path, "elsewhere.example") as (server, pem, received),
        pytest.raises(UnreachableError, match="cannot be trusted"),
    ):
        Client(ca_file=str(pem)).ask(server, "GET", "/")
    assert received == []
    with pytest.raises(ServerAnswerError, match="certificates cannot be read"):
        Client(ca_file=str(tmp_path / "none")).ask(server, "GET", "/")


def test_tls_to_a_server_without_it() -> None:
    def plain(listening: socket.socket) -> None:
        taken, _ = listening.accept()
        with taken:
            taken.recv(10_000)
            taken.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=plain, args=[listening])
        thread.start()
        with pytest.raises(UnreachableError, match="does not speak TLS as expected"):
            Client(attempts=1).ask(Server("https", "127.0.0.1", listening.getsockname()[1]), "GET", "/")
        thread.join()


def test_no_proxy_no_cookie_no_version(collector: FakeCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells one device from another stays away: the same headers from everybody."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    see: Callable[[Request], Reply] = lambda _: Reply(200, {}, {"Set-Cookie": "a=b"})  # noqa: E731
    collector.instead = see
    client = Client()
    for _ in range(2):
        client.ask_json(Server.parse(collector.url), "GET", "/")
    first, second = collector.requests
    assert first.raw == second.raw
    assert "cookie" not in second.headers
    assert second.headers["user-agent"] == "relaxdp"
    assert client_module.MOST_BYTES == 4 << 20
