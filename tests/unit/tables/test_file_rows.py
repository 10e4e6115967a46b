"""Released files say how many rows they hold, and what lost or gained rows since is estimated only when somebody asks.

A choice of rows that looked at reports makes every estimate wrong, and metadata outlives such a choice.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from tests.refusals import refused
from tests.released import open_vault, release_to
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.errors import EstimationError, MetadataError, RelaxdpError, TableFileError
from relaxdp.market.level_file import read_level_file, write_level_file
from relaxdp.tables.files import TableFile, get_sidecar_path
from relaxdp.tables.released_files import open_released_file

ROWS = 3_000
VALUES = ["flu", "covid", "none"]
ENDINGS = ["parquet", "csv"]
PLACES = np.random.default_rng(5).permutation(ROWS)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    columns = {
        "id": pa.array(PLACES),
        "diagnosis": pa.array(VALUES).take(pa.array(PLACES % 7 % 3)),
        "region": pa.array(["north", "south"]).take(pa.array(PLACES % 2)),
    }
    pa_parquet.write_table(pa.table(columns), "in.parquet")
    return tmp_path


def release(target: str, *, epsilon: str = "1", source: Any = "in.parquet", **more: Any) -> Path:
    columns, asked = {"diagnosis": rx.Categorical(VALUES)}, {"name": "in", "passthrough": ["region"], **more}
    path = Path(target).absolute()
    vault = open_vault(Path().absolute())
    vault.release(source, columns, id="id", epsilon=epsilon, output=path, **asked)
    return Path(target)


def estimate(*words: Any) -> list[float]:
    result = CliRunner().invoke(app, ["estimate", *map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [row["estimate"] for row in json.loads(result.output)["groups"][0]["estimates"]]


def sentence(*words: Any) -> str:
    result = CliRunner().invoke(app, ["estimate", *map(str, words)])
    assert isinstance(result.exception, RelaxdpError), result.output
    assert result.stdout == ""
    return result.exception.message


def table_of(path: Path) -> Any:
    if path.suffix == ".csv":
        return pa_csv.read_csv(path)
    return pa_parquet.read_table(path)


def write(path: Path, table: Any, like: Path) -> Path:
    """Write a table as anybody would: whatever metadata it has goes along, and the sidecar of a CSV file is copied."""
    if path.suffix == ".parquet":
        pa_parquet.write_table(table, path)
    else:
        pa_csv.write_csv(table, path)
        shutil.copy(get_sidecar_path(like), get_sidecar_path(path))
    return path


def text_in(path: Path) -> str:
    if path.suffix == ".csv":
        return get_sidecar_path(path).read_text("utf-8")
    return str(table_of(path).schema.metadata[b"relaxdp"], "utf-8")


# What a file says.


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_states_its_rows_and_the_last_event_before_it(place: Path, ending: str) -> None:
    """The same release again gives the same rows; only the event differs, because each release is one."""
    one, two = (release(f"{name}.{ending}") for name in ("one", "two"))
    assert open_released_file(one)[1].rows == ROWS
    assert table_of(one).to_pydict() == table_of(two).to_pydict()
    stated = [json.loads(text_in(each)) for each in (one, two)]
    vault = rx.Vault("study.vault")
    assert [each.pop("vault") | {"digest": ""} for each in stated] == [
        {"vault": vault.id, "event": event, "digest": ""} for event in (1, 2)
    ]
    assert stated[0] == stated[1]
    assert stated[0]["rows"] == ROWS


def test_parquet_is_byte_for_byte_what_a_writer_makes_that_knows_the_rows_before(place: Path) -> None:
    """The description is written at the end, into the two places where readers look for it, and once into each."""
    table = table_of(release("one.parquet"))
    others = [name for name in table.column_names if name != "id"]
    lean: Any = {"use_dictionary": others, "column_encoding": {"id": "DELTA_BINARY_PACKED"}}
    settings: Any = {"compression": "zstd", "compression_level": 1, **lean}
    with pa_parquet.ParquetWriter("plain.parquet", table.schema, **settings) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    assert Path("plain.parquet").read_bytes() == Path("one.parquet").read_bytes()
    assert pa_parquet.read_metadata("one.parquet").metadata[b"relaxdp"] == table.schema.metadata[b"relaxdp"]


def test_a_level_of_the_market_states_its_rows(place: Path) -> None:
    level = read_level_file(release("one.parquet", passthrough=[]))
    write_level_file(level, place / "level.parquet")
    assert open_released_file(place / "level.parquet")[1].rows == len(level.ids) == ROWS
    assert estimate("level.parquet") == estimate("one.parquet")


def test_a_file_of_an_earlier_version_says_no_rows_and_is_read(place: Path) -> None:
    path = release("one.parquet")
    said = json.loads(text_in(path))
    del said["rows"]
    old = table_of(path).replace_schema_metadata({"relaxdp": json.dumps(said)})
    pa_parquet.write_table(old.slice(100), "old.parquet")
    assert open_released_file(Path("old.parquet"))[1].rows is None
    assert len(estimate("old.parquet")) == 3


@pytest.mark.parametrize("odd", [-1, True, "3000", 2.5, [3]])
def test_rows_that_are_no_number_of_rows(place: Path, odd: Any) -> None:
    said = json.loads(text_in(release("one.parquet"))) | {"rows": odd}
    changed = table_of(Path("one.parquet")).replace_schema_metadata({"relaxdp": json.dumps(said)})
    pa_parquet.write_table(changed, "odd.parquet")
    assert "metadata of the file is damaged" in sentence("odd.parquet")


# What is refused.

CHOICES: dict[str, Callable[[Any], Any]] = {
    "by reports": lambda table: table.filter(pc.equal(table["diagnosis"].cast(pa.string()), "flu")),
    "cut": lambda table: table.slice(0, 500),
    "empty": lambda table: table.slice(0, 0),
    "doubled": lambda table: pa.concat_tables([table, table]),
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_files_with_other_rows_than_they_say_are_refused(place: Path, ending: str, choice: str) -> None:
    path = release(f"one.{ending}")
    chosen = CHOICES[choice](table_of(path))
    changed = write(Path(f"chosen.{ending}"), chosen, path)
    said = sentence(changed)
    assert said.startswith(f"'chosen.{ending}' had 3,000 rows when it was released, and has {len(chosen):,} now")
    assert "rows were chosen by their reports" in said
    assert f"(--description 'chosen.{ending}')." in said
    other = release(f"two.{ending}", epsilon="2")
    assert "had 3,000 rows" in sentence(changed, other)
    assert "had 3,000 rows" in sentence(changed, "--by", "region")


def test_the_first_lines_of_a_csv_file(place: Path) -> None:
    lines = release("one.csv").read_text().splitlines(keepends=True)
    Path("head.csv").write_text("".join(lines[:501]))
    shutil.copy("one.csv.relaxdp.json", "head.csv.relaxdp.json")
    assert "had 3,000 rows when it was released, and has 500 now" in sentence("head.csv")


def test_frames_that_were_read_from_a_file_and_chosen_are_refused(place: Path) -> None:
    table = table_of(release("one.parquet"))
    wanted = rx.estimate(table, by="region")["north"].value
    with refused(MetadataError, name="The data frame", released_rows=3000):
        rx.estimate(CHOICES["by reports"](table))
    north = table.filter(pc.equal(table["region"], "north"))
    with pytest.raises(MetadataError) as caught:
        rx.estimate(north)
    assert (caught.value.fields["released_rows"], caught.value.fields["rows"]) == (ROWS, len(north))
    for told in (table, north, "one.parquet", rx.description(north)):
        assert np.array_equal(rx.estimate(north, description=told).value, wanted)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_choice_without_a_look_at_reports_is_described(place: Path, ending: str) -> None:
    path = release(f"one.{ending}")
    table = table_of(path)
    north = write(Path(f"north.{ending}"), table.filter(pc.equal(table["region"].cast(pa.string()), "north")), path)
    wanted = estimate(path, "--by", "region")
    assert estimate(north, "--description", path) == wanted
    assert estimate(north, "--description", north) == wanted
    higher = release(f"two.{ending}", epsilon="2")
    assert estimate(north, higher, "--description", path, "--description", higher) == estimate(higher)
    assert "once for each file" in sentence(north, higher, "--description", path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_description_does_not_make_one_object_count_twice(place: Path, ending: str) -> None:
    path = release(f"one.{ending}")
    twice = write(Path(f"twice.{ending}"), CHOICES["doubled"](table_of(path)), path)
    assert "An id occurs twice in" in sentence(twice, "--description", path)
    assert "An id occurs twice in" in sentence(twice, "--description", path, "--by", "region")
    with refused(EstimationError, says="An id occurs twice"):
        rx.estimate(table_of(twice), "diagnosis", description=path)


def test_a_file_that_does_not_describe_itself_is_described(place: Path) -> None:
    """Polars writes no description by itself, and other programs leave out columns."""
    path = release("one.parquet")
    pl.read_parquet(path).select("region", "diagnosis").write_parquet("plain.parquet")
    assert "has no metadata about its reports" in sentence("plain.parquet")
    assert "has no column that" in sentence("in.parquet", "--description", release_of_ages())
    pl.read_parquet(path).drop("region").write_parquet("ids.parquet")
    assert estimate("ids.parquet", "--description", path) == estimate(path)


def release_of_ages() -> Path | None:
    table, columns = pa.table({"id": range(100), "age": range(100)}), {"age": rx.Numeric(0, 100)}
    return release_to(Path("ages.parquet").absolute(), table, columns, epsilon=1, name="ages").output


# Tables in several files.


def test_a_table_that_was_split_is_whole_where_all_parts_are(place: Path) -> None:
    """Every part says the rows of the table, whoever split it; also where a part is empty or holds everything."""
    path = release("one.parquet")
    table, wanted = table_of(path), estimate(path)
    for name, cuts in {"even": [0, 1_000, 2_000, ROWS], "odd": [0, 0, 17, ROWS], "full": [0, ROWS, ROWS]}.items():
        Path(name).mkdir()
        parts = []
        for number, (start, end) in enumerate(pairwise(cuts)):
            parts.append(write(Path(name) / f"part-{number}.parquet", table.slice(start, end - start), path))
        assert estimate(name) == wanted
        assert estimate(*parts) == wanted
        assert np.array_equal(rx.estimate(pa_parquet.read_table(name)).value, rx.estimate(table).value)
    assert np.array_equal(rx.estimate([table.slice(0, 99), table.slice(99)]).value, rx.estimate(table).value)
    assert "'even/part-1.parquet' had 3,000 rows when it was released, and has 1,000 now" in sentence(
        parts_of("even")[1]
    )
    parts_of("even")[1].unlink()
    said = sentence("even")
    assert "'even' had 3,000 rows when it was released, and has 2,000 now" in said
    assert "(--description 'even')." in said


def parts_of(folder: str) -> list[Path]:
    return sorted(Path(folder).iterdir())


def test_parts_that_state_their_own_rows(place: Path) -> None:
    """Files of one level that were released one by one, in a folder or named together: each must be whole."""
    table = pa_parquet.read_table("in.parquet")
    Path("out").mkdir()
    for number in range(3):
        part = table.slice(1_000 * number, 1_000)
        release(f"out/{number}.parquet", source=part, accept_new_rows=True)
    wanted = estimate(release("one.parquet"))
    assert estimate("out") == wanted
    assert estimate(*parts_of("out")) == wanted
    cut = table_of(Path("out/2.parquet")).slice(0, 900)
    pa_parquet.write_table(cut, "out/2.parquet")
    assert "'out/2.parquet' had 1,000 rows when it was released, and has 900 now" in sentence(*parts_of("out"))
    assert "'out' had 3,000 rows when it was released, and has 2,900 now" in sentence("out")


def test_a_part_that_was_copied_counts_nobody_twice(place: Path) -> None:
    """Each part states its own rows, so their sum shows nothing."""
    Path("out").mkdir()
    half = release("out/0.parquet", source=pa_parquet.read_table("in.parquet").slice(0, 1_500))
    shutil.copy(half, "out/1.parquet")
    assert "An id occurs twice in 'out'" in sentence("out")
    with refused(EstimationError, path="out"):
        rx.estimate("out")


# What other programs write.


def test_what_pandas_wrote_is_read(place: Path) -> None:
    release("one.parquet")
    frame = open_vault(place).relax("in", 1).to_frame().to_pandas()
    assert set(frame.attrs) == set()  # pyarrow's own conversion keeps no metadata
    columns = {"diagnosis": rx.Categorical(VALUES)}
    asked: Any = {"id": "id", "name": "in", "passthrough": ["region"]}
    frame = open_vault(place).release(pd.read_parquet("in.parquet"), columns, epsilon=1, **asked).to_frame()
    frame.to_parquet("pandas.parquet")
    assert estimate("pandas.parquet") == estimate("one.parquet")
    frame[frame["diagnosis"] == "flu"].to_parquet("chosen.parquet")
    assert "had 3,000 rows when it was released, and has" in sentence("chosen.parquet")


# The sidecar of a CSV file.


def test_a_sidecar_that_a_killed_run_left_is_renewed(place: Path) -> None:
    """It is there before its file: with the rows and the event of that run."""
    text = get_sidecar_path(release("one.csv")).read_text("utf-8")
    for rows in (17, ROWS):
        Path("two.csv.relaxdp.json").write_text(json.dumps(json.loads(text) | {"rows": rows}), "utf-8")
        assert json.loads(get_sidecar_path(release("two.csv")).read_text("utf-8"))["rows"] == ROWS
        Path("two.csv").unlink()
    Path("two.csv.relaxdp.json").write_text(text.replace('"rows"', '"precious"'), "utf-8")
    with refused(TableFileError, path=str(place / "two.csv.relaxdp.json")):
        release("two.csv")
    assert not Path("two.csv").exists()


def test_fields_with_line_breaks_and_quotes_are_counted_as_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,x\n1,"a, b"\n2,"say ""x"""\n3,\n', "utf-8")
    assert TableFile(path).count_rows() == 3
