"""Every mechanism through a vault: its own reports in every format, relaxed, crossed and in groups."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import printed
from tests.patience import PATIENCE
from tests.refusals import refused
from tests.released import KEY, open_vault

import relaxdp as rx
from relaxdp.errors import EstimationError, MetadataError, ReleaseChangedError, UndeclaredValueError

ROWS = 3_000
VALUES = [f"v{number}" for number in range(40)]
MECHANISMS: dict[str, Any] = {
    "k-ary": rx.Categorical(VALUES),
    "SUE": rx.Unary(VALUES, optimised=False),
    "OUE": rx.Unary(VALUES),
    "OLH": rx.LocalHash(VALUES, buckets=4),
}
WARDS: dict[str, Any] = {"k-ary": rx.Categorical(["0", "1"]), "SUE": rx.Unary(["0", "1"], optimised=False)}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    truth = [VALUES[code] for code in rng.integers(0, 40, ROWS) ** 2 // 40]
    wards = rng.integers(0, 2, ROWS).astype(str)
    pa_parquet.write_table(pa.table({"id": rng.permutation(ROWS), "answer": truth, "ward": wards}), "in.parquet")
    return tmp_path


def release(
    output: str, columns: Any, *, epsilon: Any = 1, name: str = "in", source: Any = "in.parquet", **more: Any
) -> rx.Release:
    vault = open_vault(Path().absolute())
    return vault.release(source, columns, id="id", epsilon=epsilon, name=name, output=output, **more)


def draw(mechanism: Any, column: str, epsilon: Any, name: str = "in") -> Any:
    """Return the reports of the whole table in the order of the ids, without a vault."""
    table = pa_parquet.read_table("in.parquet").sort_by("id")
    return mechanism.release(table[column], table["id"], key=KEY, epsilon=epsilon, name=name, column=column)


@every_mechanism
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_hold_the_reports_of_the_mechanism(name: str, ending: str) -> None:
    mechanism = MECHANISMS[name]
    release(f"out.{ending}", {"answer": mechanism})
    reports = draw(mechanism, "answer", 1)
    if ending == "parquet":
        assert pa_parquet.read_table("out.parquet")["answer"].to_pylist() == pa.array(reports).to_pylist()
    expected, found = mechanism.estimate(reports, epsilon=1), rx.estimate(f"out.{ending}")
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert np.allclose(found.interval(), expected.interval(), atol=1e-9)


@every_mechanism
def test_a_name_goes_on_with_the_mechanism_of_its_first_release(name: str) -> None:
    mechanism = MECHANISMS[name]
    assert release("one.parquet", {"answer": mechanism}).cost == 1
    assert release("two.parquet", {"answer": VALUES}, epsilon=2).cost == 1
    relaxed = open_vault(Path().absolute()).relax("in", 4, output="four.parquet")
    assert relaxed.cost == 2
    assert relaxed.columns[0].mechanism.name == mechanism.name
    other = MECHANISMS["OUE" if name != "OUE" else "k-ary"]
    with refused(ReleaseChangedError, column="answer"):
        release("three.parquet", {"answer": other})
    # Three levels of the same individuals: each counts once, at its highest.
    files = ["one.parquet", "two.parquet", "four.parquet"]
    assert np.array_equal(rx.estimate(files).value, rx.estimate("four.parquet").value)
    reports = pa.array(draw(mechanism, "answer", 4)).to_pylist()
    assert pa_parquet.read_table("four.parquet")["answer"].to_pylist() == reports


@pytest.mark.parametrize("name", ["OUE", "OLH"])
def test_groups_and_a_second_file_of_other_people(name: str) -> None:
    release("all.parquet", {"answer": MECHANISMS[name]}, passthrough=["ward"])
    whole = pa_parquet.read_table("all.parquet")
    groups = rx.estimate("all.parquet", by="ward")
    wards = whole["ward"].to_pylist()
    assert {ward: group.n for ward, group in groups.items()} == {ward: wards.count(ward) for ward in ("0", "1")}
    for ward in ("0", "1"):
        pa_parquet.write_table(whole.filter(pa.compute.equal(whole["ward"], ward)), f"{ward}.parquet")
    assert np.array_equal(rx.estimate(["0.parquet", "1.parquet"]).value, rx.estimate("all.parquet").value)
    with pytest.raises(EstimationError, match="in more than one row of the same level"):
        rx.estimate(["all.parquet", "0.parquet"], description=["all.parquet", "all.parquet"])


def test_reports_of_another_width_or_kind_are_rejected() -> None:
    release("out.parquet", {"answer": MECHANISMS["OUE"]})
    table = pa_parquet.read_table("out.parquet")
    # Forty bits fill five bytes: any five bytes are a report, four are none, and neither is text.
    for column, kind in (
        (pa.array([b"\xff" * 4] * ROWS, pa.binary(4)), EstimationError),
        (pa.array(["a report"] * ROWS), MetadataError),
    ):
        pa_parquet.write_table(table.set_column(1, "answer", column), "bad.parquet")
        with refused(kind, name="answer"):
            rx.estimate("bad.parquet")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(("answers", "wards"), [("OUE", "k-ary"), ("OLH", "SUE")])
def test_a_crosstab_of_any_two_mechanisms(answers: str, wards: str, ending: str) -> None:
    """It is what the mechanisms count: where one file holds both columns, and where each has a file and a level."""
    columns = {"answer": MECHANISMS[answers], "ward": WARDS[wards]}
    release(f"both.{ending}", columns)
    for column in columns:
        open_vault(Path().absolute()).relax("in", 2, columns=[column], output=f"{column}.{ending}")

    def crosstab(row_epsilon: int, column_epsilon: int) -> Any:
        levels = (row_epsilon, column_epsilon)
        rows, others = (
            draw(mechanism, column, epsilon)
            for (column, mechanism), epsilon in zip(columns.items(), levels, strict=True)
        )
        return rx.crosstab(
            columns["answer"], rows, columns["ward"], others, row_epsilon=row_epsilon, column_epsilon=column_epsilon
        )

    for files, levels in (([f"both.{ending}"], (1, 1)), ([f"both.{ending}", f"ward.{ending}"], (1, 2))):
        found, expected = rx.estimate(files, "answer", crosstab="ward"), crosstab(*levels)
        assert np.array_equal(found.value, expected.value)
        assert found.n == expected.n == ROWS
        assert np.allclose(found.interval(), expected.interval())
    half = pa_parquet.read_table("in.parquet").slice(0, ROWS // 2)
    for name in ("half", "double"):
        release(f"{name}.{ending}", {"ward": columns["ward"]}, epsilon=2, source=half)
    files = [f"answer.{ending}", f"half.{ending}"]
    assert rx.count(files, "answer", crosstab="ward").n == ROWS // 2  # those that have both
    with pytest.raises(EstimationError, match="in more than one row"):
        rx.estimate([*files, f"double.{ending}"], "answer", crosstab="ward")


@pytest.mark.parametrize("name", ["OUE", pytest.param("OLH", marks=pytest.mark.long)])
def test_levels_in_files_of_several_formats(name: str) -> None:
    """Each individual counts once, at the highest level, whatever the files are; nothing is taken from a lower one."""
    for ending in ("parquet", "csv"):
        for level, epsilon in (("low", "0.5"), ("high", "1")):
            release(f"{level}.{ending}", {"answer": MECHANISMS[name]}, epsilon=epsilon, passthrough=["ward"])
    expected = rx.estimate("high.parquet", by="ward").to_frame()
    for files in (["low.csv", "high.parquet"], ["low.parquet", "high.csv"]):
        assert rx.estimate(files, by="ward").to_frame().equals(expected)
    table = pa_parquet.read_table("high.parquet")
    gone = np.arange(ROWS) < ROWS // 2
    for column in ("answer", "ward"):
        place = table.schema.get_field_index(column)
        cells = pa.array([None if each else cell.as_py() for each, cell in zip(gone, table[column], strict=True)])
        changed = table.set_column(place, column, cells.cast(table.schema.field(column).type))
        pa_parquet.write_table(changed, f"no-{column}.parquet")
    with pytest.raises(EstimationError):
        rx.estimate(["low.parquet", "no-answer.parquet"])
    groups = rx.estimate(["low.parquet", "no-ward.parquet"], by="ward")
    assert groups[None].n == ROWS // 2


# Numbers outside of a range, and missing ones.

DELAYS = rx.Numeric(-30, 120, clip=True, missing=True)


def delays() -> list[float | None]:
    rng = np.random.default_rng(4)
    numbers = np.round(rng.normal(10, 40, ROWS))
    numbers[:20] = 1e6
    return [None if gone else float(number) for number, gone in zip(numbers, rng.random(ROWS) < 0.2, strict=True)]


def release_delays(output: str, mechanism: Any = DELAYS, numbers: Any = None) -> rx.Release:
    table = pa.table({"id": range(ROWS), "delay": delays() if numbers is None else numbers})
    return release(output, {"delay": mechanism}, epsilon=2, source=table)


def test_the_mean_of_what_is_there_and_the_share_that_is_missing() -> None:
    release_delays("out.parquet")
    reports = pa_parquet.read_table("out.parquet")["delay_report"]
    assert reports.null_count == 0
    assert set(reports.to_pylist()) == {"missing", "-30", "120"}
    own = DELAYS.release(delays(), list(range(ROWS)), key=KEY, epsilon=2, name="in", column="delay")
    assert reports.to_pylist() == own
    result = rx.estimate("out.parquet", "delay")
    there = [min(max(each, -30), 120) for each in delays() if each is not None]
    low, high = result.interval(0.999)
    assert low < np.mean(there) < high
    (below,), (above,) = result.missing.interval(0.999)
    assert below < 1 - len(there) / ROWS < above
    shown = printed("estimate", "out.parquet")
    assert "mean of 'delay" in shown
    assert "missing" in shown


def test_clipping_and_missing_are_fixed_by_the_first_release() -> None:
    release_delays("out.parquet")
    for other in (
        rx.Numeric(-30, 120, missing=True), rx.Numeric(-30, 120, clip=True), rx.Numeric(-30, 120)
    ):  # fmt: skip
        with refused(ReleaseChangedError):
            release_delays("two.parquet", other)


def test_a_clipped_number_is_the_end_of_the_range() -> None:
    """A million that became two million is the same number in the range: the row did not change."""
    release_delays("out.parquet")
    larger = [2e6 if number == 1e6 else number for number in delays()]
    assert release_delays("two.parquet", numbers=larger).cost == 0
    one, two = (pa_parquet.read_table(f"{name}.parquet") for name in ("out", "two"))
    assert one.to_pydict() == two.to_pydict()


def test_numbers_outside_and_missing_ones_are_rejected_unless_declared() -> None:
    with refused(UndeclaredValueError):
        release_delays("two.parquet", rx.Numeric(-30, 120, missing=True))
    with refused(UndeclaredValueError):
        release_delays("two.parquet", rx.Numeric(-30, 120, clip=True))
    assert open_vault(Path().absolute()).spent == 0


# One call does what a command does.


@pytest.mark.parametrize(
    ("column", "declared", "words"),
    [
        ("answer", VALUES, [f"answer={','.join(VALUES)}"]),
        ("answer", MECHANISMS["OUE"], [f"answer={','.join(VALUES)}", "--mechanism", "answer=oue"]),
        ("ward", ["0", "1"], ["ward=0,1"]),
        ("ward", ["0", "1", None], ["ward=0,1", "--missing", "ward"]),
        ("number", rx.Numeric(0, 90), ["number=0..90", "--mechanism", "number=numeric"]),
        ("number", rx.Numeric(0, 50, clip=True), ["number=0..50", "--mechanism", "number=numeric", "--clip", "number"]),
    ],
)
def test_a_call_writes_what_the_command_writes(column: str, declared: Any, words: list[str]) -> None:
    table = pa_parquet.read_table("in.parquet").append_column("number", pa.array(np.arange(ROWS) % 90))
    pa_parquet.write_table(table, "in.parquet")
    release("call.parquet", {column: declared}, epsilon="1")
    printed("release", "in.parquet", "command.parquet", "--id", "id", "--epsilon", "1", "--column", *words)
    vault = open_vault(Path().absolute())
    assert vault.spent == 1
    assert vault.check(["call.parquet", "command.parquet"]).problems == []
    one, two = (pa_parquet.read_table(f"{name}.parquet") for name in ("call", "command"))
    assert one.to_pydict() == two.to_pydict()
    assert rx.description("call.parquet") == rx.description("command.parquet")
    (made,) = vault.release(table, {column: declared}, id="id", epsilon=1, name="in").columns
    assert made.column == column
    assert made.cost == 0


IN_A_NOTEBOOK = """
import sys, types
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["ipywidgets"] = None
import relaxdp as rx
vault = rx.Vault("study.vault")
vault.release("in.parquet", {"ward": ["0", "1"]}, id="id", epsilon=1, name="in", output="out.parquet")
print(rx.estimate("out.parquet").labels)
"""


def test_a_notebook_needs_no_widgets() -> None:
    """DuckDB draws a progress bar in a notebook, and fails where it cannot: sorting and counting go on."""
    open_vault(Path().absolute())
    done = subprocess.run(
        [sys.executable, "-c", IN_A_NOTEBOOK], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == "('0', '1')\n", done.stderr
