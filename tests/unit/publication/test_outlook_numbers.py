"""A new path of numbers is rounded to ends or spread as places, by the last planned epsilon; an old one goes on."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import EncodingError
from relaxdp.estimation.advice import best_for_numbers

ROWS = 3_000
WHERE: dict[str, Any] = {"id": "id", "key": "key", "to": "out.parquet"}
AGES = rx.Column(range=(0, 100))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    ages: list[float] = [number % 90 for number in range(ROWS)]
    pa_parquet.write_table(pa.table({"id": range(ROWS), "age": ages}), "in.parquet")
    return tmp_path


def released(said: Any = AGES, **options: Any) -> tuple[str, dict[str, Any], str | None]:
    """Release the ages; return encoding and options, and the epsilon that they were chosen for."""
    done = rx.release("in.parquet", {"age": said}, **{"epsilon": "0.5", "accept": True, **WHERE, **options})
    found = rx.description(options.get("to", "out.parquet")).columns["age"]
    chosen = done.outlooks[0].chosen_for
    assert done.outlooks[0].encoding == found.encoding
    return found.encoding, dict(found.options), None if chosen is None else str(chosen)


def wave(window: int) -> tuple[str, dict[str, Any]]:
    return "wave", {"bins": 64, "window": window}


def test_the_worst_place_decides() -> None:
    """Numbers that are rounded to ends are told worst in the middle, as places near them at the ends."""
    names = [best_for_numbers(Decimal(level)).best for level in ("0.1", "0.5", "1", "1.3", "1.31", "2", "4", "8", "30")]
    assert names == ["numeric"] * 4 + ["wave"] * 5
    assert [type(rx.mechanism(range=(0, 9), epsilon=level)) for level in (None, 1, 2)] == [
        rx.Numeric, rx.Numeric, rx.Wave
    ]  # fmt: skip
    assert rx.mechanism(range=(0, 9), epsilon=4, missing=True).encoding.name == "numeric-missing"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({"budget": 1}, (("numeric", {}), "1")),
        ({"budget": 2}, (wave(32), "2")),
        ({"budget": 4}, (wave(16), "4")),
        ({"budget": 100}, (wave(16), "4")),  # nobody said that all of it is for this column
        ({"budget": 100, "epsilon": 5}, (wave(8), "5")),
        ({"budget": 100, "planned_epsilon": 8}, (wave(4), "8")),
        ({"budget": 100, "planned_epsilon": 1}, (("numeric", {}), "1")),
    ],
)
def test_a_new_path_of_numbers_is_for_the_last_planned_epsilon(plan: Any, expected: Any) -> None:
    encoding, options, chosen = released(**plan)
    assert ((encoding, options), chosen) == expected


def test_missing_numbers_are_rounded() -> None:
    assert released(rx.Column(range=(0, 100), missing=True), budget=4) == ("numeric-missing", {}, None)


def test_a_path_goes_on_as_it_began() -> None:
    """Whatever is planned by then; and it says so where "auto" is said."""
    assert released(rx.Column(range=(0, 100), encoding="numeric"), budget=8)[0] == "numeric"
    assert released(to="two.parquet", epsilon=1, planned_epsilon=6) == ("numeric", {}, None)
    auto = rx.Column(range=(0, 100), encoding="auto")
    done = rx.release("in.parquet", {"age": auto}, epsilon=2, planned_epsilon=6, **(WHERE | {"to": "3.parquet"}))
    assert (done.outlooks[0].encoding, done.outlooks[0].overruled) == ("numeric", "wave")
    assert str(done.charges[0].cost) == "1"


def test_a_choice_is_made_once() -> None:
    """For all that release it with this key, with a ledger or without, and however much is left."""
    assert released(budget=4, as_of="2026-01-31") == (*wave(16), "4")
    again: Any = {"as_of": "2026-01-31", "epsilon": "0.5"}
    assert released(to="2.parquet", population="others", budget=1, **again)[:2] == wave(16)
    assert released(to="3.parquet", ledger=None, **again)[:2] == wave(16)
    for other in ("2.parquet", "3.parquet"):
        assert Path(other).read_bytes() == Path("out.parquet").read_bytes()


def test_without_a_ledger_numbers_are_rounded_as_they_always_were() -> None:
    """A plan alone changes nothing: nobody would notice that a path was opened twice."""
    assert released(ledger=None) == ("numeric", {}, None)
    assert released(ledger=None, planned_epsilon=4, to="2.parquet") == ("numeric", {}, None)
    assert Path("2.parquet").read_bytes() == Path("out.parquet").read_bytes()
    auto = rx.Column(range=(0, 100), encoding="auto")
    with refused(EncodingError, remedy="planned_epsilon"):
        released(auto, ledger=None, to="3.parquet")
    assert released(auto, ledger=None, planned_epsilon=4, to="3.parquet") == (*wave(16), "4")


@pytest.mark.parametrize("where", ["lost", "elsewhere"])
def test_without_the_ledger_that_was_begun_nobody_guesses(where: str) -> None:
    """It knows that the column is a wave: rounded, it would take a second path that no ledger sees."""
    if where == "lost":
        released(budget=4)
        Path("key.ledger").rename("away")
    else:
        released(budget=4, ledger="other.ledger")
    with refused(EncodingError, remedy="say_encoding"):
        released(ledger=None, to="2.parquet")
    assert not Path("2.parquet").exists()


def test_a_ledger_that_begins_anew_asks_how_numbers_were_encoded() -> None:
    released(budget=4)
    anew: Any = {"new_ledger": "lost", "budget": 4, "ledger": "new.ledger", "to": "new.parquet"}
    with refused(EncodingError, remedy="say_encoding"):
        released(**anew)
    with refused(EncodingError, remedy="say_encoding"):
        released(rx.Column(range=(0, 100), encoding="auto"), **anew)
    described = rx.description("out.parquet").columns["age"]
    released(rx.Column(range=(0, 100), encoding=described.encoding, options=described.options), **anew)
    assert Path("new.parquet").read_bytes() == Path("out.parquet").read_bytes()


def test_the_choice_is_said() -> None:
    words = ["--id", "id", "--column", "age", "--range", "0", "100", "--key", "key", "--budget", "4", "--epsilon"]
    shown = CliRunner().invoke(app, ["release", "in.parquet", "out.parquet", *words, "2"])
    assert "'age' as wave, the best for epsilon 4: its mean to within 2" in shown.stdout
    early = CliRunner().invoke(app, ["release", "in.parquet", "2.parquet", *words, "0.5", "--population", "others"])
    assert "'age' as wave: its mean" in early.stdout  # it goes on, so nothing was chosen
    first = CliRunner().invoke(
        app, ["release", "in.parquet", "3.parquet", *words, "0.5", "--release", "r", "--dry-run"]
    )
    assert "'age' as wave, the best for epsilon 2\n" in first.stdout  # which is what is left


def test_who_begins_with_a_level_at_which_rounding_is_better_is_told() -> None:
    words = [
        "--id",
        "id",
        "--column",
        "age",
        "--range",
        "0",
        "100",
        "--key",
        "key",
        "--budget",
        "4",
        "--epsilon",
        "0.5",
    ]
    first = CliRunner().invoke(app, ["release", "in.parquet", "out.parquet", *words])
    assert "as wave, the best for epsilon 4 (--planned-epsilon says which is the last): its mean" in first.stdout
