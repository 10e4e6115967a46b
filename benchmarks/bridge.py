"""Keyed bridges, which the market draws for every level that it sells: of two values, of ten, and of bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import relaxdp as rx
from benchmarks.kernel import BLOCKS, Counting, beside_numpy, by_numpy, encryptions, numpy_name
from benchmarks.results import Comparison, compare
from benchmarks.settings import Settings
from benchmarks.timing import Contender, Race, race
from relaxdp.draw.bridge_arrays import ArrayBridges, KeyedBridges, keyed_bridges
from relaxdp.draw.stream import CHUNK, Ids, Messages, PathId, bridge_key
from relaxdp.encodings.bridges import keyed_column
from relaxdp.encodings.protocol import Encoding, code_dtype
from relaxdp.law.epsilon import as_epsilon
from relaxdp.law.level import retention

BITS = 128
LOWER, MIDDLE, UPPER = "0.5", "1", "2"
OWN = f"relaxdp, epsilon {MIDDLE} between {LOWER} and {UPPER}"
COLUMN = "relaxdp, from Arrow columns to an Arrow column"
BLOCK_TARGET = 0.5
CASES: dict[str, Encoding] = {
    "bridge, m = 2": rx.Categorical(range(2)).encoding,
    "bridge, m = 10": rx.Categorical(range(10)).encoding,
    f"bridge, {BITS} bits": rx.Unary(range(BITS)).encoding,
}


def bridge_races(settings: Settings, note: Callable[[str], None]) -> list[Race]:
    """Time bridges between two columns of codes, and between two whole columns. What is counted are symbols."""
    return [race(title, _contenders(encoding, settings), settings.rounds, note) for title, encoding in CASES.items()]


def _contenders(encoding: Encoding, settings: Settings) -> list[Contender]:
    objects, symbols = settings.path_objects // encoding.symbols, encoding.symbols
    ids, key, name = np.arange(objects), rx.Key.generate(), encoding.path_name(PathId("benchmark", "answer"))
    lower, middle, upper = (retention(encoding.threshold(as_epsilon(each))) for each in (LOWER, MIDDLE, UPPER))
    codes = np.random.default_rng(1).integers(0, encoding.alphabet, (2, objects, symbols))
    low, high = codes.astype(code_dtype(encoding.alphabet))
    derived, step = bridge_key(key, name, lower, middle, upper), CHUNK // symbols

    def part_by_part(draw: KeyedBridges, stop: int) -> None:
        for start in range(0, stop, step):
            part = slice(start, start + step)
            draw.reports(Messages(Ids.of_integers(ids[part])), low[part], high[part], first=0)

    def reports() -> None:
        part_by_part(keyed_bridges(derived, encoding.alphabet, lower, middle, upper), objects)

    counted = ArrayBridges(derived, encoding.alphabet, lower, middle, upper)
    counting = counted.cipher = Counting(derived)
    part_by_part(counted, step)
    columns = [encoding.column(each) for each in (low, high)]

    def column() -> object:
        return keyed_column(
            encoding, lower, middle, upper, lower=columns[0], upper=columns[1], object_ids=ids, key=key, name=name
        )

    drawn = Contender(OWN, objects * symbols, reports), Contender(COLUMN, objects * symbols, column)
    blocks = encryptions(counting.blocks * objects // min(step, objects), objects * symbols)
    return [contender for own in drawn for contender in (own, by_numpy(own))] + [blocks]


def bridge_comparisons(races: list[Race]) -> list[Comparison]:
    """Return what bridges are held to."""
    return [
        row
        for result in races
        for row in (
            compare(result, OWN, numpy_name(OWN), None),
            *beside_numpy(result, OWN, BLOCKS, BLOCK_TARGET),
            compare(result, COLUMN, numpy_name(COLUMN), None),
        )
    ]
