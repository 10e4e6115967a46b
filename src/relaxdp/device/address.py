"""Addresses of servers and campaigns: one spelling each, and nothing that could be read on the way."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import ClassVar, Self
from urllib.parse import SplitResult, urlsplit

from relaxdp.errors import add_consequence
from relaxdp.server_errors import AddressError

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}", re.ASCII)
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*", re.ASCII)
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is: scheme, host, port, and the path in front of its routes if it has one.

    >>> str(Server.parse("https://Collect.Example:443/"))
    'https://collect.example'
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @classmethod
    @add_consequence("Nothing was sent.")
    def parse(cls, text: str, *, allow_http: bool = False) -> Server:
        """Read an address. Unencrypted HTTP is for this machine alone, unless somebody insists."""
        parts = _split(text)
        if parts is None:
            raise AddressError("that is not the address of a server, such as https://collect.example.")
        try:
            port = parts.port
        except ValueError:
            raise AddressError("the address has a port that is none.") from None
        host, prefix = (parts.hostname or "").lower(), parts.path.rstrip("/")
        if not _HOST.fullmatch(host) or not _PREFIX.fullmatch(prefix) or "/." in prefix:
            raise AddressError("the address has a host or a path that cannot be used.")
        if parts.scheme == "http" and not (allow_http or _is_loopback(host)):
            raise AddressError("reports to {host} would travel unencrypted over http://. Use https://.", host=host)
        return cls(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, prefix)

    @property
    def host_and_port(self) -> str:
        """What stands between the scheme and the path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_and_port}{self.prefix}"


@dataclass(frozen=True, slots=True)
class _Address:
    """Where something of a server is: the server, and its name there."""

    server: Server
    id: str
    kind: ClassVar[str]
    route: ClassVar[str]

    @classmethod
    @add_consequence("Nothing was sent.")
    def parse(cls, text: str, *, allow_http: bool = False) -> Self:
        """Read an address, which ends in the route and the name."""
        base, route, name = text.rpartition(cls.route) if isinstance(text, str) else ("", "", "")
        if not route or not _ID.fullmatch(name):
            raise AddressError(
                "the address of a {kind} looks like https://collect.example{route}NAME.", kind=cls.kind, route=cls.route
            )
        return cls(Server.parse(base, allow_http=allow_http), name)

    def path(self, *words: str) -> str:
        """Return the path of it on its server, or of something below it."""
        return "/".join((f"{self.route}{self.id}", *words))

    def __str__(self) -> str:
        return f"{self.server}{self.path()}"


class CampaignAddress(_Address):
    """Where a campaign is.

    >>> CampaignAddress.parse("https://collect.example/v1/campaigns/snacks").id
    'snacks'
    """

    __slots__ = ()
    kind, route = "campaign", "/v1/campaigns/"


class SurveyAddress(_Address):
    """Where a survey of several questions is.

    >>> SurveyAddress.parse("https://collect.example/v1/surveys/canteen").question("diet").id
    'diet'
    """

    __slots__ = ()
    kind, route = "survey", "/v1/surveys/"

    def question(self, name: str) -> CampaignAddress:
        """Return where a question of the survey is: a campaign of the same server."""
        return CampaignAddress(self.server, check_campaign_id(name))


@add_consequence("Nothing was sent.")
def check_campaign_id(name: str) -> str:
    """Return the name of a campaign, or refuse what would not fit into an address."""
    if not _ID.fullmatch(name):
        raise AddressError("the name of a campaign has 1 to 64 letters, digits, hyphens or underscores.")
    return name


def _split(text: str) -> SplitResult | None:
    """Return the parts of a plain address: no user, no question mark, no hash, no invisible letters."""
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    plain = parts.scheme in _PORTS and "@" not in parts.netloc and not (set(text) & {"?", "#", "\\", "%"})
    return parts if plain else None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
