"""Bodies of requests: not larger than a limit, not slower than a limit, and of the type that the route says."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from relaxdp.errors import BodyTooLargeError, MalformedRequestError, RequestTimeoutError, WrongMediaTypeError

Wanted = TypeVar("Wanted")

MOST_BYTES = 1 << 20
SECONDS = 30.0

# A client that is still sending does not read: so what is too large is thrown away before it is refused, up to here.
_MOST_DRAINED = 32 << 20


async def read_body(request: Request, *, most: int = MOST_BYTES, seconds: float = SECONDS) -> bytes:
    """Return the whole body."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > _MOST_DRAINED:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size <= most:
                    parts.append(part)
                elif size > _MOST_DRAINED:
                    break
    except TimeoutError:
        raise RequestTimeoutError(
            f"the request did not arrive within {seconds:g} seconds. Nothing was stored.", seconds=seconds
        ) from None
    except ClientDisconnect:
        raise RequestTimeoutError("the connection ended before the request did. Nothing was stored.") from None
    if size > most:
        raise _too_large(most)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode(body: bytes, decoder: msgspec.json.Decoder[Wanted]) -> Wanted:
    """Return what a body says, or refuse it. The sentence names the place and never shows the content."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as problem:
        found = _safe(str(problem))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = "it is not JSON"
    raise MalformedRequestError(f"the request cannot be understood: {found}. Nothing was stored.")


def check_media_type(request: Request) -> None:
    """Refuse a body that says it is something else than JSON."""
    kind = request.headers.get("content-type")
    if kind is not None and kind.partition(";")[0].strip().lower() != "application/json":
        raise WrongMediaTypeError("the body of a request must be application/json. Nothing was stored.")


def _safe(sentence: str) -> str:
    """Return msgspec's sentence without what it quotes of the request: values and unknown names."""
    head, _, place = sentence.partition(" - at ")
    if "unknown field" in head:
        head = "it has a field that is not known"
    elif "Invalid enum value" in head:
        head = "it has a value that is not one of those allowed"
    return f"{head[:1].lower()}{head[1:]} at {place.strip('`')}" if place else head[:1].lower() + head[1:]


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body of a request has at most {most:,} bytes. Nothing was stored.", most=most)


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder that coerces nothing."""
    return msgspec.json.Decoder(kind, strict=True)
