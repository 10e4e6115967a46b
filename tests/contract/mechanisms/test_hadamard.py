"""The example of another encoding: it runs, keeps its promise, and passes the suite of all encodings."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contract.mechanisms import test_mechanisms as suite
from tests.refusals import refused

from relaxdp.audit.exact_check import check_exactly
from relaxdp.errors import MechanismError
from relaxdp.mechanisms import registry
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.theory.randomized_response import compute_retention

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "hadamard.py"


@pytest.fixture
def hadamard(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The example's names, registered for one test."""
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    return runpy.run_path(str(EXAMPLE))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "check",
    [
        suite.test_path_arrays_and_pieces_are_one, suite.test_integer_ids_and_no_rows, suite.test_counting,
        suite.test_every_kind_of_column, suite.test_estimate, suite.test_columns_are_relaxed_blurred_and_bridged,
        suite.test_levels_are_ordered, suite.test_a_truth_is_shown_nowhere, suite.test_options_make_the_same_encoding,
    ],
)  # fmt: skip
def test_the_suite(check: Callable[[Mechanism], None], hadamard: dict[str, Any]) -> None:
    check(create_mechanism("hadamard", values=suite.LETTERS))


def test_algorithm_1(hadamard: dict[str, Any], tmp_path: Path) -> None:
    suite.test_algorithm_1(create_mechanism("hadamard", values=suite.LETTERS), tmp_path)


def test_it_keeps_its_promise(hadamard: dict[str, Any]) -> None:
    found = check_exactly(hadamard["Hadamard"](suite.LETTERS), suite.LETTERS)
    assert Decimal("2.9999999") < found.privacy_loss <= found.epsilon == 3


def test_without_it_the_name_is_unknown() -> None:
    with refused(MechanismError, name="hadamard", says="Unknown mechanism"):
        create_mechanism("hadamard", values=["a", "b"])


def test_columns_are_orthogonal(hadamard: dict[str, Any]) -> None:
    """What the estimate relies on: any two columns agree in exactly half of the rows, any three in a quarter."""
    encoding = hadamard["Hadamard"](range(12))
    assert encoding.rows == 16
    rows, columns = np.arange(16, dtype=np.uint64), np.arange(12, dtype=np.uint64)
    matrix = hadamard["parity"](rows[:, None] & columns)
    for one in range(12):
        for two in range(one):
            agree = matrix[:, one] == matrix[:, two]
            assert agree.sum() == 8
            for three in range(two):
                assert (agree & (matrix[:, two] == matrix[:, three])).sum() == 4
    support = encoding.compute_noise_and_gain(compute_retention(encoding.threshold(Decimal(1))))
    assert float(support.noise) == 0.5


def test_the_example_runs(hadamard: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    hadamard["main"]()
    shown = capsys.readouterr().out
    assert shown.count("9 bytes a report") == 2
    ends = [tuple(map(float, pair)) for pair in re.findall(r"town 0 .*\[(.*), (.*)\]", shown)]
    assert all(low < 0.4 < high for low, high in ends)
    assert ends[1][1] - ends[1][0] < (ends[0][1] - ends[0][0]) / 2
    assert "the row stays" in shown


def test_the_page_shows_the_example_as_it_is() -> None:
    blocks = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "mechanisms.md").read_text("utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    lines = [line.strip() for line in EXAMPLE.read_text("utf-8").splitlines() if line.strip()]
    for block in blocks:  # an excerpt stands in the page without the indentation of its class
        shown = [line.strip() for line in block.splitlines() if line.strip()]
        assert any(lines[start : start + len(shown)] == shown for start in range(len(lines)))
