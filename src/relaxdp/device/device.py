"""A device: it holds a person's answers and keys, and sends reports up to the person's own limit and no further."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple, NoReturn

from relaxdp.device.address import CampaignAddress, SurveyAddress
from relaxdp.device.client import Client
from relaxdp.device.offer import Offer
from relaxdp.device.participation import Participation, ask_offer, now
from relaxdp.device.rules import check_same, consent_to
from relaxdp.device.state import DeviceState, Joined, Record, Sent
from relaxdp.device.store import DeviceFile, DeviceStore
from relaxdp.device.survey import Division, Survey, SurveyOffer, ask_survey, check_some, divided
from relaxdp.errors import BudgetError, RelaxdpError, add_consequence
from relaxdp.ledger.events import parse_budget
from relaxdp.server_errors import ConsentError, ParticipationError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon

_INVITATION = 200
_unless_changed = add_consequence("Nothing was changed.")


class ParticipationOutcome(NamedTuple):
    """What became of one campaign when all of them were asked."""

    participation: Participation
    sent: Sent | None
    """The report that the server has now; None where there was nothing to do or where it failed."""
    problem: RelaxdpError | None


class Device:
    """All campaigns of one person, in one file, under one limit.

    The limit comes first: a limit that is chosen after the answer could depend on it, and would tell of it. Reports
    are written down before they are sent, and are pure functions of what is kept: killed at any instant, copied or
    asked twice, a device never has two reports for one level. Neither answers nor keys are ever shown or sent.
    """

    def __init__(self, file: DeviceFile, client: Client) -> None:
        """Use `Device.open`."""
        self._file, self._client = file, client

    @classmethod
    @_unless_changed
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        limit: Epsilon | None = None,
        client: Client | None = None,
    ) -> Device:
        """Open a device's file, or begin one, for which the person's limit must be known.

        `client` sets timeouts, retries and certificates.
        """
        wanted = None if limit is None else parse_budget(limit)
        file = DeviceFile(DeviceStore(path))
        kept = file.begin(wanted)
        if wanted is not None and wanted != kept.limit:
            raise BudgetError(
                "this device has a limit of {limit} already, and {given} was given. Opening it does not "
                "change it; change_limit does.",
                limit=format_epsilon(kept.limit),
                given=format_epsilon(wanted),
            )
        return cls(file, client or Client())

    @property
    def limit(self) -> Decimal:
        """The most that all campaigns together may cost."""
        return self._file.state().limit

    @property
    def spent(self) -> Decimal:
        """What all campaigns together have cost so far."""
        return self._file.state().spent

    @property
    def left(self) -> Decimal:
        """What may still be spent."""
        return self._file.state().left

    @_unless_changed
    def change_limit(self, limit: Epsilon) -> None:
        """Set another limit, never below what was spent. Whether and how must not depend on an answer."""
        wanted = parse_budget(limit)

        def change(state: DeviceState) -> DeviceState:
            if wanted < state.spent:
                raise BudgetError(
                    "{spent} was spent already and cannot be taken back, so the limit cannot be {limit}.",
                    spent=format_epsilon(state.spent),
                    limit=format_epsilon(wanted),
                )
            return replace(state, limit=wanted, revision=state.revision + 1)

        self._file.change(change)

    def join(self, campaign: str, *, upto: Epsilon | None = None, invitation: str | None = None) -> Participation:
        """Join a campaign by its address, agreeing to its largest epsilon or to less (`upto`). Nothing is sent yet.

        Whoever has joined already gets the same pseudonym and key: to join twice is to join once.
        """
        address = CampaignAddress.parse(campaign, allow_http=self._client.allow_http)
        agreed = _checked(upto, invitation)
        offer = ask_offer(self._client, address)

        def join(state: DeviceState) -> DeviceState:
            record = state.records.get(str(address))
            if record is not None:
                check_same(record, offer)
                if agreed is not None and consent_to(offer, agreed) != as_epsilon(record.consent):
                    raise ConsentError(
                        "this campaign was joined up to an epsilon of {consent} already.",
                        consent=record.consent,
                    )
                if invitation is None or record.invitation == invitation or record.ended is not None:
                    return state
                return state.with_record(replace(record, invitation=invitation))
            return state.with_record(_record(offer, new_pseudonym(), consent_to(offer, agreed), invitation))

        with _unless_changed:
            self._file.change(join)
        return Participation(self._file, self._client, address, offer)

    def look(self, survey: str, *, upto: Epsilon | None = None) -> Division:
        """Ask what a survey's questions are, and say how the limit would be divided among them. Nothing is kept."""
        agreed = _checked(upto, None)
        return divided(self._file.state(), self._survey(survey), agreed)

    def join_survey(
        self, survey: str | SurveyOffer, *, upto: Epsilon | None = None, invitation: str | None = None
    ) -> Survey:
        """Join the questions of a survey that fit into the limit, agreeing to `upto` for all of them together.

        Give the `offer` that `look` returned where a person has seen it: that is joined then, and not what the server
        may say a moment later. The limit is divided now, before any answer, and in one step: whatever happens later,
        the questions together cost no more. What did not fit is in `left_out` and stays there. Nothing is sent yet. To
        join twice is to join once.
        """
        agreed = _checked(upto, invitation)
        offer = survey if isinstance(survey, SurveyOffer) else self._survey(survey)

        def join(state: DeviceState) -> DeviceState:
            division = divided(state, offer, agreed)
            if not division.is_new:
                records = [state.records[str(each.address)] for each in division.asked]
                for record, each in zip(records, division.asked, strict=True):
                    check_same(record, each)
                    if invitation not in (None, record.invitation) and record.ended is None:
                        state = state.with_record(replace(record, invitation=invitation))
                return state
            check_some(state, division)
            joined = Joined(str(offer.address), format_epsilon(division.limit))
            pseudonyms = {group: new_pseudonym() for group in offer.groups}
            for each in division.asked:
                own = state.records.get(str(each.address))
                if own is None:
                    device = next((pseudonyms[group] for group in offer.groups if each.address.id in group), None)
                    own = _record(each, device or new_pseudonym(), division.most[each.address.id], invitation)
                check_same(own, each)
                # Also what was joined by itself: without any record of the survey its limit would be forgotten.
                state = state.with_record(replace(own, survey=joined))
            return state

        with _unless_changed:
            return Survey(self._file, self._client, divided(self._file.change(join), offer, agreed))

    def _survey(self, address: str) -> SurveyOffer:
        return ask_survey(self._client, SurveyAddress.parse(address, allow_http=self._client.allow_http))

    @property
    def campaigns(self) -> list[Participation]:
        """Every campaign that was ever joined."""
        return [
            Participation(self._file, self._client, self._address(address)) for address in self._file.state().records
        ]

    def sync(self) -> list[ParticipationOutcome]:
        """Report to every campaign that goes on. One that fails does not keep the others from their reports."""
        outcomes = []
        for participation in self.campaigns:
            record, sent, problem = participation.record, None, None
            try:
                if record.ended == "withdrawing":
                    participation.withdraw()
                elif record.ended is None and record.answered is not None:
                    sent = participation.report()
                else:
                    continue
            except RelaxdpError as refused:
                problem = refused
            outcomes.append(ParticipationOutcome(participation, sent, problem))
        return outcomes

    def _address(self, text: str) -> CampaignAddress:
        return CampaignAddress.parse(text, allow_http=self._client.allow_http)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a device holds answers and is not pickled.")

    def __repr__(self) -> str:
        return f"<relaxdp.device.Device {str(self._file.path)!r}>"


def _checked(upto: Epsilon | None, invitation: str | None) -> Decimal | None:
    """Return what is agreed to, or refuse what is no epsilon or no invitation."""
    with add_consequence("Nothing was sent."):
        if invitation is not None and not (isinstance(invitation, str) and 0 < len(invitation) <= _INVITATION):
            raise ParticipationError("an invitation is text of at most {most} letters.", most=_INVITATION)
        return None if upto is None else as_epsilon(upto)


def new_pseudonym() -> str:
    """Return a pseudonym that nobody can guess, derived from nothing."""
    return secrets.token_hex(16)


def _record(offer: Offer, device: str, consent: Decimal, invitation: str | None) -> Record:
    """Return the record of a campaign that is joined now, with a key of its own."""
    return Record(
        str(offer.address),
        offer.question,
        offer.encoding.name,
        offer.encoding.params.hex(),
        device,
        secrets.token_hex(32),
        format_epsilon(consent),
        now(),
        invitation=invitation,
    )
