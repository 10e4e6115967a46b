"""Who a client is, for limits only: the address of the connection, or what a trusted proxy says in its place."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from relaxdp.errors import ServiceError

Networks = tuple[IPv4Network | IPv6Network, ...]


def networks_of(texts: Iterable[str]) -> Networks:
    """Return addresses and networks as written: 127.0.0.1, 10.0.0.0/8, ::1."""
    try:
        return tuple(ip_network(text.strip(), strict=False) for text in texts)
    except ValueError:
        raise ServiceError(
            "a trusted proxy is written as an address or a network, like 127.0.0.1 or 10.0.0.0/8."
        ) from None


def client_of(scope: Any, trusted: Networks) -> str:
    """Return the client's address: of X-Forwarded-For the last one that no trusted proxy has.

    Whatever stands to the left of it was written by the client itself and is not believed.
    """
    client = scope.get("client")
    address = client[0] if client else ""
    if not trusted or (address and not _is_trusted(address, trusted)):
        return bucket_name(address)
    for name, value in reversed(scope["headers"]):
        if name == b"x-forwarded-for":
            for each in reversed(value.decode("latin-1").split(",")):
                address = each.strip()
                if not _is_trusted(address, trusted):
                    return bucket_name(address)
    return bucket_name(address)


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


@lru_cache(maxsize=65536)
def _is_trusted(address: str, trusted: Networks) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in trusted)
