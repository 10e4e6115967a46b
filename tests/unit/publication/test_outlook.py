"""What a release will tell is said before it is charged, and nobody pays for next to nothing without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import EncodingError, TellsNothingError
from relaxdp.ledger.entries import Subject

ROWS = 3_000
CITIES = [f"city {number}" for number in range(700)]
WHERE: dict[str, Any] = {"id": "id", "key": "key", "to": "out.parquet"}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save("key")
    cities = [CITIES[number % 700] for number in range(ROWS)]
    answers = ["yes" if number % 3 else "no" for number in range(ROWS)]
    ages: list[float] = [number % 90 for number in range(ROWS)]
    pa_parquet.write_table(pa.table({"id": range(ROWS), "city": cities, "x": answers, "age": ages}), "in.parquet")
    Path("cities").write_text("\n".join(CITIES))
    return tmp_path


def spent() -> str:
    with rx.Ledger.open("key.ledger", create=False) as ledger:
        return str(ledger.account(Subject.population("everyone")).spent)


def test_a_new_path_is_encoded_for_what_is_left_of_the_budget() -> None:
    done = rx.release("in.parquet", {"city": CITIES, "x": ["no", "yes"]}, epsilon=1, budget=3, **WHERE)
    cities, answers = done.outlooks
    assert (cities.encoding, str(cities.chosen_for), cities.overruled) == ("local-hash", "3", None)
    assert cities.encoding == rx.best_encoding(700, 3).best
    assert (answers.encoding, str(answers.chosen_for), answers.answer) == ("categorical", "3", "shares")
    assert answers.half_width == rx.plan(values=2, objects=ROWS, epsilon=1).half_width
    # It goes on as it was opened, with its buckets, whatever is left by then; and says so where "auto" is said.
    with rx.Ledger.open("key.ledger") as ledger:
        ledger.raise_budget(Subject.population("everyone"), 9, reason="they agreed")
    again = rx.release("in.parquet", {"city": CITIES}, epsilon=2, **(WHERE | {"to": "two.parquet"}))
    assert (again.outlooks[0].encoding, again.outlooks[0].chosen_for) == ("local-hash", None)
    said = rx.Column(values=CITIES, encoding="auto")
    last = rx.release(
        "in.parquet", {"city": said}, epsilon=2, planned_epsilon=9, again=True, **(WHERE | {"to": "3.parquet"})
    )
    assert (last.outlooks[0].encoding, last.outlooks[0].overruled) == ("local-hash", "categorical")


def test_without_a_ledger_nobody_remembers_a_choice_so_none_is_made() -> None:
    """Chosen for each epsilon anew, a column would take two paths, whose costs add up."""
    free = WHERE | {"ledger": None}
    done = rx.release("in.parquet", {"city": CITIES}, epsilon=1, **free)
    assert done.outlooks[0].encoding == "categorical"
    with refused(EncodingError, remedy="planned_epsilon"):
        rx.release("in.parquet", {"city": rx.Column(values=CITIES, encoding="auto")}, epsilon=1, **free)
    said: Any = {"epsilon": 1, "planned_epsilon": 2, **free, "to": "two.parquet"}
    assert rx.release("in.parquet", {"city": CITIES}, **said).outlooks[0].encoding == "local-hash"


def test_what_tells_next_to_nothing_is_not_paid_for() -> None:
    said = {"city": rx.Column(values=CITIES, encoding="categorical")}
    facts: Any = {"rows": ROWS, "column": "city", "encoding": "categorical", "better_encoding": "local-hash"}
    with refused(TellsNothingError, **facts, remedy="better_encoding accept"):
        rx.release("in.parquet", said, epsilon=1, budget=4, **WHERE)
    frame = pa_parquet.read_table("in.parquet")
    with refused(TellsNothingError, **facts):
        rx.release(frame, said, epsilon=1, budget=4, id="id", key="key", release="in")
    assert not Path("key.ledger").exists()
    assert not Path("out.parquet").exists()
    # A first step on the way to a level that will tell something is no waste: it costs the difference.
    rx.release("in.parquet", {"x": ["no", "yes"]}, epsilon="0.05", planned_epsilon=1, budget=4, **WHERE)
    rx.release("in.parquet", said, epsilon=1, accept=True, **(WHERE | {"to": "two.parquet"}))
    assert spent() == "1.05"
    # What is paid for already is handed over without a question.
    rx.release("in.parquet", said, epsilon=1, **(WHERE | {"to": "three.parquet"}))


def test_a_mean_that_tells_next_to_nothing_is_not_paid_for() -> None:
    with refused(TellsNothingError, column="age", encoding="numeric", says="tell the mean of {column!r}"):
        rx.release("in.parquet", {"age": rx.Numeric(0, 90)}, epsilon="0.01", budget=4, **WHERE)


def command(*words: str) -> list[str]:
    common = ["--id", "id", "--column", "city", "--values-file", "cities", "--key", "key", "--epsilon", "1"]
    return ["release", "in.parquet", "out.parquet", *common, "--budget", "4", *words]


def test_a_release_that_tells_nothing_is_rejected_without_yes() -> None:
    result = CliRunner().invoke(app, command("--encoding", "categorical"))
    assert isinstance(result.exception, TellsNothingError)
    assert "--encoding local-hash would tell more." in result.exception.message
    assert "--yes releases it all the same. Nothing was released." in result.exception.message
    shown = CliRunner().invoke(app, command("--encoding", "categorical", "--yes", "--json"))
    said = json.loads(shown.stdout)["columns"]["city"]
    assert said | {"encoding": "categorical", "chosen_for": None, "overruled": None, "cost": "1"} == said


def test_the_choice_is_said() -> None:
    shown = CliRunner().invoke(app, command("--planned-epsilon", "2")).stdout
    assert "'city' as local-hash, the best for epsilon 2: its shares to within 0.1" in shown
    more = CliRunner().invoke(app, [*command("--encoding", "auto", "--planned-epsilon", "9", "--again"), "--json"])
    assert isinstance(more.exception, rx.errors.TableFileError)  # it is there already


def encoding_of(name: str) -> str:
    return rx.description(name).columns["city"].encoding


def test_whoever_releases_a_column_again_goes_on_as_the_key_encoded_it_first() -> None:
    """Another encoding would be another path, whose cost adds up where no ledger sees it."""
    said: Any = {"epsilon": 1, "accept": True, "as_of": "2026-01-31", **WHERE}
    rx.release("in.parquet", {"city": CITIES}, budget=2, **said)
    assert encoding_of("out.parquet") == "local-hash"
    rx.release("in.parquet", {"city": CITIES}, population="others", budget=9, **(said | {"to": "others.parquet"}))
    rx.release("in.parquet", {"city": CITIES}, **(said | {"to": "free.parquet", "ledger": None}))
    for other in ("others.parquet", "free.parquet"):
        assert Path(other).read_bytes() == Path("out.parquet").read_bytes()


def test_a_ledger_that_begins_anew_asks_how_a_column_was_encoded() -> None:
    rx.release("in.parquet", {"city": CITIES, "x": ["no", "yes"]}, epsilon=1, budget=2, **WHERE)
    anew: Any = {"epsilon": 1, "new_ledger": "lost", "budget": 9, **WHERE, "ledger": "new.ledger", "to": "new.parquet"}
    with refused(EncodingError, remedy="say_encoding"):
        rx.release("in.parquet", {"city": CITIES, "x": ["no", "yes"]}, **anew)
    described = rx.description("out.parquet").columns["city"]
    said = rx.Column(values=CITIES, encoding=described.encoding, options=described.options)
    rx.release("in.parquet", {"city": said, "x": ["no", "yes"]}, **anew)  # two values have one encoding
    assert Path("new.parquet").read_bytes() == Path("out.parquet").read_bytes()


def test_a_ledger_beside_the_key_that_cannot_be_read_is_no_reason_to_choose() -> None:
    rx.release("in.parquet", {"city": CITIES}, epsilon=1, budget=2, **WHERE)
    Path("key.ledger").write_bytes(b"no ledger at all")
    free: Any = {"epsilon": 1, **WHERE, "ledger": None, "to": "free.parquet"}
    with refused(EncodingError, remedy="say_encoding"):
        rx.release("in.parquet", {"city": CITIES}, **free)
    rx.release("in.parquet", {"x": ["no", "yes"]}, **free)  # two values have one encoding
