"""Bodies of requests: not larger than a limit, not slower than a limit, and of the type that the route says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from relaxdp.errors import BodyTooLargeError, MalformedRequestError, RequestTimeoutError, WrongMediaTypeError

Wanted = TypeVar("Wanted")

MOST_BYTES = 1 << 20
_JSON = b"application/json"
_NAME = "a name has small letters, digits and hyphens, at most 64"

# A client that is still sending does not read: so what is too large is thrown away before it is refused, up to here.
MOST_DRAINED = 32 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a body may be. How long it may take is the connection's affair (`connections.py`)."""

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
