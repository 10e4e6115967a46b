"""`relaxdp release` end to end: same reports as the library, nothing else of the input, and every refusal."""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import status_and_words
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.draw.stream import PathId
from relaxdp.errors import RelaxdpError, TableFileError
from relaxdp.table.formats import Input, released

ROWS = 5000
VALUES = ["flu", "covid", "none"]
RNG = np.random.default_rng(3)
TRUTH = RNG.choice(VALUES, ROWS).tolist()
AGES = RNG.integers(0, 100, ROWS).tolist()
SECRET = "secret-illness"


def table(order: Any = slice(None), **changes: Any) -> pa.Table:
    columns = {
        "id": np.arange(ROWS),
        "diagnosis": np.array(TRUTH),
        "age": np.array(AGES),
        "name": np.array(["x"] * ROWS),
    }
    columns |= changes
    return pa.table({name: pa.array(column[order]) for name, column in columns.items()})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rx.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    pa_parquet.write_table(table(), tmp_path / "in.parquet")
    return tmp_path


def run(*words: str, source: str = "in.parquet", target: str = "out.parquet", epsilon: str = "0.5", **more: str) -> Any:
    """Run the command as `main` would: an error of ours is its sentence and exit status 2."""
    options = {"column": "diagnosis", "id": "id", "epsilon": epsilon, "key": "key", **more}
    if "values" not in more and not {"values", "values-file", "range", "bins", "map"} & {
        word.lstrip("-") for word in words
    }:
        options["values"] = ",".join(VALUES)
    spoken = [text for name, value in options.items() for text in (f"--{name}", value)]
    command = "relax" if "--from-reports" in words else "release"
    return status_and_words(command, source, target, *spoken, *words)


def first(**more: str) -> Any:
    return run("--budget", "2", **more)


def read(path: str) -> pa.Table:
    return pa_parquet.read_table(path)


def expected(epsilon: str = "0.5", truth: Any = None, release: str = "in", epoch: int = 1) -> list[str]:
    answers, key = rx.Categorical(VALUES), rx.Key.from_bytes(bytes(range(32)))
    reports: list[str] = answers.release(
        TRUTH if truth is None else truth, list(range(ROWS)), key=key, epsilon=epsilon, release=release,
        attribute="diagnosis", epoch=epoch,
    )  # fmt: skip
    return reports


def test_the_file_holds_ids_and_reports_and_describes_itself(place: Path) -> None:
    status, output = first()
    assert status == 0
    assert "released 'diagnosis' of 5,000 rows at epsilon 0.5 to out.parquet" in output
    assert "to out.parquet (a new path)" in output
    assert "cost 0.5; spent 0.5 of the budget 2, 1.5 left" in output
    out = read("out.parquet")
    assert out.column_names == ["id", "diagnosis"]
    assert out["id"].to_pylist() == list(range(ROWS))
    assert out["diagnosis"].to_pylist() == expected()
    assert set(out.schema.metadata) == {b"relaxdp"}
    description = released(place / "out.parquet")[1].columns["diagnosis"]
    assert (description.values, str(description.epsilon), description.id_type) == (tuple(VALUES), "0.5", "integer")
    assert description.threshold == rx.Categorical(VALUES).encoding.threshold(description.epsilon)
    names = ["in.parquet", "key", "key.ledger", "key.ledger.begun", "key.ledger.snapshots", "out.parquet"]
    assert sorted(file.name for file in place.iterdir()) == names


def test_relaxing_costs_the_difference_and_again_costs_nothing(place: Path) -> None:
    first()
    assert "cost 0; spent 0.5 of the budget 2" in run(target="same.parquet")[1]
    assert read("same.parquet").equals(read("out.parquet"))
    assert "cost 0.5; spent 1 of the budget 2" in run(target="more.parquet", epsilon="1")[1]
    assert read("more.parquet")["diagnosis"].to_pylist() == expected("1")
    status, sentence = run(target="less.parquet", epsilon="0.1")
    assert status == 2
    assert "epsilon may only grow" in sentence
    assert "cost 0; spent 1 of the budget 2" in run("--again", target="less.parquet", epsilon="0.1")[1]
    assert read("less.parquet")["diagnosis"].to_pylist() == expected("0.1")


def write_csv(path: Path, content: pa.Table) -> None:
    pa_csv.write_csv(content, path)


def test_uuids_are_ids_in_any_order(place: Path) -> None:
    """They are ordered by their bytes, stay UUIDs through the sort, and get the reports that the library gives them."""
    ids = sorted(RNG.bytes(16) for _ in range(ROWS))
    order = RNG.permutation(ROWS)
    for name, rows in {"straight": np.arange(ROWS), "shuffled": order}.items():
        column = pa.array([ids[row] for row in rows], pa.uuid())
        pa_parquet.write_table(table(rows).set_column(0, "id", column), place / f"{name}.parquet")
    assert first(source="straight.parquet", release="in")[0] == 0
    assert run(source="shuffled.parquet", target="again.parquet", release="in")[0] == 0
    out = read("out.parquet")
    assert out.equals(read("again.parquet"))
    assert out["id"].combine_chunks().storage.to_pylist() == ids
    answers, key = rx.Categorical(VALUES), rx.Key.from_bytes(bytes(range(32)))
    people = [uuid.UUID(bytes=each) for each in ids]
    alone = answers.release(TRUTH, people, key=key, epsilon="0.5", release="in", attribute="diagnosis")
    assert out["diagnosis"].to_pylist() == alone
    assert run(source="shuffled.parquet", target="relaxed.parquet", epsilon="1", release="in")[0] == 0
    words = ["estimate", "out.parquet", "relaxed.parquet", "--json"]
    found = json.loads(CliRunner().invoke(app, words).output)
    assert [(each["epsilon"], each["objects"]) for each in found["groups"][0]["levels"]] == [("1", ROWS)]
    stepped = run(
        "--from-reports", "relaxed.parquet", source="shuffled.parquet", target="last.parquet", epsilon="2", release="in"
    )
    assert stepped[0] == 0, stepped
    more = {"ledger": "other.ledger", "release": "growing", "new-ledger": "a growing table"}
    growing = run("--growing", "--budget", "2", source="shuffled.parquet", target="grown.parquet", **more)
    assert growing[0] == 0, growing


def test_every_format_and_order_gives_the_same_reports(place: Path) -> None:
    """Shuffled rows, a folder; CSV has ids of text, so it is another person's table."""
    order = RNG.permutation(ROWS)
    (place / "folder").mkdir()
    for part in range(3):
        pa_parquet.write_table(table(order[part::3]), place / "folder" / f"{part}.parquet")
    pa_parquet.write_table(table(order), place / "shuffled.parquet")
    for number, source in enumerate(["folder", "shuffled.parquet"]):
        target = f"out-{number}.parquet"
        assert run("--no-ledger", source=source, target=target, release="in")[0] == 0
        out = Input(place / target)
        rows = pa.Table.from_batches(out.batches(["id", "diagnosis"]))
        assert rows["id"].to_pylist() == list(range(ROWS))
        assert rows["diagnosis"].to_pylist() == expected()
    write_csv(place / "in.csv", table(order))
    assert run("--no-ledger", source="in.csv", target="out.csv")[0] == 0
    out = pa.Table.from_batches(Input(place / "out.csv").batches(["id", "diagnosis"]))
    assert out["id"].to_pylist() == sorted(map(str, range(ROWS)))
    assert json.loads((place / "out.csv.relaxdp.json").read_text())["columns"]["diagnosis"]["id_type"] == "text"


def test_a_sort_reads_the_columns_of_the_file_and_nothing_else(place: Path) -> None:
    """DuckDB would take a folder for a column and brackets for a pattern, and does not tell names by case."""
    order = RNG.permutation(ROWS)
    for folder in ("diagnosis=flu", "brackets"):
        (place / folder).mkdir()
    pa_parquet.write_table(table(order), place / "diagnosis=flu" / "in.parquet")
    pa_parquet.write_table(table(order), place / "brackets" / "a[1].parquet")
    pa_parquet.write_table(table(diagnosis=np.array(["flu"] * ROWS)), place / "brackets" / "a1.parquet")
    pa_parquet.write_table(
        table(order, Diagnosis=np.array(["other"] * ROWS)).select([4, 0, 1]), place / "cases.parquet"
    )
    for number, source in enumerate(["diagnosis=flu/in.parquet", "brackets/a[1].parquet", "cases.parquet"]):
        assert run("--no-ledger", source=source, target=f"out-{number}.parquet", release="in")[0] == 0
        rows = read(f"out-{number}.parquet")
        assert rows["id"].to_pylist() == list(range(ROWS))
        assert rows["diagnosis"].to_pylist() == expected()


def test_ids_of_bytes_are_the_same_ids_in_every_format(place: Path) -> None:
    ids = pa.array([f"{row:04}".encode() for row in range(ROWS)], pa.binary(4))
    pa_parquet.write_table(table().set_column(0, "id", ids), place / "in.parquet")
    for target, epsilon in (("low.csv", "0.5"), ("high.parquet", "1")):
        assert run("--no-ledger", target=target, epsilon=epsilon)[0] == 0
    both = CliRunner().invoke(app, ["estimate", "low.csv", "high.parquet", "--json"])
    assert json.loads(both.output)["objects"] == ROWS
    ids = pa.array([row.to_bytes(4, "little") for row in range(200, ROWS + 200)], pa.binary(4))
    pa_parquet.write_table(table().set_column(0, "id", ids), place / "in.parquet")
    assert run("--no-ledger", target="other.csv") == (
        2,
        "ids or kept columns of bytes that are no text do not go into CSV: write Parquet. Nothing was released.",
    )
    assert not [file for file in place.iterdir() if "other" in file.name]


def test_one_thread_or_many(place: Path) -> None:
    big = pa.table({"id": np.arange(700_000), "diagnosis": np.array(VALUES)[np.arange(700_000) % 3]})
    pa_parquet.write_table(big, "big.parquet")
    for threads in ("1", "3"):
        run("--no-ledger", "--threads", threads, source="big.parquet", target=f"{threads}.parquet")
    assert read("1.parquet").equals(read("3.parquet"))


def test_numbers_bins_maps_and_nulls(place: Path) -> None:
    assert run("--range", "0", "100", "--no-ledger", column="age", target="range.parquet")[0] == 0
    assert set(read("range.parquet")["age"].to_pylist()) == {0.0, 100.0}
    assert run("--bins", "18,65", "--no-ledger", column="age", target="bins.parquet", epsilon="60")[0] == 0
    bins = ["below 18" if age < 18 else "18 to 65" if age < 65 else "65 or more" for age in AGES]
    assert read("bins.parquet")["age"].to_pylist() == bins
    (place / "map.csv").write_text("flu,ill\ncovid,ill\nnone,well\n")
    assert run("--map", "map.csv", "--no-ledger", target="map.parquet", epsilon="60")[0] == 0
    assert read("map.parquet")["diagnosis"].to_pylist() == ["well" if t == "none" else "ill" for t in TRUTH]
    gaps = np.array([None if row % 7 == 0 else value for row, value in enumerate(TRUTH)], dtype=object)
    pa_parquet.write_table(table(diagnosis=gaps), "gaps.parquet")
    status, sentence = run("--no-ledger", source="gaps.parquet", target="gaps-out.parquet")
    missing = "row 1: the value is missing, which is not one of the 3 declared values."
    assert status == 2
    assert sentence == f"{missing} --nulls NAME makes it a value of its own. Nothing was released."
    run("--no-ledger", "--nulls", "missing", source="gaps.parquet", target="gaps-out.parquet", epsilon="60")
    assert read("gaps-out.parquet")["diagnosis"].to_pylist()[:7] == ["missing", *TRUTH[1:7]]


def test_what_is_no_number_falls_into_no_bin(place: Path) -> None:
    ages = np.array(AGES, dtype=float)
    ages[3] = np.nan
    pa_parquet.write_table(table(age=ages), "nan.parquet")
    status, sentence = run("--bins", "18,65", "--no-ledger", column="age", source="nan.parquet")
    assert (status, sentence.startswith("row 4: the value is missing")) == (2, True)
    run("--bins", "18,65", "--nulls", "unknown", "--no-ledger", column="age", source="nan.parquet", epsilon="60")
    assert read("out.parquet")["age"].to_pylist()[3] == "unknown"


def test_a_column_that_cannot_be_mapped(place: Path) -> None:
    raw = np.array([SECRET.encode() + bytes([255])] * ROWS, dtype=object)
    pa_parquet.write_table(table(diagnosis=raw), "raw.parquet")
    (place / "map.csv").write_text("flu,ill\nnone,well\n")
    status, sentence = run("--map", "map.csv", "--no-ledger", source="raw.parquet")
    assert status == 2
    assert sentence == "'diagnosis' is not of a type that this can be derived from. Nothing was released."


def test_several_columns_and_kept_ones(place: Path) -> None:
    pa_parquet.write_table(table(smoker=np.array(["no", "yes"])[np.arange(ROWS) % 2]), "two.parquet")
    words = ["--column", "smoker", "--values", "smoker=no,yes", "--keep", "age", "--budget", "3"]
    status, output = run(*words, "--values", "diagnosis=flu,covid,none", source="two.parquet", release="in")
    assert status == 0
    assert "cost 1; spent 1 of the budget 3" in output
    out = read("out.parquet")
    assert out.column_names == ["id", "diagnosis", "smoker", "age"]
    assert out["diagnosis"].to_pylist() == expected()
    assert out["age"].to_pylist() == AGES


def test_a_dictionary_of_the_input_is_not_carried_over(place: Path) -> None:
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int8)), pa.array(["x", SECRET]))
    pa_parquet.write_table(table().set_column(3, "name", names), "in2.parquet")
    run("--no-ledger", "--keep", "name", source="in2.parquet")
    assert SECRET.encode() not in (place / "out.parquet").read_bytes()


def test_values_from_a_file_and_whole_numbers(place: Path) -> None:
    (place / "values.txt").write_text("flu\ncovid\nnone\n")
    run("--values-file", "values.txt", "--no-ledger")
    assert read("out.parquet")["diagnosis"].to_pylist() == expected()
    pa_parquet.write_table(table(diagnosis=np.arange(ROWS) % 3), "numbers.parquet")
    run("--values", "0,1,2", "--no-ledger", source="numbers.parquet", target="numbers-out.parquet", epsilon="60")
    assert read("numbers-out.parquet")["diagnosis"].to_pylist() == [row % 3 for row in range(ROWS)]


def test_a_changed_table_is_refused_and_forced_through_it_is_a_new_path(place: Path) -> None:
    first()
    changed = TRUTH.copy()
    changed[17] = "flu" if TRUTH[17] != "flu" else "none"
    pa_parquet.write_table(table(diagnosis=np.array(changed)), "in2.parquet")
    status, sentence = run(source="in2.parquet", target="changed.parquet", epsilon="1", release="in")
    assert status == 2
    assert "Nothing was released" in sentence
    assert not (place / "changed.parquet").exists()
    assert (
        "cost 1; spent 1.5 of" in run("--force", source="in2.parquet", target="c.parquet", epsilon="1", release="in")[1]
    )
    assert released(place / "c.parquet")[1].columns["diagnosis"].path == PathId("in", "diagnosis", 2)
    assert read("c.parquet")["diagnosis"].to_pylist() == expected("1", changed, epoch=2)


def test_dry_run_and_no_ledger(place: Path) -> None:
    status, output = run("--budget", "2", "--dry-run")
    assert status == 0
    assert "would cost 0.5" in output
    assert not (place / "out.parquet").exists()
    assert "nobody keeps account" in run("--no-ledger")[1]


def test_a_file_with_another_name_does_not_open_a_second_path_by_itself(place: Path) -> None:
    first()
    (place / "in.parquet").rename(place / "in-2027.parquet")
    status, sentence = run(source="in-2027.parquet", target="next.parquet", epsilon="1")
    assert status == 2
    assert "A new path would cost as much again. Say --release 'in' to relax that one" in sentence
    output = run(source="in-2027.parquet", target="next.parquet", epsilon="1", release="in")[1]
    assert "(the level before: 0.5)" in output
    assert "cost 0.5; spent 1 of" in output
    assert "a new path" in run(source="in-2027.parquet", target="new.parquet", release="in-2027")[1]


def test_another_key_does_not_begin_new_accounts_by_itself(place: Path) -> None:
    first()
    rx.Key.from_bytes(bytes(32)).save(place / "key2")
    status, sentence = run("--budget", "2", target="other.parquet", key="key2")
    assert status == 2
    assert "'key.ledger' lies beside it. Say --ledger key.ledger" in sentence
    assert not (place / "key2.ledger").exists()


def test_a_name_that_marks_an_epoch(place: Path) -> None:
    assert "must not end in '(epoch ...)'" in first(release="in (epoch 2)")[1]


Prepare = Callable[[Path], None]


def truncated(place: Path) -> None:
    data = (place / "in.parquet").read_bytes()
    (place / "in.parquet").write_bytes(data[: len(data) // 2])


def ragged(place: Path) -> None:
    (place / "in.csv").write_text(f"id,diagnosis\n1,flu\n2,{SECRET},more\n")


def unknown_value(place: Path) -> None:
    truth = TRUTH.copy()
    truth[1203] = SECRET
    pa_parquet.write_table(table(diagnosis=np.array(truth)), place / "in.parquet")


def unknown_value_out_of_order(place: Path) -> None:
    truth = TRUTH.copy()
    truth[1203] = SECRET
    pa_parquet.write_table(table(np.arange(ROWS)[::-1], diagnosis=np.array(truth)), place / "in.parquet")


def other_ids(place: Path) -> None:
    pa_parquet.write_table(table(other=np.arange(ROWS) + 7), place / "in.parquet")


def repeated_id(place: Path) -> None:
    ids = np.arange(ROWS)
    ids[100] = 7
    pa_parquet.write_table(table(id=ids), place / "in.parquet")


def missing_id(place: Path) -> None:
    ids = [None if row == 4 else row for row in range(ROWS)]
    pa_parquet.write_table(table().set_column(0, "id", pa.array(ids)), place / "in.parquet")


def nothing(place: Path) -> None:
    pass


def other_key(place: Path) -> None:
    (place / "key").unlink()
    rx.Key.from_bytes(bytes(32)).save(place / "key")


def text_ids(place: Path) -> None:
    pa_parquet.write_table(
        table().set_column(0, "id", pa.array([f"{row:04}" for row in range(ROWS)])), place / "in.parquet"
    )


def test_what_arrow_quotes_does_not_come_along(place: Path) -> None:
    ragged(place)
    with pytest.raises(TableFileError) as caught:
        list(Input(place / "in.csv").batches(["id", "diagnosis"]))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("prepare", "arguments", "sentence"),
    [
        (nothing, {"column": "diagnoses"}, "the table has no column 'diagnoses'. Did you mean 'diagnosis'?"),
        (nothing, {"id": "idd"}, "the table has no column 'idd'. Did you mean 'id'?"),
        (nothing, {"source": "absent.parquet"}, "there is no file 'absent.parquet'"),
        (nothing, {"source": "key"}, "the ending must be .parquet, .csv or .tsv"),
        (nothing, {"epsilon": "0"}, "epsilon must be greater than 0"),
        (nothing, {"key": "absent"}, "there is no key file"),
        (nothing, {"values": "flu,covid", "release": "other"}, "is not one of the 2 declared values"),
        (nothing, {"values": "flu,covid"}, "Nothing was released"),
        (nothing, {"values": "covid,flu,none", "epsilon": "1"}, "Nothing was released"),
        (nothing, {"epsilon": "5"}, "budget exceeded: 1.5 left of 2, this release needs 4.5"),
        (nothing, {"epsilon": "0.4"}, "epsilon may only grow"),
        (nothing, {"target": "folder/out.parquet"}, "cannot be written to: No such file or directory"),
        (truncated, {}, "is damaged, cut off or of another kind"),
        (ragged, {"source": "in.csv", "release": "other"}, "row 2: it has not as many fields as the header"),
        (unknown_value, {}, "row 1,204: the value is not one of the 3 declared values. Declared: 'flu'"),
        (unknown_value_out_of_order, {}, "row 1,204 in the order of the ids: the value is not one of the 3 declared"),
        (repeated_id, {}, "an id occurs in two rows"),
        # A wrong column of ids is answered with the option that names the right one, before anything else.
        (nothing, {"id": "age"}, "are equal. If it is not the column of the ids, --id names that one. Nothing"),
        (nothing, {"id": "name"}, "and this is text. If it is not the column of the ids, --id names that one. --force"),
        (other_ids, {"id": "other"}, "If it is not the column of the ids, --id names that one."),
        (missing_id, {}, "row 5: the id is missing"),
        (other_key, {"epsilon": "1"}, "key"),
        (text_ids, {"epsilon": "1"}, "text"),
    ],
)
def test_refusals_write_and_charge_nothing(
    place: Path, prepare: Prepare, arguments: dict[str, str], sentence: str
) -> None:
    first(target="first.parquet")
    prepare(place)
    before = sorted(place.iterdir())
    status, message = run(**{"epsilon": "1", **arguments})
    assert status == 2
    assert sentence in message
    assert SECRET not in message
    assert sorted(place.iterdir()) == before
    shown = CliRunner().invoke(app, ["budget", "show", "--ledger", "key.ledger", "--json"])
    assert json.loads(shown.output)["spent"] == "0.5"


def test_an_existing_output_and_a_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "out.parquet").write_text("precious")
    exists = "'out.parquet' exists already. Name another file or remove it. Nothing was released."
    assert run("--budget", "2") == (2, exists)
    assert (place / "out.parquet").read_text() == "precious"

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("relaxdp.table.release.os.fsync", full)
    status, sentence = run("--no-ledger", target="other.parquet")
    assert status == 2
    assert "No space left on device. Nothing was released" in sentence
    assert not (place / "other.parquet").exists()


def test_budget_commands(place: Path) -> None:
    first()
    shown = CliRunner().invoke(app, ["budget", "show", "--key", "key"]).output
    assert "Budget of 'everyone': 2" in shown
    raised = CliRunner().invoke(app, ["budget", "raise", "3", "--reason", "consent form", "--key", "key"]).output
    assert "the budget is now 3, 2.5 of it left" in raised
    history = CliRunner().invoke(app, ["budget", "history", "--key", "key"]).output
    assert "consent form" in history
    assert "released 'diagnosis' of release 'in' at 0.5" in history
    for words, ending in ((["show"], "does not exist."), (["raise", "3", "--reason", "x"], "Nothing was changed.")):
        absent = CliRunner().invoke(app, ["budget", *words, "--ledger", "absent.ledger"]).exception
        assert isinstance(absent, RelaxdpError)
        assert absent.message.endswith(ending)
        assert "released" not in absent.message
    lower = CliRunner().invoke(app, ["budget", "raise", "1", "--reason", "x", "--key", "key"])
    assert isinstance(lower.exception, RelaxdpError)
    assert "may only be raised" in lower.exception.message


def test_the_printed_command_relaxes_the_release(place: Path) -> None:
    """Also where another column of the release was released before, from a table with other rows."""
    pa_parquet.write_table(table(slice(100)), "in.parquet")
    assert run("--budget", "8", epsilon="2")[0] == 0
    pa_parquet.write_table(table(), "in.parquet")
    both = [
        word
        for name, values in (("age group", "0,1,2"), ("name", "x,y"))
        for word in ("--column", name, "--values", f"{name}={values}")
    ]
    renamed = table(name=np.array(["x"] * ROWS)).append_column("age group", pa.array([str(age % 3) for age in AGES]))
    pa_parquet.write_table(renamed, "in.parquet")
    status, printed = status_and_words(
        "release", "in.parquet", "both.parquet", *both, "--id", "id", "--epsilon", "0.5", "--key", "key"
    )
    assert status == 0, printed
    command = printed.splitlines()[-1].replace("OUT.parquet", "relaxed.parquet").replace("NUMBER", "1")
    program, *words = shlex.split(command)
    assert program == "relaxdp"
    status, printed = status_and_words(*words)
    assert status == 0, printed
    assert "cost 1;" in printed
    assert set(released(place / "relaxed.parquet")[1].columns) == {"age group", "name"}
