"""Golden: reports of one individual and of arrays, for every mechanism, without a budget."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.conftest import missing
from tests.golden import data, driver, recorded, stream

PEOPLE = data.sort_by(data.make_people(200), "patient")
LEVELS = ["0.5", "1", "2"]
WHERE: dict[str, Any] = {"key": data.KEY, "name": "study"}
MECHANISMS = {
    "k-ary": ("diagnosis", driver.k_ary(data.DIAGNOSES)),
    "binary": ("smoker", driver.k_ary(data.SMOKER)),
    "OUE": ("city", driver.unary(data.CITIES)),
    "SUE": ("city", driver.unary(data.CITIES, optimised=False)),
    "OLH": ("city", driver.local_hash(data.CITIES, 8)),
    "numeric": ("age", driver.numeric(*data.AGES)),
    "numeric-missing": ("income", driver.numeric(0, 60, missing=True)),
    "numeric-clip": ("age", driver.numeric(30, 60, clip=True)),
    "square-wave": ("age", driver.square_wave(*data.AGES, bins=16, window=8)),
}
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "numpy": np.array,
    "pyarrow": pa.array,
    "pandas": pd.Series,
    "polars": lambda column: pl.Series("column", column),
}


def spell(mechanism: driver.Mechanism, reports: list[Any]) -> Any:
    """Return reports in a short spelling."""
    if isinstance(reports[0], bytes):
        return data.spell_bytes(reports)
    if mechanism.kind == "square wave":
        return data.spell(reports, range(36))
    ends = [None, *mechanism.ends] if mechanism.ends else mechanism.values
    return data.spell(reports, ends)


# The vectors of the specification: values, name, column, id, value, and the reports at 0.1, 0.5, 1 and 2.
VECTORS: list[tuple[list[Any], str, str, Any, Any, list[int]]] = [
    (["flu", "covid", "none"], "survey-2026", "diagnosis", "patient-17", "covid", [2, 1, 1, 1]),
    (["no", "yes"], "survey-2026", "smoker", -7, "yes", [1, 1, 0, 1]),
    (
        [10, 20, 30, 40, 50], "Erhebung-ä", "Größe", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), 50,
        [2, 2, 4, 4],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("values", "name", "column", "id", "value", "places"), VECTORS)
def test_levels_of_one_individual_in_any_order(
    values: list[Any], name: str, column: str, id: Any, value: Any, places: list[int]
) -> None:
    """An individual's report at a level is always the same, in whatever order and however often levels are read."""
    mechanism, expected = driver.k_ary(values), dict(zip(["0.1", "0.5", "1", "2"], places, strict=True))
    for order in itertools.permutations(expected):
        found = driver.read_levels(mechanism, value, [*order, *order], key=data.KEY, id=id, name=name, column=column)
        assert found == [values[expected[level]] for level in (*order, *order)]


@pytest.mark.parametrize("id_column", ["patient", "number", "device"])
def test_reports_are_those_of_the_specification(id_column: str) -> None:
    """K-ary reports of text, integer and UUID ids are what the specification of the stream gives."""
    found = {}
    for epsilon, (column, values) in itertools.product(
        ["0.1", *LEVELS], {"diagnosis": data.DIAGNOSES, "smoker": data.SMOKER}.items()
    ):
        ids, answers = PEOPLE[id_column], PEOPLE[column]
        reports = driver.draw_reports(driver.k_ary(values), answers, ids, epsilon, column=column, **WHERE)
        by_hand = [
            stream.draw_report(data.KEY, "study", column, values, id, answer, epsilon)
            for id, answer in zip(ids, answers, strict=True)
        ]
        assert reports == by_hand
        found[f"{column} at {epsilon}"] = data.spell(reports, values)
    if id_column == "patient":
        recorded.check("k-ary-reports", found)


def test_other_kinds_of_ids_and_values() -> None:
    """Bytes, the largest integers and long text are ids; integers are declared values."""
    kinds: dict[str, list[Any]] = {
        "bytes": [number.to_bytes(1 + number % 40, "big") for number in range(60)],
        "largest integers": [2**63 + number * 2**57 for number in range(60)],
        "integers around zero": list(range(-30, 30)),
        "long text": ["ä" * number + "😀" for number in range(60)],
    }
    values = [10, 20, 30, 40, 50]
    answers = [values[number * number % 5] for number in range(60)]
    found = {}
    for kind, ids in kinds.items():
        reports = driver.draw_reports(driver.k_ary(values), answers, ids, "1", column="size", **WHERE)
        rows = zip(ids, answers, strict=True)
        assert reports == [stream.draw_report(data.KEY, "study", "size", values, *row, "1") for row in rows]
        found[kind] = data.spell(reports, values)
    recorded.check("kinds-of-ids", found)
    # The number 7 and the text "7" are two individuals.
    seven = [
        driver.read_levels(driver.k_ary(range(1000)), 3, ["0.1"], id=id, column="size", **WHERE) for id in (7, "7")
    ]
    assert seven[0] != seven[1]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("id_column", ["patient", "number", "device"])
def test_containers_give_equal_reports(container: str, id_column: str) -> None:
    """Lists, NumPy, pyarrow, pandas and polars give equal reports, which come back in the same container."""
    make = CONTAINERS[container]
    ids = PEOPLE[id_column]
    column = ids if id_column == "device" and container in ("pyarrow", "polars") else make(ids)
    for name in ("k-ary", "OUE", "OLH", "numeric", "square-wave"):
        attribute, mechanism = MECHANISMS[name]
        plain = driver.draw_reports(mechanism, PEOPLE[attribute], ids, "1", column=attribute, **WHERE)
        values = make(PEOPLE[attribute])
        made = driver.draw_column(mechanism, values, column, "1", column=attribute, **WHERE)
        assert driver.as_list(made) == plain
        assert isinstance(made, pa.Array if container == "pyarrow" else type(values))


@pytest.mark.parametrize("kernel", ["compiled", "numpy"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_at_three_levels(name: str, kernel: str) -> None:
    """Every mechanism has fixed reports at three levels, from the compiled kernel and from NumPy."""
    attribute, mechanism = MECHANISMS[name]
    if kernel == "compiled" and not driver.has_kernel():
        missing("the compiled kernel is not built")
    found: dict[str, Any] = {}
    with driver.draw_with(kernel):
        for epsilon in LEVELS:
            reports = driver.draw_reports(
                mechanism, PEOPLE[attribute], PEOPLE["patient"], epsilon, column=attribute, **WHERE
            )
            found[epsilon] = spell(mechanism, reports)
            one = driver.read_levels(
                mechanism, PEOPLE[attribute][17], [epsilon], id=PEOPLE["patient"][17], column=attribute, **WHERE
            )
            assert one == [reports[17]]
    recorded.check_part("mechanisms", name, found)


@pytest.mark.parametrize("kernel", ["compiled", "numpy"])
def test_bloom_filters_at_three_levels(kernel: str) -> None:
    """RAPPOR's cohorts and reports are fixed at three levels, from the compiled kernel and from NumPy."""
    if kernel == "compiled" and not driver.has_kernel():
        missing("the compiled kernel is not built")
    shape: dict[str, Any] = {"bits": 32, "hashes": 2, "cohorts": 8}
    found: dict[str, Any] = {}
    with driver.draw_with(kernel):
        for epsilon in ("1", "2", "4"):
            cohorts, reports = driver.draw_bloom(
                PEOPLE["city"], PEOPLE["patient"], epsilon, column="city", **shape, **WHERE
            )
            found |= {"cohorts": data.spell(cohorts, range(8)), epsilon: data.spell_bytes(reports)}
    recorded.check("bloom", found)


def test_a_path_depends_on_everything_that_names_it() -> None:
    """Another key, name, column or order of the values is another path with other reports."""
    ids, answers = PEOPLE["patient"], PEOPLE["diagnosis"]
    usual: dict[str, Any] = {"key": data.KEY, "name": "study", "column": "diagnosis"}
    mechanism = driver.k_ary(data.DIAGNOSES)
    first = driver.draw_reports(mechanism, answers, ids, "0.5", **usual)
    others = [
        driver.draw_reports(mechanism, answers, ids, "0.5", **usual | change)
        for change in ({"key": data.OTHER_KEY}, {"name": "study-2"}, {"column": "illness"})
    ]
    others.append(driver.draw_reports(driver.k_ary(data.DIAGNOSES[::-1]), answers, ids, "0.5", **usual))
    # Two independent reports of one individual agree in fewer than half of the cases at this level.
    for other in others:
        assert sum(map(str.__eq__, first, other)) < len(first) * 0.6
    subset = driver.draw_reports(mechanism, answers[50:120], ids[50:120], "0.5", **usual)
    assert subset == first[50:120]
