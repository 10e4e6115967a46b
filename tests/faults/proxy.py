"""A network that fails at the worst instant: between a client and its server, when the client says COMMIT."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator
from threading import Thread

from tests.servers.postgres import Server


@contextlib.contextmanager
def failing_network(server: Server, when: str) -> Iterator[int]:
    """Return the port of a way to the server that breaks `before` or `after` the COMMIT of a change reaches it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        running = [True]
        thread = Thread(target=_serve, args=(listener, server, when, running))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            running.clear()
            thread.join()


def _serve(listener: socket.socket, server: Server, when: str, running: list[bool]) -> None:
    while running:
        with contextlib.suppress(TimeoutError):
            client, _ = listener.accept()
            with client, socket.create_connection((server.host, server.port)) as other:
                _forward(client, other, when, running)


def _forward(client: socket.socket, other: socket.socket, when: str, running: list[bool]) -> None:
    has_written = False
    while running:
        for ready in select.select([client, other], [], [], 0.1)[0]:
            content = ready.recv(1 << 16)
            if not content:
                return
            has_written |= ready is client and (b"INSERT" in content or b"UPDATE" in content)
            if ready is client and has_written and b"COMMIT\0" in content:
                if when == "after":
                    other.sendall(content)
                    assert other.recv(1 << 16)  # it is done, and nobody will hear of it
                return
            (other if ready is client else client).sendall(content)
