"""A campaign's definition: what an operator asked for, checked, completed and written in one spelling."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from msgspec.structs import replace

from relaxdp.collector.wire import CampaignRequest, EncodingRequest, LevelRequest
from relaxdp.encodings.bloom import BloomEncoding
from relaxdp.encodings.bloom_filter import BloomShape
from relaxdp.encodings.protocol import Encoding
from relaxdp.errors import CampaignError
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.mechanisms import Numeric, mechanism

_OPTIONS = {"local-hash": {"buckets"}, "bloom": {"bits", "hashes", "cohorts"}}
_MOST_BLOOM_COUNTS = 1 << 18
_MOST_CANDIDATE_BITS = 1_000_000
_MOST_WHOLE = 1 << 53


def complete(request: CampaignRequest) -> CampaignRequest:
    """Return the definition as it is stored: every default filled in, levels and times in their one spelling."""
    if not request.question.strip():
        raise CampaignError("a campaign needs a question.")
    epsilons = [as_epsilon(level.epsilon) for level in request.levels]
    for old, new in pairwise(epsilons):
        if new <= old:
            raise CampaignError(
                "the levels must grow: {new_epsilon} follows {old_epsilon}.",
                old_epsilon=epsilon_text(old),
                new_epsilon=epsilon_text(new),
            )
    largest = epsilons[-1] if request.largest_epsilon is None else as_epsilon(request.largest_epsilon)
    if epsilons[-1] > largest:
        raise CampaignError(
            "the last level, {last}, is larger than the largest epsilon that the campaign promises, {largest}.",
            last=epsilon_text(epsilons[-1]),
            largest=epsilon_text(largest),
        )
    levels = [
        LevelRequest(epsilon_text(epsilon), _time_text(level.opens))
        for epsilon, level in zip(epsilons, request.levels, strict=True)
    ]
    completed = replace(
        request,
        id=request.id or secrets.token_hex(8),
        encoding=resolved(request.encoding, epsilon_text(epsilons[-1])),
        levels=levels,
        opens=_time_text(request.opens),
        closes=_time_text(request.closes),
        largest_epsilon=epsilon_text(largest),
    )
    _check_times(completed)
    encoding = encoding_of(completed.encoding)
    for epsilon in epsilons:
        encoding.level(epsilon)  # an epsilon that cannot be realised is refused now
    return completed


def encoding_of(asked: EncodingRequest) -> Encoding:
    """Return the encoding of a completed definition."""
    if asked.name == "bloom":
        return BloomEncoding(BloomShape(**asked.options))
    if asked.name == "numeric":
        low, high = asked.range or (0.0, 0.0)
        return Numeric(low, high).encoding
    return mechanism(asked.values or [], encoding=asked.name, **asked.options).encoding


def seconds(text: str | None) -> float | None:
    """Return a stored time as seconds, as clocks count them."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def resolved(asked: EncodingRequest, last: str) -> EncodingRequest:
    """Return the encoding with every option named, or refuse it; `last` is the last epsilon that is planned."""
    strange = set(asked.options) - _OPTIONS.get(asked.name, set())
    built_in = {"auto", "categorical", "numeric", "unary-optimised", "unary-symmetric", *_OPTIONS}
    if strange and asked.name in built_in:
        raise CampaignError("the encoding {encoding!r} takes other options than those given.", encoding=asked.name)
    if asked.name == "bloom":
        return _resolved_bloom(asked)
    if asked.candidates is not None:
        raise CampaignError("candidates are for the encoding 'bloom'.")
    if asked.name == "numeric":
        if asked.range is None or asked.values is not None:
            raise CampaignError("the encoding 'numeric' needs a range, and no values.")
        return asked
    if asked.values is None or asked.range is not None:
        raise CampaignError("this encoding needs values, and no range.")
    if any(isinstance(value, int) and abs(value) >= _MOST_WHOLE for value in asked.values):
        raise CampaignError("whole numbers as values must be below 2**53.")
    try:
        made = mechanism(asked.values, encoding=asked.name, epsilon=last, **asked.options).encoding
    except TypeError:  # options that an encoding from outside does not have
        raise CampaignError(
            "the encoding {encoding!r} takes other options than those given.", encoding=asked.name
        ) from None
    return replace(asked, name=made.name, options=made.options)


def _resolved_bloom(asked: EncodingRequest) -> EncodingRequest:
    if asked.values is not None or asked.range is not None or not asked.candidates:
        raise CampaignError("the encoding 'bloom' needs candidates, and neither values nor a range.")
    if set(asked.options) != _OPTIONS["bloom"]:
        raise CampaignError("the encoding 'bloom' needs the options bits, hashes and cohorts.")
    shape = BloomShape(**asked.options)
    if shape.is_boolean:
        raise CampaignError("one bit is a boolean: ask it as 'categorical' with two values.")
    if shape.bits * shape.cohorts > _MOST_BLOOM_COUNTS:
        raise CampaignError("bits times cohorts must be at most {most:,}.", most=_MOST_BLOOM_COUNTS)
    if len(asked.candidates) * shape.cohorts * shape.hashes > _MOST_CANDIDATE_BITS:
        raise CampaignError(
            "candidates times cohorts times hashes must be at most {most:,}.", most=_MOST_CANDIDATE_BITS
        )
    _check_distinct(asked.candidates)
    return asked


def _check_distinct(words: Sequence[str]) -> None:
    if len(set(words)) != len(words):
        raise CampaignError("a candidate is listed twice.")


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
