"""`relaxdp estimate`: every format, levels that overlap, groups, pairs, JSON, a plot, a sentence for a mistake."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import uuid
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.refusals import refused
from tests.released import release_to
from typer.testing import CliRunner

from relaxdp import Categorical, Counts, Key, Numeric, SquareWave, crosstab, estimate
from relaxdp.cli import results
from relaxdp.cli.main import app, main
from relaxdp.errors import MetadataError
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.report_arrays import count_supported_labels
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.tables import counting
from relaxdp.tables.estimate import count
from relaxdp.tables.files import get_file_kind, get_sidecar_path
from relaxdp.tables.metadata import ColumnDescription, FileDescription
from relaxdp.tables.release_output import ReleaseWriter
from relaxdp.theory.epsilon import as_epsilon

KEY = Key.from_bytes(bytes(range(32)))
ANSWERS = Categorical(["flu", "covid", "none"])
REGIONS = Categorical(["north", "south"])
OBJECTS = 3_000
IDS = np.arange(OBJECTS)
TRUTH = np.random.default_rng(1).choice(["flu", "covid", "none"], OBJECTS, p=[0.2, 0.1, 0.7])
HOMES = np.random.default_rng(2).choice(["north", "south"], OBJECTS)

Columns = dict[str, tuple[Mechanism, Any, str]]


def reports(mechanism: Mechanism, truth: Any, ids: Any, epsilon: str, attribute: str) -> Any:
    return mechanism.release(pa.array(truth), ids, key=KEY, epsilon=epsilon, name="survey", column=attribute)


def described(mechanism: Mechanism, epsilon: str, attribute: str, id_type: str = "integer") -> ColumnDescription:
    encoding, level = mechanism, as_epsilon(epsilon)
    numeric = isinstance(mechanism, Numeric)
    return ColumnDescription(
        path=PathId("survey", attribute),
        encoding=encoding.name,
        epsilon=level,
        threshold=encoding.threshold(level),
        id_type=id_type,
        key_fingerprint=KEY.fingerprint,
        values=None if numeric else tuple(encoding.labels),
        range=(float(encoding.labels[0]), float(encoding.labels[1])) if numeric else None,
    )


def write(path: Path, columns: dict[str, Any], description: FileDescription) -> Path:
    """Write a released file, in several batches."""
    table = pa.table(columns)
    output = ReleaseWriter(path, get_file_kind(path), table.schema, description)
    for batch in table.cast(output.schema).to_batches(1_000):
        output.write(batch)
    output.close()
    output.close_unfinished()
    if path.suffix != ".parquet":
        get_sidecar_path(path).write_text(description.to_json(), "utf-8")
    return path


def survey(path: Path, epsilon: str = "1", chosen: slice = slice(None), **kept: Any) -> Path:
    """Write a released file with the diagnoses of some objects."""
    column = reports(ANSWERS, TRUTH[chosen], IDS[chosen], epsilon, "diagnosis")
    columns = {"id": IDS[chosen], "diagnosis": column.cast(pa.string()), **kept}
    return write(path, columns, FileDescription("id", {"diagnosis": described(ANSWERS, epsilon, "diagnosis")}))


def both(path: Path) -> Path:
    """Write a released file with two released columns."""
    columns = {
        "id": IDS,
        "diagnosis": reports(ANSWERS, TRUTH, IDS, "1", "diagnosis"),
        "region": reports(REGIONS, HOMES, IDS, "2", "region"),
    }
    descriptions = {"diagnosis": described(ANSWERS, "1", "diagnosis"), "region": described(REGIONS, "2", "region")}
    return write(path, columns, FileDescription("id", descriptions))


def run(*words: Any, width: int = 200) -> str:
    shown = CliRunner().invoke(app, ["estimate", *map(str, words)], env={"COLUMNS": str(width)})
    assert shown.exit_code == 0, shown.output
    return shown.output


def answer(*words: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json"))
    return found


def rows(found: dict[str, Any], group: int = 0) -> dict[str, list[Any]]:
    listed = found["groups"][group]["estimates"]
    return {name: [row[name] for row in listed] for name in listed[0]}


def expected(epsilon: str = "1") -> Any:
    return ANSWERS.estimate(reports(ANSWERS, TRUTH, IDS, epsilon, "diagnosis"), epsilon=epsilon)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_one_file_of_every_format(tmp_path: Path, ending: str) -> None:
    path = survey(tmp_path / f"released.{ending}")
    found, wanted = answer(path), expected()
    assert (found["n"], found["column"], found["release"]) == (OBJECTS, "diagnosis", "survey")
    assert found["groups"][0]["levels"] == {"1": OBJECTS}
    shown, (low, high) = rows(found), wanted.interval(0.95)
    assert shown["value"] == ["flu", "covid", "none"]
    np.testing.assert_allclose(shown["estimate"], wanted.value, rtol=1e-12)
    np.testing.assert_allclose(shown["std_error"], wanted.std_error, rtol=1e-12)
    np.testing.assert_allclose([shown["low"], shown["high"]], [low, high], rtol=1e-12)


def test_a_folder_is_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "released"
    folder.mkdir()
    survey(folder / "part-1.parquet", chosen=slice(0, 2_000))
    survey(folder / "part-2.parquet", chosen=slice(2_000, None))
    assert rows(answer(folder)) == rows(answer(survey(tmp_path / "whole.parquet")))
    survey(folder / "part-3.parquet", "2", slice(0, 10))
    with refused(MetadataError, says="is of another release or level"):
        count([folder])


def test_odd_names_are_taken_literally(tmp_path: Path) -> None:
    """A path is not a pattern, `key=value` in it makes no column, and DuckDB does not tell `A` from `a` by itself."""
    wanted = rows(answer(survey(tmp_path / "whole.parquet")))
    odd = tmp_path / "diagnosis=flu's [1]*"
    odd.mkdir()
    survey(odd / "x.parquet")
    assert rows(answer(odd / "x.parquet")) == wanted
    kept = pa.array(["north"] * OBJECTS)
    assert rows(answer(survey(tmp_path / "case.parquet", DIAGNOSIS=kept))) == wanted
    described_as = FileDescription('i"d', {'the "column"': described(ANSWERS, "1", "diagnosis")})
    column = reports(ANSWERS, TRUTH, IDS, "1", "diagnosis")
    assert rows(answer(write(tmp_path / "quote.parquet", {'i"d': IDS, 'the "column"': column}, described_as))) == wanted


def test_each_object_counts_once_at_its_highest_level(tmp_path: Path) -> None:
    files = [
        survey(tmp_path / "low.parquet", "0.5"),
        survey(tmp_path / "high.csv", "2", slice(500, 1_500)),
        survey(tmp_path / "middle.tsv", "1", slice(1_000, 2_500)),
    ]
    counts = Counts(ANSWERS)
    for epsilon, part in {"0.5": [*range(500), *range(2_500, OBJECTS)], "1": range(1_500, 2_500), "2": range(500, 1_500)}.items():  # noqa: E501  # fmt: skip
        where = np.array(part)
        counts.add(reports(ANSWERS, TRUTH[where], IDS[where], epsilon, "diagnosis"), epsilon=epsilon)
    for order in (files, files[::-1]):
        for method in ("average", "precision"):
            found = answer(*order, "--method", method)
            wanted = counts.estimate(method)
            assert found["n"] == OBJECTS
            assert found["groups"][0]["levels"] == counts.levels
            np.testing.assert_allclose(rows(found)["estimate"], wanted.value, rtol=1e-9)
            np.testing.assert_allclose(rows(found)["low"], wanted.interval()[0], rtol=1e-9)
    assert "3,000 individuals at epsilon 0.5 (1,000), 1 (1,000), 2 (1,000): 'diagnosis' of release 'survey'" in run(
        *files
    )


def test_files_of_one_level_are_added(tmp_path: Path) -> None:
    first = survey(tmp_path / "first.parquet", chosen=slice(0, 1_200))
    second = survey(tmp_path / "second.parquet", chosen=slice(1_200, None))
    assert rows(answer(first, second)) == rows(answer(survey(tmp_path / "whole.parquet")))


def test_ids_of_every_kind(tmp_path: Path) -> None:
    texts = [f"patient {number}" for number in range(60)]
    kinds: dict[str, Any] = {
        "text": pa.array(texts),
        "bytes": pa.array([text.encode() for text in texts]),
        "uuid": pa.array([uuid.UUID(int=number).bytes for number in range(60)], pa.uuid()),
    }
    for kind, ids in kinds.items():
        files = []
        for epsilon, chosen in (("1", slice(0, 40)), ("2", slice(20, 60))):
            column = reports(ANSWERS, TRUTH[chosen], texts[chosen], epsilon, "diagnosis")
            about = FileDescription("id", {"diagnosis": described(ANSWERS, epsilon, "diagnosis", kind)})
            path = tmp_path / f"{kind}-{epsilon}.parquet"
            files.append(write(path, {"id": ids[chosen], "diagnosis": column}, about))
        assert count(files).groups[0][1].levels == {"1": 20, "2": 40}, kind


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        [2**63, 5],
        [0.5, -1.0, 1e300],
        [uuid.UUID(int=1), uuid.UUID(int=2)],
        ["", "a,b", 'say "x"', "two\nlines", "NA"],
    ],
    ids=["integers", "large", "numbers", "uuids", "texts"],
)
def test_values_of_every_kind(tmp_path: Path, values: list[Any], ending: str) -> None:
    if ending == "csv":  # which has no text without a letter, and one line for each row
        values = [value for value in values if value not in ("", "two\nlines")]
    mechanism = Categorical(values)
    if isinstance(values[0], uuid.UUID):
        labels = pa.array([value.bytes for value in values], pa.uuid())
        labels = pa.array([str(value) for value in values]) if ending == "csv" else labels
    else:
        labels = pa.array(values, pa.uint64() if values[0] == 2**63 else None)
    places = np.arange(100) % len(values)
    about = {level: FileDescription("id", {"x": described(mechanism, level, "x")}) for level in ("1", "2")}
    files = [
        write(tmp_path / f"{level}.{ending}", {"id": np.arange(100), "x": labels.take(pa.array(places))}, about[level])
        for level in about
    ]
    wanted = count_supported_labels(mechanism, places[:, None].astype(np.uint8))
    for chosen in (files[:1], files):
        tally = count(chosen)
        assert tally.n == 100
        estimated = tally.groups[0][1].estimate()
        np.testing.assert_array_equal(estimated.counts, wanted)  # type: ignore[attr-defined]
    assert len(rows(answer(files[0]))["value"]) == len(values)


def test_groups(tmp_path: Path) -> None:
    homes = pa.array([None if number < 5 else home for number, home in enumerate(HOMES)], pa.string())
    one = survey(tmp_path / "one.parquet", "1", region=homes)
    two = survey(tmp_path / "two.csv", "2", slice(0, 1_000), region=homes[:1_000])
    found = answer(one, "--by", "region")
    assert [(group["group"], group["n"]) for group in found["groups"]] == [
        ("north", int((HOMES[5:] == "north").sum())), ("south", int((HOMES[5:] == "south").sum())), (None, 5),
    ]  # fmt: skip
    where = np.flatnonzero((HOMES == "south") & (IDS >= 5))
    wanted = ANSWERS.estimate(reports(ANSWERS, TRUTH[where], IDS[where], "1", "diagnosis"), epsilon=1)
    np.testing.assert_allclose(rows(found, 1)["estimate"], wanted.value, rtol=1e-12)
    found = answer(one, two, "--by", "region")
    wanted_levels = {"1": int((where >= 1_000).sum()), "2": int((where < 1_000).sum())}
    assert found["groups"][1]["levels"] == wanted_levels
    shown = run(one, "--by", "region")
    assert "(missing)" in shown
    assert "Groups are made of the pass-through column 'region', released without noise." in shown


def test_groups_of_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet", age=pa.array(IDS % 3 * 9 + 2))
    assert [group["group"] for group in answer(path, "--by", "age")["groups"]] == ["2", "11", "20"]


def test_pairs(tmp_path: Path) -> None:
    path = both(tmp_path / "both.parquet")
    diagnoses, homes = reports(ANSWERS, TRUTH, IDS, "1", "diagnosis"), reports(REGIONS, HOMES, IDS, "2", "region")
    wanted = crosstab(ANSWERS, diagnoses, REGIONS, homes, row_epsilon=1, column_epsilon=2)
    found = answer(path, "--crosstab", "region")
    assert found["groups"][0]["levels"] == {"1 and 2": OBJECTS}
    assert rows(found)["value"] == ["flu", "flu", "covid", "covid", "none", "none"]
    assert rows(found)["crosstab_value"] == ["north", "south"] * 3
    np.testing.assert_allclose(rows(found)["estimate"], wanted.value, rtol=1e-12)
    np.testing.assert_allclose(rows(found)["high"], wanted.interval()[1], rtol=1e-12)
    assert "3,000 individuals at epsilon 1 and 2: 'diagnosis' and 'region' of release" in run(
        path, "--crosstab", "region"
    )


def test_pairs_from_two_files_at_mixed_levels(tmp_path: Path) -> None:
    path = both(tmp_path / "both.parquet")
    better = survey(tmp_path / "better.csv", "2", slice(0, 1_000))
    tally = count([path, better], crosstab="region")
    assert {levels: table.n for levels, table in tally.tables.items()} == {("1", "2"): 2_000, ("2", "2"): 1_000}
    homes = reports(REGIONS, HOMES, IDS, "2", "region")
    parts = []
    for epsilon, part in (("1", slice(1_000, None)), ("2", slice(0, 1_000))):
        column = reports(ANSWERS, TRUTH[part], IDS[part], epsilon, "diagnosis")
        parts.append(crosstab(ANSWERS, column, REGIONS, homes[part], row_epsilon=epsilon, column_epsilon=2).value)
    np.testing.assert_allclose(tally.estimate().value, (2 * parts[0] + parts[1]) / 3, rtol=1e-9)
    precise = tally.estimate("precision").value
    assert np.abs(precise - parts[1]).sum() < np.abs(tally.estimate().value - parts[1]).sum()


def test_mean(tmp_path: Path) -> None:
    ages = Numeric(18, 98)
    numbers = np.random.default_rng(3).uniform(20, 60, OBJECTS)
    column = reports(ages, numbers, IDS, "1", "age")
    wanted = ages.estimate(column, epsilon=1)
    for ending in ("parquet", "csv"):
        about = FileDescription("id", {"age": described(ages, "1", "age")})
        path = write(tmp_path / f"released.{ending}", {"id": IDS, "age": column}, about)
        found = answer(path)
        assert rows(found)["value"] == ["mean"]
        np.testing.assert_allclose(rows(found)["estimate"], wanted.value, rtol=1e-12)
        np.testing.assert_allclose(rows(found)["low"], wanted.interval()[0], rtol=1e-12)
        assert "mean of 'age' of release 'survey'; 95 % intervals of the mean, about these individuals." in run(path)
        assert run(path, "--plot", tmp_path / "mean.svg")
    assert "needs the shares of all values, which sum to 1" in sentence(path, "--consistent")


def test_what_is_asked_of_the_intervals(tmp_path: Path) -> None:
    path, wanted = survey(tmp_path / "released.parquet"), expected()
    words = ("--confidence-level", "0.9", "--simultaneous", "--about", "population")
    low, high = wanted.interval(0.9, simultaneous=True, about="population")
    found = answer(path, *words)
    np.testing.assert_allclose([rows(found)["low"], rows(found)["high"]], [low, high], rtol=1e-12)
    heading = "90 % intervals of all values at once, about the population that they are a sample of."
    assert heading in run(path, *words)
    np.testing.assert_allclose(rows(answer(path, "--consistent"))["estimate"], wanted.consistent(), rtol=1e-12)


def test_table_and_bars(tmp_path: Path) -> None:
    shown = run(survey(tmp_path / "released.parquet"))
    heading = (
        "3,000 individuals at epsilon 1: 'diagnosis' of release 'survey'; 95 % intervals of each value, about these"
    )
    assert heading in shown
    for value, (low, high) in zip(expected().labels, np.transpose(expected().interval()), strict=True):
        line = next(line for line in shown.splitlines() if value in line)
        assert f"{low:.4f}" in line
        assert f"{high:.4f}" in line
    assert "none" in max(shown.splitlines(), key=lambda line: line.count("█"))


def test_labels_are_only_shown(tmp_path: Path) -> None:
    """Neither the markup of a table, nor a terminal's control characters, nor a plot's formulas are obeyed."""
    mechanism = Categorical(["[red]a[/red]", "\x1b[2Jb", "$\\frac$"])
    column = pa.array(list(mechanism.values)).take(pa.array(IDS % 3))
    about = FileDescription("id", {"x": described(mechanism, "1", "x")})
    path = write(tmp_path / "released.parquet", {"id": IDS, "x": column}, about)
    shown = run(path, "--plot", tmp_path / "plot.png")
    assert "[red]a[/red]" in shown
    assert "\x1b" not in shown


def test_very_many_values_are_not_all_shown(tmp_path: Path) -> None:
    mechanism = Categorical(list(range(500)))
    about = FileDescription("id", {"x": described(mechanism, "5", "x")})
    path = write(tmp_path / "released.parquet", {"id": IDS, "x": np.where(IDS < 600, 77, IDS % 500)}, about)
    shown = run(path, "--plot", tmp_path / "plot.png")
    assert "These are the largest 50 of 500 rows; --json has all of them." in shown
    assert "77" in shown.splitlines()[4]
    assert len(rows(answer(path))["value"]) == 500


def test_a_wave_is_drawn_as_its_density(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": range(2_000), "age": [20.0 + n % 50 for n in range(2_000)], "town": ["a", "b"] * 1_000})
    wave = {"age": SquareWave(0, 100, epsilon=3)}
    release_to(tmp_path / "out.parquet", table, wave, epsilon=3, passthrough=["town"])
    drawn: list[Any] = []
    monkeypatch.setattr(results, "save_figure", lambda figure, path: drawn.append(figure))
    assert "│ median " in run(tmp_path / "out.parquet", "--plot", tmp_path / "plot.png")
    run(tmp_path / "out.parquet", "--by", "town", "--plot", tmp_path / "plot.png")
    assert [[axes.get_ylabel() for axes in figure.axes] for figure in drawn] == [["density"], ["density"] * 2]
    assert drawn[0].axes[0].get_xlabel().startswith("density, smoothed\nline: mean of 'age_report', with 95 %")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot(tmp_path: Path, ending: str) -> None:
    path = survey(tmp_path / "released.parquet", region=pa.array(HOMES))
    plot = tmp_path / f"plot.{ending}"
    for words in ((), ("--by", "region"), ("--consistent", "--simultaneous")):
        run(path, "--plot", plot, *words)
        assert plot.read_bytes()[:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    assert sorted(each.name for each in tmp_path.iterdir()) == [plot.name, "released.parquet"]


def sentence(*words: Any) -> str:
    """Run the real entry point on a mistake: error and hint, exit status 2, nothing on the output."""
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["relaxdp", "estimate", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    lines = errors.getvalue().splitlines()
    assert ended.value.code == 2, lines
    assert output.getvalue() == ""
    assert lines[0].startswith("Error: ")
    assert len(lines) <= 2
    return " ".join(line.removeprefix("Error: ").removeprefix("Hint: ") for line in lines)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    assert "There is no file" in sentence(tmp_path / "missing.parquet")
    assert "does not end in .parquet, .csv or .tsv" in sentence(tmp_path / "missing.txt")
    plain = tmp_path / "plain.csv"
    plain.write_text("id,diagnosis\n1,flu\n")
    assert "has no metadata about its reports: relaxdp did not release it" in sentence(plain)
    get_sidecar_path(plain).write_text("{")
    assert "metadata of the file is damaged" in sentence(plain)
    get_sidecar_path(plain).write_bytes(b"\xff")
    assert "cannot be read. It states whether" in sentence(plain)
    (tmp_path / "folder").mkdir()
    assert "has no Parquet files" in sentence(tmp_path / "folder")


def test_a_file_that_is_cut_or_changed(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "is damaged, cut off or not the kind of file that its ending stands for" in sentence(path)
    path.write_bytes(b"")
    assert str(path) in sentence(path)
    path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    assert "is damaged" in sentence(path)


def test_unknown_columns_and_the_nearest_name(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet", region=pa.array(HOMES))
    assert "has no released column 'diagnose'. Did you mean 'diagnosis'?" in sentence(path, "--column", "diagnose")
    assert "has no released column 'region'. Choose one of: 'diagnosis'." in sentence(path, "--column", "region")
    assert "has no pass-through column 'regoin'. Did you mean 'region'?" in sentence(path, "--by", "regoin")
    assert "is a released column" in sentence(path, "--by", "diagnosis")
    assert "is the id column, so each individual would be a separate group" in sentence(path, "--by", "id")
    assert "there is no column 'region'" in sentence(path, "--column", "diagnosis", "--crosstab", "region")
    assert "`by` and `crosstab` cannot be combined" in sentence(path, "--by", "region", "--crosstab", "region")
    several = both(tmp_path / "both.parquet")
    assert (
        "has several released columns ('diagnosis', 'region'). Choose one, such as column='diagnosis' (--column NAME)."
        in sentence(several)
    )
    assert answer(several, "--column", "region")["column"] == "region"
    assert "hold the same answers" in sentence(several, "--column", "region", "--crosstab", "region")


def test_kept_columns_of_a_csv_file_are_not_named(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.csv", region=pa.array(HOMES))
    told = sentence(path, "--by", "regoin")
    assert "has no pass-through column 'regoin'. The table has 3 columns, whose names are not shown" in told
    assert "region" not in told


def test_too_many_groups(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet", other=pa.array(IDS))
    assert "The column 'other' has more than 1,000 groups." in sentence(path, "--by", "other")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"values": ("flu", "covid", "other")}, "has other values than"),
        ({"values": ("covid", "flu", "none")}, "has other values than"),
        ({"path": PathId("other", "diagnosis")}, "has another release than"),
        ({"path": PathId("survey", "illness")}, "has another attribute than"),
        ({"key_fingerprint": "0" * 16}, "has another key than"),
        ({"id_type": "text"}, "has another kind of ids than"),
    ],
)
def test_files_of_different_paths(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    first = survey(tmp_path / "first.parquet")
    about = FileDescription("id", {"diagnosis": replace(described(ANSWERS, "2", "diagnosis"), **change)})
    other = write(tmp_path / "other.parquet", {"id": IDS, "diagnosis": pa.array(TRUTH)}, about)
    assert words in sentence(first, other)


def test_ids_that_repeat(tmp_path: Path) -> None:
    first, second = survey(tmp_path / "first.parquet"), survey(tmp_path / "second.parquet", "2", slice(0, 10))
    assert "is named twice" in sentence(first, first)
    same = survey(tmp_path / "same.parquet", "1", slice(7, 9))
    assert "2 ids occur in more than one row of the same level." in sentence(first, second, same)
    about = FileDescription("id", {"diagnosis": described(ANSWERS, "2", "diagnosis")})
    columns = {"id": pa.array([1, 1]), "diagnosis": pa.array(["flu", "flu"])}
    assert "1 id occurs in more than one row" in sentence(first, write(tmp_path / "twice.parquet", columns, about))
    columns["id"] = pa.array([1, None])
    assert "An id is missing, or of another type" in sentence(first, write(tmp_path / "none.parquet", columns, about))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_reports_that_were_not_declared(tmp_path: Path, ending: str) -> None:
    about = FileDescription("id", {"diagnosis": described(ANSWERS, "2", "diagnosis")})
    columns = {"id": pa.array([1, 2, 3]), "diagnosis": pa.array(["flu", "secret", None])}
    path = write(tmp_path / f"changed.{ending}", columns, about)
    for words in ((path,), (survey(tmp_path / "first.parquet"), path)):
        shown = sentence(*words)
        # All rows are counted before they are rejected.
        total = 3 if len(words) == 1 else OBJECTS + 3
        assert f"2 of {total:,} reports are not one of the 3 declared values of 'diagnosis'" in shown
        assert "secret" not in shown


def test_one_report_of_many_that_was_not_declared(tmp_path: Path) -> None:
    about = FileDescription("id", {"diagnosis": described(ANSWERS, "2", "diagnosis")})
    for names, words in ((["flu", "other"], "1 of 2 reports is not"), (["other"], "1 of 1 report is not")):
        columns = {"id": pa.array(range(len(names))), "diagnosis": pa.array(names)}
        assert words in sentence(write(tmp_path / f"{len(names)}.parquet", columns, about))


def test_columns_of_another_type(tmp_path: Path) -> None:
    about = FileDescription("id", {"diagnosis": described(ANSWERS, "2", "diagnosis")})
    path = write(tmp_path / "numbers.parquet", {"id": pa.array([1]), "diagnosis": pa.array([1])}, about)
    assert "is of type int64, which does not fit the values that were released" in sentence(path)
    path = write(tmp_path / "renamed.parquet", {"id": pa.array([1]), "illness": pa.array(["flu"])}, about)
    assert "names columns that the file does not have" in sentence(path)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_empty_files(tmp_path: Path, ending: str) -> None:
    empty = survey(tmp_path / f"empty.{ending}", chosen=slice(0, 0))
    assert "There are no rows to estimate from." in sentence(empty)
    full = survey(tmp_path / "full.parquet", "2")
    assert answer(full, empty)["n"] == OBJECTS
    if ending == "csv":
        empty.write_bytes(b"")
        assert str(empty) in sentence(empty)


def change_level(about: ColumnDescription) -> ColumnDescription:
    return replace(about, threshold=about.threshold + 1)


def change_encoding(about: ColumnDescription) -> ColumnDescription:
    return replace(about, encoding="unary")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_level, "contradictory metadata: its threshold (the noise) is not that of epsilon 1."),
        (change_encoding, "Unknown mechanism 'unary' in the metadata."),
        (
            lambda about: replace(about, values=("flu",)),
            "The list of values is too short: it has 1. At least two values must be declared.",
        ),
    ],
)
def test_descriptions_that_cannot_be(
    tmp_path: Path, change: Callable[[ColumnDescription], ColumnDescription], words: str
) -> None:
    about = FileDescription("id", {"diagnosis": change(described(ANSWERS, "1", "diagnosis"))})
    assert words in sentence(write(tmp_path / "x.parquet", {"id": IDS, "diagnosis": pa.array(TRUTH)}, about))


def test_questions_that_make_no_sense(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet")
    assert "`confidence_level` must be a number between 0 and 1" in sentence(path, "--confidence-level", "95")
    assert "does not end in .png, .svg or .pdf." in sentence(path, "--plot", tmp_path / "plot.txt")
    assert "cannot be written: No such file or directory." in sentence(path, "--plot", tmp_path / "no" / "plot.png")


def test_little_memory_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids go to disk where they do not fit."""
    ids = np.arange(400_000)
    about = {level: FileDescription("id", {"x": described(REGIONS, level, "x")}) for level in ("1", "2")}
    column = pa.array(["north", "south"]).take(pa.array(ids % 2))
    texts = pa.array([f"a rather long name of an object, number {number}" for number in ids])
    files = [write(tmp_path / f"{level}.parquet", {"id": texts, "x": column}, each) for level, each in about.items()]
    monkeypatch.setattr(counting, "MEMORY_LIMIT", "75MB")
    assert count(files).groups[0][1].levels == {"2": len(ids)}


def test_the_commands_of_the_analysts_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "analyst.md").read_text("utf-8")
    lines = re.findall(r"^relaxdp estimate (.*)$", page, flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(compile(block, "analyst.md", "exec"), names)
    assert len(lines) == 5
    shown = [run(*line.split(), width=80) for line in lines]
    (compared,) = re.findall(r"^relaxdp compare (.*)$", page, flags=re.MULTILINE)
    assert CliRunner().invoke(app, ["compare", *compared.split()]).exit_code == 0
    assert all(re.match(r"[\d,]+ individuals at epsilon 0.5", each) for each in shown)
    (printed,) = re.findall(r"```text\n(50,000 individuals.*?)```", page, flags=re.DOTALL)
    heading = slice(0, 5)  # the vault of the page has a key of its own, and so other reports
    assert printed.splitlines()[heading] == [line.rstrip() for line in shown[0].splitlines()][heading]
    for option in re.findall(r"`(--[-a-z]+)", page):
        assert option in CliRunner().invoke(app, ["estimate", "--help"]).output


# Quantiles and CSV.


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ages") / "ages.parquet"
    numbers = np.random.default_rng(8).normal(40, 15, 5_000)
    table = pa.table({"id": np.arange(5_000), "age": np.clip(numbers, 0, 100)})
    release_to(path, table, {"age": SquareWave(0, 100, epsilon=2, bins=32)}, epsilon=2)
    return path


def test_any_quantiles(ages: Path) -> None:
    expected = estimate(ages).quantile([0.1, 0.9])
    (group,) = answer(ages, "--quantiles", "0.1,0.9")["groups"]
    assert [each["probability"] for each in group["quantiles"]] == [0.1, 0.9]
    assert [each["estimate"] for each in group["quantiles"]] == expected.value.tolist()
    assert [(each["low"], each["high"]) for each in group["quantiles"]] == list(zip(*expected.interval(), strict=True))
    assert "│ quantile 0.1 │" in run(ages, "--quantiles", "0.1")
    (group,) = answer(ages)["groups"]
    assert [each["probability"] for each in group["quantiles"]] == [0.25, 0.5, 0.75]


@pytest.mark.parametrize("written", ["", "0.5,", "0", "1", "nan", "a"])
def test_quantiles_are_numbers_between_0_and_1(ages: Path, written: str) -> None:
    assert "is not a list of numbers between 0 and 1." in sentence(ages, "--quantiles", written)


def test_only_distributions_have_quantiles(tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet")
    assert "--quantiles needs numbers that were released with the square wave" in sentence(path, "--quantiles", "0.5")


def test_csv_has_every_row(ages: Path, tmp_path: Path) -> None:
    path = survey(tmp_path / "released.parquet", region=pa.array(HOMES))
    rows = list(csv.DictReader(io.StringIO(run(path, "--by", "region", "--csv"))))
    groups = answer(path, "--by", "region")["groups"]
    expected = [(group["group"], row["value"], row["estimate"]) for group in groups for row in group["estimates"]]
    assert [(row["group"], row["value"], float(row["estimate"])) for row in rows] == expected
    assert [row["value"] for row in csv.DictReader(io.StringIO(run(ages, "--csv", "--quantiles", "0.5")))] == [
        "mean", "median",
    ]  # fmt: skip
    assert "--json and --csv cannot be combined." in sentence(path, "--json", "--csv")


def run_estimate(*words: str) -> Any:
    found = CliRunner().invoke(app, ["estimate", *words])
    assert found.exit_code == 0, found.output
    return found.output


def test_weights_and_totals_are_those_of_python(tmp_path: Path) -> None:
    weights = np.where(IDS % 3 == 0, 2.0, 1.0)
    table = pa.table({"id": IDS, "diagnosis": TRUTH, "home": HOMES, "weight": weights})
    release_to(tmp_path / "out.csv", table, {"diagnosis": ANSWERS}, epsilon=1, passthrough=["home", "weight"])
    file = str(tmp_path / "out.csv")
    totals = estimate(file, "diagnosis", weights="weight").totals()
    found = json.loads(run_estimate(file, "--weights", "weight", "--totals", "--json"))
    assert (found["weights"], found["totals"], found["groups"][0]["sum_of_weights"]) == ("weight", True, weights.sum())
    assert [each["estimate"] for each in found["groups"][0]["estimates"]] == pytest.approx(totals.value)
    rows = list(csv.DictReader(io.StringIO(run_estimate(file, "--weights", "weight", "--totals", "--csv"))))
    assert [float(row["high"]) for row in rows] == pytest.approx(totals.interval()[1])
    shown = run_estimate(file, "--weights", "weight", "--totals", "--by", "home")
    assert "total of 'diagnosis'" in shown
    assert "Weights are those of the column 'weight'." in shown
    plain = json.loads(run_estimate(file, "--json"))
    assert not {"weights", "totals"} & set(plain)
    assert "sum_of_weights" not in plain["groups"][0]


def test_the_weighted_mean_of_a_square_wave_has_no_quantiles(tmp_path: Path) -> None:
    table = pa.table({"id": IDS, "age": IDS % 90, "weight": IDS % 4})
    release_to(tmp_path / "out.csv", table, {"age": SquareWave(0, 90, epsilon=1)}, epsilon=1, passthrough=["weight"])
    file = str(tmp_path / "out.csv")
    found = json.loads(run_estimate(file, "--weights", "weight", "--json"))
    assert "quantiles" not in found["groups"][0]
    assert CliRunner().invoke(app, ["estimate", file, "--weights", "weight", "--quantiles", "0.5"]).exit_code
