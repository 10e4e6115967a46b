"""`relaxdp relax --from-reports`: the law of Algorithm 1, drawn once, charged once, and every refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
from scipy.stats import chi2
from tests.commands import status_and_words
from tests.refusals import refused
from typer.testing import CliRunner

import relaxdp as rx
from relaxdp.cli.main import app
from relaxdp.draw.stream import PathId
from relaxdp.errors import OptionError
from relaxdp.hazmat import SeededEntropy
from relaxdp.law.bridge import next_report_law
from relaxdp.law.epsilon import ONE
from relaxdp.ledger.entries import Sampler, Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.ledger.payer import Payer
from relaxdp.publication import staging as temporary
from relaxdp.publication.request import ColumnRequest, TableRequest
from relaxdp.publication.transaction import publish
from relaxdp.table import algorithm1, order, release
from relaxdp.table.algorithm1 import Algorithm1Drawing
from relaxdp.table.formats import BATCH_ROWS, Input, released

ROWS = 3000
VALUES = ["flu", "covid", "none"]
TRUTH = np.random.default_rng(7).choice(VALUES, ROWS)
KEY = rx.Key.from_bytes(bytes(range(32)))
PATH = PathId("in", "diagnosis")
ONCE = "'diagnosis' of release 'in' at 2 was released already; a second draw at one level would break the guarantee."


class Killed(BaseException):
    """What stands for a crash: nobody catches it."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, and its reports at 1 from the keyed path, which the ledger knows."""
    monkeypatch.chdir(tmp_path)
    KEY.save(tmp_path / "key")
    pa_parquet.write_table(table(), "in.parquet")
    assert plain("--budget", "5", epsilon="1", target="old.parquet")[0] == 0
    return tmp_path


def table(order: Any = slice(None), truth: Any = TRUTH, ids: Any = None) -> pa.Table:
    ids = np.arange(len(truth)) if ids is None else ids
    return pa.table({"id": ids[order], "diagnosis": truth[order], "age": (np.arange(len(truth)) % 90)[order]})


def plain(*words: str, target: str = "out.parquet", epsilon: str = "2", source: str = "in.parquet", **more: str) -> Any:
    options = {"column": "diagnosis", "id": "id", "epsilon": epsilon, "key": "key", **more}
    if not {"--range", "--values"} & set(words):
        options.setdefault("values", ",".join(VALUES))
    spoken = [text for name, value in options.items() for text in (f"--{name}", value)]
    command = "relax" if "--from-reports" in words else "release"
    return status_and_words(command, source, target, *spoken, *words)


def run(*words: str, old: str = "old.parquet", **more: Any) -> Any:
    return plain("--from-reports", old, *words, **more)


def account(**more: str) -> dict[str, Any]:
    found = CliRunner().invoke(app, ["budget", "show", "--ledger", "key.ledger", "--json"])
    content: dict[str, Any] = json.loads(found.output)
    return content


def spent() -> str:
    return str(account()["spent"])


def rows_of(path: str) -> pa.Table:
    return pa.Table.from_batches(Input(Path(path)).batches(["id", "diagnosis"]))


def statistic(truth: Any, old: Any, new: Any, old_epsilon: Fraction, new_epsilon: Fraction) -> tuple[float, int]:
    """Return chi-square of the new reports given truth and old report, under the law of these levels."""
    encoding = rx.Categorical(VALUES).encoding
    retention = [
        Fraction(encoding.threshold(Decimal(each.numerator) / each.denominator), ONE)
        for each in (old_epsilon, new_epsilon)
    ]
    total, degrees = 0.0, 0
    for one in range(3):
        for other in range(3):
            chosen = new[(truth == one) & (old == other)]
            law = np.array(next_report_law(3, *retention, truth=one, last=other), dtype=float)
            wanted = len(chosen) * law
            assert wanted.min() > 1000
            total += float(((np.bincount(chosen, minlength=3) - wanted) ** 2 / wanted).sum())
            degrees += 2
    return total, degrees


def test_the_law_of_the_step(place: Path) -> None:
    """Seed 11, a false-alarm rate of 1e-6; a level that is 5 % off, old or new, is rejected."""
    count = 2 * BATCH_ROWS
    truth = np.random.default_rng(11).integers(0, 3, count)
    pa_parquet.write_table(table(truth=np.array(VALUES)[truth]), "many.parquet")
    assert plain(source="many.parquet", target="many-old.parquet", epsilon="1", budget="5", release="many")[0] == 0
    answers = rx.Categorical(VALUES)
    request = TableRequest(
        source=Path("many.parquet"),
        target=Path("new.parquet"),
        id_column="id",
        columns=[ColumnRequest("diagnosis", answers)],
        epsilon=Decimal(2),
        key=KEY,
        release="many",
    )
    with Ledger.open("key.ledger") as book:
        who = Payer(book, Subject.population("everyone"), reason="test")
        outcome = publish(Algorithm1Drawing(request, Path("many-old.parquet"), entropy=SeededEntropy(11)), who)
    assert outcome.rows == count
    old, new = (
        answers.encoding.codes(rows_of(name)["diagnosis"].combine_chunks())[:, 0]
        for name in ("many-old.parquet", "new.parquet")
    )
    cut = float(chi2.isf(1e-6, 18))
    value, degrees = statistic(truth, old, new, Fraction(1), Fraction(2))
    assert degrees == 18
    assert value < cut
    for wrong in ((Fraction(1), Fraction(21, 10)), (Fraction(1), Fraction(19, 10)), (Fraction(21, 20), Fraction(2))):
        assert statistic(truth, old, new, *wrong)[0] > cut


def test_a_step_costs_the_difference_and_closes_the_keyed_path(place: Path) -> None:
    status, output = run("--keep", "age")
    assert status == 0
    assert "cost 1; spent 2 of the budget 5" in output
    assert pa_parquet.read_table("out.parquet").column_names == ["id", "diagnosis", "age"]
    described = released(place / "out.parquet")[1].columns["diagnosis"]
    assert (described.sampler, described.path, described.epsilon) == (Sampler.ALGORITHM_1, PATH, Decimal(2))
    with Ledger.open("key.ledger") as book:
        book.verify()
        (path,) = book.balance(Subject.population("everyone")).paths
    assert (path.facts.sampler, path.path, path.largest) == (Sampler.ALGORITHM_1, PATH, Decimal(2))
    assert path.facts.table_fingerprint is not None
    for epsilon in ("1", "2", "3"):
        status, sentence = plain("--again", epsilon=epsilon, target="keyed.parquet")
        assert status == 2
        assert sentence == (
            "the sampler (it went on with Algorithm 1) is not what 'diagnosis' of release 'in' was released with. "
            "`relaxdp relax --from-reports` goes on from its last file. "
            "--force opens a new path, charged to everyone in addition to the 2 of the old one. Nothing was released."
        )
    assert run(epsilon="3", old="out.parquet", target="third.parquet")[0] == 0
    assert spent() == "3"
    assert sorted(file.name for file in place.iterdir()) == [
        "in.parquet", "key", "key.ledger", "key.ledger.begun", "key.ledger.snapshots", "old.parquet", "out.parquet",
        "third.parquet",
    ]  # fmt: skip


def test_the_file_can_be_estimated(place: Path) -> None:
    run()
    found = CliRunner().invoke(app, ["estimate", "out.parquet", "--json"])
    assert found.exit_code == 0
    known, given = rx.Categorical(VALUES).encoding, released(place / "out.parquet")[1].columns["diagnosis"].mechanism()
    assert given.encoding.path_name(PathId("in", "diagnosis")) != known.path_name(PathId("in", "diagnosis"))


def test_reports_from_elsewhere_are_opened_at_their_level(place: Path) -> None:
    """Any order of rows, any format; the total is the new level, not the sum."""
    order = np.random.default_rng(3).permutation(ROWS)
    old = rows_of("old.parquet")
    strings = pa.table({"id": old["id"], "diagnosis": old["diagnosis"].cast(pa.string())})
    pa_parquet.write_table(strings.take(pa.array(order)), "elsewhere.parquet")
    pa_parquet.write_table(table(order[::-1]), "in.parquet")
    status, output = run("--old-epsilon", "1.5", old="elsewhere.parquet", release="other", target="out.csv")
    assert status == 0
    assert "cost 2; spent 3 of" in output
    assert rows_of("out.csv")["id"].to_pylist() == [str(row) for row in range(ROWS)]
    assert released(place / "out.csv")[1].columns["diagnosis"].sampler is Sampler.ALGORITHM_1
    with Ledger.open("key.ledger") as book:
        book.verify()
        lines = [str(event) for event in book.history()]
    assert any("released 'diagnosis' of release 'other' at 1.5 for 1.5" in line for line in lines)
    assert any("released 'diagnosis' of release 'other' at 2 for 0.5" in line for line in lines)


def test_a_step_far_up_shows_the_truth_and_a_tiny_one_the_last_report(place: Path) -> None:
    assert run(epsilon="1.000001")[0] == 0
    same = np.array(rows_of("out.parquet")["diagnosis"].to_pylist()) == rows_of("old.parquet")["diagnosis"].to_pylist()
    assert same.mean() > 0.99
    assert run("--dry-run", old="out.parquet", epsilon="4")[1].startswith(
        "dry run: 'diagnosis' at epsilon 4 would cost"
    )
    assert run(old="out.parquet", epsilon="5", target="high.parquet")[0] == 0
    assert (np.array(rows_of("high.parquet")["diagnosis"].to_pylist()) == TRUTH).mean() > 0.95


Prepare = Callable[[Path], dict[str, Any]]


def arguments(*words: str, **named: Any) -> Prepare:
    return lambda place: {"words": list(words), **named}


def changed_truth(place: Path) -> dict[str, Any]:
    truth = TRUTH.copy()
    truth[5] = "flu" if truth[5] != "flu" else "none"
    pa_parquet.write_table(table(truth=truth), "in.parquet")
    return {}


def fewer_rows(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(table(slice(10)), "in.parquet")
    return {}


def more_rows(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(table(truth=np.append(TRUTH, "flu")), "in.parquet")
    return {}


def other_ids(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(table(ids=np.arange(1, ROWS + 1)), "in.parquet")
    return {}


def repeated_id(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(table(ids=np.append(np.arange(ROWS - 1), 5)), "in.parquet")
    return {}


def text_ids(place: Path) -> dict[str, Any]:
    pa_csv.write_csv(rows_of("old.parquet"), "old.csv")
    return {"old": "old.csv", "words": ["--old-epsilon", "1"]}


def undescribed(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(rows_of("old.parquet").replace_schema_metadata(None), "bare.parquet")
    return {"old": "bare.parquet"}


def claimed_too_low(place: Path) -> dict[str, Any]:
    return {**undescribed(place), "words": ["--old-epsilon", "0.5"]}


def stranger(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(pa.table({"id": [1], "diagnosis": ["secret"]}), "bare.parquet")
    pa_parquet.write_table(table(slice(1, 2)), "in.parquet")
    return {"old": "bare.parquet", "words": ["--old-epsilon", "1"], "release": "stranger"}


def stranger_out_of_order(place: Path) -> dict[str, Any]:
    pa_parquet.write_table(pa.table({"id": [2, 1], "diagnosis": ["secret", "flu"]}), "bare.parquet")
    pa_parquet.write_table(table(slice(1, 3)), "in.parquet")
    return {"old": "bare.parquet", "words": ["--old-epsilon", "1"], "release": "stranger"}


def not_the_last(place: Path) -> dict[str, Any]:
    assert plain(epsilon="1.5", target="middle.parquet")[0] == 0
    return {}


def other_key(place: Path) -> dict[str, Any]:
    (place / "key").unlink()
    rx.Key.from_bytes(bytes(32)).save(place / "key")
    return {}


def grows(place: Path) -> dict[str, Any]:
    assert plain("--growing", epsilon="1", target="grown.parquet", release="grown")[0] == 0
    return {"old": "grown.parquet", "release": "grown"}


def false_threshold(place: Path) -> dict[str, Any]:
    content = pa_parquet.read_table("old.parquet")
    description = json.loads(content.schema.metadata[b"relaxdp"])
    description["columns"]["diagnosis"]["threshold"] = str(2**63)
    pa_parquet.write_table(content.replace_schema_metadata({"relaxdp": json.dumps(description)}), "false.parquet")
    return {"old": "false.parquet"}


def twice(place: Path) -> dict[str, Any]:
    assert run(target="once.parquet")[0] == 0
    return {}


def foreign_sidecar(place: Path) -> dict[str, Any]:
    (place / "out.csv.relaxdp.json").write_text("precious")
    return {"target": "out.csv"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("prepare", "part"),
    [
        (arguments("--old-epsilon", "1"), "'old.parquet' says its level itself"),
        (arguments(epsilon="1"), "epsilon may only grow: the last reports are at 1 and 1 was asked for"),
        (arguments(epsilon="0.5"), "epsilon may only grow"),
        (arguments(epsilon="7"), "budget exceeded: 4 left of 5, this release needs 6"),
        (arguments(release="other"), "must go on under that name"),
        (arguments(values="covid,flu,none"), "'old.parquet' has other values, or in another order"),
        (arguments(old="absent.parquet"), "there is no file 'absent.parquet'"),
        (changed_truth, "the table (its ids or their truths) is not what"),
        (fewer_rows, "the last reports are of other ids than the table"),
        (more_rows, "the last reports are of other ids than the table"),
        (other_ids, "the last reports are of other ids than the table"),
        (repeated_id, "an id occurs in two rows"),
        (text_ids, "the ids of 'old.csv' are of another type"),
        (undescribed, "'bare.parquet' does not say its level. --old-epsilon says it."),
        (claimed_too_low, "must start at the highest level that was released: 'diagnosis' of release 'in' is at 1"),
        (stranger, "row 1: the last report is not one of the 3 declared values"),
        (stranger_out_of_order, "row 2 in the order of the ids: the last report is not one of the 3 declared values"),
        (not_the_last, "is at 1.5, and these reports are at 1"),
        (other_key, "the key is not what"),
        (grows, "as a growing table, and is continued as one only"),
        (false_threshold, "says a level and a threshold that do not agree"),
        (twice, ONCE),
        (foreign_sidecar, "'out.csv.relaxdp.json' exists already"),
    ],
)
def test_refusals_write_and_charge_nothing(place: Path, prepare: Prepare, part: str) -> None:
    given = prepare(place)
    words = given.pop("words", [])
    before, cost = {file: file.read_bytes() for file in place.iterdir() if file.is_file()}, account()
    status, sentence = run(*words, **given)
    assert status == 2
    assert part in sentence
    assert "secret" not in sentence
    assert {file.name for file in before} == {file.name for file in place.iterdir() if file.is_file()}
    assert account() == cost


@pytest.mark.parametrize("word", ["--no-ledger", "--force", "--growing", "--range"])
def test_a_step_has_no_such_options(place: Path, word: str) -> None:
    """It draws once from what was released before, of one column of declared values: so it needs a ledger."""
    status, output = run(word)
    assert status == 2
    assert f"No such option: {word}" in output


@pytest.mark.parametrize("words", [("--again",), ("--date", "2026"), ("--snapshots", ".")])
def test_a_step_is_from_reports_and_from_no_snapshot(place: Path, words: tuple[str, ...]) -> None:
    status, output = run(*words)
    assert status == 2
    assert "are for a release from its snapshot. Nothing was released." in " ".join(output.split())


def test_what_a_snapshot_says_itself_is_not_said(place: Path) -> None:
    words = ["relax", "study", "new.parquet", "--epsilon", "1", "--key", "key"]
    for more in (["--id", "id"], ["--values", "a,b"], ["--budget", "2"], ["--keep", "x"]):
        done = CliRunner().invoke(app, [*words, *more])
        assert isinstance(done.exception, OptionError)
        assert f"{more[0]} goes with --from-reports" in " ".join(str(done.exception).split())
    for more in (["--from-reports", "old.parquet"], ["--from-reports", "old.parquet", "--id", "id"]):
        assert "goes with --id and one --column" in str(CliRunner().invoke(app, [*words, *more]).exception)


def test_a_step_is_of_one_column_of_declared_values(place: Path) -> None:
    more: Any = {"reports": "old.parquet", "to": "out.parquet", "id": "id", "epsilon": 2, "key": "key"}
    several: list[Any] = [{"age": rx.Numeric(0, 100)}, {"diagnosis": VALUES, "age": rx.Column(bins=[18])}]
    for columns in several:
        with refused(OptionError, says="one column of declared values at a time"):
            rx.relax_reports("in.parquet", columns, **more)


# Places within a step at which it can be killed, and whether the ledger knows of it then; those between the steps of a
# publication are in tests/faults/table/test_publication.py.
POINTS = [
    (algorithm1.Algorithm1Drawing, "write", "after", False),
    (order, "paired", "before", False),
    (algorithm1, "kept_aside", "before", False),
    (algorithm1, "sync_folder", "after", False),
    (release, "put_in_place", "before", True),
]


@pytest.mark.parametrize("target", ["out.parquet", pytest.param("out.csv", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "swept", [pytest.param(True, id="raised", marks=pytest.mark.long), pytest.param(False, id="killed")]
)
@pytest.mark.parametrize(("owner", "name", "when", "committed"), POINTS)
def test_a_crash_anywhere_is_safe(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    when: str,
    committed: bool,
    swept: bool,
    target: str,
) -> None:
    """Before the commit nothing is left of a draw; after it that very draw comes out, and no other one ever."""
    real = getattr(owner, name)
    kept: list[bytes] = []

    def crash(*arguments: Any, **named: Any) -> Any:
        if when == "after":
            real(*arguments, **named)
        kept.extend(file.read_bytes() for file in place.glob(".out*released"))
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(algorithm1 if owner is order else owner, name, crash)
        if not swept:
            patch.setattr(algorithm1, "sweep_kept", lambda *_: None)
        with pytest.raises(Killed):
            run(target=target)
    assert spent() == ("2" if committed else "1")
    assert not (place / target).exists()
    if committed:
        assert plain("--from-reports", "old.parquet", target="elsewhere.parquet")[1].startswith(ONCE)
        assert run(target=target, epsilon="3")[0] == 2  # and what waits for its name is still there
    status, output = run(target=target)
    assert status == 0
    assert f"of 3,000 rows at epsilon 2 to {target}" in output
    assert f"cost {0 if committed else 1}; spent 2" in output
    if committed:
        assert kept == [(place / target).read_bytes()]
    assert released(place / target)[1].columns["diagnosis"].sampler is Sampler.ALGORITHM_1
    assert not list(place.glob(".*"))
    (place / target).rename(place / "moved")
    assert run(target=target.replace("out", "new"))[1].startswith(ONCE)


def test_a_description_that_is_there_already_does_not_stop_a_rerun(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = temporary.put_in_place

    def crash(aside: Path, target: Path) -> None:
        real(aside, target)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(release, "put_in_place", crash)
        with pytest.raises(Killed):
            run(target="out.csv")
    assert (place / "out.csv.relaxdp.json").exists()
    assert not (place / "out.csv").exists()
    assert run(target="out.csv")[0] == 0


def test_a_damaged_file_is_not_given_its_name(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(algorithm1.Algorithm1Drawing, "publish", crash)
        with pytest.raises(Killed):
            run()
    (kept,) = place.glob(".out*released")
    kept.write_bytes(kept.read_bytes() + b"x")
    status, sentence = run()
    assert status == 2
    assert "is damaged, and a second draw at one level would break the guarantee. Nothing was released." in sentence
    assert kept.exists()
    kept.unlink()
    assert run()[1].startswith(ONCE)


def test_two_at_once_draw_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finishes the same step while this one has drawn, but not charged."""
    real = algorithm1._digest
    inner: list[Any] = []

    def meanwhile(path: Path) -> str:
        if not inner:
            inner.append(None)
            inner.append(run(target="other.parquet")[0])
        return real(path)

    monkeypatch.setattr(algorithm1, "_digest", meanwhile)
    assert run()[1].startswith(ONCE)
    assert inner == [None, 0]
    assert spent() == "2"
    assert not list(place.glob(".*"))
