"""A campaign's definition: what an operator asked for, checked, completed and written in one spelling."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from itertools import pairwise

from msgspec.structs import replace

from relaxdp.collector.introduction import completed as introduced
from relaxdp.collector.wire import CampaignRequest, LevelRequest
from relaxdp.server_errors import CampaignError
from relaxdp.service.wire import encoding_of, resolved
from relaxdp.theory.epsilon import as_epsilon, format_epsilon


def complete(request: CampaignRequest) -> CampaignRequest:
    """Return the definition as it is stored: every default filled in, levels and times in their one spelling."""
    if not request.question.strip():
        raise CampaignError("a campaign needs a question.")
    epsilons = [as_epsilon(level.epsilon) for level in request.levels]
    for old, new in pairwise(epsilons):
        if new <= old:
            raise CampaignError(
                "the levels must grow: {new_epsilon} follows {old_epsilon}.",
                old_epsilon=format_epsilon(old),
                new_epsilon=format_epsilon(new),
            )
    largest = epsilons[-1] if request.largest_epsilon is None else as_epsilon(request.largest_epsilon)
    if epsilons[-1] > largest:
        raise CampaignError(
            "the last level, {last}, is larger than the largest epsilon that the campaign promises, {largest}.",
            last=format_epsilon(epsilons[-1]),
            largest=format_epsilon(largest),
        )
    levels = [
        LevelRequest(format_epsilon(epsilon), _time_text(level.opens))
        for epsilon, level in zip(epsilons, request.levels, strict=True)
    ]
    completed = replace(
        request,
        id=request.id or secrets.token_hex(8),
        encoding=resolved(request.encoding, format_epsilon(epsilons[-1])),
        levels=levels,
        opens=_time_text(request.opens),
        closes=_time_text(request.closes),
        largest_epsilon=format_epsilon(largest),
        **introduced(request, [*epsilons, *([largest] if largest > epsilons[-1] else [])]),
    )
    _check_times(completed)
    encoding = encoding_of(completed.encoding)
    for epsilon in epsilons:
        encoding.level(epsilon)  # an epsilon that cannot be realised is refused now
    return completed


def seconds(text: str | None) -> float | None:
    """Return a stored time as seconds, as clocks count them."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def _time_text(written: str | None) -> str | None:
    """Return a time in UTC, in one spelling."""
    if written is None:
        return None
    try:
        moment = datetime.fromisoformat(written)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass
    raise CampaignError(
        "a time is written with its offset from UTC, like 2026-10-01T08:00:00Z or 2026-10-01T10:00:00+02:00."
    )


def _check_times(request: CampaignRequest) -> None:
    if request.levels[0].opens is not None:
        raise CampaignError("the first level opens with the campaign: say so in 'opens'.")
    times = [request.opens, *(level.opens for level in request.levels), request.closes]
    moments = [moment for moment in map(seconds, times) if moment is not None]
    if any(later <= earlier for earlier, later in pairwise(moments)):
        raise CampaignError("opening, levels and closing must follow one another in time.")
