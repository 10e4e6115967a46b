"""Who trades: accounts with a role and a token, which is shown once and kept as a digest."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Row, insert, select, update

from relaxdp.collector.wire import ID_PATTERN
from relaxdp.errors import AccountExistsError, MarketError, UnknownAccountError, WrongRoleError
from relaxdp.market.books import ISSUE
from relaxdp.market.schema import ACCOUNTS
from relaxdp.market.store import next_number
from relaxdp.service.tokens import digest_of

Role = Literal["seller", "buyer", "operator", "issue"]
NAME_PATTERN = ID_PATTERN  # what a campaign is called, an account and a listing may be called
_NAME = re.compile(NAME_PATTERN)
_TAKEN = {"issue", "operator"}
_WITH_ARTICLE = {"seller": "a seller", "buyer": "a buyer", "operator": "the operator", "issue": "the issuer"}


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who trades, or the operator, who has no account of credits."""

    number: int
    name: str
    role: Role
    balance: int

    def check(self, role: Role) -> None:
        """Refuse who has another role."""
        if self.role != role:
            raise WrongRoleError(
                f"this is for {_WITH_ARTICLE[role]}, and {self.name} is {_WITH_ARTICLE[self.role]}. Nothing was done."
            )


OPERATOR = Account(-1, "operator", "operator", 0)


def open_books(connection: Connection) -> None:
    """Make the account that credits come from, where there is none."""
    if connection.execute(select(ACCOUNTS.c.number).where(ACCOUNTS.c.number == ISSUE)).first() is None:
        connection.execute(insert(ACCOUNTS).values(number=ISSUE, name="issue", role="issue", digest=None, balance=0))


def create(connection: Connection, name: str, role: Role) -> str:
    """Make an account and return its token, which is not kept."""
    if _NAME.fullmatch(name) is None or name in _TAKEN:
        raise MarketError(
            "the name of an account has 1 to 64 small letters, digits and hyphens, and is neither 'issue' nor "
            "'operator'. Nothing was created."
        )
    if role not in ("seller", "buyer"):
        raise MarketError("the role of an account is seller or buyer. Nothing was created.")
    if connection.execute(select(ACCOUNTS.c.number).where(ACCOUNTS.c.name == name)).first() is not None:
        raise AccountExistsError(f"there is an account {name!r} already. Nothing was created.", account=name)
    token = secrets.token_urlsafe(32)
    row = {"name": name, "role": role, "digest": digest_of(token), "balance": 0}
    connection.execute(insert(ACCOUNTS).values(number=next_number(connection, ACCOUNTS), **row))
    return token


def renew_token(connection: Connection, account: Account) -> str:
    """Replace a token; the old one ends."""
    token = secrets.token_urlsafe(32)
    changed = update(ACCOUNTS).where(ACCOUNTS.c.number == account.number).values(digest=digest_of(token))
    connection.execute(changed)
    return token


def bearer(connection: Connection, token: str) -> Account | None:
    """Return whose token this is. It is looked for by its digest, so that the time tells nothing of the token."""
    row = connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.digest == digest_of(token))).first()
    return None if row is None else _account(row)


def named(connection: Connection, name: str) -> Account:
    """Return an account by its name."""
    row = None
    if _NAME.fullmatch(name):
        row = connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.name == name, ACCOUNTS.c.number != ISSUE)).first()
    if row is None:
        raise UnknownAccountError("there is no account with this name. Nothing was done.")
    return _account(row)


def numbered(connection: Connection, number: int) -> Account:
    """Return an account by its number."""
    return _account(connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.number == number)).one())


def everybody(connection: Connection) -> list[Account]:
    """Return all accounts, that of the issuer first."""
    return [_account(row) for row in connection.execute(select(ACCOUNTS).order_by(ACCOUNTS.c.number))]


def _account(row: Row[tuple[object, ...]]) -> Account:
    return Account(row.number, row.name, row.role, int(row.balance))
