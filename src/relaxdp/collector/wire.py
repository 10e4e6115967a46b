"""What travels over HTTP, as strict types: nothing is coerced and no unknown field is taken."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from relaxdp.collector.introduction import Introduction, Learning
from relaxdp.service.wire import ID_PATTERN, EncodingRequest, EpsilonText, Label, Target, WireLevel

MOST_BATCH = 1000
MOST_INVITATIONS = 10_000
DEVICE_PATTERN = "^[0-9a-f]{32}$"

Time = Annotated[str, Meta(max_length=40, description="A time as in RFC 3339, with its offset from UTC.")]
# The pattern is told here and checked where the pseudonym is read, which takes a tenth of the time.
DeviceText = Annotated[
    str,
    Meta(
        min_length=32,
        max_length=32,
        description="The device's random pseudonym: whoever has it can report and withdraw for the device.",
        extra_json_schema={"pattern": DEVICE_PATTERN},
    ),
]
InvitationText = Annotated[str, Meta(max_length=100)]
State = Literal["waiting", "open", "paused", "finished"]


class Report(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One report of one device at one level."""

    device: DeviceText
    level: WireLevel
    report: Annotated[
        str | int | float, Meta(description="A label, a number, or packed bytes in base 64: as the encoding says.")
    ]
    cohort: int | None = None
    invitation: InvitationText | None = None


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Several reports, of as many devices as one likes."""

    reports: Annotated[list[Report], Meta(min_length=1, max_length=MOST_BATCH)]


class Accepted(Struct, frozen=True):
    """A report is durable: it is new, or the one that was there already."""

    status: Literal["new", "same"]


class Results(Struct, frozen=True):
    """For each report of a batch: "new", "same", or the code of the error with which it was refused."""

    results: list[str]


class Withdrawal(Struct, frozen=True, forbid_unknown_fields=True):
    """Who withdraws; with an invitation where one was sent and no report was acknowledged."""

    device: DeviceText
    invitation: InvitationText | None = None


class Withdrawn(Struct, frozen=True):
    """The reports are gone, if there were any: the answer is the same whether the device was known or not.

    It has the campaign's state, for a device of which no report was acknowledged: where the campaign is paused, such a
    device withdraws again later, since a report of it might still come after the pause.
    """

    status: Literal["withdrawn"]
    state: State
    message: str


class InvitationCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation, of which somebody wants to know whether it would be taken before they answer."""

    invitation: InvitationText


class InvitationGood(Struct, frozen=True):
    """It would be taken now; nothing was used up."""

    status: Literal["good"]


class LevelRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A level of a schedule, and from when on it may be opened by itself."""

    epsilon: EpsilonText
    opens: Time | None = None


class Publish(Struct, frozen=True, forbid_unknown_fields=True):
    """That a campaign is published once, when it has ended by itself: each level that enough devices stopped at."""

    least: Annotated[int, Meta(ge=2, le=10**15, description="Levels with fewer devices are left out.")]
    delta: Annotated[float, Meta(gt=0, lt=1)] | None = None


class CampaignRequest(Introduction, frozen=True, forbid_unknown_fields=True):
    """A campaign to be created."""

    question: Annotated[str, Meta(min_length=1, max_length=2000)]
    encoding: EncodingRequest
    levels: Annotated[list[LevelRequest], Meta(min_length=1, max_length=100)]
    id: Annotated[str, Meta(pattern=ID_PATTERN)] | None = None
    devices: Annotated[int, Meta(ge=1, le=10**15)] | None = None
    target: Target | None = None
    opens: Time | None = None
    closes: Time | None = None
    largest_epsilon: EpsilonText | None = None
    invitations: bool = False
    publish: Publish | None = None


class PublicEncoding(Struct, frozen=True, omit_defaults=True):
    """What a device must know of the encoding."""

    name: str
    options: dict[str, int]
    values: list[Label] | UnsetType = UNSET
    range: tuple[float, float] | UnsetType = UNSET


class SurveyPlace(Struct, frozen=True):
    """Of which survey a campaign is a question, and with which of its others reports are counted together."""

    name: str
    counted_with: list[str]


class PublicCampaign(Introduction, frozen=True):
    """What everybody may know of a campaign, and what a device needs."""

    id: str
    question: str
    encoding: PublicEncoding
    release: str
    attribute: str
    levels: list[WireLevel]
    open_level: int | None
    state: State
    opens: str | None
    closes: str | None
    largest_epsilon: str
    needs_invitation: bool
    publish: Publish | None
    survey: SurveyPlace | None
    learns: Learning


class Devices(Struct, frozen=True):
    """How many devices there are, how many have each level as their highest, and how many reports each level has."""

    total: int
    per_level: list[int]
    reports: list[int]
    """Also of devices that went further."""


class Refused(Struct, frozen=True):
    """How many reports were refused because another one was stored for the same device and level."""

    differing: int


class Readable(Struct, frozen=True):
    """From which half-width on an estimate is worth showing, and about how many more devices that takes.

    The target's, where that is wider than a tenth of the range. It looks at numbers of devices alone.
    """

    half_width: float
    more: int | None
    """At the open level, or the first one; 0 where it is reached, None where no number suffices."""


class InvitationNumbers(Struct, frozen=True):
    """How many invitations there are."""

    issued: int
    used: int


class OperatorCampaign(PublicCampaign, frozen=True):
    """What the operator sees of a campaign."""

    devices: Devices
    half_width: float | None
    readable: Readable
    target: Target | None
    target_met: bool
    automatic_devices: int | None
    level_opens: list[str | None]
    reduced: bool
    refused: Refused
    invitations: InvitationNumbers
    version: int
    published: Literal["never", "later", "soon", "done"]
    """Later is when it has ended, and soon within seconds."""


class Campaigns(Struct, frozen=True):
    """All campaigns."""

    campaigns: list[OperatorCampaign]


class InvitationRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """How many invitations to make."""

    count: Annotated[int, Meta(ge=1, le=MOST_INVITATIONS)]


class Invitations(Struct, frozen=True):
    """New invitations, shown this once."""

    invitations: list[str]


class ExportOptions(Struct, frozen=True):
    """Which level is exported."""

    level: Annotated[int, Meta(ge=0, le=99)]
