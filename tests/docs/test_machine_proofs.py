"""The proofs in Coq are proofs, and their model is the code: what Coq computed of it is what the code gives."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conftest import require
from tests.docs import machine_proofs
from tests.docs.machine_proofs import FILES, FOLDER, VECTORS, ProofError, check, compiled, loopholes
from tests.exact.enumeration import Law, compute_transcript_distribution, path_law

from relaxdp.audit.exact_check import _compute_noiseless_distribution
from relaxdp.mechanisms.square_wave import SquareWave
from relaxdp.sampling.keyed_path import reduce_word_pair
from relaxdp.theory.randomized_response import compute_bridge_distribution

Row = list[int]


def vectors() -> list[list[Row]]:
    """The rows of numbers of each answer of Vectors.v."""
    answers = VECTORS.read_text("utf-8").split("     = ")[1:]
    return [[[int(each) for each in re.findall(r"\d+", row)] for row in re.findall(r"\[[\d;\s]+\]", answer)]
            for answer in answers]  # fmt: skip


ACCEPTS, PATHS, STEPS, BRIDGES, SPREADS = vectors()


class Read(NamedTuple):
    """One transcript, and its probability."""

    one: int
    values: int
    truth: int
    thresholds: tuple[int, ...]
    reports: tuple[int, ...]
    chance: Fraction

    @classmethod
    def of(cls, row: Row) -> Read:
        one, values, truth, *seen, above, below = row
        return cls(one, values, truth, tuple(seen[::2]), tuple(seen[1::2]), Fraction(above, below))


def laws(rows: list[Row]) -> dict[tuple[int, int, int, tuple[int, ...]], Law]:
    """The laws in a list of transcripts: of words, values, truth and thresholds."""
    found: dict[tuple[int, int, int, tuple[int, ...]], Law] = {}
    for each in map(Read.of, rows):
        found.setdefault(each[:4], {})[each.reports] = each.chance
    return found


def test_the_model_accepts_the_words_that_the_code_accepts() -> None:
    said = {tuple(row[:5]): tuple(row[5:]) for row in ACCEPTS}
    for one, values in {(row[0], row[1]) for row in ACCEPTS}:
        for bound, u, v in product(range(1, one + 1), range(one), range(one)):
            assert said.pop((one, values, bound, u, v), None) == reduce_word_pair(u, v, bound, values, base=one)
    assert not said


def test_the_models_path_is_the_codes_path() -> None:
    """Thresholds in any order, equal ones too, and words that are rejected."""
    found = laws(PATHS)
    assert Counter(one for one, *_ in found) == {3: 3, 4: 5, 5: 2}
    for (one, values, truth, thresholds), law in found.items():
        assert sum(law.values()) == 1
        said = {reports: chance for reports, chance in law.items() if chance}
        assert said == path_law(values, thresholds, truth, one=one)


def test_the_models_algorithm_1_is_the_codes() -> None:
    found = laws(STEPS)
    assert len(found) == 5
    for (one, values, truth, thresholds), law in found.items():
        said = {reports: chance for reports, chance in law.items() if chance}
        assert said == compute_transcript_distribution(values, [Fraction(each, one) for each in thresholds], truth)


def test_the_models_bridge_is_the_codes() -> None:
    assert len(BRIDGES) == 3**3 + 2**3
    for values, low, middle, high, lower, upper, report, above, below in BRIDGES:
        levels = [Fraction(each, 16) for each in (low, middle, high)]
        law = compute_bridge_distribution(values, *levels, lower_report=lower, upper_report=upper)
        assert law[report] == Fraction(above, below)


def test_the_models_wave_is_the_codes() -> None:
    found: dict[tuple[int, ...], dict[Any, Fraction]] = {}
    for *number, place, above, below in SPREADS:
        found.setdefault(tuple(number), {})[None, (place,)] = Fraction(above, below)
    assert len(found) == 3
    for (bins, window, bin_, eighths), law in found.items():
        said = {place: chance for place, chance in law.items() if chance}
        assert said == _compute_noiseless_distribution(
            SquareWave(0, 16, bins=bins, window=window), 8.0 * bin_ + eighths
        )


@pytest.mark.long
def test_the_theorem_about_the_path_is_proven() -> None:
    require("coqc")
    assert compiled(("Numbers", "Path")) == {"Numbers": "", "Path": ""}


@pytest.mark.long
def test_everything_is_proven_and_assumes_nothing() -> None:
    require("coqc")
    check(compiled())


def test_what_is_not_proven_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("coqc")
    (tmp_path / "Wrong.v").write_text("Lemma wrong : 1 = 2. Proof. reflexivity. Qed.")
    with pytest.raises(ProofError, match="not proven"):
        compiled(("Wrong",), tmp_path)
    (tmp_path / "Hole.v").write_text("Lemma hole : 1 = 2. Proof. Admitted. Print Assumptions hole.")
    kept = VECTORS.read_text("utf-8")
    with pytest.raises(ProofError, match="rest on something"):
        check({"Vectors": kept, "Assumptions": compiled(("Hole",), tmp_path)["Hole"]})
    with pytest.raises(ProofError, match="not what the model gives"):
        check({"Vectors": kept.replace("1", "2", 1), "Assumptions": machine_proofs.CLOSED})
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ProofError, match="install Coq"):
        compiled(("Wrong",), tmp_path)


def test_no_file_has_a_loophole() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.v")) == sorted(FILES)
    for name in FILES:
        assert loopholes((FOLDER / f"{name}.v").read_text("utf-8")) == []
    assert loopholes("Proof. (* Admitted (* twice *) *) admit. Admitted.") == ["admit", "Admitted"]
