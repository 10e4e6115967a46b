"""HTTP as a device needs it: short answers, no redirects, a deadline, and patience with a server that is away.

Only what Python brings along is used: what holds keys installs as little as it can, and the timeouts of requests and
httpx start anew with every byte as well (`_deadline`). Nothing here knows a truth or a key.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Timer
from typing import Any, BinaryIO, NamedTuple, NoReturn

from relaxdp.device.address import Server
from relaxdp.errors import RelaxdpError, TableFileError, add_consequence
from relaxdp.server_errors import RefusedByServerError, ServerAnswerError, UnreachableError

MOST_BYTES = 4 << 20
"""No answer that a device needs is longer than this."""
LONGEST = 60.0
"""A single request takes at most so many seconds, however slowly a server dribbles."""
Receive = Callable[[http.client.HTTPResponse], None]
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_SHOWN = 200
_PART = 1 << 18
_CHANCE = random.SystemRandom()
_unless_sent = add_consequence("Nothing was sent.")


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class FileBody:
    """A file as the body of a request: read while it is sent, and never as a whole in memory."""

    path: Path
    kind: str
    """The content type."""
    moved: Callable[[int], None] | None = None
    """Is told how many bytes went out, for a progress bar."""


class _NotReachedError(OSError):
    """There was no connection, so nothing was asked."""


class Client:
    """Asks a server, again and again if need be, with exponential back-off and full jitter.

    Devices that were all cut off at the same instant must not all come back at the same instant: every wait is drawn
    uniformly between nothing and a bound that doubles.
    """

    def __init__(
        self,
        *,
        timeout: float = 10.0,
        attempts: int = 5,
        first_wait: float = 0.5,
        longest_wait: float = 30.0,
        ca_file: str | None = None,
        allow_http: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = _CHANCE.random,
    ) -> None:
        self.timeout, self.attempts = timeout, attempts
        self.first_wait, self.longest_wait = first_wait, longest_wait
        self.ca_file, self.allow_http = ca_file, allow_http
        self._sleep, self._chance = sleep, chance

    def ask(
        self,
        server: Server,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        again: bool = True,
        receive: Receive | None = None,
        longest: float = LONGEST,
        patience: float | None = None,
    ) -> Answer:
        """Return a server's answer of any status below 500, or raise. `again` is for what may be asked twice.

        The body is JSON, or a `FileBody`. `receive` takes what a success brings where it is too much for memory; it is
        called anew with every attempt. `patience` is how long a server that has work to do may stay silent.
        """
        content = body
        if body is not None and not isinstance(body, FileBody):
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        for attempt in range(1, self.attempts + 1):
            last = attempt == self.attempts or not again
            wait = None
            try:
                answer = self._once(server, method, path, content, headers or {}, receive, longest, patience)
            except RelaxdpError:
                raise
            except ssl.SSLCertVerificationError as problem:  # asking again would not make it another server
                _untrusted(server, problem)
            except (OSError, http.client.HTTPException) as problem:
                # A server that was not reached was not asked, so that even what must not be asked twice may go on.
                if attempt == self.attempts or (last and not isinstance(problem, _NotReachedError)):
                    _unreachable(server, problem)
            else:
                if answer.status not in _AGAIN or (last and answer.status < 500):
                    return answer
                if last:
                    _refuse(answer, server)
                wait = answer.retry_after
            bound = min(self.longest_wait, self.first_wait * 2 ** (attempt - 1))
            # What the server asks for is a least wait; one that asks for a day is not obeyed.
            self._sleep(min(wait or 0.0, self.longest_wait) + self._chance() * bound)
        raise AssertionError("unreachable")  # pragma: no cover

    def ask_json(self, server: Server, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Return the JSON of an answer that is a success, or raise what the server says."""
        return self.checked(self.ask(server, method, path, body, **options), server)

    def checked(self, answer: Answer, server: Server) -> Any:
        """Return the JSON of a success, or raise what the server says."""
        if not 200 <= answer.status < 300:
            _refuse(answer, server)
        return parsed(answer.body)

    def _once(
        self,
        server: Server,
        method: str,
        path: str,
        content: bytes | FileBody | None,
        headers: dict[str, str],
        receive: Receive | None,
        longest: float,
        patience: float | None,
    ) -> Answer:
        connection = self._connection(server)
        try:
            with _opened(content) as (outgoing, described):
                _connect(connection)
                connection.sock.settimeout(patience or self.timeout)
                with _deadline(connection, longest):
                    sent = {"Accept": "application/json", "User-Agent": "relaxdp", "Connection": "close"}
                    try:
                        connection.request(method, f"{server.prefix}{path}", outgoing, {**sent, **headers, **described})
                    except (BrokenPipeError, ConnectionResetError):
                        # A server that refuses a file before it has all of it may have said why.
                        if not isinstance(content, FileBody):
                            raise
                    with connection.getresponse() as response:
                        if receive is None or response.status != 200:
                            body = _read(response)
                        else:
                            body = b""
                            receive(response)
            return Answer(response.status, body, _seconds(response.getheader("Retry-After")))
        finally:
            connection.close()

    @_unless_sent
    def _connection(self, server: Server) -> http.client.HTTPConnection:
        if server.scheme == "http":
            return http.client.HTTPConnection(server.host, server.port, timeout=self.timeout)
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError:  # also what ssl says of a file that holds no certificates
            raise ServerAnswerError("the file of certificates cannot be read.") from None
        return http.client.HTTPSConnection(server.host, server.port, timeout=self.timeout, context=context)


@add_consequence("Nothing was sent after it.")
def parsed(body: bytes) -> Any:
    """Return JSON, or refuse what is none; numbers that JSON does not have are none either."""
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ServerAnswerError("the server's answer is no JSON that can be read.") from None


class Refusal(NamedTuple):
    """An error answer, as short texts that no terminal obeys."""

    code: str = ""
    message: str = ""
    sentence: str = ""
    """The message without hint and consequence."""
    hint: str = ""
    consequence: str = ""


def refusal(answer: Answer, most: int = _SHOWN) -> Refusal:
    """Return what an error answer says; empty texts where it says nothing."""
    try:
        content = json.loads(answer.body)
        code, message = content["error"], content["message"]
        parts = [content.get(each) or "" for each in ("sentence", "hint", "consequence")]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return Refusal()
    if not all(isinstance(each, str) for each in (code, message, *parts)):
        return Refusal()
    return Refusal(tidy(code), *(tidy(each, most) for each in (message, *parts)))


def tidy(text: str, most: int = _SHOWN) -> str:
    """Return a stranger's text as one short, printable line.

    >>> tidy(f"two{chr(10)}lines{chr(27)}[31m")
    'two lines [31m'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text[:most])


def _read(response: http.client.HTTPResponse) -> bytes:
    parts, length = [], 0
    while part := response.read1(1 << 16):
        length += len(part)
        if length > MOST_BYTES:
            raise ServerAnswerError(
                "the server's answer is longer than {most:,} bytes. The rest of it was not read.", most=MOST_BYTES
            )
        parts.append(part)
    if response.length:  # a server that ended meanwhile: `read1` takes that for the end of the answer
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


@contextmanager
def _opened(content: bytes | FileBody | None) -> Iterator[tuple[Any, dict[str, str]]]:
    """Give a body as it is sent, and the headers that describe it."""
    if not isinstance(content, FileBody):
        yield content, {} if content is None else {"Content-Type": "application/json"}
        return
    with _opened_file(content.path) as file:
        size = os.fstat(file.fileno()).st_size
        yield _parts(content, file, size), {"Content-Type": content.kind, "Content-Length": str(size)}


@_unless_sent
def _opened_file(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as problem:
        raise TableFileError("{path!r} cannot be read: {why}.", why=problem.strerror, path=str(path)) from None


def _parts(content: FileBody, file: BinaryIO, size: int) -> Iterator[bytes]:
    """Read as many bytes of a file as were announced."""
    left = size
    while left:
        part = file.read(min(left, _PART))
        if not part:
            raise TableFileError("{path!r} became shorter while it was sent.", path=str(content.path))
        left -= len(part)
        yield part
        if content.moved is not None:
            content.moved(len(part))


def _connect(connection: http.client.HTTPConnection) -> None:
    try:
        connection.connect()
    except ssl.SSLError:
        raise
    except OSError as problem:
        late = isinstance(problem, TimeoutError)
        raise _NotReachedError(problem.errno, "no answer in time" if late else problem.strerror) from None


@contextmanager
def _deadline(connection: http.client.HTTPConnection, longest: float) -> Iterator[None]:
    """Cut a connection after so many seconds: a timeout alone starts anew with every byte."""
    struck = Event()
    link = connection.sock

    def cut() -> None:
        struck.set()
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)

    stop = Timer(longest, cut)
    stop.daemon = True
    stop.start()
    try:
        yield
    finally:
        stop.cancel()
    if struck.is_set():  # what was cut off can look like an answer that ended
        raise TimeoutError


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None


def _no_number(_: str) -> NoReturn:
    raise ValueError("no number")


def _refuse(answer: Answer, server: Server) -> NoReturn:
    if 300 <= answer.status < 400:
        raise ServerAnswerError(
            "{host} wants to send us elsewhere (status {status}), which is not followed.",
            host=server.host,
            status=answer.status,
        )
    code, message, *_ = refusal(answer)
    raise RefusedByServerError(
        "{host} refused (status {status}): {said}" if message else "{host} refused (status {status}).",
        host=server.host,
        said=message or None,
        status=answer.status,
        error=code or None,
    )


@_unless_sent
def _untrusted(server: Server, problem: ssl.SSLCertVerificationError) -> NoReturn:
    raise UnreachableError(
        "the certificate of {host} cannot be trusted ({why}).",
        why=tidy(problem.verify_message),
        host=server.host,
    ) from None


def _unreachable(server: Server, problem: Exception) -> NoReturn:
    why = (getattr(problem, "strerror", None) or "connection lost").lower()
    asked = not isinstance(problem, _NotReachedError | ssl.SSLError)
    raise UnreachableError(
        "{server} does not speak TLS as expected."
        if isinstance(problem, ssl.SSLError)
        else "{server} did not answer in time."
        if isinstance(problem, TimeoutError)
        else "{server} broke off, or does not speak HTTP."
        if isinstance(problem, http.client.HTTPException)
        else "{server} cannot be reached ({why}).",
        server=server.host_and_port,
        host=server.host,
        why=why,
        asked=asked,
    ) from None
