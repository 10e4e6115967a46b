"""A collector of a few lines, for tests of devices: it keeps every byte, and can be told to misbehave."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from relaxdp.device.offer import encoding_of
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

JSON = "application/json"


@dataclass
class Request:
    """One request, as it came: `raw` is every byte of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What is sent back; `raw` instead of all else where even HTTP is not to be kept to. None hangs up."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    def data(self) -> bytes:
        if self.raw is not None:
            return self.raw
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {"Content-Type": JSON, "Content-Length": str(len(content)), "Connection": "close", **self.headers}
        lines = [f"HTTP/1.1 {self.status} Whatever", *(f"{name}: {text}" for name, text in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def error(status: int, code: str) -> Reply:
    return Reply(status, {"error": code, "message": f"No: {code}.", "fields": {}})


class FakeCollector:
    """Campaigns in memory, with the answers that the HTTP contract promises to devices."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.campaigns: dict[str, dict[str, Any]] = {}
        self.surveys: dict[str, dict[str, Any]] = {}
        self.stored: dict[tuple[str, str, str], Any] = {}
        """What was reported, by campaign, device and epsilon."""
        self.differing = 0
        self.withdrawn: set[tuple[str, str]] = set()
        self.invitations: dict[str, str | None] = {}
        self.instead: Callable[[Request], Reply | bytes | None] | None = None
        """Is asked first; None leaves it to the collector, empty bytes hang up."""
        self._lock = threading.Lock()

    def open(
        self, name: str = "snacks", encoding: Any = None, levels: tuple[str, ...] = ("0.5", "1", "2"), **changes: Any
    ) -> str:
        """Open a campaign at its first level, and return its address."""
        encoding = encoding or {"name": "categorical", "values": ["crisps", "fruit", "none"]}
        mechanism = encoding_of(encoding)
        exact = [as_epsilon(level) for level in levels]
        self.campaigns[name] = {
            "id": name,
            "question": "What did you eat last?",
            "encoding": encoding,
            "release": name,
            "attribute": "answer",
            "levels": [{"epsilon": format_epsilon(e), "threshold": str(mechanism.threshold(e))} for e in exact],
            "open_level": 0,
            "state": "open",
            "opens": None,
            "closes": None,
            "largest_epsilon": format_epsilon(exact[-1]),
            "needs_invitation": False,
            **changes,
        }
        return self.address(name)

    def survey(self, name: str, questions: list[str], *pairs: tuple[str, str]) -> str:
        """Make a survey of campaigns that are open, and return its address."""
        self.surveys[name] = {"questions": questions, "cross": [list(pair) for pair in pairs]}
        return f"{self.url}/v1/surveys/{name}"

    def address(self, name: str = "snacks") -> str:
        return f"{self.url}/v1/campaigns/{name}"

    def relax(self, name: str = "snacks") -> None:
        self.campaigns[name]["open_level"] += 1

    def reply(self, request: Request) -> bytes:
        with self._lock:
            self.requests.append(request)
            changed = self.instead(request) if self.instead else None
            if isinstance(changed, bytes):
                return changed
            return (changed or self._answer(request)).data()

    def _answer(self, request: Request) -> Reply:
        words = request.path.strip("/").split("/")
        if request.method == "GET" and words[:2] == ["v1", "surveys"] and len(words) == 3 and words[2] in self.surveys:
            survey = self.surveys[words[2]]
            asked = [self.campaigns[each] for each in survey["questions"]]
            return Reply(200, {"id": words[2], "questions": asked, "cross": survey["cross"]})
        if words[:2] != ["v1", "campaigns"] or len(words) < 3 or words[2] not in self.campaigns:
            return error(404, "unknown_campaign")
        campaign = self.campaigns[words[2]]
        match (request.method, words[3:]):
            case ("GET", []):
                return Reply(200, campaign)
            case ("POST", ["reports"]):
                return self._report(campaign, request.json)
            case ("POST", ["withdraw"]):
                return self._withdraw(campaign, **request.json)
        return error(404, "unknown_route")

    def _withdraw(self, campaign: dict[str, Any], device: str, invitation: str = "") -> Reply:
        gone = [key for key in self.stored if key[:2] == (campaign["id"], device)]
        invited = not campaign["needs_invitation"] or self.invitations.get(invitation, "") is None
        if gone or (campaign["state"] == "open" and invited):
            self.withdrawn.add((campaign["id"], device))
        for key in gone:
            del self.stored[key]
        return Reply(200, {"status": "withdrawn", "state": campaign["state"], "message": "Gone."})

    def _report(self, campaign: dict[str, Any], body: dict[str, Any]) -> Reply:
        name, device = campaign["id"], body["device"]
        if set(body) - {"device", "level", "report", "cohort", "invitation"}:
            return error(400, "malformed_request")
        if (name, device) in self.withdrawn:
            return error(409, "device_withdrawn")
        key = (name, device, body["level"]["epsilon"])
        report = (body["report"], body.get("cohort"))
        if key in self.stored:
            if self.stored[key] == report:
                return Reply(200, {"status": "same"})
            self.differing += 1
            return error(409, "report_differs")
        if campaign["state"] != "open" or body["level"] not in campaign["levels"][: campaign["open_level"] + 1]:
            return error(409, "level_not_open")
        if campaign["needs_invitation"] and not any(key[:2] == (name, device) for key in self.stored):
            invitation = str(body.get("invitation"))
            if self.invitations.get(invitation, "") not in (None, device):
                return error(403, "invitation_refused")
            self.invitations[invitation] = device
        self.stored[key] = report
        return Reply(200, {"status": "new"})


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        try:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            method, path, _ = first.split(" ", 2)
            headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
            length = int(headers.get("content-length", "0"))
            body = self.rfile.read(length)
            if len(body) < length:  # a device that was killed in the middle of it has sent no report
                return
            collector: FakeCollector = self.server.collector  # type: ignore[attr-defined]
            self.wfile.write(collector.reply(Request(method, path, headers, body, head + body)))
        except OSError:  # a device that was killed, or that has heard enough
            pass


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128


@contextmanager
def fake_collector() -> Iterator[FakeCollector]:
    """A collector on a port of its own."""
    collector = FakeCollector()
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.collector = collector  # type: ignore[attr-defined]
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
