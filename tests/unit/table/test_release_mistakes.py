"""`relaxdp release` and what people get wrong first: a refusal says what is wrong and what works, and costs nothing."""

from __future__ import annotations

import datetime
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import status_and_words
from tests.patience import PATIENCE
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.table import order
from relaxdp.table.formats import released
from relaxdp.table.interrupts import interruptible

SECRET = "secret-illness"
HEX = bytes(range(32)).hex()
EVERYONE = Subject.population("everyone")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    return tmp_path


def write(column: Any, name: str = "in.parquet") -> None:
    array = column if isinstance(column, pa.Array) else pa.array(column)
    pa_parquet.write_table(pa.table({"id": range(len(array)), "x": array}), name)


def run(*words: str, source: str = "in.parquet", target: str = "out.parquet", epsilon: str = "60") -> tuple[int, str]:
    """Run the command as `main` would: an error of ours is its sentence and exit status 2."""
    options = ["--column", "x", "--id", "id", "--epsilon", epsilon, "--budget", "100", "--yes"]
    key = [] if "--key" in words else ["--key", "key"]
    command = "relax" if "--from-reports" in words else "release"
    return status_and_words(command, source, target, *options, *key, *words)


def refused(*words: str, **more: str) -> str:
    """Return the sentence of a refusal that wrote and charged nothing."""
    before = sorted(Path().rglob("*"))
    status, sentence = run(*words, **more)
    assert status == 2, sentence
    assert SECRET not in sentence
    after = [file for file in sorted(Path().rglob("*")) if file.name != "key.ledger"]
    assert after == [file for file in before if file.name != "key.ledger"]
    if Path("key.ledger").exists() and Path("key.ledger") not in before:
        with Ledger.open("key.ledger") as book:
            assert book.history() == []
    return sentence


def column_of(name: str = "out.parquet") -> list[Any]:
    found: list[Any] = pa_parquet.read_table(name)["x"].to_pylist()
    return found


# A map.


@pytest.mark.parametrize("nulls", [(), ("--nulls", "unknown")])
@pytest.mark.parametrize("coded", [False, True])
def test_a_value_that_the_map_does_not_name_is_not_missing(place: Path, nulls: tuple[str, ...], coded: bool) -> None:
    (place / "map.csv").write_text("a,1\nb,1\nc,2\n")
    column = pa.array(["a", "b", "c", SECRET])
    write(column.dictionary_encode() if coded else column)
    sentence = "row 4: the value is not in the map. Nothing was released."
    assert refused("--map", "map.csv", *nulls) == sentence
    pa_parquet.write_table(pa.table({"id": [5, 4, 3], "x": [SECRET, "a", "b"]}), "in.parquet")
    assert refused("--map", "map.csv", *nulls).startswith("row 3 in the order of the ids: the value is not in the map")


def test_behind_a_map_what_is_missing_is_missing(place: Path) -> None:
    (place / "map.csv").write_text("a,1\nb,1\nc,2\n")
    write(["a", None, "c"])
    assert refused("--map", "map.csv") == (
        "row 2: the value is missing, which is not one of the 2 declared values. "
        "--nulls NAME makes it a value of its own. Nothing was released."
    )
    assert run("--map", "map.csv", "--nulls", "unknown")[0] == 0
    assert column_of() == ["1", "unknown", "2"]


def test_a_map_of_true_and_false_is_spelled_as_they_are(place: Path) -> None:
    write([True, False])
    (place / "map.csv").write_text("True,yes\nFalse,no\n")
    assert refused("--map", "map.csv") == (
        "row 1: the value is not in the map, where a column of true and false is written as true and false. "
        "Nothing was released."
    )
    (place / "map.csv").write_text("true,yes\nfalse,no\n")
    assert run("--map", "map.csv")[0] == 0
    assert column_of() == ["yes", "no"]


# True and false, and dates.

DAYS = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)]


@pytest.mark.parametrize(
    ("column", "values", "reports"),
    [
        ([True, False, True], "true,false", ["true", "false", "true"]),
        (DAYS, "2026-01-31,2026-02-01", ["2026-01-31", "2026-02-01"]),
        (pa.array(DAYS, pa.date64()), "2026-01-31,2026-02-01", ["2026-01-31", "2026-02-01"]),
    ],
)
def test_true_false_and_dates_are_declared_as_text(place: Path, column: Any, values: str, reports: list[str]) -> None:
    write(column)
    assert run("--values", values)[0] == 0
    assert column_of() == reports
    assert released(place / "out.parquet")[1].columns["x"].values == tuple(values.split(","))
    # The very reports that text of the same spelling gets: the path does not know what the column was.
    write(reports)
    assert "cost 0;" in run("--values", values, target="text.parquet")[1]
    assert pa_parquet.read_table("text.parquet").equals(pa_parquet.read_table("out.parquet"))


def test_true_and_false_that_are_missing(place: Path) -> None:
    write([True, None, False])
    assert refused("--values", "true,false").startswith("row 2: the value is missing")
    assert run("--values", "true,false", "--nulls", "unknown")[0] == 0
    assert column_of() == ["true", "unknown", "false"]
    assert released(place / "out.parquet")[1].columns["x"].values == ("true", "false", "unknown")


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        (
            [True, False],
            values,
            "'x' holds true and false, which are declared as 'true' and 'false'. "
            "--map FILE with the lines true,yes and false,no gives them other names. Nothing was released.",
        )
        for values in ("True,False", "1,0", "yes,no")
    ]
    + [
        (
            DAYS,
            "31.1.2026,1.2.2026",
            "'x' holds dates, which are declared like '2026-01-31'. "
            "--map FILE with lines like 2026-01-31,winter gives them other names. Nothing was released.",
        ),
        (
            [0.5, 1.5],
            "0.5,1.5",
            "the values are numbers and cannot be compared with the 2 declared ones, which are of kind text. "
            "--range and --bins are for numbers, and --map FILE says what each value becomes. Nothing was released.",
        ),
    ],
)
def test_a_column_of_another_kind_than_its_values(place: Path, column: Any, values: str, sentence: str) -> None:
    write(column)
    assert refused("--values", values) == sentence


def test_points_in_time_are_no_values(place: Path) -> None:
    write([datetime.datetime(2026, 1, 31, 12), datetime.datetime(2026, 2, 1)])
    assert refused("--values", "2026-01-31,2026-02-01") == (
        "the values are times and cannot be compared with the 2 declared ones, which are of kind text. Nothing was "
        "released."
    )


# Numbers.


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_missing_number_is_said_to_be_missing(place: Path, gap: float | None) -> None:
    write(pa.array([1.0, gap, 3.0]))
    way = "--missing makes it a report of its own; --bins with --nulls NAME a class of its own."
    assert refused("--range", "0", "100") == f"row 2: the number is missing. {way} Nothing was released."
    (place / "in.csv").write_text("id,x\n1,2\n2,\n")
    assert refused("--range", "0", "100", source="in.csv").startswith("row 2: the number is missing.")
    assert refused("--range", "0", "100", "--nulls", "unknown") == (
        "numbers in a range have no value for what is missing. --missing makes it a report of its own; --bins with "
        "--nulls NAME a class of its own. Nothing was released."
    )
    assert run("--bins", "2", "--nulls", "unknown")[0] == 0
    assert column_of() == ["below 2", "unknown", "2 or more"]
    write([1.0, 200.0])
    sentence = "row 2: the number is not within the range 0 .. 100. --clip puts numbers into it. Nothing was released."
    assert refused("--range", "0", "100", "--no-ledger", target="other.parquet") == sentence


# Declared values.


def test_what_is_not_declared_is_shown_beside_what_is(place: Path) -> None:
    write(["n", SECRET])
    sentence = "row 2: the value is not one of the 3 declared values. Declared: 'n', '', 's'. Nothing was released."
    assert refused("--values", "n,,s") == sentence
    (place / "values.txt").write_text("\n".join(["n", "v" * 100, *(f"value {number}" for number in range(98))]))
    assert refused("--values-file", "values.txt").endswith(
        f"Declared: 'n', '{'v' * 30}...', 'value 0', 'value 1', 'value 2', 'value 3', 'value 4', 'value 5' "
        "and 92 more. Nothing was released."
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            'pizza,"salad, green"',
            "--values is cut at every comma and takes quotation marks as they are, so that '\"salad' would be one of "
            "the values. --values-file FILE takes such values, one a line. Nothing was released.",
        ),
        (
            "n, s",
            "--values would declare ' s', with a blank at one end: write n,s without blanks. --values-file FILE "
            "takes values as they are, one a line. Nothing was released.",
        ),
        (
            "x=n,s ",
            "--values would declare 's ', with a blank at one end: write n,s without blanks. --values-file FILE "
            "takes values as they are, one a line. Nothing was released.",
        ),
    ],
)
def test_quotation_marks_and_blanks(place: Path, values: str, sentence: str) -> None:
    write(["n", "s"])
    assert refused("--values", values) == sentence


def test_a_file_of_values_takes_them_as_they_are(place: Path) -> None:
    write([" s", '"n"', "salad, green"])
    (place / "values.txt").write_text(' s\n"n"\nsalad, green\n')
    assert run("--values-file", "values.txt")[0] == 0
    assert column_of() == [" s", '"n"', "salad, green"]


# The table.


@pytest.mark.parametrize("declared", [("--values", "a,b"), ("--range", "0", "1")])
def test_two_columns_of_one_name(place: Path, declared: tuple[str, ...]) -> None:
    (place / "in.csv").write_text("id,x,x\n1,a,b\n")
    sentence = "the table has 2 columns named 'x': give them different names. Nothing was released."
    assert refused(*declared, source="in.csv") == sentence
    columns = [pa.array([1]), pa.array(["a"]), pa.array(["b"])]
    pa_parquet.write_table(pa.Table.from_arrays(columns, names=["id", "x", "x"]), "in.parquet")
    assert refused(*declared) == sentence


@pytest.mark.parametrize("rows", ["1,a,p,q\n2,b,p,q\n", "2,b,p,q\n1,a,p,q\n"])
def test_two_columns_of_one_name_that_nobody_asks_for(place: Path, rows: str) -> None:
    (place / "in.csv").write_text(f"id,x,other,other\n{rows}")
    assert run("--values", "a,b", source="in.csv")[0] == 0
    assert column_of() == ["a", "b"]


def test_the_names_of_a_table_without_a_header_are_data(place: Path) -> None:
    """Not one of them may be said, nor that one of them is near to what was asked for."""
    (place / "in.csv").write_text(f"17,x-{SECRET}\n18,{SECRET}\n")
    sentence = (
        "the table has no column 'x'. It has 2 columns, whose names are not shown: those of a table without a header "
        "are data. Look at the first line of 'in.csv'. Nothing was released."
    )
    assert refused("--values", "a,b", source="in.csv") == sentence
    for names, asked in (("x,idd", "id"), (f"x,id,{SECRET}s", SECRET[:-1])):
        (place / "in.csv").write_text(f"{names}\na,17,b\n")
        told = refused("--values", "a,b", "--keep", SECRET[:-1], source="in.csv")
        assert told.startswith(f"the table has no column {asked!r}. It has {names.count(',') + 1} columns, whose names")


def test_the_names_of_a_parquet_file_are_a_schema(place: Path) -> None:
    pa_parquet.write_table(pa.table({"id": [1], "xy": ["a"]}), "in.parquet")
    assert refused("--values", "a,b") == "the table has no column 'x'. Did you mean 'xy'? Nothing was released."
    pa_parquet.write_table(pa.table({"id": [1], "other": ["a"]}), "in.parquet")
    assert refused("--values", "a,b") == "the table has no column 'x'. It has: 'id', 'other'. Nothing was released."


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
def test_a_table_whose_fields_are_not_separated_by_commas(place: Path, mark: str, name: str) -> None:
    (place / "in.csv").write_text(f"id{mark}x\n1{mark}a\n")
    assert refused("--values", "a,b", source="in.csv") == (
        f"the table has no column 'x': its fields seem to be separated by {name}. --separator says so, like "
        "--separator ';' for semicolons. Nothing was released."
    )
    assert run("--values", "a,b", "--separator", mark, source="in.csv")[0] == 0


@pytest.mark.parametrize("ids", [(1, 2, 3), (3, 2, 1)])
def test_a_row_with_another_number_of_fields(place: Path, ids: tuple[int, ...]) -> None:
    (place / "in.csv").write_text(f"id,x\n{ids[0]},a\n\n{ids[1]},b\n{ids[2]},{SECRET},more\n")
    assert refused("--values", "a,b", source="in.csv") == (
        "row 3: it has not as many fields as the header, which has 2. Nothing was released."
    )


def test_a_table_without_rows(place: Path) -> None:
    sentence = "the table has no rows. Nothing was released."
    (place / "in.csv").write_text("id,x\n")
    for target in ("out.csv", "out.parquet"):
        assert refused("--values", "a,b", source="in.csv", target=target) == sentence
    write(["a"])
    pa_parquet.write_table(pa_parquet.read_table("in.parquet").slice(0, 0), "in.parquet")
    for words in ((), ("--no-ledger",)):
        assert refused("--values", "a,b", *words) == sentence
    status, message = run("--values", "a,b", "--growing")
    assert (status, message) == (2, sentence)
    with Ledger.open("key.ledger") as book:
        assert book.history() == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_released_file_is_no_truth(place: Path, ending: str) -> None:
    (place / "in.csv").write_text("id,x,y\n1,a,p\n2,b,q\n")
    assert run("--values", "a,b", "--keep", "y", source="in.csv", target=f"o.{ending}", epsilon="1")[0] == 0
    before = (place / "key.ledger").read_bytes()
    told = " o.csv.relaxdp.json says so." if ending == "csv" else ""
    assert refused("--values", "a,b", "--release", "in", source=f"o.{ending}", epsilon="2") == (
        f"'x' of 'o.{ending}' was released by relaxdp, and holds reports instead of the truth.{told} To relax it, "
        "release the table that it was made from at a larger epsilon. Nothing was released."
    )
    assert (place / "key.ledger").read_bytes() == before
    # A column that was kept is what it was.
    words = ["--column", "y", "--id", "id", "--values", "p,q", "--epsilon", "60", "--key", "key", "--no-ledger"]
    assert CliRunner().invoke(app, ["release", f"o.{ending}", "y.parquet", *words]).exit_code == 0
    assert pa_parquet.read_table("y.parquet")["y"].to_pylist() == ["p", "q"]


def test_a_description_that_cannot_be_read_is_one(place: Path) -> None:
    (place / "in.csv").write_text("id,x\n1,a\n2,b\n")
    for content in (b"{}", b"\xff"):
        (place / "in.csv.relaxdp.json").write_bytes(content)
        assert "'in.csv' was released by relaxdp" in refused("--values", "a,b", source="in.csv")


# The output.


def test_an_output_that_exists(place: Path) -> None:
    write(["a", "b"])
    (place / "out.parquet").write_text("precious")
    exists = "'out.parquet' exists already. Name another file or remove it"
    assert refused("--values", "a,b") == f"{exists}. Nothing was released."
    assert refused("--values", "a,b", "--no-ledger") == f"{exists}. Nothing was released."
    (place / "out.parquet").unlink()
    assert run("--values", "a,b", epsilon="1")[0] == 0
    assert refused("--values", "a,b", epsilon="1") == f"{exists}: this level again costs nothing. Nothing was released."
    assert refused("--values", "a,b", epsilon="2") == f"{exists}. Nothing was released."
    assert refused("--values", "a,b", epsilon="1000") == f"{exists}. Nothing was released."


def test_a_description_that_exists(place: Path) -> None:
    (place / "in.csv").write_text("id,x\n1,a\n2,b\n")
    for epsilon in ("1", "2"):
        status, sentence = run("--values", "a,b", source="in.csv", target="out.csv", epsilon=epsilon)
        (place / "out.csv").unlink(missing_ok=True)
    assert (status, sentence) == (
        2,
        "'out.csv.relaxdp.json' exists already, and is the description of something else. Name another file or remove "
        "it. Nothing was released.",
    )
    assert run("--values", "a,b", source="in.csv", target="out.csv", epsilon="1")[0] == 0


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--from-reports", "in.parquet", "--old-epsilon", "0.1")])
def test_only_spark_writes_a_folder(place: Path, words: tuple[str, ...]) -> None:
    write(["a", "b"])
    assert refused("--values", "a,b", *words, target="folder") == (
        "'folder': the name of the output must end in .parquet, .csv or .tsv, because one file is written; of text "
        "also with .gz or .zst behind it. Only --engine spark writes a folder. Nothing was released."
    )
    (place / "folder").mkdir()
    assert refused("--values", "a,b", *words, target="folder") == (
        "'folder' is a folder, and one file is written: name a file in it, like 'folder/out.parquet'. Only --engine "
        "spark writes a folder. Nothing was released."
    )


@pytest.mark.parametrize("target", ["out.csv", "out.arrow", "OUT.FEATHER", "out.ipc", "out.json", "out.csv.gz"])
def test_spark_writes_a_folder_of_parquet_files(place: Path, target: str) -> None:
    write(["a", "b"])
    assert refused("--values", "a,b", "--engine", "spark", target=target) == (
        f"{target!r}: the Spark engine writes a folder of Parquet files, and its name must not end like that of "
        "another kind of file. Nothing was released."
    )


# The key, and an end that a person asks for.


def test_a_key_that_is_not_there(place: Path) -> None:
    write(["a", "b"])
    assert refused("--values", "a,b", "--key", "my key") == (
        "there is no key file 'my key'. `relaxdp keygen 'my key'` makes one; what was released before needs its own "
        "key. Nothing was released."
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--values", "a,b", "--key", HEX), "this looks like the key itself"),
        (("--values-file", "key"), "'key' is a key file, and no list of values. Nothing was released."),
        (("--values", "a,b", "--planned-epsilon", HEX), "epsilon must be a number such as 0.5"),
        (("--values", f"{HEX},{HEX}"), "the value '(what looks like a key)' is declared twice."),
        (("--values", f"{HEX},c"), "row 1: the value is not one of the 2 declared values."),
        (("--values", "a,b", "--keep", HEX), "the table has no column '(what looks like a key)'."),
        (("--values", "a,b", "--from-reports", f"{HEX}.csv"), "there is no file '(what looks like a key).csv'."),
        (("--values", "a,b", "--threads", HEX), "Invalid value for '--threads'"),
        (("--values", "a,b", HEX), "unexpected extra argument"),
        (("--values", "a,b", f"--{HEX}"), "No such option"),
    ],
)
def test_a_key_in_the_wrong_place_is_not_shown(place: Path, words: tuple[str, ...], sentence: str) -> None:
    write(["a", "b"])
    told = refused(*words)
    assert sentence in told
    assert HEX[:8] not in told.lower()


def test_a_line_of_a_values_file_that_stands_there_twice_is_not_shown(place: Path) -> None:
    """The file may be another one than was meant, such as the column itself."""
    write(["a", "b"])
    (place / "values").write_text(f"a\n{SECRET}\n\nb\n{SECRET}\n")
    assert refused("--values-file", "values") == (
        "line 5 of 'values' is the value of line 2 again. Nothing was released."
    )


@pytest.mark.parametrize("column", [[["a"], ["b"]], [{"a": "b"}, {"a": "c"}]])
def test_lists_and_structs_are_no_values(place: Path, column: list[Any]) -> None:
    write(column)
    assert refused("--values", "a,b") == (
        "the values cannot be compared with the 2 declared ones, of kind text. Nothing was released."
    )


@pytest.mark.parametrize(
    "problem",
    [
        RuntimeError("Query interrupted"),
        duckdb.InterruptException("Interrupted!"),
        OSError("INTERRUPT Error: Interrupted!"),
    ],
)
def test_what_duckdb_raises_when_somebody_stops_it(problem: Exception) -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(None):
        raise problem
    for other in (RuntimeError("Query failed"), duckdb.Error("Query interrupted"), ValueError("Query interrupted")):
        with pytest.raises(type(other), match="Query"), interruptible(None):
            raise other


@pytest.mark.long
@pytest.mark.usefixtures("interruptible_person")
def test_stopped_while_rows_are_sorted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are exchanged for a query that takes seconds: whoever sends the signal need not be quick.

    DuckDB notices at once, or when a part of its work is done: either way it ends like any program that is stopped.
    """
    pa_parquet.write_table(pa.table({"id": [2, 1], "x": ["a", "b"]}), "in.parquet")
    running = threading.Event()

    def long(connection: Any, table: Any, columns: list[str]) -> str:
        running.set()
        return "(SELECT sum(range) AS c0, 'a' AS c1 FROM range(3000000000))"

    def stop() -> None:
        assert running.wait(PATIENCE)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(order, "_relation", long)
    person = threading.Thread(target=stop)
    person.start()
    status, _ = run("--values", "a,b")
    person.join()
    assert status == 130
    with Ledger.open("key.ledger") as book:
        assert book.history() == []
    assert {file.name for file in place.iterdir()} - {"key.ledger"} == {"in.parquet", "key"}
