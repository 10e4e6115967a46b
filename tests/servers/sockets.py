"""Answers read from a bare socket."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Callable


def read_all(one: socket.socket) -> bytes:
    """The answer up to the end of the connection, however many parts it comes in."""
    answer = bytearray()
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while part := one.recv(64 << 10):
            answer += part
    return bytes(answer)


def drop_by_drop(one: socket.socket, drops: int, pause: Callable[[], None]) -> bytes:
    """Send a blank after each pause until there is an answer, and read all of it."""
    for _ in range(drops):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            one.sendall(b" ")
        pause()
        if select.select([one], [], [], 0)[0]:
            break
    return read_all(one)
