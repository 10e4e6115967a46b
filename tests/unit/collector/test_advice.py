"""The advice of the dashboard's form: the same figures as `relaxdp plan`."""

from __future__ import annotations

import pytest

from relaxdp.collector.advice_routes import AdviceRequest, advice
from relaxdp.collector.wire import LevelRequest
from relaxdp.estimation.planning import find_margin, find_n
from relaxdp.service.wire import EncodingRequest, Target

VALUES = EncodingRequest("categorical", ["a", "b", "c", "d"])
LEVELS = [LevelRequest("0.5"), LevelRequest("1"), LevelRequest("2")]


def test_it_is_the_plan_of_the_command_line() -> None:
    found = advice(AdviceRequest(VALUES, LEVELS, 100_000, Target(0.02)))
    for level in found.levels:
        wanted = find_margin(n=100_000, planned_values=4, epsilon=level.epsilon)
        assert level.half_width == pytest.approx(wanted, rel=6e-3)
        needed = find_n(0.02, planned_values=4, epsilon=level.epsilon)
        assert level.devices_needed == pytest.approx(needed, rel=6e-3)
        assert level.met == (level.half_width <= 0.02)
