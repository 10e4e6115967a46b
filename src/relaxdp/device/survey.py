"""Several questions of one survey: one limit, divided among them before any answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from relaxdp.device.address import SurveyAddress
from relaxdp.device.client import Client
from relaxdp.device.offer import Offer
from relaxdp.device.participation import Participation
from relaxdp.device.state import DeviceState
from relaxdp.device.store import DeviceFile
from relaxdp.errors import BudgetExceededError, add_consequence
from relaxdp.ledger.events import ZERO, add_amounts, parse_amount, subtract_amounts
from relaxdp.server_errors import ConsentError, OfferError
from relaxdp.theory.epsilon import format_epsilon

MOST_QUESTIONS = 100


@dataclass(frozen=True, slots=True)
class SurveyOffer:
    """A survey as its server describes it now, found to be in order by itself."""

    address: SurveyAddress
    questions: tuple[Offer, ...]
    cross: tuple[tuple[str, str], ...]
    """The questions that are counted together, by their ids: the server learns which reports are one device's."""

    @classmethod
    @add_consequence("Nothing was sent.")
    def from_json(cls, address: SurveyAddress, content: Any) -> SurveyOffer:
        """Read a description, or refuse it in one sentence."""
        if not isinstance(content, dict) or content.get("id") != address.id:
            raise OfferError("the server's answer does not describe the survey {survey!r}.", survey=address.id)
        asked = content.get("questions")
        if not isinstance(asked, list) or not 0 < len(asked) <= MOST_QUESTIONS:
            raise OfferError("the survey must have from 1 to {most} questions.", most=MOST_QUESTIONS)
        names = [each["id"] for each in asked if isinstance(each, dict) and isinstance(each.get("id"), str)]
        if len(set(names)) < len(asked):
            raise OfferError("two questions of the survey have the same id, or one has none.")
        offers = [Offer.from_json(address.question(name), each) for name, each in zip(names, asked, strict=True)]
        return cls(address, tuple(offers), _pairs(content.get("cross"), names))

    @property
    def groups(self) -> list[frozenset[str]]:
        """The questions that can be joined with one another, directly or by way of others: they share a pseudonym."""
        groups: list[frozenset[str]] = []
        for pair in self.cross:
            joined = [group for group in groups if group & set(pair)]
            groups = [group for group in groups if group not in joined] + [frozenset(pair).union(*joined)]
        return groups


def _pairs(content: Any, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = content if isinstance(content, list) else None
    if pairs is None or not all(
        isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1] and all(each in names for each in pair)
        for pair in pairs
    ):
        raise OfferError("the survey does not say which of its questions are counted together.")
    return tuple((one, other) for one, other in pairs)


@dataclass(frozen=True, slots=True)
class Division:
    """How a limit is divided among the questions of a survey."""

    offer: SurveyOffer
    limit: Decimal
    """What was agreed to for all questions together."""
    most: Mapping[str, Decimal]
    """Up to which epsilon each question may be reported, by its id. Their sum is within the limit."""
    is_new: bool
    """Whether this survey was not joined yet."""

    @property
    def asked(self) -> list[Offer]:
        """The questions that fit, in their order."""
        return [each for each in self.offer.questions if each.address.id in self.most]

    @property
    def left_out(self) -> list[Offer]:
        """The questions that do not fit. Show them to the person before the first one is answered."""
        return [each for each in self.offer.questions if each.address.id not in self.most]


def divided(state: DeviceState, offer: SurveyOffer, agreed: Decimal | None) -> Division:
    """Return how the limit is divided, or was when the survey was joined. No answer is looked at.

    Claim: all reports to all questions together are within the limit; tests/exact/device/test_survey.py.
    """
    records = {each.address.id: state.records.get(str(each.address)) for each in offer.questions}
    known = {name: record for name, record in records.items() if record is not None}
    all_levels = add_amounts(each.levels[-1].epsilon for each in offer.questions)
    limit = all_levels if agreed is None else min(agreed, all_levels)
    # Also of questions that the server does not name any more: what was agreed to was for the survey, once.
    before = [record.survey for record in state.records.values() if record.survey is not None]
    joined = next((parse_amount(each.limit) for each in before if each.address == str(offer.address)), None)
    taken = add_amounts(record.most for record in known.values())
    if joined is None and any(record.survey is not None for record in known.values()):
        raise ConsentError("a question of this survey was joined with another survey already.")
    if joined is None and taken <= limit:
        # What was joined by itself keeps what it has; the device's own limit holds over everything.
        free = subtract_amounts(
            add_amounts((state.left, add_amounts(record.spent for record in known.values()))), taken
        )
        room = max(ZERO, min(subtract_amounts(limit, taken), free))
        levels = {
            each.address.id: [level.epsilon for level in each.levels]
            for each in offer.questions
            if each.address.id not in known
        }
        given = divide(levels, room) | {name: record.most for name, record in known.items()}
        return Division(offer, limit, given, True)
    told = taken if joined is None else joined
    if joined is None or (agreed is not None and limit != joined):
        raise ConsentError("questions of this survey were joined up to an epsilon of {consent} already.",
                           consent=format_epsilon(told))  # fmt: skip
    return Division(offer, joined, {name: record.most for name, record in known.items()}, False)


def divide(levels: Mapping[str, Sequence[Decimal]], limit: Decimal) -> dict[str, Decimal]:
    """Return up to which of its levels each question may be reported: level by level, in order, while there is room.

    A question whose first level does not fit is left out.

    >>> rising = [Decimal("0.5"), Decimal(1), Decimal(2)]
    >>> divide({"a": rising, "b": rising, "c": rising}, Decimal(2))
    {'a': Decimal('1'), 'b': Decimal('0.5'), 'c': Decimal('0.5')}
    """
    given: dict[str, Decimal] = {}
    left = limit
    for place in range(max((len(each) for each in levels.values()), default=0)):
        for name, epsilons in levels.items():
            if place < len(epsilons) and (place == 0 or given.get(name) == epsilons[place - 1]):
                more = subtract_amounts(epsilons[place], given.get(name, ZERO))
                if more <= left:
                    given[name], left = epsilons[place], subtract_amounts(left, more)
    return given


def check_some(state: DeviceState, division: Division) -> None:
    """Refuse a survey of which not one question fits."""
    if not division.asked:
        raise BudgetExceededError(
            "limit exceeded: {left} left of {limit}, this report needs {needed}.",
            left=format_epsilon(min(division.limit, state.left)),
            limit=format_epsilon(state.limit),
            needed=format_epsilon(min(each.levels[0].epsilon for each in division.left_out)),
        )


class Survey:
    """The questions of a survey that a device joined. Its `repr` shows neither answers nor keys."""

    def __init__(self, file: DeviceFile, client: Client, division: Division) -> None:
        """Use `Device.join_survey`."""
        self._file, self._division = file, division
        self.questions = [Participation(file, client, each.address, each) for each in division.asked]
        """To be answered and reported one by one, in any order; `Device.sync` reports all that have an answer."""
        self.left_out = [each.question for each in division.left_out]
        """The questions that did not fit into the limit. They are not asked."""
        self.counted_together = division.offer.cross
        """Which questions are counted together, by their ids."""

    @property
    def limit(self) -> Decimal:
        """The most that all questions together may cost."""
        return self._division.limit

    @property
    def spent(self) -> Decimal:
        """What they have cost together so far: they are different paths, so they add up."""
        return add_amounts(each.spent for each in self.questions)

    def withdraw(self) -> None:
        """Leave all questions. What was spent does not come back."""
        for each in self.questions:
            each.withdraw()

    def __repr__(self) -> str:
        return f"<relaxdp.device.Survey {str(self._division.offer.address)!r}>"


def ask_survey(client: Client, address: SurveyAddress) -> SurveyOffer:
    """Ask a server what a survey is."""
    return SurveyOffer.from_json(address, client.ask_json(address.server, "GET", address.path()))
