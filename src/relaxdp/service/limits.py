"""Limits of what a client may ask: how often, how much at once, and who a client is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, TypeVar, cast

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp, Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from relaxdp.server_errors import (
    BodyTooLargeError,
    MalformedRequestError,
    RequestTimeoutError,
    ServiceError,
    WrongMediaTypeError,
)

MOST_CLIENTS = 100_000


class Buckets:
    """So many requests a second for each client, and a burst on top. The clock is an argument, so tests own it.

    By hand: the package `limits` counts in windows, without a burst on top of a rate, and keeps any number of clients.

    >>> buckets = Buckets(rate=1, burst=2)
    >>> [buckets.take("a", now=0.0) for _ in range(3)], buckets.take("b", now=0.0), buckets.take("a", now=1.0)
    ([True, True, False], True, True)
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        """Take a rate of 0 for no limit at all."""
        self._rate, self._burst = rate, max(burst, 1.0)
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self._rate > 0

    def take(self, client: str, now: float) -> bool:
        """Take one token, or say that there is none."""
        if self._rate <= 0:
            return True
        tokens, last = self._known.get(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - last) * self._rate)
        allowed = tokens >= 1
        self._known[client] = (tokens - 1 if allowed else tokens, now)
        self._known.move_to_end(client)
        # A forgotten client starts with a full bucket; with so many of them it would have been full again anyway.
        while len(self._known) > MOST_CLIENTS:
            self._known.popitem(last=False)
        return allowed


def networks_of(texts: Iterable[str]) -> list[str]:
    """Return addresses and networks (127.0.0.1, 10.0.0.0/8, ::1) as the middleware takes them, or refuse them.

    It would take what is no network for a name, and `*` for everybody. A socket for both kinds of addresses calls IPv4
    ones by names in IPv6.

    >>> networks_of(["10.1.2.3/8"])
    ['10.0.0.0/8', '::ffff:a00:0/104']
    """
    try:
        found = [ip_network(text.strip(), strict=False) for text in texts]
    except ValueError:
        raise ServiceError(
            "a trusted proxy is written as an address or a network, like 127.0.0.1 or 10.0.0.0/8."
        ) from None
    within = [ip_network(f"::ffff:{each.network_address}/{96 + each.prefixlen}") for each in found if each.version == 4]
    return [str(each) for each in (*found, *within)]


def behind_proxies(app: ASGIApp, trusted: Iterable[str]) -> ASGIApp:
    """Let an application see the client that a trusted proxy names in X-Forwarded-For; nobody else is believed.

    That is the last address there that no trusted proxy has: whatever stands to the left of it the client may have
    written itself.
    """
    networks = networks_of(trusted)
    believing: Any = ProxyHeadersMiddleware(cast("Any", app), networks)
    return cast("ASGIApp", believing) if networks else app


def client_of(scope: Scope) -> str:
    """Return against whose limit a request counts."""
    client = scope.get("client")
    return bucket_name(client[0] if client else "")


@lru_cache(maxsize=65536)
def bucket_name(address: str) -> str:
    """Return whose limit an address counts against: with IPv6 a customer has a whole /64.

    >>> bucket_name("192.0.2.7"), bucket_name("2001:db8::1:2:3:4")
    ('192.0.2.7', '2001:db8::/64')
    """
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ip_network((found, 64), strict=False))
    return str(found)


Wanted = TypeVar("Wanted")

MOST_BYTES = 1 << 20
_JSON = b"application/json"
_NAME = "a name has small letters, digits and hyphens, at most 64"

# A client that is still sending does not read: so what is too large is thrown away before it is refused, up to here.
MOST_DRAINED = 32 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a body may be."""

    most: int = MOST_BYTES


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the whole body, which must be JSON if it says what it is."""
    most = limits.most
    length = announced(request, _JSON)
    if length > most and length > MOST_DRAINED:
        raise too_large(most)
    parts: list[bytes] = []
    size = 0
    more = True
    while more and (size <= most or size <= MOST_DRAINED):
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise broken_off()
        part = message.get("body", b"")
        size += len(part)
        if size <= most:
            parts.append(part)
        more = message.get("more_body", False)
    if size > most:
        raise too_large(most)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def announced(request: Request, media_type: bytes) -> int:
    """Return how long a body says it is, or 0; refuse one that says it is of another type."""
    length = 0
    for name, value in request.scope["headers"]:
        if name == b"content-type" and value != media_type:
            _check_media_type(value, media_type)
        elif name == b"content-length" and value.isdigit():
            length = int(value)
    return length


def broken_off() -> RequestTimeoutError:
    """Return the error for a body whose end will not come."""
    return RequestTimeoutError("the connection ended before the request did.")


def too_large(most: int) -> BodyTooLargeError:
    """Return the error for a body above its limit."""
    return BodyTooLargeError("the body of a request has at most {most:,} bytes.", most=most)


def decode(body: bytes, decoder: msgspec.json.Decoder[Wanted]) -> Wanted:
    """Return what a body says, or refuse it. The sentence names the place and never shows the content."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as problem:
        found = _safe(str(problem))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = "it is not JSON"
    raise MalformedRequestError("the request cannot be understood: {why}.", why=found)


def _check_media_type(kind: bytes, media_type: bytes) -> None:
    """Refuse a body of another type, whatever parameters its type has."""
    if kind.partition(b";")[0].strip().lower() != media_type:
        raise WrongMediaTypeError("the body of this request must be {media_type}.", media_type=media_type.decode())


def _safe(sentence: str) -> str:
    """Return msgspec's sentence without what it quotes of the request: values and unknown names."""
    head, _, place = sentence.partition(" - at ")
    if "unknown field" in head:
        head = "it has a field that is not known"
    elif "Invalid enum value" in head:
        head = "it has a value that is not one of those allowed"
    elif "matching regex" in head:
        head = _NAME if "[a-z0-9-]" in head else "a text has a letter that is not allowed"
    return f"{head[:1].lower()}{head[1:]} at {place.strip('`')}" if place else head[:1].lower() + head[1:]


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder that coerces nothing."""
    return msgspec.json.Decoder(kind, strict=True)
