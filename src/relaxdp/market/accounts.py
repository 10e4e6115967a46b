"""Who trades, and what they have: accounts with a role and a token, and credits in double entry.

A token is shown once and kept as a digest. What one account gives another one gets, and every balance is the sum of its
entries.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import Connection, Row, Table, bindparam, func, insert, select, update

from relaxdp.market.schema import ACCOUNTS, ENTRIES, PURCHASES
from relaxdp.server_errors import AccountExistsError, CreditsError, MarketError, UnknownAccountError, WrongRoleError
from relaxdp.service.tokens import digest_of
from relaxdp.service.wire import ID_PATTERN

Role = Literal["seller", "buyer", "operator", "issue"]
NAME_PATTERN = ID_PATTERN  # what a campaign is called, an account and a listing may be called
_NAME = re.compile(NAME_PATTERN)
_TAKEN = {"issue", "operator"}


@dataclass(frozen=True, slots=True)
class MarketAccount:
    """Somebody who trades, or the operator, who has no account of credits."""

    number: int
    name: str
    role: Role
    balance: int

    def check(self, role: Role) -> None:
        """Refuse who has another role."""
        if self.role != role:
            raise WrongRoleError(
                "this needs the role {needed}, and {account} has the role {role}.",
                needed=role,
                account=self.name,
                role=self.role,
            )


OPERATOR = MarketAccount(-1, "operator", "operator", 0)


def next_number(connection: Connection, table: Table, column: str = "number") -> int:
    """Return the next running number of a table; whoever asks holds the market."""
    return int(connection.execute(select(func.coalesce(func.max(table.c[column]), 0))).scalar_one()) + 1


def time_text(seconds: float) -> str:
    """Return a time in UTC.

    >>> time_text(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def open_books(connection: Connection) -> None:
    """Make the account that credits come from, where there is none."""
    if connection.execute(select(ACCOUNTS.c.number).where(ACCOUNTS.c.number == ISSUE)).first() is None:
        connection.execute(insert(ACCOUNTS).values(number=ISSUE, name="issue", role="issue", digest=None, balance=0))


def create(connection: Connection, name: str, role: Role) -> str:
    """Make an account and return its token, which is not kept."""
    if _NAME.fullmatch(name) is None or name in _TAKEN:
        raise MarketError(
            "the name of an account has 1 to 64 small letters, digits and hyphens, and is neither 'issue' nor "
            "'operator'."
        )
    if role not in ("seller", "buyer"):
        raise MarketError("the role of an account is seller or buyer.")
    if connection.execute(select(ACCOUNTS.c.number).where(ACCOUNTS.c.name == name)).first() is not None:
        raise AccountExistsError("there is an account {account!r} already.", account=name)
    token = secrets.token_urlsafe(32)
    row = {"name": name, "role": role, "digest": digest_of(token), "balance": 0}
    connection.execute(insert(ACCOUNTS).values(number=next_number(connection, ACCOUNTS), **row))
    return token


def renew_token(connection: Connection, account: MarketAccount) -> str:
    """Replace a token; the old one ends."""
    token = secrets.token_urlsafe(32)
    changed = update(ACCOUNTS).where(ACCOUNTS.c.number == account.number).values(digest=digest_of(token))
    connection.execute(changed)
    return token


def bearer(connection: Connection, token: str) -> MarketAccount | None:
    """Return whose token this is. It is looked for by its digest, so that the time tells nothing of the token."""
    row = connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.digest == digest_of(token))).first()
    return None if row is None else _account(row)


def named(connection: Connection, name: str) -> MarketAccount:
    """Return an account by its name."""
    row = None
    if _NAME.fullmatch(name):
        row = connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.name == name, ACCOUNTS.c.number != ISSUE)).first()
    if row is None:
        raise UnknownAccountError("there is no account with this name.")
    return _account(row)


def numbered(connection: Connection, number: int) -> MarketAccount:
    """Return an account by its number."""
    return _account(connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.number == number)).one())


def everybody(connection: Connection) -> list[MarketAccount]:
    """Return all accounts, that of the issuer first."""
    return [_account(row) for row in connection.execute(select(ACCOUNTS).order_by(ACCOUNTS.c.number))]


def _account(row: Row[tuple[object, ...]]) -> MarketAccount:
    return MarketAccount(row.number, row.name, row.role, int(row.balance))


ISSUE = 0
"""The account that credits come from: the only one that may owe, and what it owes is what is in circulation."""
MOST_CREDITS = 10**15


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """One line of an account."""

    transaction: int
    amount: int
    reason: str
    purchase: int | None
    issued: str


def post(
    connection: Connection, amounts: Mapping[int, int], *, reason: str, issued: str, purchase: int | None = None
) -> None:
    """Write one transaction: amounts by account, which add up to nothing. Nobody but the issuer may owe anything."""
    if sum(amounts.values()) != 0:
        raise AssertionError("the lines of a transaction add up to nothing")
    lines = {account: amount for account, amount in amounts.items() if amount}
    if not lines:
        return
    transaction = next_number(connection, ENTRIES, "transaction")
    for account, amount in lines.items():
        if amount < 0:
            _take(connection, account, amount)
    given = [{"to": account, "amount": amount} for account, amount in lines.items() if amount > 0]
    table = ACCOUNTS.c
    raised = update(ACCOUNTS).where(table.number == bindparam("to")).values(balance=table.balance + bindparam("amount"))
    connection.execute(raised, given)
    rows = [
        {"transaction": transaction, "account": account, "amount": amount, "reason": reason, "purchase": purchase,
         "issued": issued}
        for account, amount in lines.items()
    ]  # fmt: skip
    connection.execute(insert(ENTRIES), rows)


def _take(connection: Connection, account: int, amount: int) -> None:
    table = ACCOUNTS.c
    change = update(ACCOUNTS).where(table.number == account).values(balance=table.balance + amount)
    allowed = change if account == ISSUE else change.where(table.balance + amount >= 0)
    if connection.execute(allowed).rowcount != 1:
        name, balance = connection.execute(select(table.name, table.balance).where(table.number == account)).one()
        raise CreditsError(
            "{account} has {balance:,} credits, and {due:,} are due.",
            account=name,
            balance=int(balance),
            due=-amount,
        )


def issue(connection: Connection, account: int, amount: int, *, reason: str, issued: str) -> None:
    """Give an account new credits."""
    owed = -int(connection.execute(select(ACCOUNTS.c.balance).where(ACCOUNTS.c.number == ISSUE)).scalar_one())
    if type(amount) is not int or amount < 1 or owed + amount > MOST_CREDITS:
        raise MarketError("credits are issued in whole numbers from 1, up to {most:,} in all.", most=MOST_CREDITS)
    post(connection, {ISSUE: -amount, account: amount}, reason=reason, issued=issued)


def paid_in(connection: Connection, purchase: int) -> dict[int, int]:
    """Return what each account gave (less than 0) and got in a purchase."""
    table = ENTRIES.c
    query = select(table.account, func.sum(table.amount)).where(table.purchase == purchase).group_by(table.account)
    return {account: int(amount) for account, amount in connection.execute(query)}


def earned(connection: Connection, account: int, listing: int) -> dict[int, int]:
    """Return what an account earned with each level of a listing, less what was refunded."""
    table = ENTRIES.c
    query = (
        select(PURCHASES.c.threshold, func.sum(table.amount))
        .join(PURCHASES, PURCHASES.c.number == table.purchase)
        .where(table.account == account, PURCHASES.c.listing == listing)
        .group_by(PURCHASES.c.threshold)
    )
    return {int(threshold): int(amount) for threshold, amount in connection.execute(query)}


def statement(connection: Connection, account: int, most: int) -> list[AccountEntry]:
    """Return the last entries of an account, the newest first."""
    table = ENTRIES.c
    query = (
        select(table.transaction, table.amount, table.reason, table.purchase, table.issued)
        .where(table.account == account)
        .order_by(table.transaction.desc())
        .limit(most)
    )
    return [AccountEntry(*row) for row in connection.execute(query)]


def balances(connection: Connection) -> tuple[bool, int, int]:
    """Return whether the books balance, the number of transactions, and the credits in circulation.

    They do if every transaction adds up to nothing and every balance is the sum of its entries.
    """
    entries, accounts = ENTRIES.c, ACCOUNTS.c
    crooked = connection.execute(
        select(entries.transaction).group_by(entries.transaction).having(func.sum(entries.amount) != 0).limit(1)
    ).first()
    sums = connection.execute(select(entries.account, func.sum(entries.amount)).group_by(entries.account))
    summed = {account: int(amount) for account, amount in sums}
    kept = {row.number: int(row.balance) for row in connection.execute(select(accounts.number, accounts.balance))}
    balanced = crooked is None and all(summed.get(number, 0) == kept.get(number) for number in {*kept, *summed})
    count = connection.execute(select(func.count(func.distinct(entries.transaction)))).scalar_one()
    return balanced, int(count), -kept.get(ISSUE, 0)
