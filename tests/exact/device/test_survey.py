"""A survey of several questions: all reports together are within the limit, in rationals, for every transcript.

The device itself runs, with every vector of truths, against a server that opens all levels. From the levels that it
reported at, and from which of its reports come of the same words, follows the joint law of everything that was sent.
"""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.exact.enumeration import compute_transcript_distribution
from tests.servers.fake_collector import FakeCollector, fake_collector

from relaxdp.device import Device
from relaxdp.device.report import draw
from relaxdp.device.survey import Division, divide, divided
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.sampling.keyed_path import AcceptedDraw, find_report, reduce_word_pair
from relaxdp.theory.epsilon import ONE
from relaxdp.theory.randomized_response import compute_log_rounded_up

VALUES = {"a": ["no", "yes"], "b": ["no", "yes"], "c": ["x", "y", "z"]}
LEVELS = {"a": ("0.5", "1"), "b": ("0.3", "0.9"), "c": ("0.4", "1.5")}
TRUTHS = list(itertools.product(*VALUES.values()))
SMALL = 16
Law = dict[tuple[int, ...], Fraction]


class Seen(NamedTuple):
    """What left a device: for each question the thresholds of its reports, and of which words they were drawn."""

    thresholds: dict[str, tuple[int, ...]]
    words: dict[str, object]


@pytest.fixture
def server() -> Iterator[FakeCollector]:
    with fake_collector() as collector:
        yield collector


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the words of each question's path are a function of; the truth, which is one more, is left out."""
    found: dict[str, object] = {}
    real = ReportPath.__init__
    asked: list[str] = []

    def spy(self: ReportPath, encoding: Any, truth: Any, *, key: Any, object_id: Any, path: Any) -> None:
        real(self, encoding, truth, key=key, object_id=object_id, path=path)
        found[asked[-1]] = (key.fingerprint, str(path), object_id)

    monkeypatch.setattr(ReportPath, "__init__", spy)

    def noted(encoding: Any, record: Any, release: str, level: Any) -> Any:
        asked.append(record.address.rpartition("/")[2])
        return draw(encoding, record, release, level)

    monkeypatch.setattr("relaxdp.device.participation.draw", noted)
    return found


def run(server: FakeCollector, folder: Path, truths: tuple[str, ...], words: dict[str, object], limit: str) -> Seen:
    """Ask one device everything, level after level, and return what left it."""
    words.clear()
    for name, values in VALUES.items():
        server.open(name, {"name": "categorical", "values": values}, LEVELS[name])
    address = server.survey("survey", list(VALUES), ("a", "b"))
    one = Device.open(folder / f"device-{len(server.requests)}", limit="100")
    survey = one.join_survey(address, upto=limit)
    for each in survey.questions:
        each.answer(truths[list(VALUES).index(each.address.id)])
    for _ in range(2):
        one.sync()
        for name in VALUES:
            server.campaigns[name]["open_level"] = 1
    sent = {each.address.id: tuple(int(report.threshold) for report in each.sent) for each in survey.questions}
    return Seen(sent, dict(words))


def joint_law(seen: Seen, truths: tuple[str, ...]) -> Law:
    """Return the law of all reports of all questions: of questions with words of their own, a product."""
    names = list(seen.thresholds)
    indices = {name: VALUES[name].index(truth) for name, truth in zip(VALUES, truths, strict=True)}
    groups: dict[object, list[str]] = {}
    for name in names:
        groups.setdefault(seen.words[name], []).append(name)
    law: Law = {(): Fraction(1)}
    for group in groups.values():
        if len(group) == 1:
            levels = [Fraction(each, ONE) for each in seen.thresholds[group[0]]]
            own: Law = compute_transcript_distribution(len(VALUES[group[0]]), levels, indices[group[0]])
        else:
            own = shared_law(group, seen, indices)
        law = {(*one, *two): p * q for (one, p), (two, q) in itertools.product(law.items(), own.items())}
    return law


def shared_law(group: list[str], seen: Seen, indices: dict[str, int]) -> Law:
    """Return the law of reports that are read from one path, with small words, all of which are fed.

    Thresholds are rounded down to small words, so that this tells no more than the device does.
    """
    values = len(VALUES[group[0]])
    places = [(indices[name], each * SMALL // ONE) for name in group for each in seen.thresholds[name]]
    standing: dict[int, defaultdict[tuple[int, ...], Fraction]] = {n: defaultdict(Fraction) for n in range(SMALL + 1)}
    standing[SMALL][tuple(truth for truth, _ in places)] = Fraction(1)
    for bound in range(SMALL, 0, -1):
        drawn = [reduce_word_pair(u, v, bound, values, base=SMALL) for u in range(SMALL) for v in range(SMALL)]
        hits = [each for each in drawn if each is not None]
        for reports, chance in standing[bound].items():
            for position, value in hits:
                draws = (AcceptedDraw(0, position, value), AcceptedDraw(1, 0, 0))
                after = tuple(
                    find_report(draws, threshold, truth=report)
                    for (_, threshold), report in zip(places, reports, strict=True)
                )
                standing[position][after] += chance / len(hits)
    return dict(standing[0])


def check_within(server: FakeCollector, folder: Path, words: dict[str, object], limit: str) -> Decimal:
    """No transcript of all questions is likelier by more than e^limit under other truths; return how close it comes."""
    laws = []
    shapes = set()
    for truths in TRUTHS:
        seen = run(server, folder, truths, words, limit)
        shapes.add(tuple(seen.thresholds.items()))
        laws.append(joint_law(seen, truths))
    assert len(shapes) == 1, "which questions are asked, and at which levels, depends on the answers"
    odds = Fraction(1)
    for transcript in {each for law in laws for each in law}:
        chances = [law.get(transcript, Fraction(0)) for law in laws]
        assert min(chances) > 0, "a transcript that some truths cannot make"
        odds = max(odds, max(chances) / min(chances))
    closest = compute_log_rounded_up(odds)
    assert closest <= Decimal(limit), "all reports together tell more than the limit"
    return closest


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "cost"), [("3.4", "3.4"), ("2", "1.7"), ("1.2", "1.2"), ("0.7", "0.5"), ("0.4", "0.3")]
)
def test_all_reports_to_all_questions_are_within_the_limit(
    server: FakeCollector, tmp_path: Path, words: dict[str, object], limit: str, cost: str
) -> None:
    """And it is reached: the questions cost what their largest levels add up to, in every transcript of the worst."""
    closest = check_within(server, tmp_path, words, limit)
    assert closest <= Decimal(cost)
    assert closest > Decimal(cost) - Decimal("1e-15")


@pytest.mark.long
def test_one_path_for_two_questions_would_be_seen(
    server: FakeCollector, tmp_path: Path, words: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal answers would give equal reports: a mutant whose questions share key and path."""
    real = sys.modules["relaxdp.device.participation"].draw  # which notes the words

    def shared(encoding: Any, record: Any, release: str, level: Any) -> Any:
        if record.address.endswith("/c"):
            return real(encoding, record, release, level)
        return real(encoding, replace(record, key="00" * 32, device="0" * 32), "survey", level)

    monkeypatch.setattr("relaxdp.device.participation.draw", shared)
    with pytest.raises(AssertionError, match="more than the limit"):
        check_within(server, tmp_path, words, "3.4")


def test_one_key_for_two_questions_would_still_be_two_paths(
    server: FakeCollector, tmp_path: Path, words: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a question is in its path, so that not even a broken source of keys brings two together."""
    monkeypatch.setattr("relaxdp.device.device.secrets.token_hex", lambda size: "00" * size)
    check_within(server, tmp_path, words, "3.4")


def test_a_limit_for_each_question_would_be_seen(
    server: FakeCollector, tmp_path: Path, words: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mutant(state: Any, offer: Any, agreed: Any) -> Division:
        found = divided(state, offer, agreed)
        most = {each.address.id: min(found.limit, each.levels[-1].epsilon) for each in offer.questions}
        return replace(found, most=most)

    monkeypatch.setattr("relaxdp.device.device.divided", mutant)
    with pytest.raises(AssertionError, match="more than the limit"):
        check_within(server, tmp_path, words, "2")


def test_every_division_is_within_the_limit_and_leaves_nothing_that_fits() -> None:
    """All limits over a grid, three questions with levels of very different sizes."""
    levels = {
        "a": [Decimal("0.1"), Decimal("0.2"), Decimal("3")],
        "b": [Decimal("1")],
        "c": [Decimal("0.5"), Decimal("1.5")],
    }
    for tenths in range(60):
        limit = Decimal(tenths) / 10
        given = divide(levels, limit)
        assert sum(given.values()) <= limit
        for name, epsilons in levels.items():
            place = epsilons.index(given[name]) if name in given else -1
            if place + 1 < len(epsilons):
                more = epsilons[place + 1] - given.get(name, Decimal(0))
                assert sum(given.values()) + more > limit, (limit, given)
    assert divide({}, Decimal(1)) == {}
