"""Make the frozen test vectors of epochs and of dates, or check that they hold: python -m tests.vectors.make_epochs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.vectors.scalar import report

FILE, DATES = (Path(__file__).with_name(f"{what}-1.json") for what in ("epochs", "dates"))
VALUES = ["flu", "covid", "none", "other"]


def levels(case: dict[str, Any]) -> list[dict[str, str]]:
    """What the scalar implementation makes of a case; it writes dates and epochs as docs/stream.md says."""
    epoch, release = case["epoch"], case["release"]
    release += f" (date {case['date']})" if "date" in case else ""
    named = {**case, "release": release if epoch == 1 else f"{release} (epoch {epoch})"}
    made = []
    for epsilon in ("0.5", "2", "8"):
        threshold, packed = report(named, VALUES, case["object"], epsilon)
        made.append({"epsilon": epsilon, "threshold": str(threshold), "report": packed.hex()})
    return made


def cases() -> list[dict[str, Any]]:
    """Return 48 cases: four epochs of two releases, for three encodings and two objects."""
    made = []
    for encoding in ("unary-symmetric", "unary-optimised", "local-hash"):
        for release in ("survey-2026", "Erhebung-ä"):
            for epoch in (1, 2, 3, 17):
                for truth, name in enumerate(("patient-17", "patient-18")):
                    case: dict[str, Any] = {
                        "key": bytes(range(32)).hex(), "release": release, "epoch": epoch, "attribute": "diagnosis",
                        "encoding": encoding, "truth": truth, "object": name,
                    }  # fmt: skip
                    if encoding == "local-hash":
                        case["buckets"] = 5
                    made.append({**case, "levels": levels(case)})
    return made


def dated_cases() -> list[dict[str, Any]]:
    """Return 36 cases: three dates, each in two epochs, for three encodings and two objects."""
    made = []
    for case in cases():
        if case["release"] == "survey-2026" and case["epoch"] <= 2:
            for date in ("2026", "2027", "2027-Q1"):
                dated = {**{name: each for name, each in case.items() if name != "levels"}, "date": date}
                made.append({**dated, "levels": levels(dated)})
    return made


def check(file: Path = FILE) -> int:
    """Return how many frozen cases there are, all of which the scalar implementation makes again."""
    frozen: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["cases"]
    for case in frozen:
        assert levels(case) == case["levels"]
    return len(frozen)


if __name__ == "__main__":
    for file, make in ((FILE, cases), (DATES, dated_cases)):
        if not file.exists():
            lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in make())
            file.write_text(f'{{"version": 1, "values": {json.dumps(VALUES)}, "cases": [\n{lines}\n]}}\n', "utf-8")
        sys.stdout.write(f"{check(file)} cases hold\n")
