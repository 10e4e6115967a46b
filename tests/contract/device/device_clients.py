"""Devices of every kind behind one small interface, so that one suite can drive them all.

A client takes commands as JSON and answers in JSON; a device in another language needs a process that reads one
command per line and writes one answer per line. Commands (all amounts are text, addresses are whole URLs):

    {"do": "open", "file": PATH, "limit": "2" | null}
    {"do": "join", "campaign": ADDRESS, "upto": "1" | null, "invitation": TEXT | null}
                                                  -> {"question", "values", "consent"}
    {"do": "join_survey", "survey": ADDRESS | null (what was looked at), "upto": "1" | null, "invitation": TEXT | null}
                                                  -> {"questions": {ADDRESS: CONSENT}, "left_out", "limit", "cross"}
    {"do": "look", "survey": ADDRESS, "upto": "1" | null}    -> {"given": {ID: EPSILON}, "left_out": [ID, ...]}
    {"do": "answer", "campaign": ADDRESS, "value": VALUE}
    {"do": "report", "campaign": ADDRESS}         -> {"sent": SENT | null}
    {"do": "sent", "campaign": ADDRESS}           -> {"sent": [SENT, ...]}
    {"do": "withdraw" | "forget", "campaign": ADDRESS}
    {"do": "balance"}                             -> {"limit", "spent", "left"}
    {"do": "change_limit", "limit": "3"}
    {"do": "secrets", "campaign": ADDRESS}        -> {"device", "key", "answered": bool}   (for tests only)

SENT is {"epsilon", "threshold", "report", "status", "cohort"}.
What is refused answers {"error": CODE, "message": SENTENCE}.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tests.conftest import require
from tests.patience import PATIENCE

from relaxdp.device import Device, Participation
from relaxdp.device.client import Client
from relaxdp.device.state import Sent
from relaxdp.errors import RelaxdpError
from relaxdp.theory.epsilon import format_epsilon


class DeviceClient(Protocol):
    """A device that can be told what to do."""

    def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command."""
        ...


class PythonClient:
    """`relaxdp.device.Device`. It waits for nobody: tests are not slowed down by its patience."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.client = Client(timeout=PATIENCE, attempts=3, sleep=self.waits.append)
        self._device: Device | None = None
        self._seen: Any = None

    def do(self, command: dict[str, Any]) -> dict[str, Any]:
        arguments = dict(command)
        try:
            found: dict[str, Any] = getattr(self, f"_{arguments.pop('do')}")(**arguments)
        except RelaxdpError as problem:
            return {"error": problem.code, "message": problem.message}
        return found

    def _open(self, file: str, limit: str | None) -> dict[str, Any]:
        self._device = Device.open(file, limit=limit, client=self.client)
        return {}

    def _join(self, campaign: str, upto: str | None = None, invitation: str | None = None) -> dict[str, Any]:
        joined = self.device.join(campaign, upto=upto, invitation=invitation)
        values = None if joined.values is None else list(joined.values)
        return {"question": joined.question, "values": values, "consent": format_epsilon(joined.consent)}

    def _join_survey(
        self, survey: str | None, upto: str | None = None, invitation: str | None = None
    ) -> dict[str, Any]:
        joined = self.device.join_survey(self._seen if survey is None else survey, upto=upto, invitation=invitation)
        return {
            "questions": {str(each.address): format_epsilon(each.consent) for each in joined.questions},
            "left_out": joined.left_out,
            "limit": format_epsilon(joined.limit),
            "cross": [list(pair) for pair in joined.counted_together],
        }

    def _look(self, survey: str, upto: str | None = None) -> dict[str, Any]:
        found = self.device.look(survey, upto=upto)
        self._seen = found.offer
        given = {name: format_epsilon(most) for name, most in found.most.items()}
        return {"given": given, "left_out": [each.address.id for each in found.left_out]}

    def _answer(self, campaign: str, value: Any) -> dict[str, Any]:
        self.participation(campaign).answer(value)
        return {}

    def _report(self, campaign: str) -> dict[str, Any]:
        sent = self.participation(campaign).report()
        return {"sent": None if sent is None else _shown(sent)}

    def _sent(self, campaign: str) -> dict[str, Any]:
        return {"sent": [_shown(sent) for sent in self.participation(campaign).sent]}

    def _withdraw(self, campaign: str) -> dict[str, Any]:
        self.participation(campaign).withdraw()
        return {}

    def _forget(self, campaign: str) -> dict[str, Any]:
        self.participation(campaign).forget()
        return {}

    def _balance(self) -> dict[str, Any]:
        device = self.device
        return {name: format_epsilon(getattr(device, name)) for name in ("limit", "spent", "left")}

    def _change_limit(self, limit: str) -> dict[str, Any]:
        self.device.change_limit(limit)
        return {}

    def _secrets(self, campaign: str) -> dict[str, Any]:
        record = self.participation(campaign).record
        return {"device": record.device, "key": record.key, "answered": record.answer is not None}

    @property
    def device(self) -> Device:
        assert self._device is not None
        return self._device

    def participation(self, campaign: str) -> Participation:
        return next(each for each in self.device.campaigns if str(each.address) == campaign)


def _shown(sent: Sent) -> dict[str, Any]:
    return {name: getattr(sent, name) for name in ("epsilon", "threshold", "report", "status", "cohort")}


ADAPTER = Path(__file__).parents[2] / "browser" / "device_adapter.mjs"


class BrowserClient:
    """The browser's device, run by node with a file for its storage."""

    adds = frozenset({"accept-language", "cache-control", "pragma", "sec-fetch-mode"})
    """Headers that `fetch` adds; the same ones from everybody."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [require("node"), str(ADAPTER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.communicate()


CLIENTS: dict[str, Callable[[], DeviceClient]] = {"python": PythonClient, "browser": BrowserClient}
"""Every kind of device; the suite runs over all of them."""
