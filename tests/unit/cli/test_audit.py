"""`relaxdp audit`, what it covers, and how audits are refused and shown."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.refusals import refused
from typer.testing import CliRunner

from relaxdp.audit import audit_cases
from relaxdp.audit.attacks import RelaxedReportsDistribution
from relaxdp.audit.audit_cases import (
    AuditCase,
    AuditFinding,
    find_words_without_common_bits,
    list_all_cases,
    list_mechanisms,
    run_audits,
)
from relaxdp.audit.auditor import AuditResult, audit
from relaxdp.audit.guessing_rules import ColumnBinning, ProductBinning, can_learn_linear_score, list_candidate_binnings
from relaxdp.cli.main import app
from relaxdp.errors import ArgumentError
from relaxdp.mechanisms import registry
from relaxdp.mechanisms.bloom import BloomShape

RUNNER = CliRunner(env={"COLUMNS": "200"})


def honest(truths: np.ndarray) -> np.ndarray:
    return truths ^ (np.random.default_rng(len(truths)).random(len(truths)) > 0.7310585786)


def test_every_encoding_is_audited_with_both_samplers() -> None:
    names = {encoding.name for encoding, _, _ in list_mechanisms()}
    own = {kind.name for kind in registry.BUILT_IN}
    assert names == own
    audited = [case.name for case in list_all_cases() if case.group == "encoding"]
    assert {(name, sampler) for name in names for sampler in ("path", "Algorithm 1")} == {
        (name.split(",")[0], name.split(", ")[-1]) for name in audited
    }
    assert len({case.name for case in list_all_cases()}) == len(list(list_all_cases()))


def test_words_apart_share_no_bit() -> None:
    shape = BloomShape(bits=8, hashes=2, cohorts=1)
    first, second = (set(shape.compute_bits(word, 0)) for word in find_words_without_common_bits(shape))
    assert len(first | second) == 4


def test_a_group_is_named_like_a_mechanism() -> None:
    arguments = ["audit", "--only", "deliberate mistakes", "--trials", "1000", "--seed", "7", "--json"]
    rows = json.loads(RUNNER.invoke(app, arguments).stdout)["findings"]
    assert [row["mechanism"] for row in rows] == [
        case.name for case in audit_cases.list_all_cases() if case.group == "planted"
    ]


def test_json() -> None:
    arguments = ["audit", "--only", "Algorithm 1", "--trials", "5000", "--seed", "7", "--json"]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["seed"] == 7
    assert found["confidence"] == 0.999
    rows = found["findings"]
    assert {row["group"] for row in rows} == {"relaxation", "encoding"}
    assert all(row["verdict"] == "not refuted" and row["as_expected"] for row in rows)
    assert all(row["epsilon_low"] < float(row["claimed"]) and row["trials"] == 5000 for row in rows)
    # One error probability for the whole table.
    assert rows[0]["confidence"] == pytest.approx(1 - 0.001 / len(rows), abs=1e-9)
    assert json.loads(RUNNER.invoke(app, arguments).stdout) == found


def test_table() -> None:
    result = RUNNER.invoke(app, ["audit", "--only", "second key", "--trials", "50000", "--seed", "7"])
    assert result.exit_code == 0
    for part in ("deliberate mistakes", "released again under a second key", "flagged, as it must be", "seed 7"):
        assert part in result.stdout


def test_what_is_not_as_expected_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    # Too few trials to see it.
    result = RUNNER.invoke(app, ["audit", "--only", "second key", "--trials", "1000", "--seed", "7"])
    assert result.exit_code == 1
    assert "MISSED" in result.stdout
    broken = AuditCase("relaxation", "broken", "0.1", lambda truths: truths)
    monkeypatch.setattr("relaxdp.cli.audit.list_all_cases", lambda: [broken])
    result = RUNNER.invoke(app, ["audit", "--trials", "1000", "--seed", "7"])
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout


def test_a_missing_peer_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(epsilon: float) -> Any:
        raise ModuleNotFoundError("no module of that name")

    monkeypatch.setattr(audit_cases, "PEERS", dict.fromkeys(audit_cases.PEERS, (1000, missing)))
    listed = list(audit_cases.list_peer_cases())
    assert len(listed) == 4
    findings = list(run_audits(listed, trials=1000, confidence_level=0.9, seed=1))
    assert all(finding.verdict == "not installed" and finding.is_expected for finding in findings)
    monkeypatch.setattr("relaxdp.cli.audit.list_all_cases", lambda: listed)
    result = RUNNER.invoke(app, ["audit"])
    assert result.exit_code == 0
    assert result.stdout.count("not installed") == 4


def test_an_installed_peer_is_audited_and_not_our_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_cases, "PEERS", {"opendp": (1000, lambda epsilon: lambda truth: truth)})
    case = next(audit_cases.list_peer_cases())
    (finding,) = run_audits([case], trials=2000, confidence_level=0.99, seed=1)
    assert finding.verdict == "VIOLATED"
    assert finding.is_expected


@pytest.mark.parametrize("options", [["--only", "nothing like it"], ["--confidence", "1.5"]])
def test_mistakes_of_the_caller(options: list[str]) -> None:
    assert isinstance(RUNNER.invoke(app, ["audit", *options]).exception, ArgumentError)


def test_refusals_of_the_auditor() -> None:
    for truths, options, fields in (
        ([0], {}, {"says": "at least two"}),
        ([0, 1], {"trials": 10}, {"minimum": 1000, "trials": 10}),
        ([0, 1], {"confidence_level": 1.0}, {"says": "above 0.5 and below 1"}),
    ):
        with refused(ArgumentError, **fields):
            audit(honest, truths, claimed_epsilon=1, **options)
    wrong: tuple[Any, ...] = (
        lambda truths: truths[:-1],
        lambda truths: np.array(["a"] * len(truths)),
        lambda truths: np.zeros((len(truths), 0)),
        lambda truths: np.zeros((len(truths), 1, 1)),
    )
    for mechanism in wrong:
        with refused(ArgumentError, says="one row per true value"):
            audit(mechanism, [0, 1], claimed_epsilon=1, trials=1000)


def test_an_audit_speaks() -> None:
    found = audit(
        honest,
        [0, 1],
        claimed_epsilon=1,
        trials=20_000,
        seed=1,
        distribution=RelaxedReportsDistribution.from_epsilons([1], n_values=2),
    )
    assert isinstance(found, AuditResult)
    assert str(found).startswith("claimed epsilon 1: not refuted. Measured at least 0.9")
    assert "at confidence 0.999" in str(found)
    assert 0.8 < found.share_of_claim < 1
    assert AuditFinding(next(list_all_cases()), found).verdict == "not refuted"


def test_progress_counts_every_trial() -> None:
    made: list[int] = []
    audit(honest, [0, 1], claimed_epsilon=1, trials=1_200_001, seed=1, progress=made.append)
    assert sum(made) == 1_200_001


def test_truths_of_any_kind() -> None:
    def mechanism(truths: np.ndarray) -> np.ndarray:
        return np.asarray((truths == "yes") ^ (np.random.default_rng(3).random(len(truths)) > 0.9))

    found = audit(mechanism, ["no", "maybe", "yes"], claimed_epsilon=1, trials=10_000, seed=1)
    assert found.is_violated
    assert found.pair[1] == "yes"


def test_views_are_what_they_say() -> None:
    generator = np.random.default_rng(4)
    rows = np.asfortranarray(generator.integers(0, 3, (500, 5), dtype=np.uint8))
    columns = [ColumnBinning.from_data(place, rows[:, place]) for place in range(5)]
    views = list(list_candidate_binnings(columns))
    assert [view.name for view in views][:3] == ["the last 2 columns", "the last 4 columns", "all columns"]
    kept = rows.copy()
    for view in views:
        assert view.list_cell_bins()[view(rows)].tolist() == rows[:, [column.index for column in view.columns]].tolist()
    assert np.array_equal(rows, kept)
    signed = (rows.astype(np.int64) - 7)[:, :2]
    view = ProductBinning([ColumnBinning.from_data(place, signed[:, place]) for place in range(2)], "two")
    assert view(signed).tolist() == (3 * rows[:, 0] + rows[:, 1]).tolist()
    assert view(np.array([[-99, 99]])).tolist() == [2]  # codes never seen count as the nearest
    constant = np.stack([np.full(256, 3), np.arange(256)], axis=1)
    view = ProductBinning([ColumnBinning.from_data(place, constant[:, place]) for place in range(2)], "constant")
    assert view(constant).tolist() == list(range(256))
    flags = rows[:, :1] == 1
    assert ProductBinning([ColumnBinning.from_data(0, flags[:, 0])], "flag")(flags).tolist() == flags[:, 0].tolist()
    numbers = generator.normal(size=(500, 1))
    column = ColumnBinning.from_data(0, numbers[:, 0])
    assert column.size == 32
    assert np.ptp(np.bincount(column.compute_bins(numbers))) <= 2
    wide = generator.integers(0, 10**9, (500, 1))
    assert ColumnBinning.from_data(0, wide[:, 0]).size == 32


def test_a_linear_score_needs_a_few_columns() -> None:
    assert not can_learn_linear_score([ColumnBinning(0, 0, 2)])
    assert can_learn_linear_score([ColumnBinning(place, 0, 2) for place in range(40)])
    assert not can_learn_linear_score([ColumnBinning(place, 0, 200) for place in range(2)])
