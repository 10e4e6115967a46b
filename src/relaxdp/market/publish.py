"""Publish levels from a vault: one file for each level, drawn from the key, whenever and in whatever order.

Reports are a pure function of the key, so nothing has to be remembered between two levels, and a level that is
published again is the same. A row never carries more than its own limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from relaxdp.errors import ColumnError, EpsilonError, LedgerUncertainError, RelaxdpError, UselessReleaseError
from relaxdp.market.client import MarketClient, understood
from relaxdp.market.level_file import MAX_LIMITS, LevelReports, compute_level_digest, write_level_file
from relaxdp.sampling.arrow_columns import decode_dictionary
from relaxdp.server_errors import LevelDiffersError, MarketError, RefusedByServerError
from relaxdp.tables.atomic_files import make_temporary_folder
from relaxdp.tables.metadata import ColumnDescription
from relaxdp.tables.release_result import Release
from relaxdp.tables.vault import Vault
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RowLimits:
    """The limits of individuals, as one release has them."""

    column: str
    ids: pa.Array
    cells: pa.Array
    """The limit of each row, as it was released."""
    epsilons: list[Decimal]
    """The different limits."""
    positions: pa.Array
    """For each row the position of its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a listing. Those that are None stay as they are, or have the defaults of the market."""

    currency: str
    title: str | None = None
    about: str | None = None
    approval: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A listing with its levels, and what publishing cost in the vault."""

    listing: dict[str, Any]
    """The listing as the market shows it."""
    new: tuple[str, ...]
    """The levels that were not published before."""
    cost: Decimal
    remaining: Decimal


def publish(
    vault: Vault, name: str, market: MarketClient, prices: Mapping[Any, str], terms: Terms, *,
    column: str | None = None, limits: str | None = None, listing: str | None = None, progress: Progress | None = None,
) -> Published:  # fmt: skip
    """Publish levels of a released column on a market, and charge the vault for the largest of them.

    Args:
        vault: The vault that released the column.
        name: The name of the release.
        market: The market, with a seller's token.
        prices: The price of each level.
        terms: Currency, title, text, and who approves orders.
        column: The column, where the release has several.
        limits: A pass-through column with the largest epsilon of each individual. A row never carries more.
        listing: The name of the listing. By default that of the release.
        progress: Called with each level that is published.

    Returns:
        The listing, the new levels and the cost.

    Raises:
        BudgetError: The largest level exceeds the budget. Nothing was published.
        LevelDiffersError: A level was published with other rows. Nothing was published.
    """
    before, new = vault.spent, list[str]()
    try:
        found = _publish(vault, name, market, prices, terms, column, limits, listing or name, new, progress)
    except LedgerUncertainError:
        raise
    except RelaxdpError as problem:
        if isinstance(problem, UselessReleaseError):  # its own hint is about releases
            problem.hint_template = "Publish a larger level too, or release more rows."
        cost = Decimal(0)
        with suppress(RelaxdpError):  # where the ledger itself is the problem
            cost = vault.spent - before
        problem.consequence = _describe_consequence(new, cost, problem)
        raise
    return Published(found, tuple(reversed(new)), vault.spent - before, vault.remaining)


def _describe_consequence(new: Sequence[str], cost: Decimal, problem: RelaxdpError) -> str:
    """Return what was done before the error."""
    published = f"Only these levels were published: {', '.join(new)}." if new else "Nothing was published."
    has_failed = isinstance(problem, RefusedByServerError) and problem.fields["status"] >= 500
    if problem.fields.get("asked") or has_failed:
        published = f"It is unknown whether {'another' if new else 'a'} level was published."
    if not cost:
        return published
    return f"{published} The vault was charged {format_epsilon(cost)}. Publishing again costs nothing more."


def _publish(
    vault: Vault, name: str, market: MarketClient, prices: Mapping[Any, str], terms: Terms, column: str | None,
    limits: str | None, listing: str, new: list[str], progress: Progress | None,
) -> dict[str, Any]:  # fmt: skip
    """Publish, and add each level to `new` as soon as it is published."""
    levels = sorted({as_epsilon(each): price for each, price in prices.items()}.items())
    if not levels or len(levels) < len(prices):
        raise MarketError(
            "The levels are empty, or two of them are equal.", hint="Pass each level once: --levels 0.1=10,0.5=60."
        )
    if not re.fullmatch("[A-Z]{3}", terms.currency):
        raise MarketError(
            "The currency {currency!r} is not three capital letters.",
            hint="Write it like EUR.",
            currency=terms.currency,
        )
    planned = _choose_column(vault, name, column)
    chosen = planned.columns[0].column
    vault.relax(name, levels[-1][0], columns=[chosen], dry_run=True)  # the budget rejects it before anything is sent
    own = None if limits is None else _read_limits(vault, name, chosen, limits, levels[-1][0])
    market_listing = _create_listing(market, listing, planned, dict(levels), terms, limits)
    known = {each["epsilon"]: each["digest"] for each in market_listing["levels"]}
    # Published levels come first: where rows have changed, nothing is charged or published. Then the largest one comes
    # first: a smaller one alone could be too imprecise for the vault to charge it.
    order = sorted(dict(levels), key=lambda each: (format_epsilon(each) not in known, -each))
    for reports in draw_levels(vault, name, chosen, order, own):
        epsilon = format_epsilon(reports.description.epsilon)
        digest = compute_level_digest(reports)
        if known.get(epsilon, digest) != digest:
            raise LevelDiffersError(
                "Epsilon {epsilon} is published with other ids or reports, and is never replaced.",
                hint="If rows joined or left, leave this level out. Release corrected data under a new name.",
                epsilon=epsilon,
            )
        if epsilon not in known:
            with make_temporary_folder() as folder:
                write_level_file(reports, folder / "level.parquet")
                price = dict(levels)[reports.description.epsilon]
                market_listing = market.add_level(market_listing["id"], folder / "level.parquet", price)
            new.append(epsilon)
            if progress is not None:
                progress(epsilon)
    return market_listing


_FREE = "1e-9"
"""A level below all others, so that a relaxation to it costs nothing."""


def _choose_column(vault: Vault, name: str, column: str | None) -> Release:
    """Return the plan of a relaxation of one column, which describes it."""
    columns = [each.column for each in vault.relax(name, _FREE, dry_run=True).columns]
    if (column is None and len(columns) > 1) or (column is not None and column not in columns):
        raise ColumnError(
            "{problem} The released columns are {columns}.",
            hint="Choose one: --column {first}.",
            problem="The release has several columns." if column is None else f"The release has no column {column!r}.",
            columns=", ".join(map(repr, columns)),
            first=columns[0],
        )
    return vault.relax(name, _FREE, columns=[column or columns[0]], dry_run=True)


def _create_listing(
    market: MarketClient,
    listing: str,
    planned: Release,
    prices: Mapping[Decimal, str],
    terms: Terms,
    limits: str | None,
) -> dict[str, Any]:
    ((output, description),) = planned.description.columns.items()
    if limits is not None:
        description = replace(description, level_column=_name_level_column(output), row_epsilons=(description.epsilon,))
    with understood():
        return market.create_listing(
            listing,
            title=terms.title,
            about=terms.about,
            currency=terms.currency,
            approval=terms.approval,
            prices={format_epsilon(epsilon): price for epsilon, price in prices.items()},
            column=output,
            id_column=planned.id,
            limits=limits,
            description=description.to_dict(),
        )


def _draw(vault: Vault, name: str, column: str, epsilon: Decimal, limits: RowLimits | None) -> LevelReports:
    """Return all rows of the last release at a level. A larger level than before is charged.

    Limits belong to the rows with the same position, so the release must not have changed since they were read.
    """
    release = vault.relax(name, epsilon, columns=[column])
    table, ((output, described),) = release.to_frame(), release.description.columns.items()
    if limits is not None:
        read = (release.id, limits.ids), (limits.column, limits.cells)
        is_same = limits.column in release.passthrough and all(_read(table, each).equals(cells) for each, cells in read)
        if not is_same:
            raise MarketError(
                "The release {name!r} has changed while its levels were drawn.",
                hint="Run the command again when no other program releases this name.",
                name=name,
            )
    ids, reports = (_combine(table[each]) for each in (release.id, output))
    return LevelReports(release.id, output, described, ids, reports)


def draw_levels(
    vault: Vault, name: str, column: str, epsilons: Sequence[Decimal], limits: RowLimits | None
) -> Iterator[LevelReports]:
    """Return each level. With limits, a row is at the smaller of the level and its own limit."""
    if limits is None:
        for epsilon in epsilons:
            yield _draw(vault, name, column, epsilon, None)
        return
    drawn: dict[Decimal, LevelReports] = {}
    for epsilon in epsilons:
        used = [min(epsilon, each) for each in limits.epsilons]
        for each in sorted({*used, epsilon}, reverse=True):
            if each not in drawn:
                drawn[each] = _draw(vault, name, column, each, limits)
        yield _mix_levels([drawn[each] for each in used], drawn[epsilon], used, limits.positions)


def _read_limits(vault: Vault, name: str, column: str, limits: str, largest: Decimal) -> RowLimits:
    release = vault.relax(name, _FREE, columns=[column])
    if limits not in release.passthrough:
        raise ColumnError(
            "The release has no pass-through column {limits!r}.",
            hint="Release the limits as a pass-through column (--passthrough {limits}).",
            limits=limits,
        )
    table = release.to_frame()
    ids, cells = (_read(table, each) for each in (release.id, limits))
    encoded = cells.dictionary_encode()
    if cells.null_count:
        raise ColumnError("A row has no limit.", hint="Fill in the column of limits before the release.")
    try:
        found = [as_epsilon(str(each)) for each in encoded.dictionary.to_pylist()]
    except EpsilonError:
        raise ColumnError(
            "A value of the column {limits!r} is not an epsilon.",
            hint="Write each limit as a number such as 0.5.",
            limits=limits,
        ) from None
    if len({min(each, largest) for each in found}) > MAX_LIMITS:
        raise ColumnError(
            "The column {limits!r} has more than {maximum} different limits.",
            hint="Round the limits down to fewer numbers before the release.",
            limits=limits,
            maximum=MAX_LIMITS,
        )
    return RowLimits(limits, ids, cells, found, encoded.indices.cast(pa.int64()))


def _mix_levels(
    by_limit: Sequence[LevelReports], whole: LevelReports, used: Sequence[Decimal], positions: pa.Array
) -> LevelReports:
    """Return the level whose rows carry the reports of their own level."""
    n, together = len(whole.ids), pa.concat_arrays([each.reports for each in by_limit])
    rows = pc.add(pc.multiply(positions, n), pa.array(range(n), pa.int64()))
    texts = pa.array([format_epsilon(each) for each in used])
    described: ColumnDescription = replace(
        whole.description, level_column=_name_level_column(whole.column), row_epsilons=tuple(sorted(set(used)))
    )
    stated = texts.take(positions).dictionary_encode()
    return replace(whole, description=described, reports=together.take(rows), row_epsilons=stated)


def _name_level_column(column: str) -> str:
    return f"{column}_epsilon"


def _read(table: Any, column: str) -> pa.Array:
    return decode_dictionary(_combine(table[column]))


def _combine(column: Any) -> pa.Array:
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
