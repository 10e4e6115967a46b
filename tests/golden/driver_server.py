"""The adapter's part for the service: operators and devices.

It translates calls and results, and computes nothing. Scenarios name people and what they do; this file knows today's
classes, routes and commands. `python -m tests.golden.driver_server` is `relaxdp` with a clock that a scenario moves.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow.parquet as pa_parquet
from tests.commands import printed
from tests.patience import PATIENCE, until

import relaxdp as rx
from relaxdp.device import Device as ProductDevice
from relaxdp.device.address import Server
from relaxdp.device.client import Client
from relaxdp.device.operator import Operator
from relaxdp.device.report import written_report
from relaxdp.device.server import own_server
from relaxdp.device.simulate import Simulation
from relaxdp.device.simulate import simulate as run_simulation
from relaxdp.device.state import DeviceState
from relaxdp.device.store import DeviceFile, DeviceStore
from relaxdp.errors import RelaxdpError
from relaxdp.mechanisms.registry import create_mechanism

ROOT = Path(__file__).parents[2]
CLOCK_VARIABLE = "RELAXDP_GOLDEN_CLOCK"
MECHANISMS = {
    "best": "auto",
    "k-RR": "categorical",
    "OUE": "unary-optimised",
    "SUE": "unary-symmetric",
    "OLH": "local-hash",
    "mean": "numeric",
    "square wave": "wave",
    "RAPPOR": "bloom",
}
OUTCOMES = {"new": "new", "same": "same", "report_differs": "different", "campaign_closed": "closed"}
"""A report is new, or known, or rejected because another one is stored or because the campaign has ended."""
ATTRIBUTE = "answer"
"""The attribute of the path of every question; its release name is the question's name."""

Rows = list[list[Any]]


class Rejected(Exception):
    """The product rejected a request."""


@contextmanager
def rejecting() -> Iterator[None]:
    """Turn an error of the product into a rejection."""
    try:
        yield
    except RelaxdpError as problem:
        raise Rejected(problem.message) from problem


# The service.


class Service:
    """A service on loopback. Its SQLite database is in the folder, and new unless there is one already."""

    def __init__(
        self, folder: Path, *options: str, module: str = "relaxdp", port: int = 0, database: str | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.database = folder, database or f"sqlite:///{folder / 'service.db'}"
        token = folder / "operator.token"
        words = ["serve", "--db", self.database, "--port", str(port), "--rate", "0", "--no-request-log"]
        words += options
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *words, *([] if token.exists() else ["--token-file", str(token)])],
            stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, CLOCK_VARIABLE: str(folder / "clock")},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = ""
        for line in iter(self._process.stdout.readline, ""):
            if line.startswith("listening on "):
                self.url = line.split()[-1]
                break
        if not self.url:
            self.stop()
            raise AssertionError("the service did not start")
        self.token = token.read_text("utf-8").strip()

    @property
    def port(self) -> int:
        """The port, for a service that takes the place of this one."""
        return Server.parse(self.url).port

    @property
    def operator(self) -> Operator:
        """The operator's client."""
        return Operator(Server.parse(self.url), self.token)

    def set_clock(self, time: str) -> None:
        """Set the clock of a service that was started by `serve_with_clock`."""
        file = self.folder / "clock"
        file.with_suffix(".new").write_text(str(datetime.fromisoformat(time).timestamp()), "ascii")
        file.with_suffix(".new").replace(file)

    def create_campaign(
        self,
        name: str,
        *questions: Question,
        crosstabs: Sequence[tuple[str, str]] = (),
        **terms: Any,
    ) -> Campaign:
        """Create a campaign. One with a single question has the name of that question."""
        asked = [question.to_request(**terms) for question in questions]
        with rejecting():
            if len(questions) > 1:
                cross = [list(pair) for pair in crosstabs]
                self.operator.create_survey({"id": name, "questions": asked, "cross": cross})
            else:
                self.operator.create({**asked[0], "id": name})
        return Campaign(self, name, questions)

    def plan_campaign(self, question: Question, devices: int, margin: float) -> dict[str, Any]:
        """Return the mechanism of a question, and for each level its margin of error and the devices that it takes."""
        asked = question.to_request(margin=margin)
        body = {**{name: asked[name] for name in ("encoding", "levels", "target")}, "devices": devices}
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        with urlopen(Request(f"{self.url}/v1/advice", json.dumps(body).encode(), headers)) as answer:
            found = json.load(answer)
        (mechanism,) = [name for name, own in MECHANISMS.items() if own == found["encoding"]["name"]]
        levels = {
            each["epsilon"]: {
                "margin_of_error": each["half_width"], "suffices": each["met"], "devices_needed": each["devices_needed"]
            }
            for each in found["levels"]
        }  # fmt: skip
        return {"mechanism": mechanism, "options": found["encoding"]["options"], "levels": levels}

    def back_up(self, file: Path) -> None:
        """Back up the database while the service runs."""
        printed("admin", "backup", str(file), "--db", self.database)

    def stop(self) -> None:
        """Stop the service."""
        self._process.terminate()
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def serve(folder: Path, *options: str, port: int = 0, database: str | None = None) -> Iterator[Service]:
    """Run a service for a while, on SQLite or on the PostgreSQL database at a URL."""
    service = Service(folder, *options, port=port, database=database)
    try:
        yield service
    finally:
        service.stop()


@contextmanager
def serve_with_clock(folder: Path, time: str) -> Iterator[Service]:
    """Run a service whose clock stands until a scenario moves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clock").write_text(str(datetime.fromisoformat(time).timestamp()), "ascii")
    service = Service(folder, module="tests.golden.driver_server")
    try:
        yield service
    finally:
        service.stop()


def restore(backup: Path, folder: Path) -> None:
    """Make the database of a new service from a backup."""
    folder.mkdir()
    printed("admin", "restore", str(backup), "--db", f"sqlite:///{folder / 'service.db'}")


def renew_token(folder: Path) -> None:
    """Replace the operator's token of a service that does not run."""
    words = ["--db", f"sqlite:///{folder / 'service.db'}", "--token-file", str(folder / "operator.token")]
    printed("admin", "token", *words)


def take_tour(*, devices: int, margin: str, seed: int) -> dict[str, Any]:
    """Run the tour's campaign to its end, and return how precise it was at each level."""
    words = ["tour", "--devices", devices, "--half-width", margin, "--seed", seed, "--pace", 0, "--no-stay"]
    done = subprocess.run(
        [sys.executable, "-m", "relaxdp", *map(str, words)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    found = re.findall(r"epsilon (\S+) +([0-9,]+) devices so far, ± (\S+) %", done.stdout)
    return {
        "levels": [{"level": level, "devices": count, "margin_in_percent": width} for level, count, width in found],
        "ended_by_itself": "finished by itself" in done.stdout,
    }


def simulate(*, devices: int, values: int, levels: str, margin: str, seed: int) -> dict[str, Any]:
    """Run a campaign with at most 1,000 simulated devices, whose reports at a level arrive all at once."""
    epsilons = levels.split(",")
    simulation = Simulation(
        devices, tuple(map(Decimal, epsilons)), float(margin), values, seed, batch=1000, name=f"simulation-{seed}"
    )
    with tempfile.TemporaryDirectory() as folder, own_server(Path(folder)) as running:
        client = Client(attempts=3)
        found = run_simulation(simulation, Operator(running.server, running.token, client), client, lambda _: None)
    return {
        "state": found.state,
        "stopped_at": str(found.stopped_at),
        "planned_stop": str(found.planned_stop),
        "target_met": found.target_met,
        "devices_per_level": dict(zip(epsilons, found.per_level, strict=True)),
        "new_reports": found.answers["new"],
        "true_shares": {row["value"]: share for row, share in zip(found.rows, found.truth, strict=True)},
        "rows": _rows(found.rows),
        "intervals_with_the_true_share": found.covered,
    }


# Campaigns.


@dataclass(frozen=True)
class Question:
    """A question of a campaign: values to choose from, a number in a range, or a word that is looked for in a list."""

    name: str
    levels: Sequence[str]
    values: Sequence[str] | None = None
    range: tuple[float, float] | None = None
    words: Sequence[str] | None = None
    mechanism: str = "k-RR"
    options: Mapping[str, int] = field(default_factory=dict)
    level_dates: Sequence[str | None] | None = None

    def to_request(
        self,
        *,
        devices_per_level: int | None = None,
        margin: float | None = None,
        opens: str | None = None,
        closes: str | None = None,
        invitations: bool = False,
        publish_from: int | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Return the question as the service takes it."""
        dates = self.level_dates or [None for _ in self.levels]
        encoding = {"name": MECHANISMS[self.mechanism], "options": dict(self.options)}
        given = {"values": self.values, "range": self.range, "candidates": self.words}
        return {
            "id": self.name,
            "question": f"{self.name}?",
            "encoding": {**encoding, **{name: list(each) for name, each in given.items() if each is not None}},
            "levels": [{"epsilon": epsilon, "opens": date} for epsilon, date in zip(self.levels, dates, strict=True)],
            "devices": devices_per_level,
            "target": None if margin is None else {"half_width": margin},
            "opens": opens,
            "closes": closes,
            "invitations": invitations,
            "publish": None if publish_from is None else {"least": publish_from, "delta": delta},
        }


class Campaign:
    """A campaign of one or more questions, as its operator steers and reads it."""

    def __init__(self, service: Service, name: str, questions: Sequence[Question]) -> None:
        self.service, self.name, self.questions = service, name, questions
        self.has_several = len(questions) > 1

    @property
    def route(self) -> str:
        """Where devices find it, below the address of the service."""
        return f"/v1/{'surveys' if self.has_several else 'campaigns'}/{self.name}"

    def relax(self) -> None:
        """Open the next level."""
        self._act("relax")

    def pause(self) -> None:
        """Take no reports for a while."""
        self._act("pause")

    def resume(self) -> None:
        """Take reports again."""
        self._act("resume")

    def finish(self) -> None:
        """End the campaign."""
        self._act("finish")

    def reduce_to_counts(self) -> None:
        """Delete the reports and keep the counts."""
        self._act("reduce")

    def _act(self, verb: str) -> None:
        operator = self.service.operator
        with rejecting():
            (operator.act_survey if self.has_several else operator.act)(self.name, verb)

    def devices_needed(self) -> dict[str, Any]:
        """Return for each question the margin of error that participants are told, and how many devices it takes."""
        found = {each.name: self.service.operator.status(each.name)["learns"] for each in self.questions}
        return {
            each.name: {
                "margin_of_error": found[each.name]["half_width"],
                "devices": dict(zip(each.levels, found[each.name]["devices"], strict=True)),
            }
            for each in self.questions
        }

    def invite(self, count: int) -> list[str]:
        """Make invitations."""
        operator = self.service.operator
        with rejecting():
            return (operator.invite_to_survey if self.has_several else operator.invite)(self.name, count)

    def counts(self) -> dict[str, Any]:
        """Return for each question its state and open level, and how many devices and reports each level has."""
        return {each.name: self._counts(each) for each in self.questions}

    def _counts(self, question: Question) -> dict[str, Any]:
        with rejecting():
            found = self.service.operator.status(question.name)
        opened = found["open_level"]
        return {
            "state": found["state"],
            "open_level": None if opened is None else question.levels[opened],
            "devices": dict(zip(question.levels, found["devices"]["per_level"], strict=True)),
            "reports": dict(zip(question.levels, found["devices"]["reports"], strict=True)),
            "rejected_as_different": found["refused"]["differing"],
            "target_met": found["target_met"],
        }

    def estimate(self, **options: Any) -> dict[str, Any]:
        """Return for each question the estimates of each level alone and of all devices, with confidence intervals."""
        return {each.name: self._estimate(each, **options) for each in self.questions}

    def _estimate(self, question: Question, **options: Any) -> dict[str, Any]:
        with rejecting():
            found = self.service.operator.estimate(question.name, **options)
        quartiles = found["quantiles"] or []
        return {
            "devices": found["devices"],
            "margin_of_error": found["half_width"],
            "levels": {each["epsilon"]: _rows(each["rows"]) for each in found["levels"]},
            "all_devices": _rows(found["pooled"]),
            "quartiles": [[each[name] for name in ("probability", "estimate", "low", "high")] for each in quartiles],
            "words_found": [row["value"] for row in found["pooled"] or [] if row.get("found")],
            "other_words": found["unlisted"] and found["unlisted"]["estimate"],
        }

    def crosstabs(self, **options: Any) -> list[dict[str, Any]]:
        """Return the two-way tables of the questions for which they were declared."""
        with rejecting():
            found = self.service.operator.survey(self.name, **options)
        names = ("row", "column", "estimate", "low", "high")
        return [
            {
                "rows": table["rows"],
                "columns": table["columns"],
                "devices": table["devices"],
                "cells": [[cell[name] for name in names] for cell in table["cells"] or []],
            }
            for table in found["tables"]
        ]

    def check_reports(self) -> dict[str, Any]:
        """Return the result of the test for fabricated reports in a campaign of one question."""
        with rejecting():
            found = self.service.operator.estimate(self.name)["integrity"]
        names = ("tested", "untested", "alarm", "p_value", "p_value_ever", "made_up", "pushed")
        shares = {"shares": _rows(found["shares"]), "shares_without_fabricated_reports": _rows(found["without"])}
        return {**{name: found[name] for name in names}, **shares}

    def export(self, folder: Path) -> dict[str, list[Path]]:
        """Write the reports of every question to Parquet files, one for each level."""
        found = {}
        for each in self.questions:
            place = folder / each.name
            token = str(self.service.folder / "operator.token")
            with rejecting():
                printed(
                    "campaign", "export", each.name, str(place), "--server", self.service.url, "--token-file", token
                )
            found[each.name] = sorted(place.iterdir())
        return found

    def publication(self) -> dict[str, Any] | None:
        """Return the publication of a campaign of one question, or None where there is none."""
        try:
            with urlopen(f"{self.service.url}{self.route}/published") as answer:
                found = json.load(answer)
        except HTTPError as problem:
            problem.close()
            if problem.code != 404:
                raise
            return None
        return {
            "devices": found["devices"],
            "cost_towards_the_collector": found["report_epsilon"],
            "cost_towards_the_public": found["public_epsilon"],
            "delta": found["delta"],
            "all_devices": _rows(found["rows"]),
            "levels": {
                each["level"]["epsilon"]: {
                    "devices": each["devices"],
                    "cost_towards_the_public": each["public_epsilon"],
                    "counts": [count["supports"] for count in each["counts"]],
                    "rows": _rows(each["rows"]),
                }
                for each in found["groups"]
            },
        }

    def wait_for_publication(self) -> dict[str, Any]:
        """Wait for the publication, and return it."""
        found = until(self.publication)
        assert found is not None
        return found

    def send_reports(self, question: str, level: str, reports: Mapping[str, Any]) -> list[str]:
        """Send the reports of many devices at once, by their pseudonyms, and return the outcome of each."""
        offered = self.service.operator.status(question)["levels"]
        (wire,) = [each for each in offered if each["epsilon"] == level]
        sent = [{"device": name, "level": wire, "report": report} for name, report in reports.items()]
        address = f"{self.service.url}/v1/campaigns/{question}/reports/batch"
        body = json.dumps({"reports": sent}).encode()
        with urlopen(Request(address, body, {"content-type": "application/json"})) as answer:
            return [OUTCOMES[each] for each in json.load(answer)["results"]]


def _rows(rows: Sequence[Mapping[str, Any]] | None) -> Rows | None:
    names = ("value", "estimate", "low", "high")
    return None if rows is None else [[row[name] for name in names] for row in rows]


def draw_reports(question: Question, level: str, answers: Mapping[str, Any], *, key: bytes) -> dict[str, Any]:
    """Draw the report of each pseudonym under one key, as devices would draw it that share this key."""
    assert question.values is not None
    mechanism = create_mechanism(MECHANISMS[question.mechanism], values=list(question.values))
    found = mechanism.release(
        list(answers.values()), list(answers), key=rx.Key.from_bytes(key), epsilon=level, name=question.name,
        column=ATTRIBUTE,
    )  # fmt: skip
    return {name: written_report(report) for name, report in zip(answers, found, strict=True)}


def read_reports(file: Path, id: str = "device", column: str = ATTRIBUTE) -> dict[Any, Any]:
    """Return the reports of an exported or bought file, by the id of the device or row."""
    table = pa_parquet.read_table(file)
    return dict(zip(table[id].to_pylist(), table[column].to_pylist(), strict=True))


def estimate_files(files: Sequence[Path], *options: str) -> dict[str, Any]:
    """Estimate from released, exported or bought files, each id at its highest level."""
    found = json.loads(printed("estimate", *map(str, files), "--json", *options))
    (group,) = found["groups"]
    return {
        "devices": group["n"],
        "levels": group["levels"],
        "rows": _rows(group["estimates"]),
    }


# Devices.


@dataclass(frozen=True)
class Secrets:
    """The key and the pseudonym of a device in each question. Questions that share a pseudonym have the first one."""

    keys: Mapping[str, bytes]
    pseudonyms: Mapping[str, bytes]

    def to_json(self) -> dict[str, Any]:
        """Return them as a browser takes them."""
        parts = {"keys": self.keys, "pseudonyms": self.pseudonyms}
        return {part: {name: each.hex() for name, each in found.items()} for part, found in parts.items()}


class Device:
    """A Python device with a limit, whose secrets are fixed when it joins."""

    def __init__(self, file: Path, limit: str, secrets: Secrets) -> None:
        self.file, self._secrets = file, secrets
        self._questions: dict[str, Question] = {}
        with rejecting():
            self._device = ProductDevice.open(file, limit=limit)

    def join(self, campaign: Campaign, *, limit: str | None = None, invitation: str | None = None) -> dict[str, str]:
        """Join a campaign, and return how far each question may be reported. A question that does not fit is absent."""
        address = f"{campaign.service.url}{campaign.route}"
        with rejecting():
            if campaign.has_several:
                joined = self._device.join_survey(address, upto=limit, invitation=invitation).questions
            else:
                joined = [self._device.join(address, upto=limit, invitation=invitation)]
        DeviceFile(DeviceStore(self.file)).change(self._fix)
        self._questions.update({each.name: each for each in campaign.questions})
        return {each.address.id: str(each.consent) for each in joined}

    def preview(self, campaign: Campaign, *, limit: str) -> dict[str, str]:
        """Return how a limit would be divided among several questions. Nothing is joined."""
        with rejecting():
            found = self._device.look(f"{campaign.service.url}{campaign.route}", upto=limit)
        return {name: str(most) for name, most in found.most.items()}

    def _fix(self, state: DeviceState) -> DeviceState:
        """Put the fixed secrets into the device's stored state. Questions keep sharing a pseudonym, or not."""
        known: dict[str, str] = {}
        for record in state.records.values():
            name = record.address.rpartition("/")[2]
            pseudonym = known.setdefault(record.device, self._secrets.pseudonyms[name].hex())
            state = state.with_record(replace(record, device=pseudonym, key=self._secrets.keys[name].hex()))
        return state

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Answer questions. The answers stay on the device."""
        with rejecting():
            for each in self._device.campaigns:
                if each.address.id in answers:
                    each.answer(answers[each.address.id])

    def report(self) -> None:
        """Send the reports that are due."""
        with rejecting():
            for outcome in self._device.sync():
                if outcome.problem is not None:
                    raise outcome.problem

    def withdraw(self) -> None:
        """Leave all campaigns."""
        with rejecting():
            for each in self._device.campaigns:
                each.withdraw()

    def forget(self) -> None:
        """Erase answers and keys. The service keeps what it has."""
        with rejecting():
            for each in self._device.campaigns:
                each.forget()

    def change_limit(self, limit: str) -> None:
        """Set another limit."""
        with rejecting():
            self._device.change_limit(limit)

    def sent(self) -> dict[str, dict[str, Any]]:
        """Return every report that was sent, by question and level."""
        found = {each.address.id: [[sent.epsilon, sent.report, sent.cohort] for sent in each.sent] for each in
                 self._device.campaigns}  # fmt: skip
        return {name: read_sent(self._questions[name], sent) for name, sent in found.items()}

    def costs(self) -> dict[str, str]:
        """Return the limit, the epsilon spent, and the rest."""
        device = self._device
        return {name: str(getattr(device, name)) for name in ("limit", "spent", "left")}


def read_sent(question: Question, sent: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return reports by level: labels and numbers as they are, bits as bytes, and the cohort of a Bloom filter."""
    packed = question.mechanism in ("OUE", "SUE", "OLH", "RAPPOR")
    read = [(level, b64decode(report) if packed else report, cohort) for level, report, cohort in sent]
    return {level: report if cohort is None else [cohort, report] for level, report, cohort in read}


def _main() -> None:
    """Run `relaxdp` with the clock in a file, and with duties that wait no longer than a test does."""
    from relaxdp.cli.main import main  # noqa: PLC0415
    from relaxdp.collector import component  # noqa: PLC0415
    from relaxdp.collector.duties import Duties  # noqa: PLC0415
    from relaxdp.service import application  # noqa: PLC0415
    from relaxdp.service.resources import Resources  # noqa: PLC0415

    clock = Path(os.environ[CLOCK_VARIABLE])
    vars(application)["Resources"] = partial(Resources, clock=lambda: float(clock.read_text("ascii")))
    vars(component)["Duties"] = partial(Duties, seconds=0.05)
    main()


if __name__ == "__main__":
    _main()
