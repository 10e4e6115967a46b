"""The market as a component of the service: its state, and who asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select
from starlette.requests import Request

from relaxdp.market.members import OPERATOR, Member, Role, find_bearer
from relaxdp.market.receipts import Signer, create_signing_key
from relaxdp.market.routes import make_operations
from relaxdp.market.schema import SETUP
from relaxdp.server_errors import WrongTokenError
from relaxdp.service.operations import Operation
from relaxdp.service.resources import Resources
from relaxdp.service.wire import ID_PATTERN

Result = TypeVar("Result")
_LOCK = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'relaxmkt')})"


class MarketComponent:
    """The market of a service. Its signing key is in the database, and is made at the first start."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._signer: Signer | None = None

    @property
    def signer(self) -> Signer:
        """The signing key of the receipts."""
        assert self._signer is not None  # noqa: S101 (`start` reads it)
        return self._signer

    def operations(self) -> list[Operation]:
        """Return the routes."""
        return make_operations(self)

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the schemas of names in paths."""
        return {
            "id": {"type": "string", "pattern": ID_PATTERN},
            "epsilon": {"type": "string", "maxLength": 80},
        }

    async def start(self) -> None:
        """Read the signing key, or make it."""
        self._signer = await self.resources.perform(self._read_signer)

    async def stop(self) -> None:
        """Do nothing: the threads of the service finish their work."""

    async def check(self) -> None:
        """Raise nothing: the market needs what the service needs."""

    def _read_signer(self) -> Signer:
        with self.writing() as connection:
            key = connection.execute(select(SETUP.c.signing_key)).scalar()
            if key is None:
                key = create_signing_key()
                connection.execute(insert(SETUP).values(signing_key=key))
            return Signer(bytes(key))

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Change the market alone, until the transaction ends. Orders are rare, so there is one lock."""
        with self.resources.database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(_LOCK)
            yield connection

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Do something in one transaction, in a thread."""

        def run() -> Result:
            with self.writing() as connection:
                return work(connection)

        return await self.resources.perform(run)

    async def find_member(self, request: Request) -> Member | None:
        """Return whose token the request has, None without a token. An unknown token is rejected."""
        header = request.headers.get("authorization")
        if header is None:
            return None
        if await self.resources.is_operator(request):
            return OPERATOR
        scheme, _, token = header.partition(" ")
        found = None
        if scheme.lower() == "bearer":
            found = await self.resources.read(lambda connection: find_bearer(connection, token.strip()))
        if found is None:
            raise WrongTokenError("The token is unknown.", hint="Ask the operator of the market for a token.")
        return found

    async def require_member(self, request: Request, *roles: Role) -> Member:
        """Return whose token the request has, or reject another role."""
        found = await self.find_member(request)
        if found is None:
            raise WrongTokenError(
                "This request needs a token (Authorization: Bearer ...).", hint="Name the token: --token-file FILE."
            )
        if roles:
            found.require(*roles)
        return found
