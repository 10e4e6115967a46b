"""Estimates as people use them: tidy frames, tables in a notebook, pictures."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from tests.released import KEY, release_to

import relaxdp as rx

mpl.use("Agg")
ROWS = 5_000
COLUMNS: Any = {"city": ["A & B", "<c>"], "answer": ["yes", "no", "?"]}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({
        "id": range(ROWS),
        "city": rng.choice(COLUMNS["city"], ROWS),
        "answer": rng.choice(COLUMNS["answer"], ROWS, p=[0.6, 0.3, 0.1]),
        "ward": rng.choice(["north", "south"], ROWS),
        "town": [f"town {number}" for number in rng.integers(0, 100, ROWS)],
    })  # fmt: skip
    said = COLUMNS | {"town": [f"town {number}" for number in range(100)]}
    output = tmp_path_factory.mktemp("shown") / "out.parquet"
    return release_to(output, frame, said, epsilon=3, passthrough=["ward"])


def well_formed(html: str) -> Any:
    return ET.fromstring(f"<div>{html.replace('&ndash;', '-')}</div>")


def test_a_two_way_table_is_tidy(released: Any) -> None:
    table = rx.estimate(released, "city", crosstab="answer")
    frame = table.to_arrow().to_pandas()
    assert list(frame) == ["city", "answer", "estimate", "std_error", "low", "high"]
    assert frame.loc[4, ["city", "answer"]].to_list() == ["<c>", "no"]
    assert frame.pivot(index="city", columns="answer", values="estimate").shape == (2, 3)
    page = well_formed(table._repr_html_())
    assert [cell.text for cell in page.iter("td")][:2] == ["A & B", "yes"]  # names are text, whatever they look like
    axes = table.plot()
    assert (axes.get_ylabel(), axes.get_xlabel().split("\n")[0]) == ("city", "answer")
    assert len(axes.texts) == 6


def test_groups_are_one_frame(released: Any) -> None:
    groups = rx.estimate(released, "answer", by="ward")
    assert list(groups) == ["north", "south"]
    frame = groups.to_arrow().to_pandas()
    assert list(frame)[:2] == ["ward", "value"]
    assert frame["ward"].to_list() == ["north"] * 3 + ["south"] * 3
    assert np.allclose(frame["estimate"][3:], groups["south"].value)
    assert "ward: north" in well_formed(groups._repr_html_()).find("p").find("b").text
    assert len(groups.plot()) == 2


def test_the_largest_of_many_are_drawn_with_intervals_that_hold_for_all(released: Any) -> None:
    towns = rx.estimate(released, "town")
    axes = towns.plot(top=5)
    assert len(axes.get_yticks()) == 5
    assert "all values at once" in axes.get_xlabel()
    assert len(towns.plot().get_yticks()) == 40
    page = towns._repr_html_()
    assert "... and 80 more, none of them larger" in page
    assert len(list(well_formed(page).iter("svg"))) == 20


def test_a_mean_is_drawn_as_a_number() -> None:
    ages = rx.Numeric(0, 100)
    reports = ages.release(np.full(100, 50.0), np.arange(100), key=KEY, epsilon=1, name="r", column="age")
    mean = ages.estimate(reports, epsilon=1)
    assert mean.plot().get_xlabel().startswith("estimated number")
    assert "mean" in mean._repr_html_()
