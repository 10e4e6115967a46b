"""Events: canonical JSON, strict reading, one line of history each."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.ledger.ledger_places import TIME, charge, created

from relaxdp.ledger.account import Account
from relaxdp.ledger.events import BudgetRaised, CopyAdopted, Event, ReleaseRetired, parse_event

RELEASED = charge(
    Account.from_first_event(created()), levels={"diagnosis": "0.5", "age": "0.25"}, accepted_new_rows=True
)
EVENTS: list[Event] = [
    created(),
    RELEASED,
    replace(RELEASED, action="relax", passthrough_snapshot=None, accepted_new_rows=False),
    BudgetRaised(3, TIME, Decimal(2), Decimal("2.5"), "board decision of March"),
    ReleaseRetired(4, TIME, "patients", "consent ended"),
    CopyAdopted(5, TIME, "restored", "is older than its last use here: it has 3 events, and had 4"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_as_it_was_written(event: Event) -> None:
    text = event.to_json()
    assert parse_event(text) == event
    assert parse_event(text).to_json() == text
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_the_json_is_fixed() -> None:
    """Another spelling would break every chain on disk."""
    assert created().to_json() == (
        '{"budget":"2","event":"Created","key_fingerprint":"404702b4a9c7e559","number":1,"reason":"study of 2026",'
        '"time":"2026-03-01T12:30:15.000250+00:00","vault":"0123456789abcdef0123456789abcdef"}'
    )
    elsewhere = TIME.astimezone(timezone(timedelta(hours=9)))
    assert replace(created("2.50"), time=elsewhere).to_json() == created("2.5").to_json()


def test_the_line_of_each_event() -> None:
    assert [str(event) for event in EVENTS] == [
        "1  2026-03-01 12:30:15  created with a budget of 2 (study of 2026)",
        "2  2026-03-01 12:30:15  released 'patients' (1,200 rows): 'diagnosis' at 0.5 for 0.5, 'age' at 0.25 for 0.25; "
        "unprotected: 'patient', 'year'; new rows accepted",
        "2  2026-03-01 12:30:15  relaxed 'patients' (1,200 rows): 'diagnosis' at 0.5 for 0.5, 'age' at 0.25 for 0.25; "
        "unprotected: 'patient', 'year'",
        "3  2026-03-01 12:30:15  budget raised from 2 to 2.5 (board decision of March)",
        "4  2026-03-01 12:30:15  retired 'patients' (consent ended)",
        "5  2026-03-01 12:30:15  adopted a copy that is older than its last use here: it has 3 events, and had 4 "
        "(restored)",
    ]
    assert replace(created(), reason="").describe() == "created with a budget of 2"


def altered(**changes: Any) -> str:
    content = {**json.loads(RELEASED.to_json()), **changes}
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


COLUMN = json.loads(RELEASED.to_json())["columns"][0]
MALFORMED = [
    "", "null", "[]", "1", '"x"', "{}", "[" * 100_000, RELEASED.to_json() + " ", " " + RELEASED.to_json(),
    RELEASED.to_json().replace(":", ": ", 1), RELEASED.to_json().replace("ä", "\\u00e4"), "NaN",
    altered(event="Deleted"), altered(event=None), altered(event=[]), altered(more=1), altered(number=True),
    altered(number=-1), altered(number=1.0), altered(number="1"), altered(rows=None), altered(name=None),
    altered(name=7), altered(action="delete"), altered(accepted_new_rows=0), altered(columns={}), altered(columns=[1]),
    altered(columns=None), altered(passthrough=[1]), altered(passthrough="year"), altered(passthrough_snapshot=1),
    altered(time="2026-03-01"), altered(time="2026-03-01T12:30:15.000250"), altered(time=0), altered(time="x"),
    altered(time="0001-01-01T00:00:00.000000+14:00"), altered(name="?").replace("?", "\\ud800"),
    altered(columns=[{**COLUMN, "epsilon": "0.50"}]), altered(columns=[{**COLUMN, "epsilon": 0.5}]),
    altered(columns=[{**COLUMN, "epsilon": "-1"}]), altered(columns=[{**COLUMN, "epsilon": "1e999999999"}]),
    altered(columns=[{**COLUMN, "epsilon": "NaN"}]), altered(columns=[{**COLUMN, "description": []}]),
    altered(columns=[{**COLUMN, "known": -1}]), altered(columns=[{**COLUMN, "more": 1}]),
]  # fmt: skip


@pytest.mark.parametrize("text", MALFORMED)
def test_anything_else_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="it is not an event of this version") as found:
        parse_event(text)
    assert type(found.value) is ValueError


def test_times_are_read_in_utc() -> None:
    time = parse_event(created().to_json()).time
    assert (time, time.utcoffset()) == (datetime.fromisoformat("2026-03-01T12:30:15.000250Z"), timedelta(0))
