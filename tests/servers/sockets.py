"""Answers read from a bare socket."""

from __future__ import annotations

import contextlib
import socket
import ssl


def read_all(one: socket.socket) -> bytes:
    """The answer up to the end of the connection, however many parts it comes in."""
    answer = bytearray()
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while part := one.recv(64 << 10):
            answer += part
    return bytes(answer)
