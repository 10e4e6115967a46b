"""When a campaign opens, relaxes and stops, and how precise it says its answer is."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pytest
from msgspec import UNSET

from relaxdp.collector.campaign import Campaign
from relaxdp.collector.definition import complete
from relaxdp.collector.estimate_wire import EstimateOptions
from relaxdp.collector.estimates import csv_text, estimate
from relaxdp.collector.rules import CampaignState, decided, first_state
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.estimation.planning import find_margin
from relaxdp.mechanisms.bloom import Bloom, BloomShape
from relaxdp.mechanisms.registry import create_mechanism
from relaxdp.rappor.parameters import compute_word_std_error
from relaxdp.service.precision import Precision
from relaxdp.service.wire import EncodingRequest, Target
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import compute_retention

YES = EncodingRequest("categorical", ["no", "yes"])
LEVELS = [LevelRequest("0.5"), LevelRequest("1"), LevelRequest("2")]


def campaign(**changes: Any) -> Campaign:
    asked: dict[str, Any] = {"question": "q", "encoding": YES, "levels": LEVELS, **changes}
    return Campaign(1, complete(CampaignRequest(**asked)))


def reached(where: Campaign, state: CampaignState, devices: tuple[int, ...], now: float = 0.0) -> CampaignState:
    return decided(where, replace(state, devices=devices), now)


def test_a_campaign_opens_at_once_and_stays_where_nobody_moves_it() -> None:
    plain = campaign()
    opened = decided(plain, first_state(plain), 0.0)
    assert (opened.state, opened.open_level, opened.version) == ("open", 0, 1)
    assert reached(plain, opened, (10**9, 0, 0)).open_level == 0
    assert decided(plain, opened, 1e12) is opened


def test_dates() -> None:
    dated = campaign(
        opens="1970-01-01T00:00:10Z",
        closes="1970-01-01T00:00:40Z",
        levels=[LevelRequest("0.5"), LevelRequest("1", "1970-01-01T01:00:20+01:00"), LevelRequest("2")],
        devices=5,
    )
    first = first_state(dated)
    assert decided(dated, first, 9.9) is first
    opened = decided(dated, first, 10.0)
    assert (opened.state, opened.open_level) == ("open", 0)
    assert reached(dated, opened, (5, 0, 0), 19.0).open_level == 0  # a level with a date waits for it
    assert reached(dated, opened, (0, 0, 0), 20.0).open_level == 1
    assert reached(dated, opened, (0, 5, 0), 20.0).open_level == 2
    paused = replace(opened, state="paused")
    assert decided(dated, paused, 30.0) is paused
    assert decided(dated, paused, 40.0).state == "finished"
    late = decided(dated, first, 100.0)  # everything was missed
    assert (late.state, late.open_level) == ("finished", None)


def test_numbers_of_devices_open_levels_and_the_target_finishes() -> None:
    by_number = campaign(devices=1000, target=Target(0.05))
    opened = decided(by_number, first_state(by_number), 0.0)
    assert reached(by_number, opened, (999, 0, 0)).open_level == 0
    second = reached(by_number, opened, (1000, 0, 0))
    assert (second.state, second.open_level) == ("open", 1)
    third = reached(by_number, second, (0, 1000, 0))
    assert (third.state, third.open_level) == ("open", 2)
    assert reached(by_number, third, (0, 700, 300)).state == "open"
    assert reached(by_number, third, (0, 0, 1000)).state == "finished"
    # It stays open at the last level until there are enough, and does not open what does not exist.
    assert reached(campaign(devices=1), replace(third, devices=(0, 0, 0)), (0, 0, 5)).open_level == 2


def test_a_target_that_a_low_level_meets_stops_there() -> None:
    many = campaign(devices=10_000_000, target=Target(0.01))
    opened = decided(many, first_state(many), 0.0)
    assert find_margin(n=200_000, planned_values=2, epsilon="0.5") < 0.01
    stopped = reached(many, opened, (200_000, 0, 0))
    assert (stopped.state, stopped.open_level) == ("finished", 0)


ENCODINGS: dict[str, EncodingRequest] = {
    "categorical": EncodingRequest("categorical", ["a", "b", "c", "d"]),
    "unary-optimised": EncodingRequest("unary-optimised", ["a", "b", "c", "d"]),
    "unary-symmetric": EncodingRequest("unary-symmetric", ["a", "b", "c", "d"]),
    "local-hash": EncodingRequest("local-hash", ["a", "b", "c", "d"], options={"buckets": 5}),
    "numeric": EncodingRequest("numeric", range=(-10.0, 30.0)),
}


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("about", ["sample", pytest.param("population", marks=pytest.mark.long)])
@pytest.mark.parametrize("method", ["average", "precision"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_interval_is_wider_than_said(encoding: str, method: Any, about: Any, simultaneous: bool) -> None:
    """Over extreme and random truths, at one level and at several: at most 1 % wider with 1,000 devices a level."""
    target = Target(0.1, simultaneous=simultaneous, about=about, method=method)
    where = campaign(encoding=ENCODINGS[encoding], target=target)
    options = EstimateOptions(method, 0.95, about, simultaneous)
    rng = np.random.default_rng(11)
    labels = len(where.encoding.labels)
    widest: dict[tuple[int, ...], float] = {}
    for devices in [(1000, 0, 0), (0, 0, 3000), (1000, 1500, 2000)]:
        said = where.precision.half_width(devices)
        assert said is not None
        for share in [np.eye(labels)[0], np.full(labels, 1 / labels), *rng.dirichlet(np.ones(labels), 1)]:
            state = CampaignState("open", 2, 1, devices)
            levels = [_counts(where, place, number, share, rng) for place, number in enumerate(devices)]
            found = estimate(where, state, levels, options)
            assert found.pooled is not None
            for row in found.pooled:
                width = (row.high - row.low) / 2
                assert width <= 1.01 * said
                widest[devices] = max(widest.get(devices, 0), width / said)
    assert max(widest.values()) > 0.7  # and it is not far more than needed


def test_the_largest_values_have_intervals_that_hold_for_all() -> None:
    """The server chooses, so that no page shows the largest with intervals that do not know of the choice."""
    where = campaign(encoding=EncodingRequest("categorical", [f"v{number}" for number in range(300)]))
    rng = np.random.default_rng(3)
    devices = (3000, 0, 3000)
    state = CampaignState("open", 2, 1, devices)
    levels = [_counts(where, place, number, np.full(300, 1 / 300), rng) for place, number in enumerate(devices)]
    alone, shown, together = (
        estimate(where, state, levels, EstimateOptions(**asked))
        for asked in ({}, {"largest": 20}, {"simultaneous": True})
    )
    assert (alone.simultaneous, shown.simultaneous, shown.values) == (False, True, 300)
    assert shown.pooled is not None
    assert together.pooled is not None
    assert shown.pooled == sorted(together.pooled, key=lambda row: -row.estimate)[:20]
    for place in (0, 2):
        every = {row.value: row for row in together.levels[place].rows}
        assert shown.levels[place].rows == [every[row.value] for row in shown.pooled]
    few = estimate(where, state, levels, EstimateOptions(largest=300))
    assert (few.simultaneous, few.pooled) == (False, alone.pooled)
    table = pa_csv.read_csv(io.BytesIO(csv_text(shown)))
    assert table["simultaneous"].to_pylist() == [True] * 60
    assert set(table["confidence_level"].to_pylist()) == {0.95}


def test_what_lies_beyond_what_can_be_told_is_said() -> None:
    where = campaign(encoding=ENCODINGS["categorical"])
    levels: Any = [{0: np.array([1000, 150, 250, 280, 320])}, {}, {}]
    found = estimate(where, CampaignState("open", 0, 1, (1000, 0, 0)), levels, EstimateOptions(confidence_level=0.9))
    assert found.pooled is not None
    assert [row.beyond for row in found.pooled] == ["below", UNSET, UNSET, UNSET]
    assert found.pooled[0].low == 0
    assert found.pooled[0].high > 0.05


def _counts(where: Campaign, place: int, devices: int, share: Any, rng: Any) -> Any:
    """Counts of so many devices whose truths have these shares."""
    if not devices:
        return {}
    encoding = where.encoding
    support = encoding.compute_noise_and_gain(compute_retention(int(where.levels[place].threshold)))
    truths = rng.multinomial(devices, share)
    if encoding.joint == "exclusive":
        counts = np.zeros(len(share), dtype=np.int64)
        for value, number in enumerate(truths):
            law = np.full(len(share), float(support.noise))
            law[value] = float(support.hit)
            counts += rng.multinomial(number, law / law.sum())
    else:
        hits = rng.binomial(truths, float(support.hit))
        counts = hits + rng.binomial(devices - truths, float(support.noise))
    return {0: np.array([devices, *counts])}


def test_the_categorical_width_is_the_planner_s() -> None:
    where = campaign(encoding=ENCODINGS["categorical"])
    for place, level in enumerate(("0.5", "1", "2")):
        devices = [0, 0, 0]
        devices[place] = 4321
        wanted = find_margin(n=4321, planned_values=4, epsilon=level)
        assert where.precision.half_width(devices) == pytest.approx(wanted)
    assert where.precision.half_width([0, 0, 0]) is None
    assert where.precision.half_width([1, 0, 0]) == 0.5


def test_the_width_of_words_is_the_planner_s() -> None:
    shape = BloomShape(bits=32, hashes=2, cohorts=8)
    precision = Precision(Bloom(shape), ["4", "8"], Target(0.1), candidates=20)
    error = compute_word_std_error(shape, epsilon="8", n_devices=5000, n_candidates=20)
    assert precision.half_width([0, 5000]) == pytest.approx(1.959964 * error, rel=1e-6)


def test_definitions_are_written_in_one_spelling() -> None:
    made = complete(
        CampaignRequest(
            "q", EncodingRequest("auto", list(range(1000))), [LevelRequest("0.50"), LevelRequest("1.0")],
            opens="2026-10-01T10:00:00+02:00",
        )
    )  # fmt: skip
    assert [level.epsilon for level in made.levels] == ["0.5", "1"]
    assert (made.opens, made.largest_epsilon) == ("2026-10-01T08:00:00Z", "1")
    assert (made.encoding.name, made.encoding.options) == ("local-hash", {"buckets": 4})
    assert made.id
    threshold = create_mechanism("local-hash", values=range(1000), options={"buckets": 4}).threshold(as_epsilon("0.5"))
    assert Campaign(1, made).levels[0].threshold == str(threshold)
