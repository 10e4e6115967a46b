"""What a device remembers: its limit, and for every campaign its answer, its key and exactly what was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

from relaxdp.ledger.events import ZERO, add_amounts, parse_amount, subtract_amounts
from relaxdp.theory.epsilon import format_epsilon

_FORMAT = "relaxdp device 1"
_HEX_32, _HEX_64 = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{64}")
STATUSES = ("written", "sent", "refused")
ENDINGS = (None, "finished", "withdrawing", "withdrawn", "forgotten")


@dataclass(frozen=True, slots=True)
class Joined:
    """The survey with which a campaign was joined, and the limit that was set for all of its questions together."""

    address: str
    limit: str

    def __post_init__(self) -> None:
        parse_amount(self.limit)


@dataclass(frozen=True, slots=True)
class Sent:
    """One report, as it left the device or was about to: there is nothing else that the server learned."""

    epsilon: str
    threshold: str
    report: Any
    """The report as it travels: a label, a number, or packed bytes in base64."""
    time: str
    status: str = "written"
    """`written` before it leaves, `sent` when the server has acknowledged it, `refused` when it refused it."""
    cohort: int | None = None
    """The public cohort of a device that reports a Bloom filter."""

    @property
    def level(self) -> dict[str, str]:
        """The level as it travels."""
        return {"epsilon": self.epsilon, "threshold": self.threshold}


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One campaign of a device. It holds the answer and the key, so its `repr` shows nothing."""

    address: str
    question: str
    encoding: str
    params: str
    device: str
    """The random pseudonym that the device has in this campaign, in questions of its survey that are counted together
    with it, and in no other."""
    key: str | None
    """The secret of this campaign's path; None when the campaign is over for this device."""
    consent: str
    """The largest epsilon that the person agreed to when joining."""
    joined: str
    answer: Any = None
    answered: str | None = None
    invitation: str | None = None
    sent: tuple[Sent, ...] = ()
    ended: str | None = None
    survey: Joined | None = None
    """None where the campaign was joined by itself, and its survey not yet."""

    @property
    def spent(self) -> Decimal:
        """What this campaign has cost: its largest level, from the moment when a report was written down."""
        return max((parse_amount(sent.epsilon) for sent in self.sent), default=ZERO)

    @property
    def most(self) -> Decimal:
        """What this campaign can still come to cost: what was agreed to, or what it has cost if it is over."""
        return parse_amount(self.consent) if self.ended is None else self.spent

    @property
    def acknowledged(self) -> bool:
        """Whether the server has said that it has a report: then it knows the device."""
        return any(sent.status == "sent" for sent in self.sent)

    def over(self, ending: str) -> Record:
        """Return the record of a campaign that is over: answer and key are erased, what was sent stays.

        Whoever is withdrawing may need the invitation for that, and has it no longer than until the server knows.
        """
        invitation = self.invitation if ending == "withdrawing" else None
        return replace(self, key=None, answer=None, invitation=invitation, ended=ending)


@dataclass(frozen=True, slots=True, repr=False)
class DeviceState:
    """Everything that a device keeps. Every change is another state with a higher revision."""

    limit: Decimal
    records: Mapping[str, Record] = field(default_factory=dict)
    """The campaigns, by address."""
    revision: int = 1

    @property
    def spent(self) -> Decimal:
        """What all campaigns together have cost: they are different paths, so they add up."""
        return add_amounts(record.spent for record in self.records.values())

    @property
    def left(self) -> Decimal:
        """What may still be spent."""
        return subtract_amounts(self.limit, self.spent)

    def with_record(self, record: Record) -> DeviceState:
        """Return the state in which one campaign is as given."""
        return replace(self, records={**self.records, record.address: record}, revision=self.revision + 1)

    def dumps(self) -> bytes:
        """Return the content of a device's file."""
        content = {
            "format": _FORMAT,
            "limit": format_epsilon(self.limit),
            "revision": self.revision,
            "campaigns": [asdict(record) for record in self.records.values()],
        }
        return json.dumps({**content, "check": _checksum(content)}, indent=1).encode()

    @classmethod
    def loads(cls, data: bytes) -> DeviceState | None:
        """Return the state, or None for what is none: an exception's context would carry the file's content."""
        try:
            content = json.loads(data)
            check = content.pop("check")
            if content["format"] != _FORMAT or check != _checksum(content):
                return None
            records = [_record(entry) for entry in content["campaigns"]]
            state = cls(
                parse_amount(content["limit"]), {record.address: record for record in records}, int(content["revision"])
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        # Whatever happened to the file: one that says more was spent than allowed must not be followed by a report.
        return state if len(state.records) == len(records) and state.limit >= state.spent else None


def _record(entry: dict[str, Any]) -> Record:
    survey = entry.get("survey")
    record = Record(
        **{
            **entry,
            "sent": tuple(Sent(**sent) for sent in entry["sent"]),
            "survey": None if survey is None else Joined(**survey),
        }
    )
    parse_amount(record.consent)
    sound = (
        _HEX_32.fullmatch(record.device)
        and (record.key is None or _HEX_64.fullmatch(record.key))
        and record.ended in ENDINGS
        and all(sent.status in STATUSES for sent in record.sent)
    )
    if not sound:
        raise ValueError("unsound")
    return record


def _checksum(content: dict[str, Any]) -> str:
    """Return what tells an intact file from a damaged one; it is no protection against its owner."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
