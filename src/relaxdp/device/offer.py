"""What a server says of a campaign, read by somebody who does not trust it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any
from unicodedata import is_normalized

from relaxdp.device.address import CampaignAddress
from relaxdp.errors import EpsilonError, LevelError, RelaxdpError, add_consequence
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_kind
from relaxdp.server_errors import OfferError
from relaxdp.tables.metadata import decode_json_value
from relaxdp.theory.epsilon import ONE, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import Level

ATTRIBUTE = "answer"
"""The attribute of every campaign's path."""
MOST_LEVELS = 1000
MOST_QUESTION = 2000
_WHOLE = re.compile(r"[1-9][0-9]{0,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Offer:
    """A campaign as its server describes it now, found to be in order by itself.

    Whether it is what the person answered, and whether it may be followed, is for `device_rules` to say.
    """

    address: CampaignAddress
    question: str
    encoding: Mechanism
    levels: tuple[Level, ...]
    open: tuple[Level, ...]
    """The levels that take reports now, the lowest first: the one that the campaign is at, and those below it."""
    state: str
    largest_epsilon: Decimal
    """No level of this campaign will ever be above it."""
    needs_invitation: bool

    @classmethod
    @add_consequence("Nothing was sent.")
    def from_json(cls, address: CampaignAddress, content: Any) -> Offer:
        """Read a description, or refuse it in one sentence."""
        if not isinstance(content, dict) or content.get("id") != address.id:
            raise OfferError("the server's answer does not describe the campaign {campaign!r}.", campaign=address.id)
        if (content.get("release"), content.get("attribute")) != (address.id, ATTRIBUTE):
            raise OfferError(
                "the campaign {campaign!r} asks for reports under another release name or attribute, which "
                "would be another path.",
                campaign=address.id,
            )
        question, state = content.get("question"), content.get("state")
        if not isinstance(question, str) or not 0 < len(question) <= MOST_QUESTION:
            raise OfferError("the campaign has no question, or one of more than {most:,} letters.", most=MOST_QUESTION)
        if state not in ("waiting", "open", "paused", "finished"):
            raise OfferError("the campaign is in a state that this version does not know.")
        encoding = encoding_of(content.get("encoding"))
        levels = _levels(content.get("levels"), encoding)
        largest = _largest(content.get("largest_epsilon"), levels)
        return cls(
            address,
            question,
            encoding,
            levels,
            _open(content.get("open_level"), levels) if state == "open" else (),
            state,
            largest,
            content.get("needs_invitation") is True,
        )

    @property
    def values(self) -> tuple[Any, ...] | None:
        """The values to choose an answer from; None where the answer is a number or free text."""
        return self.encoding.values if isinstance(self.encoding, DeclaredMechanism) else None


def encoding_of(content: Any) -> Mechanism:
    """Return the encoding that a description names; for a Bloom filter, that of all cohorts together."""
    if isinstance(content, dict) and isinstance(content.get("name"), str):
        found = _made(content["name"], content)
        if found is not None:
            return found
    raise OfferError("the campaign's encoding or its values cannot be used by this version.")


def _made(name: str, content: dict[str, Any]) -> Mechanism | None:
    try:
        declared: dict[str, Any] = {}
        if get_mechanism_kind(name).domain == "values":
            declared["values"] = values = [decode_json_value(value) for value in content["values"]]
            # Two spellings of one letter look alike to the person and are different values. None is for tables: the
            # record of a device has no answer before it is given, and that is None.
            if None in values or any(isinstance(value, str) and not is_normalized("NFC", value) for value in values):
                return None
        elif get_mechanism_kind(name).domain == "range":
            declared["range"] = tuple(_number(end) for end in content["range"])
        return create_mechanism(name, **declared, options=content.get("options") or {})
    except (RelaxdpError, TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return None


def _number(end: Any) -> float:
    if isinstance(end, bool) or not isinstance(end, int | float):
        raise TypeError
    return float(end)


def _levels(content: Any, encoding: Mechanism) -> tuple[Level, ...]:
    if not isinstance(content, list) or not 0 < len(content) <= MOST_LEVELS:
        raise OfferError("the campaign must have from 1 to {most:,} levels.", most=MOST_LEVELS)
    levels = tuple(_level(level, encoding) for level in content)
    if any(new.epsilon <= old.epsilon or new < old for old, new in pairwise(levels)):
        raise LevelError("the campaign's levels do not grow. A report cannot be taken back.")
    return levels


def _level(content: Any, encoding: Mechanism) -> Level:
    """Read a level in its one spelling: two spellings of one level would be two levels for the server.

    A threshold that reveals more than its epsilon is refused. A smaller one is more private, and fine.
    """
    try:
        written, whole = content["epsilon"], content["threshold"]
        epsilon = as_epsilon(written) if isinstance(written, str) else None
    except (TypeError, KeyError, EpsilonError):
        epsilon = None
    if epsilon is None or format_epsilon(epsilon) != written:
        raise OfferError("a level of the campaign is not written as a plain epsilon.")
    if not isinstance(whole, str) or not _WHOLE.fullmatch(whole) or int(whole) >= ONE:
        raise OfferError("a level of the campaign has a threshold that is none.")
    try:
        return encoding.level(epsilon, int(whole))
    except (EpsilonError, LevelError):
        raise LevelError(
            "the threshold of epsilon {epsilon} is larger than that epsilon allows: reports would tell more "
            "than what was agreed to.",
            epsilon=written,
        ) from None


def _largest(content: Any, levels: tuple[Level, ...]) -> Decimal:
    try:
        largest = as_epsilon(content) if isinstance(content, str) else None
    except EpsilonError:
        largest = None
    if largest is None or largest < levels[-1].epsilon:
        raise OfferError("the campaign does not say truthfully what its largest epsilon is.")
    return largest


def _open(content: Any, levels: tuple[Level, ...]) -> tuple[Level, ...]:
    if content is None:
        return ()
    if isinstance(content, bool) or not isinstance(content, int) or not 0 <= content < len(levels):
        raise OfferError("the campaign is open at a level that it does not have.")
    return levels[: content + 1]
