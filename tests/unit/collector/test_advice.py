"""What the form's planner says where some stop early: the same as `relaxdp plan --stop`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from relaxdp.collector.advice_routes import AdviceRequest, Stop, advice
from relaxdp.collector.wire import LevelRequest
from relaxdp.errors import CampaignError
from relaxdp.estimation.planning import half_width, objects_for
from relaxdp.law.epsilon import Epsilon
from relaxdp.service.wire import EncodingRequest, Target

VALUES = EncodingRequest("categorical", ["a", "b", "c", "d"])
LEVELS = [LevelRequest("0.5"), LevelRequest("1"), LevelRequest("2")]


@pytest.mark.parametrize("stops", [{}, {"0.5": 0.3}, {"0.5": 0.3, "1": 0.2}])
def test_it_is_the_plan_of_the_command_line(stops: dict[str, float]) -> None:
    asked = [Stop(epsilon, share) for epsilon, share in stops.items()]
    found = advice(AdviceRequest(VALUES, LEVELS, 100_000, Target(0.02), asked))
    for level in found.levels:
        lower: Mapping[Epsilon, float] = {
            epsilon: share for epsilon, share in stops.items() if float(epsilon) < float(level.epsilon)
        }
        wanted = half_width(objects=100_000, values=4, epsilon=level.epsilon, stops=lower)
        assert level.half_width == pytest.approx(wanted, rel=6e-3)
        needed = objects_for(0.02, values=4, epsilon=level.epsilon, stops=lower)
        assert level.devices_needed == pytest.approx(needed, rel=6e-3)
        assert level.met == (level.half_width <= 0.02)


@pytest.mark.parametrize("stops", [[Stop("0.7", 0.1)], [Stop("0.5", 0.5), Stop("1", 0.5)]])
def test_what_cannot_be_meant_is_refused(stops: list[Stop]) -> None:
    with pytest.raises(CampaignError):
        advice(AdviceRequest(VALUES, LEVELS, 1000, None, stops))
