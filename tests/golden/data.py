"""Small tables for the golden scenarios, from whole-number formulas, and short spellings of their reports."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Table = dict[str, list[Any]]

KEY = bytes(range(32))
OTHER_KEY = bytes(reversed(range(32)))
DIAGNOSES = ["flu", "covid", "none"]
SMOKER = ["no", "yes"]
CITIES = ["Aachen", "Bonn", "Celle", "Düren", "Essen", "Fulda", "Gera", "Halle", "Ilmenau", "Jena", "Köln", "Lübeck"]
WARDS = ["north", "south", "west"]
AGES = (0, 120)
SQUARES = (0, 14_400)
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def make_people(count: int = 600) -> Table:
    """Return a table of people with text, integer and UUID ids, in an order that is not that of the ids."""
    numbers = [(149 * place + 7) % count for place in range(count)]
    return {
        "patient": [f"patient-{number:03d}" for number in numbers],
        "number": [7919 * number - 1_000_000 for number in numbers],
        "device": [uuid.UUID(int=(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128) for number in numbers],
        "diagnosis": [DIAGNOSES[min(2, number * 17 % 23 // 5)] for number in numbers],
        "smoker": [SMOKER[number * number % 7 == 1] for number in numbers],
        "city": [CITIES[number * 31 % 101 * number % 12] for number in numbers],
        "age": [18 + (3 * number * number + 11 * number) % 73 for number in numbers],
        "age_squared": [(18 + (3 * number * number + 11 * number) % 73) ** 2 for number in numbers],
        "ward": [WARDS[number % 3] for number in numbers],
        "income": [None if number % 9 == 0 else float(10 + 7 * number % 50) for number in numbers],
        "vaccine": [None if number % 5 == 0 else ["A", "B"][number % 3 == 0] for number in numbers],
    }


def choose(table: Mapping[str, list[Any]], columns: Iterable[str], rows: Iterable[int] | None = None) -> Table:
    """Return some columns of a table, and of these some rows by their places."""
    places = None if rows is None else list(rows)
    return {name: list(table[name]) if places is None else [table[name][place] for place in places] for name in columns}


def sort_by(table: Mapping[str, list[Any]], id_column: str) -> Table:
    """Return the table in the order of its ids."""
    order = sorted(range(len(table[id_column])), key=lambda place: table[id_column][place])
    return choose(table, table, order)


def spell(reports: Iterable[Any], values: Sequence[Any]) -> str:
    """Return reports as one letter each: the place of the value in the declared list.

    >>> spell(["none", "flu"], DIAGNOSES)
    '20'
    """
    return "".join(LETTERS[values.index(report)] for report in reports)


def spell_bytes(reports: Iterable[bytes]) -> str:
    """Return packed reports, which all have one length, as hexadecimal digits."""
    return b"".join(reports).hex()


def shares(column: Sequence[Any], values: Sequence[Any]) -> list[float]:
    """Return the true shares of the values in a column."""
    return [column.count(value) / len(column) for value in values]
