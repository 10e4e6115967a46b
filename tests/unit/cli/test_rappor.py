"""`relaxdp rappor`: from a table of words to decoded words, the ledger along the way, one sentence for a mistake."""

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

from relaxdp import Key
from relaxdp.cli.main import app, main
from relaxdp.errors import DescriptionError
from relaxdp.ledger.entries import Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.rappor.candidates import CandidateMap
from relaxdp.rappor.classic import Samples
from relaxdp.rappor.counts import RapporCounts
from relaxdp.rappor.decode import decode
from relaxdp.rappor.device import Device
from relaxdp.rappor.files import Parameters, counts_text
from relaxdp.rappor.filter import BloomShape

RUNNER = CliRunner(env={"COLUMNS": "200"})
WORDS = [f"word {number}" for number in range(20)]
SHARES = np.array([0.5, 0.3, 0.2])
PARAMS = "k,h,m,p,q,f\n32,1,8,0,1,0.3\n"
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
    assert shown.err.count("\n") == 1
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
    Path("map.csv").write_text(run("map", "candidates.txt", "--params", "params.csv"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare(tmp_path, monkeypatch)
    return tmp_path


def read(name: str) -> list[list[str]]:
    with Path(name).open(newline="") as file:
        return list(csv.reader(file))


def encode(target: str, *words: str) -> str:
    return run("encode", "clients.csv", target, "--params", "params.csv", "--key", "key", *words)


def spent() -> str:
    with Ledger.open("key.ledger") as book:
        return str(book.balance(Subject.population("everyone")).spent)


def decoded(*files: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    text = run("decode", *files, "--params", "params.csv", "--map", "map.csv", "--json", *options)
    found: dict[str, Any] = json.loads(text)
    return found


def test_from_words_to_reports_to_words(place: Path) -> None:
    assert "released 'value' of 3,000 rows at epsilon 1" in encode("first.csv", "--epsilon", "1", "--budget", "5")
    assert spent() == "1"
    rows = read("first.csv")
    assert rows[0] == ["client", "cohort", "report"]
    assert [row[0] for row in rows[1:]] == [f"c{number:05d}" for number in range(3000)]
    assert {len(row[2]) for row in rows[1:]} == {32}
    shown = run(
        "relax", "clients.csv", "second.csv", "--last", "first.csv", "--params", "params.csv", "--key", "key",
        "--epsilon", "3.5",
    )  # fmt: skip
    assert "cost 2.5; spent 3.5 of the budget 5, 1.5 left" in shown
    # A client in both files counts once, at its highest level.
    both, last = decoded("first.csv", "second.csv"), decoded("second.csv")
    assert both["words"] == last["words"]
    assert both["devices"] == 3000
    assert both["counted"] == [0, 3000]
    shown = run("decode", "first.csv", "second.csv", "--params", "params.csv", "--map", "map.csv")
    assert "3,000 devices: 0 by their reports at epsilon 1; 3,000 by their reports at epsilon 3.5." in " ".join(
        shown.split()
    )
    assert [word["found"] for word in last["words"]] == [True] * 3 + [False] * 17
    for word, share in zip(last["words"], SHARES, strict=False):
        assert abs(word["share"] - share) < 0.06
        assert word["low"] <= word["share"] <= word["high"]
    table = run("decode", "second.csv", "--params", "params.csv", "--candidates", "candidates.txt")
    assert "3,000 devices: reports at epsilon 3.5." in table
    assert "3 of 20 candidates found; the chance that even one of them is false is at most 0.05." in table
    assert "word 7" not in table
    # The words were found by what they say, so their intervals hold for all candidates; JSON says which it has.
    together = decoded("second.csv", options=("--simultaneous",))
    assert (last["simultaneous"], together["simultaneous"], last["confidence"]) == (False, True, 0.95)
    for word in together["words"][:3]:
        assert f"{word['low']:.2%} .. {word['high']:.2%}" in table
    assert "The intervals hold for all 20 candidates at once." in table
    everything = run("decode", "second.csv", "--params", "params.csv", "--map", "map.csv", "--all")
    assert "word 7" in everything
    assert f"{last['words'][0]['low']:.2%} .. {last['words'][0]['high']:.2%}" in everything
    assert "at once" not in everything
    plotted = run("decode", "second.csv", "--params", "params.csv", "--map", "map.csv", "--plot", "words.png")
    assert "3 of 20 candidates found" in plotted
    assert Path("words.png").stat().st_size > 5000
    loose = decoded("second.csv", options=("--correction", "benjamini-hochberg", "--rate", "0.2"))
    assert (loose["rate"], loose["correction"]) == (0.2, "benjamini-hochberg")


def test_reports_are_the_devices_own_and_say_their_level(place: Path) -> None:
    encode("first.parquet", "--epsilon", "2", "--budget", "5", "--release", "words")
    table = pa_parquet.read_table("first.parquet")
    content = json.loads(table.schema.metadata[b"relaxdp"])["columns"]["report"]
    assert (content["encoding"], content["epsilon"], content["release"]) == ("bloom", "2", "words")
    assert content["options"] == {"bits": 32, "hashes": 1, "cohorts": 8}
    words = dict(read("clients.csv")[1:])
    row = table.slice(17, 1).to_pylist()[0]
    device = Device(
        SHAPE, words[row["client"]], key=Key.load("key"), device_id=row["client"], release="words", attribute="value"
    )
    bits = "".join(str(bit) for bit in np.unpackbits(np.frombuffer(row["report"], np.uint8), bitorder="little")[::-1])
    assert (device.cohort, device.at(2).bits) == (row["cohort"], bits)
    again = decoded("first.parquet")
    assert again["files"] == ["reports at epsilon 2"]


def test_the_level_of_f_is_the_default_and_again_costs_nothing(place: Path) -> None:
    shown = encode("first.csv", "--budget", "5")
    assert "at epsilon 3.46920211077" in shown  # 2 ln(1.7 / 0.3), rounded down
    encode("again.csv", "--release", "clients")
    assert Path("again.csv").read_bytes() == Path("first.csv").read_bytes()
    assert spent() == "3.46920211077"


def test_a_level_beyond_f_is_told(place: Path) -> None:
    beyond = "epsilon 9 is beyond f = 0.3, which is epsilon 3.469: decoders that rely on f do not expect it"
    assert beyond in " ".join(encode("beyond.csv", "--epsilon", "9", "--no-ledger").split())
    assert "beyond" not in encode("below.csv", "--epsilon", "1", "--no-ledger")
    assert "beyond" not in encode("at.csv", "--no-ledger")
    relaxed = ["relax", "clients.csv", "relaxed.csv", "--last", "below.csv", "--params", "params.csv", "--key", "key"]
    assert beyond in run(*relaxed, "--epsilon", "9", "--no-ledger")


def test_relaxing_along_a_schedule(place: Path) -> None:
    encode("r0.csv", "--epsilon", "0.4", "--budget", "5")
    common = ["--params", "params.csv", "--key", "key", "--json"]
    pace = ["--pace", "linear", "--first", "0.5", "--limit", "1.5", "--steps", "3"]
    levels = []
    for step in range(3):
        shown = run("relax", "clients.csv", f"r{step + 1}.csv", "--last", f"r{step}.csv", *common, *pace)
        levels.append(json.loads(shown)["epsilon"])
    assert levels == ["0.5", "1", "1.5"]
    sampled = ["--pace", "noisy-sampling", "--alpha", "1", "--beta", "0.5", "--steps", "10"]
    shown = run("relax", "clients.csv", "r4.csv", "--last", "r3.csv", *common, *sampled)
    assert json.loads(shown)["epsilon"] == "1.656674"  # twice the level of five samples
    ends = ["relax", "clients.csv", "r5.csv", "--last", "r4.csv", *common, *pace]
    failed = RUNNER.invoke(app, ["rappor", *ends])
    assert str(failed.exception) == (
        "the last reports are at 1.656674, and the schedule ends at 1.5. Nothing was released."
    )


def test_a_client_counts_once_in_every_format(place: Path) -> None:
    """In CSV all clients are text; 17 is the one that "17" stands for."""
    words = pa.array([WORDS[number % 3] for number in range(600)])
    pa_parquet.write_table(pa.table({"client": range(600), "value": words}), "clients.parquet")
    where = ["--params", "params.csv", "--key", "key"]
    run("encode", "clients.parquet", "low.csv", *where, "--epsilon", "1", "--budget", "9")
    run("encode", "clients.parquet", "high.parquet", *where, "--epsilon", "4")
    both, alone = decoded("low.csv", "high.parquet"), decoded("high.parquet")
    assert (both["devices"], both["words"]) == (600, alone["words"])
    refused = RUNNER.invoke(
        app, ["rappor", "relax", "clients.parquet", "x.csv", "--last", "low.csv", *where, "--epsilon", "5"]
    )
    assert "are of another type than those of the table" in str(refused.exception)


def test_googles_reports_and_counts_are_decoded(place: Path) -> None:
    """Classic files: k, h, m, p, q and f as the parameters say; bits as text, the highest first."""
    generator = np.random.default_rng(5)
    Path("classic.csv").write_text("k,h,m,p,q,f\n32,1,8,0.25,0.75,0.2\n")
    design = CandidateMap.of_words(WORDS, SHAPE)
    rows, devices, ones = [], np.zeros(8, int), np.zeros((8, 32), int)
    for client in range(4000):
        cohort = client % 8
        bits = np.zeros(32, int)
        bits[design.bits[generator.choice(3, p=SHARES), cohort]] = 1
        permanent = np.where(generator.random(32) < 0.2, generator.integers(0, 2, 32), bits)
        sample = (generator.random(32) < np.where(permanent, 0.75, 0.25)).astype(int)
        texts = ["".join(map(str, each[::-1])) for each in (bits, permanent, sample)]
        rows.append(",".join([str(client), str(cohort), *texts]))
        devices[cohort] += 1
        ones[cohort] += sample
    Path("reports.csv").write_text("client,cohort,bloom,prr,irr\n" + "\n".join(rows) + "\n")
    Path("counts.csv").write_text(counts_text(devices, ones))
    options = ["--params", "classic.csv", "--map", "map.csv", "--json"]
    found = json.loads(run("decode", "reports.csv", *options))
    assert found["words"] == json.loads(run("decode", "counts.csv", *options))["words"]
    assert found["files"] == ["classic reports as the parameters' f, p and q say"]
    assert [word["found"] for word in found["words"]] == [True] * 3 + [False] * 17
    assert all(
        abs(word["estimate"] - share) < 5 * word["std_error"]
        for word, share in zip(found["words"], SHARES, strict=False)
    )
    # Counts that are said to be of a relaxed level are taken as such.
    named = json.loads(run("decode", "counts.csv", *options, "--epsilon", "0.8"))
    assert named["files"] == ["counts at epsilon 0.8"]


def classic_rows(clients: range, reports: int, seed: int = 7) -> list[str]:
    """Rows of clients that keep one permanent response each, and send samples of it again and again."""
    generator, rows = np.random.default_rng(seed), []
    design = CandidateMap.of_words(WORDS, SHAPE)
    for client in clients:
        bits = np.zeros(32, int)
        bits[design.bits[client % 3, client % 8]] = 1
        permanent = np.where(generator.random(32) < 0.2, generator.integers(0, 2, 32), bits)
        for _ in range(reports):
            sample = (generator.random(32) < np.where(permanent, 0.75, 0.25)).astype(int)
            rows.append(f"c{client:05d},{client % 8},{''.join(map(str, sample[::-1]))}")
    return rows


def write_classic(name: str, rows: list[str], header: str = "client,cohort,irr") -> str:
    Path(name).write_text("\n".join([header, *rows]) + "\n")
    return name


def test_samples_of_a_client_are_one_device(place: Path) -> None:
    """One file or one for each day: the same clients, once each, whatever the order and however often a file comes."""
    Path("params.csv").write_text("k,h,m,p,q,f\n32,1,8,0.25,0.75,0.2\n")
    rows = classic_rows(range(300), 5)
    whole = decoded(write_classic("whole.csv", rows))
    assert (whole["devices"], whole["counted"], whole["reports"]) == (300, [300], [1500])
    bits = np.array([[int(bit) for bit in row[-1:-33:-1]] for row in rows]).reshape(300, 5, 32).mean(axis=1)
    means, squares = (np.array([each[cohort::8].sum(axis=0) for cohort in range(8)]) for each in (bits, bits**2))
    clients = np.bincount(np.arange(300) % 8)
    responses = Parameters.read(Path("params.csv")).responses
    counts = RapporCounts(SHAPE)
    counts.add_samples(Samples(responses, clients, means, clients / 5, squares))
    by_hand = decode(counts, CandidateMap.of_words(WORDS, SHAPE))
    assert [word["estimate"] for word in whole["words"]] == pytest.approx(by_hand.value.tolist())
    assert [word["std_error"] for word in whole["words"]] == pytest.approx(by_hand.std_error.tolist())
    days = [write_classic(f"day{day}.csv", rows[day::5]) for day in range(5)]
    together = decoded(*days)
    assert (together["devices"], together["counted"]) == (300, [300, 0, 0, 0, 0])
    for one, other in zip(whole["words"], together["words"], strict=True):
        assert one["estimate"] == pytest.approx(other["estimate"])
        assert one["std_error"] == pytest.approx(other["std_error"])
    Path("copy.csv").write_bytes(Path("whole.csv").read_bytes().replace(b"\n", b"\r\n"))
    twice = decoded("whole.csv", "copy.csv")
    assert (twice["words"], twice["counted"], twice["reports"]) == (whole["words"], [300, 0], [1500, 0])
    # Sorted otherwise it is not seen as a copy. Its clients count once all the same, and the errors do not shrink.
    again = decoded("whole.csv", write_classic("sorted.csv", rows[::-1]))
    assert (again["devices"], again["counted"]) == (300, [300, 0])
    assert np.mean([word["std_error"] for word in again["words"]]) > 0.95 * np.mean(
        [word["std_error"] for word in whole["words"]]
    )
    shown = " ".join(run("decode", "whole.csv", "--params", "params.csv", "--map", "map.csv").split())
    assert shown.startswith(
        "300 devices: classic reports as the parameters' f, p and q say. They sent 1,500 reports: those of one client "
        "are averaged."
    )


def test_reports_without_clients_say_what_is_assumed(place: Path) -> None:
    Path("params.csv").write_text("k,h,m,p,q,f\n32,1,8,0.25,0.75,0.2\n")
    rows = classic_rows(range(300), 1)
    known = decoded(write_classic("known.csv", rows))
    bare = decoded(write_classic("bare.csv", [row.split(",", 1)[1] for row in rows], "cohort,irr"))
    assert (known["says_whose"], bare["says_whose"]) == ([True], [False])
    assert known["words"] == bare["words"]
    assumed = "Nothing says which reports are of one device, so each is taken for a device of its own"
    command = ["--params", "params.csv", "--map", "map.csv"]
    assert assumed in " ".join(run("decode", "bare.csv", *command).split())
    assert assumed not in " ".join(run("decode", "known.csv", *command).split())
    renamed = decoded(write_classic("renamed.csv", rows, "client,cohort,domain"), options=("--column", "domain"))
    assert renamed["words"] == known["words"]


def test_a_client_with_a_report_at_a_level_counts_by_that(place: Path) -> None:
    """The clients of the table come with the samples that they sent before, and with some others."""
    Path("params.csv").write_text("k,h,m,p,q,f\n32,1,8,0.25,0.75,0.2\n")
    encode("now.csv", "--epsilon", "3", "--no-ledger")
    alone = decoded("now.csv")
    before = write_classic("before.csv", classic_rows(range(2900, 3100), 3))
    both = decoded("now.csv", before)
    assert (alone["devices"], both["devices"], both["counted"]) == (3000, 3100, [3000, 100])
    same = decoded("now.csv", write_classic("known.csv", classic_rows(range(100), 3)))
    assert (same["words"], same["counted"]) == (alone["words"], [3000, 0])
    # A file that does not say its level holds the same clients too.
    for name in ("bare.csv", "other.csv"):
        Path(name).write_bytes(Path("now.csv").read_bytes())
    named = decoded("bare.csv", "other.csv", options=("--epsilon", "3", "--epsilon", "3"))
    assert (named["devices"], named["counted"]) == (3000, [3000, 0])


def test_googles_sample_is_decoded(place: Path) -> None:
    """In the form of the one that it publishes: bits that were drawn and not hashed, hashes that met, f = 0, CRLF."""
    generator, k, m = np.random.default_rng(5), 16, 4
    rows, ones, devices = [], np.zeros((m, k), int), 50_000
    for word in range(30):
        flat: list[int] = []
        for cohort in range(m):
            bits = sorted(set(generator.integers(0, k, 2).tolist()))
            flat += [k * cohort + bit + 1 for bit in bits]
            ones[cohort, bits] += [devices // 2, devices // 3, devices // 6][word] if word < 3 else 0
        rows.append(f'"V_{word + 1}",' + ",".join(map(str, flat)) + "," * (2 * m - len(flat)))
    assert any(row.endswith(",") for row in rows)
    ones = np.minimum(ones, devices)
    sampled = generator.binomial(ones, 0.75) + generator.binomial(devices - ones, 0.5)
    Path("params.csv").write_bytes(b'"k","h","m","p","q","f"\r\n16,2,4,0.5,0.75,0\r\n')
    Path("map.csv").write_bytes(("\r\n".join(rows) + "\r\n").encode())
    Path("counts.csv").write_bytes(counts_text(np.full(m, devices), sampled).replace("\n", "\r\n").encode())
    found = decoded("counts.csv", options=("--trust-map",))
    assert [word["word"] for word in found["words"] if word["found"]] == ["V_1", "V_2", "V_3"]
    assert found["says_whose"] == [False]
    for word, share in zip(found["words"], (1 / 2, 1 / 3, 1 / 6), strict=False):
        assert abs(word["share"] - share) < 0.05


@pytest.mark.parametrize(
    "quirk",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", ",\n"),
        lambda text: '"' + text.replace(",", '","').replace("\n", '"\n"')[:-1],
        lambda text: "\n" + text.replace("\n", "\n\n"),
    ],
    ids=["windows", "mark", "empty end", "quotes", "blank lines"],
)
def test_reports_that_spreadsheets_wrote(place: Path, quirk: Callable[[str], str]) -> None:
    Path("params.csv").write_text("k,h,m,p,q,f\n32,1,8,0.25,0.75,0.2\n")
    write_classic("reports.csv", classic_rows(range(40), 2))
    wanted = decoded("reports.csv")
    Path("quirk.csv").write_bytes(quirk(Path("reports.csv").read_text()).encode())
    assert decoded("quirk.csv") == wanted


def test_a_boolean_from_end_to_end(place: Path) -> None:
    Path("bool.json").write_text(
        '{"numBits": 1, "numHashes": 1, "numCohorts": 1, "probPrr": 0.5, "probIrr0": 0, "probIrr1": 1}'
    )
    Path("answers.csv").write_text("client,value\n" + "\n".join(f"{n},{str(n % 10 == 0).lower()}" for n in range(5000)))
    run("encode", "answers.csv", "out.csv", "--params", "bool.json", "--key", "key", "--budget", "3")
    assert spent() == "1.09861228866"  # ln 3: one bit, so once
    shown = json.loads(run("decode", "out.csv", "--params", "bool.json", "--json"))
    (word,) = shown["words"]
    assert word["word"] == "true"
    assert word["low"] < 0.1 < word["high"]
    assert word["found"]


def test_estimate_says_who_reads_these_files(place: Path) -> None:
    for target in ("reports.csv", "reports.parquet"):
        encode(target, "--epsilon", "1", "--no-ledger")
        refused = CliRunner().invoke(app, ["estimate", target]).exception
        assert isinstance(refused, DescriptionError)
        assert refused.message == "these are RAPPOR reports: `relaxdp rappor decode` reads them."


def test_choosing_parameters(place: Path) -> None:
    shown = run("params", "--devices", "100000", "--candidates", "300", "--epsilon", "4.4")
    assert "100,000 devices, 300 candidates, the best first." in shown
    found = json.loads(run("params", "--devices", "100000", "--candidates", "300", "--share", "0.01", "--json"))
    assert found["plans"][0]["smallest_share"] <= 0.01
    for name in ("chosen.csv", "chosen.json"):
        run("params", "--devices", "100000", "--candidates", "300", "--epsilon", "4.4", "--write", name)
        assert run("map", "candidates.txt", "--params", name).count("\n") == 20
    assert Path("chosen.csv").read_text().startswith("k,h,m,p,q,f\n256,1,32,0,1,0.19950")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one release, and with every kind of file that does not fit it."""
    folder = tmp_path_factory.mktemp("rappor")
    with pytest.MonkeyPatch.context() as patch:
        prepare(folder, patch)
        encode("first.csv", "--epsilon", "1", "--budget", "5")
        Path("extra.csv").write_text("k,h,m,p,q,f,z\n32,1,8,0,1,0.3,1\n")
        Path("bare.csv").write_text("k,h,m,p,q,f\n32,1,8,0.5,0.75,0\n")
        Path("missing.csv").write_text("k,h,m,p,q\n32,1,8,0,1\n")
        Path("many.csv").write_text("k,h,m,p,q,f\n32,17,8,0,1,0.3\n")
        Path("k16.csv").write_text("k,h,m,p,q,f\n16,1,8,0,1,0.3\n")
        Path("map16.csv").write_text(run("map", "candidates.txt", "--params", "k16.csv"))
        lines = Path("map.csv").read_text().replace("word", "other").splitlines()
        Path("hashed.csv").write_text("\n".join([*lines, lines[0].replace("other 0", "twin")]) + "\n")
        bits = "01" * 16
        Path("plain.csv").write_text(f"client,cohort,report\na,1,{bits}\nb,7,{bits}\n")
        Path("cohort.csv").write_text(f"client,cohort,report\na,1,{bits}\nb,8,{bits}\n")
        Path("letters.csv").write_text(f"client,cohort,report\na,1,{bits[:-1]}x\n")
        half = "01" * 8
        Path("moved.csv").write_text(f"client,cohort,irr\na,1,{half}\nb,2,{half}\na,2,{half}\n")
        Path("nobody.csv").write_text(f"client,cohort,irr\na,1,{half}\n,2,{half}\n")
        Path("where.csv").write_text(f"client,cohort,irr\na,1,{half}\nb,1.5,{half}\n")
        for name in ("counts.csv", "copied.csv"):
            Path(name).write_text("\n".join(",".join(["9"] + ["4"] * 16) for _ in range(8)) + "\n")
        Path("ragged.csv").write_text(f"client,cohort,irr\na,1,{half}\n\nb,1,{half},7\n")
        Path("changed.csv").write_text(Path("clients.csv").read_text().replace("word 2", "word 1", 1))
        Path("twice.csv").write_text("client,value\na,x\na,y\n")
        pa_parquet.write_table(pa.table({"client": ["b", "a"], "value": [None, "x"]}), "gap.parquet")
    return folder


@pytest.fixture
def mistakes(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("params --devices 5 --candidates 3", "give --epsilon to learn the smallest share that is found, or --share"),
        ("params --devices 5 --candidates 3 --epsilon 1 --write params.csv", "'params.csv' exists already."),
        ("params --devices 5 --candidates 3 --epsilon 1 --hashes 17", "the number of hashes (h) must be"),
        ("map none.txt --params params.csv", "the values file 'none.txt' cannot be read"),
        ("map candidates.txt --params none.csv", "the parameter file 'none.csv' cannot be read"),
        ("map candidates.txt --params extra.csv", "'extra.csv' says 'z', which is none of RAPPOR's parameters"),
        ("map candidates.txt --params missing.csv", "'missing.csv' lacks 'f'"),
        (
            "map candidates.txt --params many.csv",
            "the number of hashes (h) must be a whole number from 1 to 16, not 17.",
        ),
        ("decode first.csv --params k16.csv --map map.csv", "have k = 32, h = 1, m = 8, and the parameters say k = 16"),
        (
            "decode plain.csv --params k16.csv --map map.csv --epsilon 1",
            "row 1: the report has 32 bits, and the parameters say k = 16.",
        ),
        (
            "decode cohort.csv --params params.csv --map map.csv --epsilon 1",
            "row 2: cohorts go from 0 to 7, and 8 is none of them.",
        ),
        (
            "decode letters.csv --params params.csv --map map.csv --epsilon 1",
            "'letters.csv', row 1: the report is not made of zeros and ones.",
        ),
        (
            "decode moved.csv --params k16.csv --map map16.csv",
            "'moved.csv', row 3: the client was in another cohort before",
        ),
        ("decode nobody.csv --params k16.csv --map map16.csv", "'nobody.csv', row 2: the client is missing."),
        ("decode where.csv --params k16.csv --map map16.csv", "row 2: the cohort is missing or not a whole number."),
        (
            "decode ragged.csv --params k16.csv --map map16.csv",
            "'ragged.csv', line 4: the header has 3 fields, and this line 4. Nothing was decoded.",
        ),
        ("decode plain.csv --params params.csv --map map.csv --column irr", "client, cohort and irr."),
        (
            "decode counts.csv copied.csv --params k16.csv --map map16.csv",
            "'copied.csv' holds the same as 'counts.csv': its devices would count twice.",
        ),
        ("decode first.csv --params params.csv --map map16.csv", "the map is for other parameters"),
        (
            "decode first.csv --params params.csv --map hashed.csv",
            "or its words were hashed in another way. If it is right all the same, --trust-map takes it.",
        ),
        ("decode first.csv --params params.csv", "a map of candidates is needed"),
        ("decode first.csv --params params.csv --map map.csv --candidates candidates.txt", "not both."),
        (
            "decode plain.csv --params params.csv --map map.csv",
            "'plain.csv' does not say its level. --epsilon says it. Nothing was decoded.",
        ),
        ("decode clients.csv --params params.csv --map map.csv", "'clients.csv' holds neither counts nor reports"),
        ("decode first.csv --params params.csv --map map.csv --epsilon 2", "says its level itself, and it is not 2."),
        ("decode first.csv --params params.csv --map map.csv --rate 2", "a rate of false words lies between 0 and 1"),
        ("decode none.csv --params params.csv --map map.csv", "cannot be read"),
        ("decode first.csv first.csv --params params.csv --map map.csv", "'first.csv' is named twice"),
        ("encode clients.csv out.csv --params params.csv --key key --epsilon 9", "budget exceeded"),
        ("encode clients.csv first.csv --params params.csv --key key", "'first.csv' exists already."),
        (
            "encode clients.csv out.csv --params bare.csv --key key",
            "f is 0 in 'bare.csv', which is no level: --epsilon",
        ),
        (
            "encode changed.csv out.csv --params params.csv --key key --release clients --epsilon 2",
            "Nothing was released.",
        ),
        ("encode clients.csv out.csv --params k16.csv --key key --epsilon 2", "Nothing was released."),
        ("encode twice.csv out.csv --params params.csv --key key --no-ledger", "an id occurs in two rows."),
        (
            "encode gap.parquet out.csv --params params.csv --key key --no-ledger",
            "row 2 in the order of the ids: the word is missing.",
        ),
        ("encode clients.csv out.csv --params params.csv --key key --column word", "the table has no column 'word'."),
        (
            "relax clients.csv out.csv --last first.csv --params params.csv --key key --epsilon 1",
            "epsilon may only grow",
        ),
        ("relax clients.csv out.csv --last first.csv --params params.csv --key key", "give --epsilon, or --pace"),
        (
            "relax clients.csv out.csv --last first.csv --params params.csv --key key --pace linear --first 1",
            "--pace linear needs",
        ),
        (
            "relax clients.csv out.csv --last plain.csv --params params.csv --key key --epsilon 2",
            "does not say its level",
        ),
        (
            "relax changed.csv out.csv --last first.csv --params params.csv --key key --epsilon 2",
            "a word changed, which would show",
        ),
        (
            "relax clients.csv out.csv --last first.csv --params k16.csv --key key --epsilon 2",
            "the last reports have k = 32",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    mistakes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    before = spent()
    assert sentence in mistake(monkeypatch, capsys, *words.split())
    assert spent() == before
    assert not Path("out.csv").exists()
