"""Golden: exact probabilities of relaxation, privacy loss, and Algorithm 1 checked by its exact distribution."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.golden import driver, recorded, stream
from tests.golden.enumeration import Distribution, Numbers, Outcome, enumerate_outcomes

LEVELS = ["0.5", "1", "2"]
BINARY, TERNARY = driver.k_ary(["no", "yes"]), driver.k_ary(["flu", "covid", "none"])


def keep_of(epsilon: str, values: int) -> Fraction:
    """Return the retention of a level."""
    return Fraction(stream.compute_threshold(epsilon, values), stream.ONE)


def respond(keep: Fraction, values: int, report: int, answer: int) -> Fraction:
    """Return the probability of a report: the answer is kept, or any value is drawn."""
    return keep * (report == answer) + (1 - keep) / values


def transcript_chance(keeps: list[Fraction], values: int, reports: tuple[int, ...], answer: int) -> Fraction:
    """Return the probability of a transcript: every report is the next one, blurred, and the last is of the answer."""
    chance = respond(keeps[-1], values, reports[-1], answer)
    for (old, new), (older, newer) in zip(itertools.pairwise(keeps), itertools.pairwise(reports), strict=True):
        chance *= respond(old / new, values, older, newer)
    return chance


def exact_distribution(mechanism: driver.Mechanism, epsilons: list[str], answer: str) -> dict[Outcome, Fraction]:
    """Return the probabilities of all transcripts of one individual."""
    names = list(mechanism.values)
    keeps = [keep_of(epsilon, len(names)) for epsilon in epsilons]
    return {
        tuple(names[report] for report in reports): transcript_chance(keeps, len(names), reports, names.index(answer))
        for reports in itertools.product(range(len(names)), repeat=len(epsilons))
    }


@pytest.mark.parametrize("values", [2, 3, 10])
def test_the_law_of_one_relaxation(values: int) -> None:
    """P_aa, p_ba and p_bb of the paper are exact fractions, by Bayes from the blur between two levels."""
    found: dict[str, Any] = {}
    for old_epsilon, new_epsilon in itertools.combinations(["0.1", "0.5", "1", "2", "5"], 2):
        law = driver.relaxation_probabilities(values, old_epsilon, new_epsilon)
        old, new = keep_of(old_epsilon, values), keep_of(new_epsilon, values)

        def bayes(last: int, following: int, old: Fraction = old, new: Fraction = new) -> Fraction:
            joint = respond(new, values, following, 0) * respond(old / new, values, last, following)
            return joint / respond(old, values, last, 0)

        assert law == {"aa": bayes(0, 0), "ba": bayes(1, 0), "bb": bayes(1, 1)}
        found[f"{old_epsilon} to {new_epsilon}"] = [float(law[name]) for name in ("aa", "ba", "bb")]
    first = driver.relaxation_probabilities(values, "0", "1")
    assert first["aa"] == first["ba"] == respond(keep_of("1", values), values, 0, 0)
    with driver.rejected("level may only grow"):
        driver.relaxation_probabilities(values, "1", "0.5")
    recorded.check_part("relaxation-law", str(values), found)


@pytest.mark.parametrize("values", [2, 3])
def test_the_privacy_loss_of_transcripts(values: int) -> None:
    """All reports together cost at most the last level, and one transcript does; adding up would say more."""
    keeps = [keep_of(epsilon, values) for epsilon in LEVELS]
    odds = [1 + values * keep / (1 - keep) for keep in keeps]
    composed = sum(map(math.log, odds)) + sum(map(math.log, odds[:-1]))
    spent = []
    for reports in itertools.product(range(values), repeat=3):
        chances = [transcript_chance(keeps, values, reports, answer) for answer in range(values)]
        loss = driver.privacy_loss(LEVELS, reports, values=values)
        assert float(loss["spent"]) == pytest.approx(math.log(max(chances) / min(chances)))
        assert float(loss["guarantee"]) == pytest.approx(math.log(odds[-1])) == pytest.approx(2)
        assert float(loss["basic composition"]) == pytest.approx(composed)
        spent.append(loss["spent"])
    assert max(spent) == driver.privacy_loss(LEVELS, [0, 0, 0], values=values)["guarantee"]


def check_loss(found: list[Distribution], epsilon: str) -> None:
    """Require that no transcript is likelier by more than e^epsilon for one answer than for another."""
    bound = math.exp(float(epsilon))
    for transcript in found[0].chances:
        chances = [each.chances[transcript] for each in found]
        assert max(chances) <= Fraction(bound) * (min(chances) + found[0].open) * (1 + Fraction(1, 10**12))


def test_algorithm_1_for_one_binary_answer() -> None:
    """All transcripts of three levels have their exact probabilities, for both answers."""
    found = []
    for answer in BINARY.values:

        def run(numbers: Numbers, answer: Any = answer) -> Outcome:
            chain = driver.Relaxation(BINARY, answer, read=numbers.read)
            return tuple(chain.relax(epsilon) for epsilon in LEVELS)

        found.append(enumerate_outcomes(run))
        assert found[-1].open < Fraction(1, 2**60)
        assert found[-1].includes(exact_distribution(BINARY, LEVELS, answer))
        assert not found[-1].includes(exact_distribution(BINARY, ["0.5", "1", "2.000000001"], answer))
    check_loss(found, "2")


@pytest.mark.long
def test_algorithm_1_for_one_answer_of_three() -> None:
    """All 27 transcripts of three levels have their exact probabilities."""

    def run(numbers: Numbers) -> Outcome:
        chain = driver.Relaxation(TERNARY, "covid", read=numbers.read)
        return tuple(chain.relax(epsilon) for epsilon in LEVELS)

    found = enumerate_outcomes(run)
    assert len(found.chances) == 27
    assert found.open < Fraction(1, 2**60)
    assert found.includes(exact_distribution(TERNARY, LEVELS, "covid"))
    assert not found.includes(exact_distribution(TERNARY, LEVELS, "flu"))


def test_a_state_file_is_closed_and_opened_between_levels(tmp_path: Path) -> None:
    """A chain that is opened again for every level has the transcripts of one that stays open."""
    levels = LEVELS[:2]

    def run(numbers: Numbers) -> Outcome:
        chain = driver.Relaxation(TERNARY, "covid", read=numbers.read)
        return tuple(chain.relax(epsilon) for epsilon in levels)

    for place, (numbers, transcript) in enumerate(enumerate_outcomes(run).ways):
        source, state = Numbers(numbers), tmp_path / f"state-{place}"
        again = []
        for epsilon in levels:
            again.append(driver.Relaxation(TERNARY, "covid", state=state, read=source.read).relax(epsilon))
            # The same level again is the kept report, and no randomness is read.
            closed = driver.Relaxation(TERNARY, "covid", state=state, read=Numbers(()).read)
            assert closed.relax(epsilon) == again[-1]
            assert closed.epsilon == epsilon
        assert tuple(again) == transcript
    state = tmp_path / "state-0"
    assert state.stat().st_mode & 0o777 == 0o600
    with driver.rejected("level may only grow"):
        driver.Relaxation(TERNARY, "covid", state=state).relax("0.75")
    with driver.rejected("state of another value"):
        driver.Relaxation(TERNARY, "flu", state=state)
    with driver.rejected("state of another value"):
        driver.Relaxation(driver.k_ary(["covid", "flu", "none"]), "covid", state=state)
    assert driver.Relaxation(TERNARY, "covid", state=state).epsilon == "1"


def test_algorithm_1_in_memory_with_the_systems_randomness() -> None:
    """Without a provided source the randomness is fresh: two hundred chains are not all alike, and levels only grow."""
    chains = [driver.Relaxation(TERNARY, "covid") for _ in range(200)]
    first = [chain.relax("0.5") for chain in chains]
    assert set(first) == {"flu", "covid", "none"}
    assert [chain.relax("0.5") for chain in chains] == first
    second = [chain.relax("12") for chain in chains]
    # At 12 a report is the answer except once in eighty thousand times.
    assert second.count("covid") > 190
    with driver.rejected("level may only grow"):
        chains[0].relax("1")


def test_algorithm_1_with_every_mechanism() -> None:
    """What an individual keeps stays: the hash seed, the coin, the rounding. At a large epsilon the answer shows."""
    cities = [f"city {number}" for number in range(12)]
    bits = driver.Relaxation(driver.unary(cities, optimised=False), "city 9")
    assert [bits.relax(epsilon) for epsilon in ("1", "120", "150")][1:] == [(1 << 9).to_bytes(2, "little")] * 2
    coins = [driver.Relaxation(driver.unary(cities), "city 9") for _ in range(60)]
    assert {chain.relax("80") for chain in coins} == {bytes(2), (1 << 9).to_bytes(2, "little")}
    hashes = driver.Relaxation(driver.local_hash(cities, 8), "city 9")
    reports = [hashes.relax(epsilon) for epsilon in ("0.5", "1", "2", "60", "70")]
    assert len({report[:8] for report in reports}) == 1
    assert reports[3] == reports[4]
    ends = [driver.Relaxation(driver.numeric(0, 100), 50).relax("60") for _ in range(60)]
    assert set(ends) == {0, 100}
    places = [driver.Relaxation(driver.square_wave(0, 100, bins=5, window=4), 50).relax("60") for _ in range(200)]
    # The answer is the middle one of five bins, and its window has four of the eight places.
    assert set(places) == {2, 3, 4, 5}


def enumerate_step(mechanism: driver.Mechanism, answer: Any, level: int, last: Any) -> Distribution:
    """Return the exact distribution of one step of one member of an array, from its last report."""
    given: dict[str, Any] = {"last": [last], "last_epsilon": LEVELS[level - 1]} if level else {}

    def run(numbers: Numbers) -> Outcome:
        (report,) = driver.relax_many(mechanism, [answer], LEVELS[level], read=numbers.read, **given)
        outcome: Outcome = report
        return outcome

    found = enumerate_outcomes(run)
    assert found.open < Fraction(1, 2**60)
    return found


def test_algorithm_1_for_an_array_of_binary_answers() -> None:
    """All transcripts of three levels of one member of an array have their exact probabilities, for both answers."""
    found = []
    for answer in BINARY.values:
        steps = {
            (level, last): enumerate_step(BINARY, answer, level, last)
            for level in range(len(LEVELS))
            for last in (BINARY.values if level else [None])
        }
        # The step of an array depends on nothing but its last reports, so that probabilities multiply.
        joint = Distribution(open=sum((step.open for step in steps.values()), Fraction(0)))
        for reports in itertools.product(BINARY.values, repeat=len(LEVELS)):
            pairs = zip((None, *reports), reports, strict=False)
            joint.chances[reports] = math.prod(
                (steps[level, last].chances[report] for level, (last, report) in enumerate(pairs)), start=Fraction(1)
            )
        assert joint.includes(exact_distribution(BINARY, LEVELS, answer))
        found.append(joint)
    check_loss(found, "2")


@pytest.mark.parametrize("last", [None, "covid", "flu"])
def test_algorithm_1_for_an_array_of_answers_of_three(last: str | None) -> None:
    """The step of an array from its last reports, and its first step, have their exact probabilities."""
    level = 0 if last is None else 1
    found = enumerate_step(TERNARY, "covid", level, last)
    exact: dict[Outcome, Fraction] = {}
    for transcript, chance in exact_distribution(TERNARY, LEVELS[: level + 1], "covid").items():
        assert isinstance(transcript, tuple)
        if last is None or transcript[0] == last:
            exact[transcript[-1]] = chance
    whole = sum(exact.values())
    assert found.includes({report: chance / whole for report, chance in exact.items()})


@pytest.mark.parametrize("values", [2, 3])
def test_levels_between_two_reports_without_the_answer(values: int) -> None:
    """A blur, and a report between two reports, have the probabilities that the answer would give, by Bayes."""
    low, middle, high = (keep_of(epsilon, values) for epsilon in LEVELS)
    for upper, lower in ((0, None), (0, 0), (0, 1)):
        ends: dict[str, Any] = {} if lower is None else {"lower": (low, [lower])}

        def run(numbers: Numbers, upper: int = upper, ends: dict[str, Any] = ends) -> Outcome:
            return tuple(driver.bridge_many(values, middle, (high, [upper]), read=numbers.read, **ends))

        exact: dict[Outcome, Fraction] = {}
        for report in range(values):
            exact[report,] = respond(middle / high, values, report, upper)
            if lower is not None:
                exact[report,] *= respond(low / middle, values, lower, report)
        whole = sum(exact.values())
        found = enumerate_outcomes(run)
        assert found.open < Fraction(1, 2**60)
        assert found.includes({report: chance / whole for report, chance in exact.items()})


def test_members_of_an_array_are_independent() -> None:
    """Every member of an array gets the report that it would get alone from its own numbers."""
    answers = ["covid", "flu", "none"] * 40
    last = ["covid", "covid", "none", "flu"] * 30
    numbers = [[(37 * member + 101 * step) % 255 for member in range(len(answers))] for step in range(3)]
    # A byte that lies on a cut is followed by a word: such members are left out.
    alone: dict[int, str] = {}
    for member, answer in enumerate(answers):
        given = tuple(column[member] for column in numbers)
        try:
            (alone[member],) = driver.relax_many(
                TERNARY, [answer], "1", last=[last[member]], last_epsilon="0.5", read=ByteColumns([given]).read
            )
        except UnexpectedReadError:
            continue
    assert len(alone) > 100
    members = list(alone)
    columns = ByteColumns([tuple(column[member] for column in numbers) for member in members])
    together = driver.relax_many(
        TERNARY, [answers[member] for member in members], "1", last=[last[member] for member in members],
        last_epsilon="0.5", read=columns.read,
    )  # fmt: skip
    assert together == list(alone.values())
    assert set(together) == {"flu", "covid", "none"}


class UnexpectedReadError(Exception):
    """A number was read that has another size, or beyond the last one."""


class ByteColumns:
    """One byte after the other for each member of an array, all members at once."""

    def __init__(self, members: list[tuple[int, ...]]) -> None:
        self._columns = list(zip(*members, strict=True))

    def read(self, size: int) -> int:
        """Return the next byte of every member as one number."""
        if not self._columns or len(self._columns[0]) != size:
            raise UnexpectedReadError
        return int.from_bytes(bytes(self._columns.pop(0)), "little")
