"""`relaxdp market ...`: sell a release at many levels up to its own, buy levels, and upgrade them."""

from __future__ import annotations

from collections.abc import Callable

from relaxdp.cli import market_buy, market_list, market_operate, market_receipt, market_sell
from relaxdp.cli.main import CommandGroup

app = CommandGroup(help="Sell and buy released data, level by level, on a market.")

COMMANDS: dict[str, Callable[..., None]] = {
    "list": market_list.list_,
    "show": market_list.show,
    "deliver": market_sell.deliver,
    "sales": market_sell.sales,
    "budget": market_sell.budget,
    "close": market_sell.close,
    "buy": market_buy.buy,
    "upgrade": market_buy.upgrade,
    "owned": market_buy.owned,
    "download": market_buy.download,
    "receipt": market_receipt.receipt,
    "statement": market_operate.statement,
    "refund": market_operate.refund,
    "join": market_sell.join,
    "account": market_operate.account,
    "accounts": market_operate.accounts,
    "credit": market_operate.credit,
    "pool": market_operate.pool,
    "books": market_operate.books,
}
"""In the order of the help text."""
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
