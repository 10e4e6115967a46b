"""Sellers and buyers: a name, a role, and a token that is shown once and stored as a digest."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, insert, select, update

from relaxdp.market.schema import MEMBERS
from relaxdp.server_errors import MarketError, WrongRoleError
from relaxdp.service.tokens import digest_of

Role = Literal["seller", "buyer", "operator"]


@dataclass(frozen=True, slots=True)
class Member:
    """Whose token a request has."""

    name: str
    role: Role

    def require(self, *roles: Role) -> None:
        """Reject a member with another role."""
        if self.role not in roles:
            raise WrongRoleError(
                "This request needs the role {needed}, and {name!r} has the role {role}.",
                hint="Use another token (--token-file).",
                needed=" or ".join(roles),
                name=self.name,
                role=self.role,
            )


OPERATOR = Member("operator", "operator")


def create_token(connection: Connection, name: str, role: str, *, renew: bool) -> str:
    """Return a new token for a new member, or with `renew` for one that exists. Its old token ends."""
    found = connection.execute(select(MEMBERS.c.role).where(MEMBERS.c.name == name)).scalar()
    if name == OPERATOR.name or (found is not None) != renew or (renew and found != role):
        problem = "is reserved" if name == OPERATOR.name else f"is a {found}" if found else "does not exist"
        raise MarketError(
            "The member {name!r} {problem}.",
            hint="Choose another name. For a new token of a member, add --renew and name its role.",
            name=name,
            problem=problem,
        )
    token = secrets.token_urlsafe(32)
    if renew:
        connection.execute(update(MEMBERS).where(MEMBERS.c.name == name).values(digest=digest_of(token)))
    else:
        connection.execute(insert(MEMBERS).values(name=name, role=role, digest=digest_of(token)))
    return token


def find_bearer(connection: Connection, token: str) -> Member | None:
    """Return whose token this is."""
    row = connection.execute(select(MEMBERS).where(MEMBERS.c.digest == digest_of(token))).first()
    return None if row is None else Member(row.name, row.role)
