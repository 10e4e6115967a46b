"""Credits in double entry: what one account gives another one gets, and every balance is the sum of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update

from relaxdp.errors import CreditsError, MarketError
from relaxdp.market.schema import ACCOUNTS, ENTRIES, PURCHASES
from relaxdp.market.store import next_number

ISSUE = 0
"""The account that credits come from: the only one that may owe, and what it owes is what is in circulation."""
MOST_CREDITS = 10**15


@dataclass(frozen=True, slots=True)
class Entry:
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
            f"{name} has {balance:,} credits, and {-amount:,} are due. Nothing was changed.",
            balance=int(balance),
            due=-amount,
        )


def issue(connection: Connection, account: int, amount: int, *, reason: str, issued: str) -> None:
    """Give an account new credits."""
    owed = -int(connection.execute(select(ACCOUNTS.c.balance).where(ACCOUNTS.c.number == ISSUE)).scalar_one())
    if type(amount) is not int or amount < 1 or owed + amount > MOST_CREDITS:
        raise MarketError(
            f"credits are issued in whole numbers from 1, up to {MOST_CREDITS:,} in all. Nothing was issued."
        )
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


def statement(connection: Connection, account: int, most: int) -> list[Entry]:
    """Return the last entries of an account, the newest first."""
    table = ENTRIES.c
    query = (
        select(table.transaction, table.amount, table.reason, table.purchase, table.issued)
        .where(table.account == account)
        .order_by(table.transaction.desc())
        .limit(most)
    )
    return [Entry(*row) for row in connection.execute(query)]


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
