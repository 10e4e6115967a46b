"""Routes of devices: a campaign as everybody sees it, reports, and withdrawal."""

from __future__ import annotations

from copy import copy
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from relaxdp.collector import campaigns, states
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.ingest import CLOSED, DIFFERS, GONE, NEW, NOT_OPEN, OUTSIDE, SAME, UNINVITED, Item
from relaxdp.collector.invitations import digest_of, unused
from relaxdp.collector.reports import DEVICE_BYTES
from relaxdp.collector.rules import decided
from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER, public_view, tagged
from relaxdp.collector.wire import (
    Accepted,
    Batch,
    InvitationCheck,
    InvitationGood,
    PublicCampaign,
    Report,
    Results,
    Withdrawal,
    Withdrawn,
)
from relaxdp.server_errors import (
    CampaignClosedError,
    CampaignReducedError,
    DeviceWithdrawnError,
    InvitationRefusedError,
    LevelNotOpenError,
    MalformedRequestError,
    ReportDiffersError,
    ReportOutsideEncodingError,
    ServiceError,
    UnknownCampaignError,
)
from relaxdp.service.limits import Limits, decode, decoder_of, read_body
from relaxdp.service.operations import Operation

_REPORT, _BATCH, _WITHDRAWAL = decoder_of(Report), decoder_of(Batch), decoder_of(Withdrawal)
_CHECK = decoder_of(InvitationCheck)
_ANSWERS = {status: ENCODER.encode(Accepted(status)) for status in (NEW, SAME)}  # type: ignore[arg-type]
_JSON = "application/json"
_FINAL = (
    "no report of this device is stored or counted any more. The privacy that reports cost does not come back: whoever "
    "saw an estimate has seen what they told."
)
_REFUSALS: dict[str, ServiceError] = {
    DIFFERS: ReportDiffersError("another report is stored for this device and level."),
    CLOSED: CampaignClosedError("the campaign takes no reports now."),
    NOT_OPEN: LevelNotOpenError("the campaign has not opened this level."),
    OUTSIDE: ReportOutsideEncodingError("this is no report of the campaign's encoding."),
    UNINVITED: InvitationRefusedError("the invitation is missing, unknown or used."),
    GONE: DeviceWithdrawnError("this device has withdrawn from the campaign."),
}


def read_device(campaign: Campaign, pseudonym: str) -> bytes:
    """Return what the service knows of a device beyond its request, a digest, or refuse what is no pseudonym.

    Whoever has the pseudonym can report and withdraw for the device, so it is treated as a token is. It has 128 random
    bits, so a plain hash does not give it away, and half of the hash is as hard to hit as the pseudonym to guess.
    """
    try:
        read = bytes.fromhex(pseudonym)
    except ValueError:
        read = b""
    if len(read) != DEVICE_BYTES or read.hex() != pseudonym:
        raise MalformedRequestError("a device's pseudonym has 32 hexadecimal digits in lower case.")
    return sha256(f"relaxdp {campaign.digest_name}\n{pseudonym}".encode()).digest()[:DEVICE_BYTES]


def read_item(campaign: Campaign, sent: Report) -> Item:
    """Return a report as it is stored, or with the reason why it is not."""
    place = campaign.places.get((sent.level.epsilon, sent.level.threshold))
    device = read_device(campaign, sent.device)
    if place is None:
        return Item(device, 0, b"", outcome=NOT_OPEN)
    try:
        kept = campaign.codec.read(sent.report, sent.cohort)
    except ReportOutsideEncodingError:
        return Item(device, place, b"", outcome=OUTSIDE)
    return Item(device, place, kept, None if sent.invitation is None else digest_of(sent.invitation))


class ReportRoutes:
    """What devices ask for."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        self._collector, self._limits = collector, limits
        outcomes = (NEW, SAME, DIFFERS, CLOSED, NOT_OPEN, OUTSIDE, UNINVITED, GONE)
        self._counted = {outcome: collector.reports.labels(outcome) for outcome in outcomes}

    async def send_report(self, request: Request) -> Response:
        """Take one report: the hot route."""
        sent = decode(await read_body(request, self._limits), _REPORT)
        campaign = await self._collector.campaign(request)
        item = read_item(campaign, sent)
        if not item.outcome:
            await self._collector.writer.store(campaign, [item])
        self._counted[item.outcome].inc()
        answer = _ANSWERS.get(item.outcome)
        if answer is None:
            raise copy(_REFUSALS[item.outcome])  # one that all requests raise would grow a traceback of all of them
        return Response(answer, media_type=_JSON)

    async def send_batch(self, request: Request) -> Response:
        """Take many reports, each with an answer of its own."""
        sent = decode(await read_body(request, self._limits), _BATCH)
        campaign = await self._collector.campaign(request)
        items = [read_item(campaign, each) for each in sent.reports]
        await self._collector.writer.store(campaign, items)
        outcomes = [item.outcome for item in items]
        for outcome in set(outcomes):
            self._counted[outcome].inc(outcomes.count(outcome))
        return Response(ENCODER.encode(Results(outcomes)), media_type=_JSON)

    async def show_campaign(self, request: Request) -> Response:
        """Show what a device needs."""
        campaign = await self._collector.campaign(request)
        state = await self._collector.read(lambda connection: states.look(connection, campaign.number))
        content = ENCODER.encode(public_view(campaign, decided(campaign, state, self._collector.clock())))
        return tagged(request, content)

    async def check_invitation(self, request: Request) -> Response:
        """Tell whether an invitation would be taken, so that nobody answers for nothing; nothing is written."""
        digest = digest_of(decode(await read_body(request, self._limits), _CHECK).invitation)
        campaign = await self._collector.campaign(request)
        if campaign.definition.invitations:
            found = await self._collector.read(lambda connection: unused(connection, campaign.number, {digest}))
            if not found:
                raise copy(_REFUSALS[UNINVITED])
        return Response(ENCODER.encode(InvitationGood("good")), media_type=_JSON)

    async def withdraw(self, request: Request) -> Response:
        """Remove a device's reports for good."""
        sent = decode(await read_body(request, self._limits), _WITHDRAWAL)
        campaign = await self._collector.campaign(request)
        device = read_device(campaign, sent.device)
        invitation = None if sent.invitation is None else digest_of(sent.invitation)
        now = self._collector.clock()
        state = await self._collector.writer.call(
            lambda connection: campaigns.withdraw(connection, campaign, device, now, invitation)
        )
        return Response(ENCODER.encode(Withdrawn("withdrawn", state.state, _FINAL)), media_type=_JSON)

    def operations(self) -> list[Operation]:
        """Return what the routes are; the hot one first."""
        unknown = (UnknownCampaignError,)
        kinds = tuple(type(refusal) for refusal in _REFUSALS.values())
        path = "/v1/campaigns/{id}"
        return [
            Operation("POST", f"{path}/reports", self.send_report, "Send one report.", Report, Accepted,
                      nothing="Nothing was stored.", problems=(*unknown, *kinds)),
            Operation("POST", f"{path}/reports/batch", self.send_batch, "Send many reports.", Batch, Results,
                      nothing="Nothing was stored.", problems=unknown),
            Operation("GET", path, self.show_campaign, "Show what a device needs.", answer=PublicCampaign, also=(304,),
                      problems=unknown),
            Operation("POST", f"{path}/invitation", self.check_invitation, "Tell whether an invitation would be taken.",
                      InvitationCheck, InvitationGood, nothing="Nothing was used up.",
                      problems=(*unknown, InvitationRefusedError)),
            Operation("POST", f"{path}/withdraw", self.withdraw, "Withdraw a device from a campaign, for good.",
                      Withdrawal, Withdrawn, nothing="Nothing was removed.",
                      problems=(*unknown, CampaignReducedError)),
        ]  # fmt: skip
