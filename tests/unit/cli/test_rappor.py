"""`relaxdp rappor`: from a table of words to decoded words, through a vault, and a hint for every mistake."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from typer.testing import CliRunner

from relaxdp import Key, Vault
from relaxdp.cli.main import app, main
from relaxdp.errors import MetadataError, RowsChangedError
from relaxdp.mechanisms.bloom import Bloom, BloomShape, release_bloom
from relaxdp.rappor.reports import RapporDevice
from relaxdp.sampling.keyed_stream import PathId

RUNNER = CliRunner(env={"COLUMNS": "200"})
WORDS = [f"word {number}" for number in range(20)]
SHARES = np.array([0.5, 0.3, 0.2])
PARAMS = "k,h,m,f\n32,1,8,0.3\n"
SHAPE = BloomShape(32, 1, 8)


def run(*words: str) -> str:
    shown = RUNNER.invoke(app, ["rappor", *words])
    assert shown.exit_code == 0, (shown.output, shown.exception)
    return shown.output


def mistake(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["relaxdp", "rappor", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.out == ""
    assert shown.err.startswith("Error: ")
    return shown.err.rstrip("\n")


def prepare(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    generator = np.random.default_rng(1)
    chosen = generator.choice(3, size=3000, p=SHARES)
    rows = [f"c{number:05d},{WORDS[word]}" for number, word in enumerate(chosen)]
    generator.shuffle(rows)
    Path("clients.csv").write_text("client,value\n" + "\n".join(rows) + "\n")
    Path("params.csv").write_text(PARAMS)
    Path("candidates.txt").write_text("\n".join(WORDS) + "\n")
    Key.from_bytes(bytes(range(32))).save("key")
    Vault.create("study.vault", budget=5, key_command="cat key")
    Path("map.csv").write_text(run("map", "candidates.txt", "--params", "params.csv"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare(tmp_path, monkeypatch)
    return tmp_path


def read(name: str) -> list[list[str]]:
    with Path(name).open(newline="") as file:
        return list(csv.reader(file))


def encode(target: str, *words: str) -> str:
    return run("encode", "clients.csv", target, "--params", "params.csv", *words)


def spent() -> str:
    return str(Vault("study.vault").spent)


def decoded(*files: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    text = run("decode", *files, "--params", "params.csv", "--map", "map.csv", "--json", *options)
    found: dict[str, Any] = json.loads(text)
    return found


def test_from_words_to_reports_to_words(place: Path) -> None:
    shown = encode("first.csv", "--epsilon", "1")
    assert "Released 3,000 rows as 'clients' at epsilon 1 to first.csv, from study.vault." in shown
    assert "value as report  RAPPOR" in shown
    assert spent() == "1"
    rows = read("first.csv")
    assert rows[0] == ["client", "cohort", "report"]
    assert [row[0] for row in rows[1:]] == [f"c{number:05d}" for number in range(3000)]
    assert {len(row[2]) for row in rows[1:]} == {32}
    Path("clients.csv").unlink()
    shown = run("relax", "clients", "second.csv", "--epsilon", "3.5")
    assert "Cost 2.5. Spent 3.5 of the budget 5, 1.5 remaining." in shown
    # A client in both files counts once, at its highest level.
    both, last = decoded("first.csv", "second.csv"), decoded("second.csv")
    assert both["words"] == last["words"]
    assert both["devices"] == 3000
    assert both["counted"] == [0, 3000]
    shown = run("decode", "first.csv", "second.csv", "--params", "params.csv", "--map", "map.csv")
    assert "3,000 devices: 0 by their reports at epsilon 1; 3,000 by their reports at epsilon 3.5; 95 %" in " ".join(
        shown.split()
    )
    assert [word["found"] for word in last["words"]] == [True] * 3 + [False] * 17
    for word, share in zip(last["words"], SHARES, strict=False):
        assert abs(word["share"] - share) < 0.06
        assert word["low"] <= word["share"] <= word["high"]
    table = run("decode", "second.csv", "--params", "params.csv", "--candidates", "candidates.txt")
    assert "3,000 devices: reports at epsilon 3.5; 95 % intervals." in table
    assert "3 of 20 candidates found; the chance that even one of them is false is at most 0.05." in table
    assert "word 7" not in table
    # The words were found by what they say, so their intervals hold for all candidates; JSON says which it has.
    together = decoded("second.csv", options=("--simultaneous",))
    assert (last["simultaneous"], together["simultaneous"], last["confidence_level"]) == (False, True, 0.95)
    for word in together["words"][:3]:
        assert f"│ {word['low']:.4f} │ {word['high']:.4f} │" in table
    assert "The intervals hold for all 20 candidates at once." in table
    everything = run("decode", "second.csv", "--params", "params.csv", "--map", "map.csv", "--all")
    assert "word 7" in everything
    assert f"│ {last['words'][0]['low']:.4f} │ {last['words'][0]['high']:.4f} │" in everything
    assert "at once" not in everything
    plotted = run("decode", "second.csv", "--params", "params.csv", "--map", "map.csv", "--plot", "words.png")
    assert "3 of 20 candidates found" in plotted
    assert Path("words.png").stat().st_size > 5000
    loose = decoded("second.csv", options=("--correction", "benjamini-hochberg", "--rate", "0.2"))
    assert (loose["rate"], loose["correction"]) == (0.2, "benjamini-hochberg")


def test_reports_are_the_devices_own_and_say_their_level(place: Path) -> None:
    encode("first.parquet", "--epsilon", "2", "--name", "words")
    table = pa_parquet.read_table("first.parquet")
    content = json.loads(table.schema.metadata[b"relaxdp"])["columns"]["report"]
    assert (content["encoding"], content["epsilon"], content["release"]) == ("bloom", "2", "words")
    assert content["options"] == {"bits": 32, "hashes": 1, "cohorts": 8}
    words = dict(read("clients.csv")[1:])
    row = table.slice(17, 1).to_pylist()[0]
    device = RapporDevice(
        SHAPE, words[row["client"]], key=Key.load("key"), id=row["client"], name="words", column="value"
    )
    bits = "".join(str(bit) for bit in np.unpackbits(np.frombuffer(row["report"], np.uint8), bitorder="little")[::-1])
    assert (device.cohort, device.get_report(2).bits) == (row["cohort"], bits)
    again = decoded("first.parquet")
    assert again["files"] == ["reports at epsilon 2"]


def test_the_level_of_f_is_the_default_and_again_costs_nothing(place: Path) -> None:
    shown = encode("first.csv")
    assert "at epsilon 3.46920211077" in shown  # 2 ln(1.7 / 0.3), rounded down
    encode("again.csv", "--name", "clients")
    run("relax", "clients", "relaxed.csv", "--epsilon", "3.46920211077")
    for name in ("again.csv", "relaxed.csv"):
        assert Path(name).read_bytes() == Path("first.csv").read_bytes()
    assert spent() == "3.46920211077"


def test_relaxing_along_a_schedule(place: Path) -> None:
    encode("r0.csv", "--epsilon", "0.4")
    pace = ["--schedule", "linear:0.5,1.5,3"]
    levels = [json.loads(run("relax", "clients", f"r{step}.csv", "--json", *pace))["epsilon"] for step in (1, 2, 3)]
    assert levels == ["0.5", "1", "1.5"]
    sampled = ["--schedule", "noisy-sampling:1,0.5,10"]
    shown = run("relax", "clients", "r4.csv", "--json", *sampled)
    assert json.loads(shown)["epsilon"] == "1.656674"  # twice the level of five samples
    # A lower level in between is free, and a schedule goes on from the largest one.
    run("relax", "clients", "low.csv", "--epsilon", "0.1")
    failed = RUNNER.invoke(app, ["rappor", "relax", "clients", "r5.csv", *pace])
    assert str(failed.exception) == (
        "The release 'clients' is at epsilon 1.656674, and --schedule has no higher level: it ends at 1.5. Pass a "
        "schedule with a level above 1.656674, or one level with --epsilon. Nothing was released."
    )


def test_a_client_counts_once_in_every_format(place: Path) -> None:
    """In CSV all clients are text; 17 is the one that "17" stands for."""
    words = pa.array([WORDS[number % 3] for number in range(600)])
    pa_parquet.write_table(pa.table({"device": range(600), "value": words}), "devices.parquet")
    run("encode", "devices.parquet", "low.csv", "--params", "params.csv", "--id", "device", "--epsilon", "1")
    run("relax", "devices", "high.parquet", "--epsilon", "4")
    both, alone = decoded("low.csv", "high.parquet"), decoded("high.parquet")
    assert (both["devices"], both["words"]) == (600, alone["words"])
    assert Vault("study.vault").check(["low.csv", "high.parquet"]).is_good


def test_words_of_every_kind_and_length_are_compared(place: Path) -> None:
    """Dictionaries and long words are words like others; one that changed is noticed at any level."""
    words = [WORDS[0], "naïve", "x" * 40, "", "word"] * 100
    table = pa.table({"client": range(500), "value": pa.array(words).dictionary_encode()})
    bloom = Bloom(SHAPE)
    vault = Vault("study.vault")
    where: dict[str, Any] = {"id": "client", "name": "kinds"}
    first = vault.release(table, {"value": bloom}, epsilon=2, **where)
    assert first.to_frame().column_names == ["client", "cohort", "report"]
    drawn = release_bloom(
        SHAPE,
        words,
        list(range(500)),
        key=Key.load("key"),
        level=bloom.level(2),
        path=PathId("kinds", "value"),
    )
    assert first.to_frame()["report"].to_pylist() == [row.tobytes() for row in drawn.packed]
    changed = table.set_column(1, "value", pa.array([*words[:-1], "worse"]))
    for epsilon in (1, 2, 3):
        with pytest.raises(RowsChangedError):
            vault.release(changed, {"value": bloom}, epsilon=epsilon, **where)
    assert vault.relax("kinds", 2).to_frame().equals(first.to_frame())


@pytest.mark.parametrize(
    "quirk",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", ",\n"),
        lambda text: "\n" + text.replace("\n", "\n\n"),
    ],
    ids=["windows", "mark", "empty end", "blank lines"],
)
def test_reports_that_spreadsheets_wrote(place: Path, quirk: Callable[[str], str]) -> None:
    encode("reports.csv", "--epsilon", "1")
    wanted = decoded("reports.csv")
    Path("reports.csv").write_bytes(quirk(Path("reports.csv").read_text()).encode())
    assert decoded("reports.csv") == wanted


def test_a_boolean_from_end_to_end(place: Path) -> None:
    Path("bool.csv").write_text("k,h,m,f\n1,1,1,0.5\n")
    Path("answers.csv").write_text("client,value\n" + "\n".join(f"{n},{str(n % 10 == 0).lower()}" for n in range(5000)))
    run("encode", "answers.csv", "out.csv", "--params", "bool.csv")
    assert spent() == "1.09861228866"  # ln 3: one bit, so once
    shown = json.loads(run("decode", "out.csv", "--params", "bool.csv", "--json"))
    (word,) = shown["words"]
    assert word["word"] == "true"
    assert word["low"] < 0.1 < word["high"]
    assert word["found"]


def test_estimate_says_who_reads_these_files(place: Path) -> None:
    for target in ("reports.csv", "reports.parquet"):
        encode(target, "--epsilon", "1")
        rejected = CliRunner().invoke(app, ["estimate", target]).exception
        assert isinstance(rejected, MetadataError)
        assert rejected.sentence == f"'{target}' holds RAPPOR reports, which have their own command."
        assert "`relaxdp rappor decode FILE --params params.csv" in rejected.hint


def test_choosing_parameters(place: Path) -> None:
    shown = run("params", "--devices", "100000", "--candidates", "300", "--epsilon", "4.4")
    assert "100,000 devices, 300 candidates, the best first." in shown
    found = json.loads(run("params", "--devices", "100000", "--candidates", "300", "--share", "0.01", "--json"))
    assert found["plans"][0]["smallest_share"] <= 0.01
    run("params", "--devices", "100000", "--candidates", "300", "--epsilon", "4.4", "--write", "chosen.csv")
    assert run("map", "candidates.txt", "--params", "chosen.csv").count("\n") == 20
    assert Path("chosen.csv").read_text().startswith("k,h,m,f\n256,1,32,0.19950")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one release, and with every kind of file that does not fit it."""
    folder = tmp_path_factory.mktemp("rappor")
    with pytest.MonkeyPatch.context() as patch:
        prepare(folder, patch)
        encode("first.csv", "--epsilon", "1")
        Path("extra.csv").write_text("k,h,m,f,z\n32,1,8,0.3,1\n")
        Path("bare.csv").write_text("k,h,m,f\n32,1,8,0\n")
        Path("missing.csv").write_text("k,h,m\n32,1,8\n")
        Path("many.csv").write_text("k,h,m,f\n32,17,8,0.3\n")
        Path("k16.csv").write_text("k,h,m,f\n16,1,8,0.3\n")
        Path("map16.csv").write_text(run("map", "candidates.txt", "--params", "k16.csv"))
        lines = Path("map.csv").read_text().replace("word", "other").splitlines()
        Path("hashed.csv").write_text("\n".join([*lines, lines[0].replace("other 0", "twin")]) + "\n")
        bits = "01" * 16
        header = "client,cohort,report\n"
        damaged = {
            "cohort": f"{header}a,1,{bits}\nb,8,{bits}\n",
            "where": f"{header}a,1,{bits}\nb,1.5,{bits}\n",
            "letters": f"{header}a,1,{bits[:-1]}x\n",
            "short": f"{header}a,1,{bits[:-1]}\n",
            "nobody": f"{header}a,1,{bits}\n,2,{bits}\n",
            "ragged": f"{header}a,1,{bits}\n\nb,1,{bits},7\n",
        }
        for name, text in damaged.items():
            Path(f"{name}.csv").write_text(text)
            shutil.copy("first.csv.relaxdp.json", f"{name}.csv.relaxdp.json")
        Path("plain.csv").write_text(damaged["cohort"])
        table = pa.table({"person": range(500), "smoker": ["no", "yes"] * 250})
        Vault("study.vault").release(table, {"smoker": ["no", "yes"]}, id="person", epsilon=2, name="plain")
        Path("changed.csv").write_text(Path("clients.csv").read_text().replace("word 2", "word 1", 1))
        Path("twice.csv").write_text("client,value\na,x\na,y\n")
        pa_parquet.write_table(pa.table({"client": ["b", "a"], "value": [None, "x"]}), "gap.parquet")
    return folder


@pytest.fixture
def mistakes(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    Vault("study.vault").adopt(reason="a copy for this test")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("params --devices 5 --candidates 3", "Pass --epsilon 4 to get the smallest detected share of a word"),
        (
            "params --devices 5 --candidates 3 --epsilon 1 --write params.csv",
            "'params.csv' cannot be written: File exists.",
        ),
        ("params --devices 5 --candidates 3 --epsilon 1 --hashes 17", "The number of hashes (h) must be"),
        ("map none.txt --params params.csv", "The values file 'none.txt' is missing, cannot be read"),
        ("map candidates.txt --params none.csv", "The parameter file 'none.csv' cannot be read"),
        ("map candidates.txt --params extra.csv", "'extra.csv' must have two rows: k,h,m,f"),
        ("map candidates.txt --params missing.csv", "'missing.csv' must have two rows: k,h,m,f"),
        (
            "map candidates.txt --params many.csv",
            "The number of hashes (h) must be a whole number from 1 to 16, not 17.",
        ),
        (
            "decode first.csv --params k16.csv --map map.csv",
            "made with the parameters k = 32, h = 1, m = 8, but the parameter file has k = 16",
        ),
        (
            "decode short.csv --params params.csv --map map.csv",
            "Row 1 of 'short.csv': the report must have 32 bits, each 0 or 1.",
        ),
        (
            "decode cohort.csv --params params.csv --map map.csv",
            "Row 2 of 'cohort.csv': the cohort must be a whole number from 0 to 7.",
        ),
        (
            "decode letters.csv --params params.csv --map map.csv",
            "Row 1 of 'letters.csv': the report must have 32 bits, each 0 or 1.",
        ),
        (
            "decode nobody.csv --params params.csv --map map.csv",
            "Row 2 of 'nobody.csv': the id of the client is missing.",
        ),
        (
            "decode where.csv --params params.csv --map map.csv",
            "Row 2 of 'where.csv': the cohort must be a whole number from 0 to 7.",
        ),
        (
            "decode ragged.csv --params params.csv --map map.csv",
            "Row 2 of 'ragged.csv' has more or fewer fields than the header, which has 3.",
        ),
        ("decode first.csv --params params.csv --map map16.csv", "The candidate map was made for other parameters"),
        (
            "decode first.csv --params params.csv --map hashed.csv",
            "or by another hash function.",
        ),
        ("decode first.csv --params params.csv", "The candidate words are missing."),
        (
            "decode first.csv --params params.csv --map map.csv --candidates candidates.txt",
            "--map and --candidates cannot be combined: each lists the candidate words.",
        ),
        (
            "decode plain.csv --params params.csv --map map.csv",
            "'plain.csv' does not contain RAPPOR reports, or does not state their epsilon.",
        ),
        (
            "decode clients.csv --params params.csv --map map.csv",
            "'clients.csv' does not contain RAPPOR reports, or",
        ),
        (
            "decode first.csv --params params.csv --map map.csv --rate 2",
            "The error rate of detected words must be",
        ),
        ("decode none.csv --params params.csv --map map.csv", "There is no file 'none.csv'."),
        ("decode first.csv first.csv --params params.csv --map map.csv", "'first.csv' is given twice"),
        ("encode clients.csv out.csv --params params.csv --epsilon 9", "This release needs 8, and 2 of 5 is left"),
        ("encode clients.csv first.csv --params params.csv", "'first.csv' already exists."),
        (
            "encode clients.csv out.csv --params bare.csv",
            "The permanent noise f must be greater than 0 and less than 1, not 0.",
        ),
        (
            "encode changed.csv out.csv --params params.csv --name clients --epsilon 2",
            "The values of 'value' have changed in some rows since they were released as 'clients'.",
        ),
        ("encode clients.csv out.csv --params k16.csv --epsilon 2", "was declared differently at its first release"),
        ("encode twice.csv out.csv --params params.csv --epsilon 1", "Rows 1 and 2 of 'twice.csv' have the same id."),
        (
            "encode gap.parquet out.csv --params params.csv --epsilon 1",
            "Row 2 of 'value' in the order of the ids: the word is missing.",
        ),
        ("encode clients.csv out.csv --params params.csv --column word", "has no column 'word'"),
        ("encode clients.csv out.csv --params params.csv --vault none.vault", "There is no vault at 'none.vault'."),
        ("relax clients out.csv", "exactly one of --epsilon and --schedule for the next level, got neither"),
        ("relax clients out.csv --epsilon 2 --schedule 1,2", "--epsilon and --schedule for the next level, got both"),
        ("relax clients out.csv --schedule linear:1", "--schedule 'linear:1' is not a schedule."),
        ("relax others out.csv --epsilon 2", "The vault has no release 'others'."),
        (
            "relax plain out.csv --schedule linear:1,2,2",
            "The release 'plain' does not contain RAPPOR reports, and `relaxdp rappor relax` relaxes only those.",
        ),
    ],
)
def test_a_mistake_has_a_sentence(
    mistakes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    before = spent()
    assert sentence in mistake(monkeypatch, capsys, *words.split())
    assert spent() == before
    assert not Path("out.csv").exists()
