"""Answers read from a bare socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time


def read_all(one: socket.socket, seconds_a_byte: float = 0.0) -> bytes:
    """The answer up to the end of the connection, however many parts it comes in, read as slowly as asked."""
    answer, start = bytearray(), time.monotonic()
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while part := one.recv(64 << 10):
            answer += part
            time.sleep(max(0.0, start + seconds_a_byte * len(answer) - time.monotonic()))
    return bytes(answer)


def drop_by_drop(one: socket.socket, drops: int, pause: float) -> bytes:
    """Send a blank now and then until there is an answer, and read all of it."""
    patience, first = one.gettimeout(), b""
    one.settimeout(pause)
    for _ in range(drops):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            one.sendall(b" ")
        with contextlib.suppress(TimeoutError):
            first = one.recv(4096)
            break
    one.settimeout(patience)
    return first + read_all(one) if first else b""
