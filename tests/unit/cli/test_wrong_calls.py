"""Wrong calls by shell: each is an error with a hint and exit status 2, charges nothing and leaves nothing behind."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from tests.commands import printed

import relaxdp as rx
from relaxdp.cli.main import main

ROWS = 2000
SECRET = "secret-illness"
RNG = np.random.default_rng(5)

# `R` is the start of a release, `D` declares a column of it.
R = "release people.parquet out.parquet --id id --epsilon 1"
D = "--column illness=flu,covid,none"

WRONG = f"""
relase
--verison
release
release people.parquet
release people.parquet out.parquet
release people.parquet out.parquet --id id {D}
release people.parquet out.parquet --epsilon 1 {D}
{R} {D} extra
{R} {D} --eplison 2
{R} {D} --key key
{R} {D} --epsilon
{R} {D} --dry-run=yes
{R} {D} --quiet --verbose

init
init new.vault
init new.vault --budget
init new.vault --budget 0
init new.vault --budget=-1
init new.vault --budget abc
init new.vault --budget nan
init new.vault --budget inf
init new.vault --budget 1,5
init study.vault --budget 2
init people.parquet --budget 2
init nowhere/new.vault --budget 2
init people.parquet/new.vault --budget 2
init new.vault --budget 2 --key-file a.key --key-command 'cat plain.key'
init new.vault --budget 2 --key-file plain.key
init new.vault --budget 2 --key-file nowhere/a.key
init new.vault --budget 2 --key-command false
init new.vault --budget 2 --key-command no-such-program-here
init new.vault --budget 2 --key-command 'echo hello'
init new.vault --budget 2 --key-command ''
init new.vault --budget 2 --key-command 'cat plain.key"'
init new.vault --budget 2 --key-command 'echo {"a1" * 32}'
init new.vault --budget 2 --ledger ledger.db
init new.vault --budget 2 --ledger mysql://127.0.0.1/x
init new.vault --budget 2 --ledger postgresql://nobody:{SECRET}@127.0.0.1:1/x

{R} {D} --vault absent.vault
{R} {D} --vault people.parquet
{R} {D} --vault folder
{R} {D} --vault ''
{R} {D} --vault {"a1" * 32}

release absent.parquet out.parquet --id id --epsilon 1 {D}
release folder out.parquet --id id --epsilon 1 {D}
release notes.txt out.parquet --id id --epsilon 1 {D}
release damaged.parquet out.parquet --id id --epsilon 1 {D}
release ragged.csv out.parquet --id id --epsilon 1 {D}
release empty.parquet out.parquet --id id --epsilon 1 {D}
release semicolons.csv out.parquet --id id --epsilon 1 {D}
release - out.parquet --id id --epsilon 1 {D}
release study.vault out.parquet --id id --epsilon 1 {D}
release people.parquet people.parquet --id id --epsilon 1 {D}
release people.parquet first.parquet --id id --epsilon 1 {D}
release people.parquet nowhere/out.parquet --id id --epsilon 1 {D}
release people.parquet out.xlsx --id id --epsilon 1 {D}
release people.parquet out --id id --epsilon 1 {D}
release people.parquet folder --id id --epsilon 1 {D}
release people.parquet '' --id id --epsilon 1 {D}

release people.parquet out.parquet --id idd --epsilon 1 {D}
release people.parquet out.parquet --id '' --epsilon 1 {D}
release people.parquet out.parquet --id illness --epsilon 1 {D}
release people.parquet out.parquet --id age --epsilon 1 --name other --column smoker=no,yes
release people.parquet out.parquet --id weight --epsilon 1 --name other --column smoker=no,yes
release people.parquet out.parquet --id half --epsilon 1 --name other --column smoker=no,yes
release people.parquet out.parquet --id text --epsilon 1 {D}

{R}
{R} --column illness
{R} --column =flu,covid
{R} --column illness=
{R} --column illness=flu
{R} --column ilness=flu,covid,none
{R} --column 'illness=flu, covid'
{R} --column 'illness="flu","covid"'
{R} --column illness=flu,,none
{R} --name other --column smoker=no,yes,no
{R} --name other --column smoker=no,maybe
{R} {D} {D}
{R} {D} --values-file illness=values.txt
{R} --values-file illness
{R} --values-file illness=absent.txt
{R} --values-file illness=repeated.txt
{R} --values-file illness=plain.key
{R} --values-file illness=people.parquet
{R} --name other --values-file illness=empty.txt
{R} --name other --column age=0..
{R} --name other --column age=120..0
{R} --name other --column age=5..5
{R} --name other --column age=0..1e400
{R} --name other --column age=0..50
{R} --name other --column half=0..120
{R} --name other --column smoker=0..1
{R} --name other --column gaps=flu,none
{R} --name other --column age=young,old
{R} --name other --column day=monday,tuesday
{R} --clip age {D}
{R} --clip illness {D}
{R} --missing age {D}

{R} {D} --mechanism illness
{R} {D} --mechanism illness=laplace
{R} {D} --mechanism age=k-ary
{R} {D} --mechanism illness=wave
{R} --name other --column age=0..120 --mechanism age=k-ary
{R} --name other --column smoker=no,yes --mechanism smoker=olh
{R} --name other --column smoker=no,yes --mechanism smoker=olh:buckets=1
{R} --name other --column smoker=no,yes --mechanism smoker=olh:buckets=x
{R} --name other --column smoker=no,yes --mechanism smoker=oue:buckets=4
{R} --name other --column smoker=no,yes --mechanism smoker=oue --mechanism smoker=sue
{R} --name other --column age=0..120 --mechanism age=wave
{R} --name other --column age=0..120 --mechanism age=wave:bins=16,window=5
{R} --name other --column age=0..120 --missing age --mechanism age=wave:bins=16,window=4

release people.parquet out.parquet --id id --epsilon 0 {D}
release people.parquet out.parquet --id id --epsilon=-1 {D}
release people.parquet out.parquet --id id --epsilon one {D}
release people.parquet out.parquet --id id --epsilon nan {D}
release people.parquet out.parquet --id id --epsilon 0,5 {D}
release people.parquet out.parquet --id id --epsilon 1e-30 {D}
release people.parquet out.parquet --id id --epsilon 3.6 {D}
release people.parquet out.parquet --id id --epsilon 0.0001 --name other --column smoker=no,yes
{R} {D} --planned-epsilon much
{R} {D} --name ''
{R} {D} --name gone
{R} {D} --passthrough absent
{R} {D} --passthrough id
{R} {D} --passthrough illness
{R} {D} --passthrough age,age
{R} {D} --passthrough ''
{R} --name other --column smoker=no,yes --passthrough illness
{R} --name other --column region=n,s
release first.parquet out.parquet --id id --epsilon 1 --name other {D}

{R} {D} --sql 'SELEKT * FROM input'
{R} {D} --sql 'SELECT absent FROM input'
{R} {D} --sql 'SELECT id, illness FROM absent'
{R} {D} --sql 'SELECT id, illness FROM input; SELECT 1'
{R} {D} --sql "COPY input TO 'stolen.csv'"
{R} {D} --sql "CREATE TABLE a AS SELECT 1"
{R} {D} --sql 'INSTALL httpfs'
{R} {D} --sql 'LOAD httpfs'
{R} {D} --sql ''
{R} {D} --sql 'SELECT age AS id, illness FROM input'
{R} {D} --sql "SELECT id, CAST(illness AS INTEGER) AS illness FROM input"
{R} {D} --sql 'SELECT id, illness FROM input WHERE false'

{R} --column illness=covid,flu,none
{R} --column illness=flu,covid,none,other
{R} {D} --missing illness
{R} {D} --mechanism illness=oue
release changed.parquet out.parquet --id id --epsilon 1 --name people {D}
release exchanged.parquet out.parquet --id id --epsilon 1 --name people {D}
release texts.parquet out.parquet --id id --epsilon 1 --name people {D}

relax
relax people
relax people out.parquet
relax absent out.parquet --epsilon 1
relax gone out.parquet --epsilon 1
relax '' out.parquet --epsilon 1
relax people first.parquet --epsilon 1
relax people nowhere/out.parquet --epsilon 1
relax people out.xlsx --epsilon 1
relax people out.parquet --epsilon 0
relax people out.parquet --epsilon one
relax people out.parquet --epsilon 9
relax people out.parquet --epsilon 1 --column absent
relax people out.parquet --epsilon 1 --vault absent.vault

budget show
budget --vault absent.vault
budget --json raise 5 --reason more
budget raise
budget raise 5
budget raise 5 --reason ''
budget raise 5 --reason ' '
budget raise 3 --reason less
budget raise 4 --reason same
budget raise much --reason more
budget raise 5 --reason more --vault absent.vault
budget history extra
retire people
retire absent --reason old
retire gone --reason old
retire people --reason ''
check --adopt ''
check --adopt 'it is the newest'
check --vault absent.vault
backup
backup folder
backup nowhere/copy
backup people.parquet/copy
backup copy --vault absent.vault
keygen key
"""
CONSEQUENCE = re.compile(" was (not )?(released|created|written|changed|copied|retired|adopted|raised|backed up)[.]$")
CALLS = [line for line in WRONG.splitlines() if line]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder for all calls: each must leave it as it was."""
    folder = tmp_path_factory.mktemp("wrong")
    ids = np.arange(ROWS)
    illness = RNG.choice(["flu", "covid", "none"], ROWS)
    half = pa.array([None if row % 2 else row for row in range(ROWS)])
    people = pa.table(
        {
            "id": ids, "illness": illness, "age": RNG.integers(0, 100, ROWS), "region": ["n", "s"] * (ROWS // 2),
            "smoker": RNG.choice(["no", "yes"], ROWS), "weight": RNG.normal(70, 9, ROWS), "half": half,
            "gaps": pa.array([None if value == "covid" else value for value in illness.tolist()]),
            "text": [f"p{row}" for row in range(ROWS)], "day": pa.array([0] * ROWS, pa.date32()),
        }
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        pa_parquet.write_table(people, "people.parquet")
        pa_parquet.write_table(people.slice(0, 0), "empty.parquet")
        pa_parquet.write_table(people.set_column(1, "illness", pa.array(np.roll(illness, 1))), "changed.parquet")
        exchanged = pa.array(np.where(ids % 10 == 0, ids + ROWS, ids))
        pa_parquet.write_table(people.set_column(0, "id", exchanged), "exchanged.parquet")
        pa_parquet.write_table(people.set_column(0, "id", pa.array(list(map(str, ids)))), "texts.parquet")
        Path("damaged.parquet").write_bytes(Path("people.parquet").read_bytes()[:2000])
        Path("ragged.csv").write_text(f"id,illness\n1,flu\n2,{SECRET},more\n")
        Path("semicolons.csv").write_text("id;illness\n1;flu\n2;none\n")
        Path("notes.txt").write_text("no table")
        Path("repeated.txt").write_text(f"{SECRET}\nflu\n{SECRET}\n")
        Path("values.txt").write_text("flu\ncovid\nnone\n")
        Path("empty.txt").write_text("\n")
        Path("folder").mkdir()
        rx.Key.from_bytes(bytes(range(32))).save("plain.key")
        printed("init", "study.vault", "--budget", "4")
        first = ("--id", "id", "--epsilon", "0.5", "--column", "illness=flu,covid,none", "--passthrough", "region")
        printed("release", "people.parquet", "first.parquet", *first)
        gone = ("--id", "id", "--epsilon", "0.5", "--column", "smoker=no,yes", "--name", "gone")
        printed("release", "people.parquet", "gone.parquet", *gone)
        printed("retire", "gone", "--reason", "it is over")
        yield folder


def digest_files(folder: Path) -> dict[str, str]:
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() if each.is_file() else ""
        for each in sorted(folder.rglob("*"))
    }


def test_there_are_enough_of_them() -> None:
    assert len(CALLS) == len(set(CALLS))
    assert len(CALLS) > 150


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_an_error_with_a_hint(
    place: Path, call: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    before = digest_files(place)
    monkeypatch.setattr(sys, "argv", ["relaxdp", *shlex.split(call)])
    with pytest.raises(SystemExit) as caught:
        main()
    shown = capfd.readouterr()
    assert caught.value.code == 2, shown
    error, hint, *rest = shown.err.splitlines()
    assert error.startswith("Error: "), shown.err
    assert hint.startswith("Hint: "), shown.err
    assert len(rest) <= 1, shown.err
    assert all(CONSEQUENCE.search(line) for line in rest), rest
    assert shown.out == ""
    assert SECRET not in shown.err
    assert "a1" * 32 not in shown.err
    assert digest_files(place) == before
