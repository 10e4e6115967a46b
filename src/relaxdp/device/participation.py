"""One campaign of a device: its answer is kept, its reports are written down and then sent, and it can be left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn

from relaxdp.device.address import CampaignAddress
from relaxdp.device.client import Client
from relaxdp.device.offer import Offer
from relaxdp.device.report import draw, kept_answer
from relaxdp.device.rules import check_active, check_same, next_level, written
from relaxdp.device.state import DeviceState, Record, Sent
from relaxdp.device.store import DeviceFile
from relaxdp.errors import add_consequence
from relaxdp.server_errors import AnswerChangedError, ParticipationError, RefusedByServerError, ServerAnswerError
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import Level

_unless_sent = add_consequence("Nothing was sent.")


class Participation:
    """One campaign of one device. Its `repr` shows neither answer nor key."""

    def __init__(self, file: DeviceFile, client: Client, address: CampaignAddress, offer: Offer | None = None) -> None:
        """Use `Device.join` or `Device.campaigns`."""
        self._file, self._client = file, client
        self.address, self._seen_offer = address, offer

    @property
    def offer(self) -> Offer:
        """What the server said of the campaign when it was last asked."""
        return self._seen_offer or self._ask()

    @property
    def question(self) -> str:
        """The question that was joined."""
        return self.record.question

    @property
    def values(self) -> tuple[Any, ...] | None:
        """The values to choose an answer from; None where the answer is a number or free text."""
        return self.offer.values

    @property
    def sent(self) -> tuple[Sent, ...]:
        """Exactly what the server was sent, oldest first. It learned nothing else."""
        return self.record.sent

    @property
    def spent(self) -> Decimal:
        """What this campaign has cost."""
        return self.record.spent

    @property
    def consent(self) -> Decimal:
        """The largest epsilon that was agreed to."""
        return as_epsilon(self.record.consent)

    @property
    def record(self) -> Record:
        """What the device keeps of this campaign; its `repr` shows nothing."""
        return self._of(self._file.state())

    def answer(self, value: Any) -> None:
        """Keep the answer on the device. The first one counts: that it changed would show, so another stays out."""
        offer = self.offer
        with add_consequence("Nothing was kept, and nothing was sent."):
            kept = kept_answer(offer.encoding, value)

        def answer(state: DeviceState) -> DeviceState:
            record = self._of(state)
            check_same(record, offer)
            check_active(record)
            if record.answered is None:
                return state.with_record(replace(record, answer=kept, answered=now()))
            if record.answer != kept:
                with add_consequence("The first answer was kept; a new answer needs a new campaign."):
                    raise AnswerChangedError(
                        "this campaign has an answer already, and another one stays out: that it changed would show."
                    )
            return state

        with _unless_sent:
            self._file.change(answer)

    def report(self) -> Sent | None:
        """Report at the highest open level that consent and limit allow; None where there is nothing to do.

        The report is on disk before it leaves. To call this again is always safe: until the server has acknowledged a
        report the same one is sent again, and then none.
        """
        offer = self._ask()
        wanted: Level | None = None

        def write(state: DeviceState) -> DeviceState:
            nonlocal wanted
            record = self._of(state)
            wanted = next_level(state, record, offer)
            if offer.state == "finished":
                return state.with_record(record.over("finished"))
            if offer.needs_invitation and record.invitation is None and not record.sent:
                raise ParticipationError("this campaign needs an invitation: join it with one.")
            if wanted is None or written(record, wanted) is not None:
                return state
            drawn = draw(offer.encoding, record, self.address.id, wanted)
            level = wanted.to_dict()
            sent = Sent(level["epsilon"], level["threshold"], drawn.report, now(), cohort=drawn.cohort)
            return state.with_record(replace(record, sent=(*record.sent, sent)))

        with _unless_sent:
            record = self._of(self._file.change(write))
        sent = None if wanted is None else written(record, wanted)
        return sent if sent is None or sent.status == "sent" else self._deliver(record, sent)

    def withdraw(self) -> None:
        """Leave: the server deletes the reports, the device its answer and key. What was spent does not come back.

        Where the server cannot be reached, the device has left all the same, and `Device.sync` tells the server later.
        So it does while the campaign is paused and no report was acknowledged: one that is still on its way could be
        taken after the pause, and the server remembers a device that it does not know in an open campaign only.
        """
        with _unless_sent:
            self._end("withdrawing", unless=("withdrawing", "withdrawn"))
            record = self.record
        if record.ended != "withdrawing":
            return
        try:
            if record.sent and self._tell_withdrawal(record) == "paused" and not record.acknowledged:
                return
        except RefusedByServerError:  # the device has left and the server keeps what it has: the person is told
            self._end("forgotten", unless=("withdrawn",))
            raise
        self._end("withdrawn")

    @add_consequence("Nothing was forgotten.")
    def forget(self) -> None:
        """Erase answer and key after the last report that the person wants to give. What was sent stays known."""
        self._end("forgotten", unless=("finished", "withdrawing", "withdrawn", "forgotten"))

    def _ask(self) -> Offer:
        self._seen_offer = ask_offer(self._client, self.address)
        return self._seen_offer

    def _deliver(self, record: Record, sent: Sent) -> Sent:
        body = {"device": record.device, "level": sent.level, "report": sent.report}
        if sent.cohort is not None:
            body["cohort"] = sent.cohort
        if record.invitation is not None:
            body["invitation"] = record.invitation
        client, path = self._client, self.address.path("reports")
        try:
            answer = client.ask_json(self.address.server, "POST", path, body)
        except RefusedByServerError:
            self._mark(sent, "refused")
            raise
        if not isinstance(answer, dict) or answer.get("status") not in ("new", "same"):
            raise ServerAnswerError(
                "the server did not say whether it has the report; it will be sent again, the same one, next time."
            )
        return self._mark(sent, "sent")

    def _tell_withdrawal(self, record: Record) -> Any:
        """Return the state that the campaign has."""
        body = {"device": record.device}
        if record.invitation is not None:
            body["invitation"] = record.invitation
        answer = self._client.ask_json(self.address.server, "POST", self.address.path("withdraw"), body)
        return answer.get("state") if isinstance(answer, dict) else None

    def _mark(self, sent: Sent, status: str) -> Sent:
        marked = replace(sent, status=status)

        def mark(state: DeviceState) -> DeviceState:
            record = self._of(state)
            known = next((each for each in record.sent if each.level == sent.level), None)
            # What the server acknowledged once is there, whatever another process was told a moment later.
            if known is None or known.status in (status, "sent"):
                return state
            reports = tuple(marked if each.level == sent.level else each for each in record.sent)
            invitation = None if status == "sent" else record.invitation  # it has served
            return state.with_record(replace(record, sent=reports, invitation=invitation))

        self._file.change(mark)
        return marked

    def _end(self, ending: str, *, unless: tuple[str, ...] = ()) -> None:
        def end(state: DeviceState) -> DeviceState:
            record = self._of(state)
            return state if record.ended in unless else state.with_record(record.over(ending))

        self._file.change(end)

    def _of(self, state: DeviceState) -> Record:
        record = state.records.get(str(self.address))
        if record is None:
            raise ParticipationError("this device has not joined the campaign.")
        return record

    def __reduce__(self) -> NoReturn:
        raise TypeError("a participation leads to an answer and is not pickled.")

    def __repr__(self) -> str:
        return f"<relaxdp.device.Participation in {str(self.address)!r}>"


def ask_offer(client: Client, address: CampaignAddress) -> Offer:
    """Ask a server what a campaign is."""
    return Offer.from_json(address, client.ask_json(address.server, "GET", address.path()))


def now() -> str:
    """Return the time as it is written down, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
