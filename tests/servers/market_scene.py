"""A market in which everything can go wrong: accounts, listings, pools, purchases, and files that do not fit."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
from tests.servers.markets import VALUES, Trader, altered, column_of, level_of, release_file

import relaxdp as rx
from relaxdp.mechanisms.registry import create_mechanism

POINTS = [["0.1", 10], ["1", 100], ["2", 200]]
PRICES = {"points": POINTS}
FORMULA = {"formula": "10*epsilon"}
LEVELS = {"levels": ["0.5", "1", "2"]}
HASHED = create_mechanism("local-hash", values=list(range(50)), options={"buckets": 5})


@dataclass(frozen=True)
class Scene:
    """Files to deliver, and the numbers of purchases."""

    files: dict[str, Path]
    owned: int
    upgraded: int
    refunded: int


def set_the_scene(trader: Trader, folder: Path) -> Scene:
    """Make accounts, listings, pools and some purchases."""
    for name, role in [
        ("clinic", "seller"), ("rival", "seller"), ("ann", "seller"), ("bob", "seller"), ("institute", "buyer"),
        ("insurer", "buyer"), ("thrifty", "buyer"), ("poor", "buyer"),
    ]:  # fmt: skip
        trader.account(name, role)
    for name, amount in [("institute", 1000), ("insurer", 1000), ("thrifty", 15), ("poor", 5)]:
        trader.credit(name, amount)
    files = dict(_files(folder))
    for listing, prices, more in [
        ("diagnoses", PRICES, {"budget": "2"}),
        ("draft", PRICES, {}),
        ("short", {"points": [["0.5", 5]]}, {}),
        ("closed", PRICES, {}),
        ("open-end", PRICES, {}),
        ("hashes", FORMULA, {}),
        ("numbers", FORMULA, {}),
    ]:  # fmt: skip
        trader.list_release("clinic", listing, prices, **more)
    trader.list_release("rival", "copy", PRICES)
    for listing in ("diagnoses", "closed", "open-end", "hashes", "numbers"):
        trader.deliver("clinic", listing, files[listing])
    trader.buy("institute", "diagnoses", "0.2")
    trader.buy("institute", "diagnoses", "0.5", upgrade=True)
    trader.buy("thrifty", "diagnoses", "0.1")
    trader.buy("institute", "closed", "0.5")
    trader.close("clinic", "closed")
    refunded = trader.buy("insurer", "open-end", "0.5")["number"]
    trader.refund("clinic", refunded)
    trader.pool("snacks", {"name": "categorical", "values": VALUES}, {"points": [["0.5", 5], ["2", 20]]})
    trader.join("ann", "snacks", level_of("1"), "flu", 3)
    trader.buy("institute", "snacks", "0.5")
    trader.pool("hashed", {"name": "local-hash", "values": list(range(50)), "options": {"buckets": 5}},
                FORMULA, **LEVELS)  # fmt: skip
    trader.join("ann", "hashed", level_of("1", HASHED), seeded(7, 2))
    trader.pool("empty", {"name": "numeric", "range": [0, 10]}, FORMULA, **LEVELS)
    trader.pool("proud", {"name": "categorical", "values": VALUES}, FORMULA, **LEVELS)
    trader.join("bob", "proud", level_of("1"), "flu", 1000)
    trader.pool("shut", {"name": "categorical", "values": VALUES}, FORMULA, **LEVELS)
    trader.join("ann", "shut", level_of("1"), "flu")
    trader.buy("institute", "shut", "0.5")
    trader.close_any("shut")
    upgraded, owned = sorted(each["number"] for each in trader.purchases("institute") if each["listing"] == "diagnoses")
    return Scene(files, owned, upgraded, refunded)


def seeded(seed: int, bucket: int) -> str:
    """A report of local hashing, as it travels."""
    return base64.b64encode(seed.to_bytes(8, "little") + bytes([bucket])).decode()


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    first = release_file(folder, "1", name="diagnoses")
    second = release_file(folder, "2", name="second")
    yield "diagnoses", first
    yield "second", second
    yield "closed", release_file(folder, "1", release="closed-2026", name="closed")
    yield "open-end", release_file(folder, "1", release="open-end-2026", name="open-end")
    hashes = [
        release_file(folder, epsilon, mechanism=HASHED, release="hashes-2026", name=f"hashes-{epsilon}")
        for epsilon in ("1", "2")
    ]
    numbers = [
        release_file(folder, epsilon, mechanism=rx.Numeric(0, 10), release="numbers-2026", name=f"numbers-{epsilon}")
        for epsilon in ("1", "2")
    ]
    yield "hashes", hashes[0]
    yield "numbers", numbers[0]
    yield (
        "clipped numbers",
        altered(numbers[1], "clipped", description=lambda said: column_of(said).update(clip=True)),
    )

    def other_seeds(table: Any) -> Any:
        reports = [bytes([each[0] ^ 1]) + each[1:] for each in table["diagnosis"].to_pylist()]
        return table.set_column(1, "diagnosis", pa.array(reports, pa.binary(9)))

    yield "other seeds", altered(hashes[1], "seeds", table=other_seeds)
    # Second deliveries that do not fit the first one.
    yield "more ids", release_file(folder, "2", ids=range(1, 42), name="more")
    yield "fewer ids", release_file(folder, "2", ids=range(1, 40), name="fewer")
    yield "other ids", release_file(folder, "2", ids=range(2, 42), name="other-ids")
    yield "text ids", release_file(folder, "2", ids=[f"{number:03}" for number in range(1, 41)], name="text-ids")
    yield "another order", altered(second, "order", table=lambda table: table.take([1, 0, *range(2, 40)]))
    for name, mechanism in [
        ("other values", rx.Categorical([*VALUES[:2], "other"])),
        ("values in another order", rx.Categorical(VALUES[::-1])),
        ("more values", rx.Categorical([*VALUES, "other"])),
        ("another encoding", create_mechanism("unary-optimised", values=VALUES)),
        ("numbers instead", rx.Numeric(0, 10)),
    ]:
        truths = None if not isinstance(mechanism, rx.Numeric) else [1.0] * 40
        yield name, release_file(folder, "2", mechanism=mechanism, truths=truths, name=name)
    yield "another key", release_file(folder, "2", key=rx.Key.from_bytes(bytes(32)), name="another-key")
    yield "another release", release_file(folder, "2", release="survey-2027", name="another-release")
    yield "another attribute", release_file(folder, "2", columns=["illness"], name="another-attribute")
    yield "a smaller level", release_file(folder, "0.5", name="smaller")
    yield "nearly the same level", release_file(folder, "1.00000000000000000000001", name="nearly")
    yield "above the budget", release_file(folder, "2.5", name="budget")
    yield from _bad_files(folder)


def _bad_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """What is no delivery at all, whatever was delivered before."""
    fresh = release_file(folder, "1", release="fresh-2026", name="fresh")

    def raw(name: str, content: bytes) -> Path:
        path = folder / f"{name}.parquet"
        path.write_bytes(content)
        return path

    def with_column(name: str, content: Any, column: str = "diagnosis") -> Path:
        return altered(fresh, name, table=lambda table: table.set_column(
            table.column_names.index(column), column, content(table[column].to_pylist())
        ))  # fmt: skip

    yield "no Parquet", raw("no-parquet", b"hello")
    yield "a truncated file", raw("truncated", fresh.read_bytes()[:-20])
    yield "a CSV file", raw("csv", b"id,diagnosis\n1,flu\n")
    yield "an empty table", altered(fresh, "empty", table=lambda table: table.slice(0, 0))
    plain = folder / "plain.parquet"
    pa_parquet.write_table(pa.table({"id": [1, 2], "diagnosis": ["flu", "none"]}), plain)
    yield "not released", plain
    changes: dict[str, Any] = {
        "a tampered threshold": lambda column: {"threshold": str(int(column["threshold"]) + 1)},
        "a tampered epsilon": lambda column: {"epsilon": "1.1"},
        "a tampered retention": lambda column: {"retention": "1/2"},
        "an unknown encoding": lambda column: {"encoding": "magic"},
        "a Bloom filter": lambda column: {"encoding": "bloom"},
        "another id type": lambda column: {"id_type": "text"},
        "the attribute of the ids": lambda column: {"attribute": "id"},
        "a name that is a number": lambda column: {"release": 5},
    }
    for name, change in changes.items():

        def apply(said: Any, change: Any = change) -> None:
            column_of(said).update(change(column_of(said)))

        yield name, altered(fresh, name, description=apply)
    yield "a null report", with_column("null-report", lambda cells: pa.array([None, *cells[1:]]))
    yield "a null id", with_column("null-id", lambda cells: pa.array([None, *cells[1:]], pa.int64()), "id")
    yield "a report outside", with_column("outside", lambda cells: pa.array(["SECRET", *cells[1:]]))
    yield "reports of another type", with_column("type", lambda cells: pa.array([1.5] * len(cells)))
    yield "ids of another type", with_column("id-type", lambda cells: pa.array([1.5 * cell for cell in cells]), "id")
    yield "unsorted ids", altered(fresh, "unsorted", table=lambda table: table.take([1, 0, *range(2, 40)]))
    yield "duplicate ids", altered(fresh, "duplicates", table=lambda table: table.take([0, 0, *range(2, 40)]))
    yield "a missing column", altered(fresh, "missing", table=lambda table: table.drop_columns(["diagnosis"]))
    yield "several columns", release_file(folder, "1", columns=["one", "two"], release="two-2026", name="several")
