"""A network that loses the answer to one COMMIT, when it is told to: the change is made, and nobody hears of it."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator
from threading import Event, Thread

from tests.servers.postgres import Server


@contextlib.contextmanager
def forgetful_network(server: Server) -> Iterator[tuple[int, Event]]:
    """Return the port of a way to the server, and what makes it lose the answer to the next COMMIT, once."""
    armed, ended = Event(), Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = Thread(target=_serve, args=(listener, server, armed, ended))
        thread.start()
        try:
            yield listener.getsockname()[1], armed
        finally:
            ended.set()
            thread.join()


def _serve(listener: socket.socket, server: Server, armed: Event, ended: Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(TimeoutError):
            client, _ = listener.accept()
            with client, socket.create_connection((server.host, server.port)) as other:
                _forward(client, other, armed, ended)


def _forward(client: socket.socket, other: socket.socket, armed: Event, ended: Event) -> None:
    while not ended.is_set():
        for ready in select.select([client, other], [], [], 0.1)[0]:
            content = ready.recv(1 << 16)
            if not content:
                return
            (other if ready is client else client).sendall(content)
            if ready is client and armed.is_set() and b"COMMIT\0" in content:
                armed.clear()
                assert other.recv(1 << 16)  # it is done
                return
