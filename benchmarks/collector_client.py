"""A client that costs next to nothing: requests as finished bytes, many connections, one outstanding request each."""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from collections.abc import Sequence

_HEAD = "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"


def post(path: str, body: bytes) -> bytes:
    """Return the bytes of a request."""
    return _HEAD.format(path=path, length=len(body)).encode() + body


def drive(host: str, port: int, requests: Sequence[bytes], connections: int) -> float:
    """Send all requests over so many connections, and return the seconds from the first byte to the last answer."""
    selector = selectors.DefaultSelector()
    sockets = [socket.create_connection((host, port)) for _ in range(min(connections, len(requests)))]
    waiting = iter(requests)
    statuses: Counter[bytes] = Counter()
    partial: dict[socket.socket, bytes] = {}
    start = time.perf_counter()
    for each in sockets:
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        each.sendall(next(waiting))
        selector.register(each, selectors.EVENT_READ)
    answered = 0
    while answered < len(requests):
        for key, _ in selector.select():
            one: socket.socket = key.fileobj  # type: ignore[assignment]
            received = partial.pop(one, b"") + one.recv(65536)
            if not _whole(received):
                partial[one] = received
                continue
            answered += 1
            statuses[received[9:12]] += 1
            following = next(waiting, None)
            if following is not None:
                one.sendall(following)
    seconds = time.perf_counter() - start
    for each in sockets:
        each.close()
    assert set(statuses) == {b"200"}, statuses
    return seconds


def _whole(received: bytes) -> bool:
    head, mark, body = received.partition(b"\r\n\r\n")
    if not mark:
        return False
    place = head.find(b"content-length: ")
    return len(body) >= int(head[place + 16 :].partition(b"\r")[0])
