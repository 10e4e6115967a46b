"""What is sold, report by report: each one is the scalar bridge of its nearest neighbours, drawn once and kept."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from sqlalchemy import create_engine
from tests.servers.markets import (
    MARKET_KEY,
    SELLER_KEY,
    VALUES,
    Here,
    Refused,
    altered,
    column_of,
    described,
    here,
    release_file,
)
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import MetadataError
from relaxdp.market import goods as goods_module
from relaxdp.market.deliveries import read_delivery
from relaxdp.market.goods import Goods, check_fits, draw_level, encoding_of, level_file, parts_of, read_level
from relaxdp.market.listings import KeptLevel, StoredListing, find, levels_of
from relaxdp.market.schema import FILES
from relaxdp.mechanisms.base import Mechanism, make_path_key_info
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.sampling.bridge import draw_keyed_bridge_report
from relaxdp.sampling.keyed_stream import PathId, PathKeyInfo
from relaxdp.server_errors import DeliveryError
from relaxdp.tables.files import TableFile
from relaxdp.tables.metadata import parse_description
from relaxdp.theory.epsilon import ONE, as_epsilon

NUMBERS = list(range(3, 43))
TEXTS = [f"patient-{number:03}" for number in range(40)]
BYTES = [bytes([number, 255 - number]) for number in range(40)]
KINDS: dict[str, tuple[Mechanism, Sequence[Any]]] = {
    "categorical of 2": (rx.Categorical(["no", "yes"]), NUMBERS),
    "categorical of 3": (rx.Categorical(VALUES), TEXTS),
    "unary-optimised": (create_mechanism("unary-optimised", values=[1, 2, 4, 8]), NUMBERS),
    "unary-symmetric": (create_mechanism("unary-symmetric", values=[*VALUES, "x", "y"]), BYTES),
    "local-hash": (create_mechanism("local-hash", values=list(range(50)), options={"buckets": 5}), TEXTS),
    "numeric": (rx.Numeric(0, 120), NUMBERS),
}
DELIVERED = ["0.5", "1", "2", "3.5"]
GRID = ["0.05", "0.1", "0.3", "0.5", "0.75", "1", "1.25", "1.5", "2", "2.5", "3", "3.5"]
PRICES = {"formula": "10*epsilon"}


@pytest.fixture
def trader(tmp_path: Path) -> Iterator[Here]:
    with here(tmp_path) as made:
        made.account("clinic", "seller")
        made.account("rival", "seller")
        yield made


def truths_of(mechanism: Mechanism, objects: int) -> list[Any]:
    labels = mechanism.labels
    if isinstance(mechanism, rx.Numeric):
        return [float(place * 3 % 120) for place in range(objects)]
    return [labels[place * place % len(labels)] for place in range(objects)]


def symbols_of(mechanism: Mechanism, report: Any) -> tuple[list[int], bytes]:
    """The symbols of one report and its seed, read by hand."""
    encoding = mechanism
    if encoding.name.startswith("unary"):
        return [report[place // 8] >> place % 8 & 1 for place in range(encoding.symbols)], b""
    if encoding.name == "local-hash":
        return [int.from_bytes(report[8:], "little")], report[:8]
    return [list(encoding.labels).index(report)], b""


def rows(content: bytes) -> tuple[list[Any], list[Any]]:
    """Ids and reports of a file."""
    table = pa_parquet.read_table(io.BytesIO(content))
    assert table.num_columns == 2
    return table.column(0).to_pylist(), table.column(1).to_pylist()


Out = tuple[int, list[Any]]
"""A level that is out: its threshold and all reports."""


def bridged(
    mechanism: Mechanism, name: PathKeyInfo, middle: int, lower: Out | None, upper: Out, ids: Sequence[Any],
    key: rx.Key = MARKET_KEY,
) -> list[tuple[list[int], bytes]]:  # fmt: skip
    """What a level must be: every symbol of every object, one scalar bridge at a time."""
    levels = [Fraction(0 if lower is None else lower[0], ONE), Fraction(middle, ONE), Fraction(upper[0], ONE)]
    found = []
    for row, who in enumerate(ids):
        above, seed = symbols_of(mechanism, upper[1][row])
        below, other = ([0] * len(above), seed) if lower is None else symbols_of(mechanism, lower[1][row])
        assert seed == other
        drawn = [
            draw_keyed_bridge_report(key, name, who, *levels, lower_report=low, upper_report=high, symbol=symbol)
            for symbol, (low, high) in enumerate(zip(below, above, strict=True))
        ]
        found.append((drawn, seed))
    return found


class Watched:
    """A market of one listing, beside which everything that should be out is written down independently."""

    def __init__(self, trader: Here, mechanism: Mechanism, ids: Sequence[Any], folder: Path) -> None:
        self.trader, self.mechanism, self.ids, self.folder = trader, mechanism, ids, folder
        self.out: dict[int, list[Any]] = {}
        self.files: dict[int, bytes] = {}
        self.between: dict[int, tuple[int | None, int | None]] = {}
        self.owned: dict[str, int] = {}
        encoding = mechanism
        path = f"watched/{rx.Key.from_bytes(bytes(range(32))).fingerprint}/survey-2026"
        self.name = PathKeyInfo(PathId(path, "diagnosis"), encoding.name, encoding.alphabet, encoding.params)
        trader.list_release("clinic", "watched", PRICES, levels=GRID)

    def threshold(self, epsilon: str) -> int:
        return self.mechanism.threshold(as_epsilon(epsilon))

    def deliver(self, epsilon: str) -> None:
        truths = truths_of(self.mechanism, len(self.ids))
        path = release_file(self.folder, epsilon, mechanism=self.mechanism, ids=self.ids, truths=truths)
        self.trader.deliver("clinic", "watched", path)
        ids, reports = rows(path.read_bytes())
        assert ids == list(self.ids)
        self.out[self.threshold(epsilon)] = reports
        self.between[self.threshold(epsilon)] = (None, None)

    def sell(self, epsilon: str, buyer: str) -> None:
        threshold = self.threshold(epsilon)
        upgrade = self.owned.get(buyer, threshold) < threshold
        purchase = self.trader.buy(buyer, "watched", epsilon, upgrade=upgrade)
        assert purchase["new"] == (self.owned.get(buyer) != threshold)
        self.owned[buyer] = threshold
        content = self.trader.data(buyer, purchase["number"])
        assert self.files.setdefault(threshold, content) == content
        ids, reports = rows(content)
        assert ids == list(self.ids)
        if threshold in self.out:
            assert reports == self.out[threshold]
            return
        lower = max((level for level in self.out if level < threshold), default=None)
        upper = min(level for level in self.out if level > threshold)
        below = None if lower is None else (lower, self.out[lower])
        wanted = bridged(self.mechanism, self.name, threshold, below, (upper, self.out[upper]), self.ids)
        assert [symbols_of(self.mechanism, report) for report in reports] == wanted
        self.out[threshold], self.between[threshold] = reports, (lower, upper)

    def check(self) -> None:
        """All that is out is still what it was when it was sold."""
        with self.trader.database.reading() as connection:
            levels = levels_of(connection, find(connection, "watched"))
            assert {level.threshold: _ends(kept) for level, kept in levels.items()} == self.between
            for level, kept in levels.items():
                content = b"".join(parts_of(connection, kept.digest))
                assert content == self.files.get(level.threshold, content)
                assert rows(content)[1] == self.out[level.threshold]


def _ends(kept: KeptLevel) -> tuple[int | None, int | None]:
    """The thresholds of what a level was drawn from."""
    if kept.between is None:
        return None, None
    return None if kept.between.lower is None else kept.between.lower.threshold, kept.between.upper.threshold


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_report_is_the_scalar_bridge(trader: Here, tmp_path: Path, kind: str, seed: int) -> None:
    """Deliveries and sales in a random order, levels sold again, delivered levels sold, upgrades in between."""
    mechanism, ids = KINDS[kind]
    chooser, watched = random.Random(f"{kind} {seed}"), Watched(trader, mechanism, ids, tmp_path)
    left, names = list(DELIVERED), count(1)
    sold: list[str] = []
    while left or len(sold) < 14:
        most = as_epsilon(DELIVERED[-len(left) - 1]) if len(left) < len(DELIVERED) else None
        if most is None or (left and chooser.random() < 0.2):
            watched.deliver(left.pop(0))
            continue
        epsilon = chooser.choice([each for each in GRID if as_epsilon(each) <= most])
        before = [name for name, owned in watched.owned.items() if owned <= watched.threshold(epsilon)]
        buyer = chooser.choice([*before, ""]) or f"buyer-{next(names)}"
        if buyer not in watched.owned:
            trader.account(buyer, "buyer")
            trader.credit(buyer, 1000)
        watched.sell(epsilon, buyer)
        sold.append(epsilon)
    watched.check()
    drawn = [ends for ends in watched.between.values() if ends[1] is not None]
    assert {lower is None for lower, _ in drawn} == {True, False}
    assert len(sold) > len(set(sold))


def test_the_comparison_can_fail(trader: Here, tmp_path: Path) -> None:
    """Another key, another listing, another lower neighbour: each gives other reports than those that were sold."""
    mechanism, ids = KINDS["categorical of 3"]
    watched = Watched(trader, mechanism, ids, tmp_path)
    trader.account("institute", "buyer")
    trader.credit("institute", 1000)
    for epsilon in ("0.5", "2"):
        watched.deliver(epsilon)
    watched.sell("1", "institute")
    low, middle, high = (watched.threshold(epsilon) for epsilon in ("0.5", "1", "2"))
    upper, lower = (high, watched.out[high]), (low, watched.out[low])
    found = [symbols_of(mechanism, report) for report in watched.out[middle]]
    assert found == bridged(mechanism, watched.name, middle, lower, upper, ids)
    elsewhere = replace(
        watched.name, path=replace(watched.name.path, release=watched.name.path.release.replace("watched", "elsewhere"))
    )
    assert found != bridged(mechanism, elsewhere, middle, lower, upper, ids)
    assert found != bridged(mechanism, watched.name, middle, None, upper, ids)
    assert found != bridged(mechanism, watched.name, middle, lower, upper, ids, rx.Key.from_bytes(bytes(32)))


def test_a_level_that_was_sold_stays_when_more_is_delivered(trader: Here, tmp_path: Path) -> None:
    mechanism, ids = KINDS["categorical of 2"]
    watched = Watched(trader, mechanism, ids, tmp_path)
    for name in ("first", "second"):
        trader.account(name, "buyer")
        trader.credit(name, 1000)
    watched.deliver("1")
    watched.sell("0.3", "first")
    before = dict(watched.files)
    watched.deliver("2")
    watched.deliver("3.5")
    watched.sell("0.3", "second")
    assert watched.files == before
    watched.sell("0.75", "first")  # between what was sold and what was delivered first, not the last delivery
    assert watched.between[watched.threshold("0.75")] == (watched.threshold("0.3"), watched.threshold("1"))
    watched.sell("3.5", "second")  # as it was delivered
    watched.check()


def test_two_listings_share_no_noise(trader: Here, tmp_path: Path) -> None:
    """The same ids, the same name of the release, even the same reports; only the sellers' keys are two."""
    mechanism, ids = rx.Categorical(["no", "yes"]), list(range(400))
    first = release_file(tmp_path, "3", mechanism=mechanism, ids=ids)
    second = altered(first, "second", description=lambda said: column_of(said).update(key_fingerprint="0" * 16))
    assert rows(first.read_bytes()) == rows(second.read_bytes())
    trader.account("institute", "buyer")
    trader.credit("institute", 1000)
    bought = []
    for seller, listing, path in (("clinic", "one", first), ("rival", "two", second)):
        trader.list_release(seller, listing, PRICES, levels=GRID)
        trader.deliver(seller, listing, path)
        purchase = trader.buy("institute", listing, "0.1")
        bought.append(rows(trader.data("institute", purchase["number"]))[1])
    same = sum(one == two for one, two in zip(*bought, strict=True))
    assert 150 < same < 250  # shared noise would make all 400 equal


def _listing(goods: Goods) -> StoredListing:
    terms = ("{}", "[]", json.dumps(goods.described.to_dict()))
    return StoredListing(0, "one", "release", 0, "?", "open", None, None, goods.id_column, len(goods.ids), terms)


def test_a_draw_is_a_pure_function(tmp_path: Path) -> None:
    """An interrupted sale may be begun again: the same reports, and the same bytes."""
    upper = read_delivery(release_file(tmp_path, "2"))
    lower = read_delivery(release_file(tmp_path, "0.5"))
    level = upper.encoding.level(1)
    drawn = [draw_level(MARKET_KEY, "one", level, lower=lower, upper=upper) for _ in range(2)]
    files = [level_file(goods) for goods in drawn]
    assert files[0] == files[1]
    assert read_level(files[0], _listing(upper), level).reports.to_pylist() == drawn[0].reports.to_pylist()


@pytest.mark.parametrize("kind", ["categorical of 3", "unary-optimised", "local-hash"])
def test_a_level_in_memory_is_the_scalar_bridge(tmp_path: Path, kind: str) -> None:
    """Between two others, and below the lowest, without a market around it."""
    mechanism, ids = KINDS[kind]
    encoding = mechanism
    lower, upper = (
        read_delivery(release_file(tmp_path, epsilon, mechanism=mechanism, ids=ids, truths=truths_of(mechanism, 40)))
        for epsilon in ("0.5", "2")
    )
    name = make_path_key_info(encoding, PathId(f"one/{SELLER_KEY.fingerprint}/survey-2026", "diagnosis"))
    above, below = ((goods.described.threshold, goods.reports.to_pylist()) for goods in (upper, lower))
    for epsilon, low, out in (("1", lower, below), ("0.3", None, None)):
        level = encoding.level(epsilon)
        drawn = draw_level(MARKET_KEY, "one", level, lower=low, upper=upper)
        wanted = bridged(mechanism, name, level.threshold, out, above, ids)
        assert [symbols_of(mechanism, report) for report in drawn.reports.to_pylist()] == wanted
        assert (drawn.id_column, drawn.described, drawn.ids, drawn.level) == ("id", upper.described, upper.ids, level)


@pytest.mark.parametrize("size", [7, 20, 39, 40, 41])
def test_a_level_is_written_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Whatever the pieces: every row once, in order."""
    monkeypatch.setattr(goods_module, "BATCH_ROWS", size)
    goods = read_delivery(release_file(tmp_path, "1"))
    content = level_file(goods)
    found = read_level(content, _listing(goods), goods.level)
    assert (found.ids.to_pylist(), found.reports.to_pylist()) == (goods.ids.to_pylist(), goods.reports.to_pylist())
    assert (found.id_column, found.described, found.level) == ("id", goods.described, goods.level)
    with pa_parquet.ParquetFile(pa.py_buffer(content)) as parquet:
        said = parse_description(parquet.schema_arrow.metadata)
    assert said is not None
    assert list(said.columns.values()) == [replace(goods.described, retention=goods.level.retention)]


def test_a_level_whose_columns_differ_in_length_is_not_written(tmp_path: Path) -> None:
    goods = read_delivery(release_file(tmp_path, "1"))
    with pytest.raises(ValueError, match="not all the same length"):
        level_file(replace(goods, reports=goods.reports[:-1]))


def test_a_file_lies_in_parts_under_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert goods_module.PART_BYTES >= 1 << 16
    monkeypatch.setattr(goods_module, "PART_BYTES", 4)
    engine, content = create_engine("sqlite://"), b"0123456789"
    with closing(engine.connect()) as connection, connection.begin():
        FILES.create(connection)
        goods_module.keep_file(connection, b"else")
        digests = {goods_module.keep_file(connection, content) for _ in range(2)}  # kept once
        (digest,) = digests
        assert digest == sha256(content).hexdigest()
        assert [*parts_of(connection, digest)] == [b"0123", b"4567", b"89"]
        assert goods_module.read_file(connection, digest) == content
        assert [goods_module.part_of(connection, digest, place) for place in (1, 3)] == [b"4567", None]
        lengths = [goods_module.length_of(connection, each) for each in (digest, "none")]
    engine.dispose()
    assert lengths == [10, 0]


def estimate(*files: Path) -> Any:
    shown = CliRunner().invoke(app, ["estimate", *map(str, files), "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bought_file_says_its_level_and_is_estimated(trader: Here, tmp_path: Path, kind: str) -> None:
    mechanism, ids = KINDS[kind]
    original = release_file(tmp_path, "2", mechanism=mechanism, ids=ids, truths=truths_of(mechanism, len(ids)))
    trader.list_release("clinic", "one", PRICES)
    trader.deliver("clinic", "one", original)
    files = {}
    for place, epsilon in enumerate(("0.5", "1.5", "2")):
        trader.account(f"buyer-{place}", "buyer")
        trader.credit(f"buyer-{place}", 100)
        purchase = trader.buy(f"buyer-{place}", "one", epsilon)
        files[epsilon] = tmp_path / f"bought-{epsilon}.parquet"
        files[epsilon].write_bytes(trader.data(f"buyer-{place}", purchase["number"]))
        said, before = column_of(described(files[epsilon])), column_of(described(original))
        threshold = mechanism.threshold(as_epsilon(epsilon))
        assert (said["epsilon"], said["threshold"]) == (epsilon, str(threshold))
        assert said.pop("retention") == str(Fraction(threshold, ONE)) == purchase["retention"]
        assert {**said, "epsilon": 0, "threshold": 0} == {**before, "epsilon": 0, "threshold": 0}
    shown = estimate(files["1.5"])
    wanted = mechanism.estimate(rows(files["1.5"].read_bytes())[1], epsilon="1.5")
    values = [row["estimate"] for row in shown["groups"][0]["estimates"]]
    assert values == pytest.approx(np.atleast_1d(wanted.value).tolist())
    # The highest level of an object makes the others worthless.
    assert estimate(files["0.5"], files["1.5"]) == shown
    if kind in ("categorical of 3", "local-hash"):
        assert estimate(original, files["1.5"]) == estimate(original)


def test_nothing_else_of_a_delivery_is_kept(trader: Here, tmp_path: Path) -> None:
    """Other columns, other metadata, values of a dictionary that nobody reports: a sold file has none of it."""
    secret = "SECRET-of-patient-7"

    def more(table: Any) -> Any:
        wider = pa.DictionaryArray.from_arrays(
            pa.array([VALUES.index(each) for each in table["diagnosis"].to_pylist()], pa.int8()), [*VALUES, secret]
        )
        ids = pa.array(table["id"].to_pylist(), pa.int64())
        fields = [
            pa.field("id", pa.int64(), metadata={"note": secret}),
            pa.field("truth", pa.string()),
            pa.field("diagnosis", wider.type, metadata={"note": secret}),
        ]
        return pa.table([ids, pa.array([secret] * len(ids)), wider], schema=pa.schema(fields))

    plain = release_file(tmp_path, "1")
    path = altered(plain, "more", table=more)
    metadata = pa_parquet.read_schema(path).metadata | {b"pandas": secret.encode()}
    pa_parquet.write_table(pa_parquet.read_table(path).replace_schema_metadata(metadata), path)
    assert secret.encode() in path.read_bytes()
    trader.list_release("clinic", "one", PRICES)
    trader.deliver("clinic", "one", path)
    trader.account("institute", "buyer")
    trader.credit("institute", 100)
    for epsilon in ("0.5", "1"):
        purchase = trader.buy("institute", "one", epsilon, upgrade=epsilon == "1")
        content = trader.data("institute", purchase["number"])
        found = pa_parquet.ParquetFile(io.BytesIO(content))
        assert found.schema_arrow.names == ["id", "diagnosis"]
        assert set(found.metadata.metadata) <= {b"relaxdp", b"ARROW:schema", b"PANDAS_ATTRS"}
        assert [found.schema_arrow.field(place).metadata for place in range(2)] == [None, None]
        assert secret.encode() not in content
    assert rows(content) == rows(plain.read_bytes())
    with trader.database.reading() as connection:
        (stored,) = (
            b"".join(parts_of(connection, level.digest))
            for level in levels_of(connection, find(connection, "one")).values()
            if level.delivered
        )
    assert stored == content


def refusal(path: Path) -> str | None:
    """The sentence with which a delivery is refused; None where it is not."""
    try:
        read_delivery(path)
    except DeliveryError as problem:
        sentence = problem.message
    else:
        return None
    assert str(path.parent) not in sentence
    return sentence


def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    """Whatever bytes are changed or cut off: a delivery, or our own refusal, and never another exception."""
    whole, chooser = release_file(tmp_path, "1").read_bytes(), random.Random(7)
    damaged = tmp_path / "damaged.parquet"
    refused = 0
    for attempt in range(160):
        content = bytearray(whole)
        if attempt % 4 == 0:
            del content[chooser.randrange(len(content)) :]
        for _ in range(1 + attempt % 3):
            if content:
                content[chooser.randrange(len(content))] ^= 1 << chooser.randrange(8)
        damaged.write_bytes(content)
        refused += refusal(damaged) is not None
    assert refused > 60


def nothing(table: TableFile, columns: Sequence[str]) -> Iterator[Any]:
    yield from ()


@pytest.mark.parametrize("rows_said", [39, 41])
def test_a_file_that_lies_about_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_said: int) -> None:
    path = release_file(tmp_path, "1")
    monkeypatch.setattr(TableFile, "_count_rows", lambda table: rows_said)
    with pytest.raises(DeliveryError, match="not as many rows"):
        read_delivery(path)
    monkeypatch.setattr(TableFile, "batches", nothing)
    with pytest.raises(DeliveryError, match="not as many rows"):
        read_delivery(path)


class Claimed:
    """A table that says how many rows it has, in pieces that say how many bytes their ids and reports have."""

    def __init__(self, rows_said: int | None, *pieces: tuple[int, int], names: Sequence[str] = ("id", "x")) -> None:
        self.rows, self.schema, self.left = rows_said, SimpleNamespace(names=list(names)), list(pieces)
        self.damage: Exception | None = None
        """What comes after the last piece."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        while self.left:
            sizes = dict(zip(columns, self.left.pop(0), strict=True))
            yield SimpleNamespace(column=lambda name, sizes=sizes: Piece(sizes[name]))
        if self.damage is not None:
            raise self.damage


class Piece:
    """One row of a column."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def __len__(self) -> int:
        return 1


def unread(table: Claimed, monkeypatch: pytest.MonkeyPatch) -> str:
    """The sentence with which a table is refused."""
    monkeypatch.setattr(goods_module, "remove_hidden_values", lambda piece: piece)
    with pytest.raises(DeliveryError) as refused:
        goods_module.read_columns(cast("TableFile", table), "id", "x")
    return refused.value.message


@pytest.mark.parametrize("rows_said", [None, 0, -1, 50_000_001])
def test_tables_of_too_few_or_too_many_rows(monkeypatch: pytest.MonkeyPatch, rows_said: int | None) -> None:
    assert "between 1 and 50,000,000 rows" in unread(Claimed(rows_said), monkeypatch)


@pytest.mark.parametrize("rows_said", [1, 50_000_000])
def test_as_many_rows_as_the_market_takes(monkeypatch: pytest.MonkeyPatch, rows_said: int) -> None:
    assert "not as many rows" in unread(Claimed(rows_said), monkeypatch)


def test_what_unfolds_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both columns of all pieces count together, up to two gibibytes."""
    half = 1 << 29
    full = Claimed(9, (half, half), (half, half), (0, 0))
    assert "not as many rows" in unread(full, monkeypatch)
    for last in ((1, 0), (0, 1)):
        more = Claimed(9, (half, half), (half, half), last, (0, 0), (0, 0))
        assert "larger than the market takes" in unread(more, monkeypatch)
        assert len(more.left) == 2


@pytest.mark.parametrize("damage", [pa.ArrowInvalid("odd"), MetadataError("odd")], ids=repr)
def test_rows_that_are_damaged(monkeypatch: pytest.MonkeyPatch, damage: Exception) -> None:
    """What was read until then may be as many rows as there should be."""
    table = Claimed(1, (8, 8))
    table.damage = damage
    assert "damaged, or no Parquet file" in unread(table, monkeypatch)


@pytest.mark.parametrize("names", [["id"], ["x"], ["id", "x", "x"], ["id", "id", "x"]])
def test_columns_that_are_not_there_once(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    assert "other columns than it has" in unread(Claimed(1, names=names), monkeypatch)


def other(goods: Goods, **changes: Any) -> Goods:
    described = replace(goods.described, **changes)
    return replace(goods, described=described, encoding=encoding_of(described))


def misfit(new: Goods, first: Goods) -> str:
    """The sentence with which a delivery is refused, whichever of the two came first."""
    sentences = set()
    for one, two in ((new, first), (first, new)):
        with pytest.raises(DeliveryError) as refused:
            check_fits(one, two)
        sentences.add(refused.value.message)
    (sentence,) = sentences
    return sentence


def test_deliveries_that_are_not_of_one_path(tmp_path: Path) -> None:
    """Each thing that makes a path, alone, is enough."""
    first = read_delivery(release_file(tmp_path, "1"))
    check_fits(read_delivery(release_file(tmp_path, "2")), first)
    path = first.described.path
    for another in (replace(path, release="other"), replace(path, attribute="other")):
        assert "another release, attribute or key" in misfit(other(first, path=another), first)
    assert "another release, attribute or key" in misfit(other(first, key_fingerprint="other"), first)
    assert "other values" in misfit(other(first, values=("flu", "covid", "cold")), first)
    one, two = (other(first, encoding=f"unary-{kind}") for kind in ("optimised", "symmetric"))
    assert "in another encoding" in misfit(one, two)
    assert "other ids" in misfit(other(first, id_type="text"), first)
    assert "other ids" in misfit(replace(first, id_column="who"), first)
    assert "other ids" in misfit(replace(first, ids=pa.array([0, *first.ids.to_pylist()[1:]])), first)


def test_deliveries_in_encodings_that_are_not_known(tmp_path: Path) -> None:
    goods = read_delivery(release_file(tmp_path, "1"))
    with pytest.raises(DeliveryError, match="cannot be sold here") as refused:
        goods_module.encoding_of(other(goods, encoding="morse").described)
    assert refused.value.fields == {"problem": "metadata_error"}


def test_deliveries_of_clipped_numbers(tmp_path: Path) -> None:
    plain, clipped = (
        read_delivery(release_file(tmp_path, "1", name=name, mechanism=numbers, truths=truths_of(numbers, 40)))
        for name, numbers in (("plain", rx.Numeric(0, 120)), ("clipped", rx.Numeric(0, 120, clip=True)))
    )
    check_fits(clipped, clipped)
    assert "in another encoding" in misfit(clipped, plain)


@pytest.mark.parametrize("place", [0, 6, 7, 39])
def test_deliveries_with_other_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """One object with another public word is enough, wherever it is."""
    monkeypatch.setattr(goods_module, "CHUNK", 7)
    mechanism, ids = KINDS["local-hash"]
    first, new = (
        read_delivery(release_file(tmp_path, epsilon, mechanism=mechanism, ids=ids, truths=truths_of(mechanism, 40)))
        for epsilon in ("1", "2")
    )
    check_fits(new, first)
    reports = new.reports.to_pylist()
    reports[place] = bytes([reports[place][0] ^ 1]) + reports[place][1:]
    assert "other seeds" in misfit(replace(new, reports=pa.array(reports, new.reports.type)), first)


NO_NAME = [None, 5, 1.5, True, ["a"], {"a": 1}, "a\0b", "\ud800", "x" * 1001]


@pytest.mark.parametrize("field", ["release", "attribute", "key_fingerprint"])
def test_names_that_are_none(trader: Here, tmp_path: Path, field: str) -> None:
    """They are bound into every draw and written into every file: found at the sale, it would be too late."""
    path = release_file(tmp_path, "1")
    trader.list_release("clinic", "one", PRICES)
    for name in NO_NAME:

        def change(said: Any, name: Any = name) -> None:
            column_of(said)[field] = name

        odd = altered(path, "odd", description=change)
        with pytest.raises(Refused) as refused:
            trader.deliver("clinic", "one", odd)
        assert refused.value.code == "delivery"
    trader.deliver("clinic", "one", path)


def test_other_descriptions_that_are_none(tmp_path: Path) -> None:
    """Every field replaced by every kind of junk: refused as a delivery, or harmless, and never another exception."""
    path = release_file(tmp_path, "1")
    junk = [None, 5, 1.5, True, [], {}, "", "a\0b", "\ud800", ["a"], {"a": 1}, -1, 10**40, "nan", "1e5"]
    harmless = 0
    for field in [*column_of(described(path)), "range", "options", "function", "retention", "file"]:
        for piece in junk:

            def change(said: Any, field: str = field, piece: Any = piece) -> Any:
                if field == "file":
                    return piece or [piece]
                column_of(said)[field] = piece
                return said

            harmless += refusal(altered(path, "odd", description=change)) is None
    assert harmless < 60
