"""Make the frozen test vectors of stream version 1, or check that they hold: python -m tests.vectors.make --check."""

from __future__ import annotations

import json
import random
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from relaxdp import Categorical, Key
from relaxdp.sampling.keyed_stream import get_value_kind
from relaxdp.theory.epsilon import format_epsilon

FILE = Path(__file__).with_name("stream-1.json")
WORDS = ["", "a", "flu", "covid", "none", "yes", "no", "Straße", "漢字", "🙂", "x" * 24, "y" * 100, "a\u0000b", " "]


def typed(value: Any) -> dict[str, str]:
    """Return a value with its kind, in a form that every language can read."""
    kind = get_value_kind(value)
    assert kind is not None
    return {"type": kind, "value": value.hex() if kind == "bytes" else repr(value) if kind == "number" else str(value)}


def untyped(entry: dict[str, str]) -> Any:
    """Return the value behind `typed`."""
    readers: dict[str, Any] = {"integer": int, "text": str, "bytes": bytes.fromhex, "uuid": uuid.UUID, "number": float}
    return readers[entry["type"]](entry["value"])


def reports(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what this package makes of a case."""
    values = [untyped(entry) for entry in case["values"]]
    answers = Categorical(values)
    path = answers.path(
        values[case["truth"]],
        key=Key.from_bytes(bytes.fromhex(case["key"])),
        id=untyped(case["object"]),
        name=case["release"],
        column=case["attribute"],
    )
    return [
        {
            "epsilon": level["epsilon"],
            "threshold": str(answers.level(level["epsilon"]).threshold),
            "report": path.draw_codes(answers.level(level["epsilon"]))[0],
        }
        for level in case["levels"]
    ]


def cases(rng: random.Random) -> list[dict[str, Any]]:
    """Return 360 cases: every id type and every kind of values, edge cases first."""
    objects: list[Any] = [0, -1, 7, "7", 2**63 - 1, 2**63, 2**64 - 1, -(2**63), "", b"", uuid.UUID(int=0)]
    for place in range(360 - len(objects)):
        makers: list[Callable[[], Any]] = [
            lambda: rng.randint(-(2**63), 2**63 - 1),
            lambda: rng.randint(2**63, 2**64 - 1),
            lambda: rng.choice(WORDS) + str(rng.randint(0, 10**9)),
            lambda: rng.randbytes(rng.randint(0, 50)),
            lambda: uuid.UUID(bytes=rng.randbytes(16)),
            lambda: rng.randint(0, 10_000),
        ]
        objects.append(makers[place % 6]())
    made = []
    for object_id in objects:
        size = rng.choice([2, 2, 3, 4, 5, 7, 10, 52])
        values: list[Any] = rng.choice(
            [
                [f"value {place}" for place in range(size)],
                rng.sample(WORDS, min(size, len(WORDS))),
                rng.sample(range(-1000, 1000), size),
                [2**63 + place for place in range(size)],
                [place / 8 - 1 for place in range(size)],
                [bytes([place]) for place in range(size)],
                [uuid.UUID(int=place) for place in range(size)],
            ]
        )
        drawn = {Decimal(rng.randint(1, 400)) / 100 for _ in range(4)}
        levels = [*sorted(drawn), Decimal("0.001"), Decimal("12.5"), Decimal(50)]
        case: dict[str, Any] = {
            "key": rng.randbytes(32).hex(),
            "release": rng.choice(["survey-2026", "Erhebung-ä", "r", ""]),
            "attribute": rng.choice(["diagnosis", "smoker", "Größe", "a" * 40]),
            "encoding": "categorical",
            "values": [typed(value) for value in values],
            "object": typed(object_id),
            "truth": rng.randrange(len(values)),
            "levels": [{"epsilon": format_epsilon(level)} for level in levels],
        }
        made.append({**case, "levels": reports(case)})
    return made


def check() -> int:
    """Return how many cases hold; raise where one does not."""
    stored = json.loads(FILE.read_text("utf-8"))
    for number, case in enumerate(stored["cases"]):
        assert reports(case) == case["levels"], f"case {number} of the frozen vectors does not hold"
    return len(stored["cases"])


def held(file: Path, levels: Callable[[dict[str, Any], list[str]], Any]) -> int:
    """Return how many cases of an encoding hold; raise where one does not."""
    stored = json.loads(file.read_text("utf-8"))["cases"]
    for number, case in enumerate(stored):
        assert levels(case, [level["epsilon"] for level in case["levels"]]) == case["levels"], f"case {number}"
    return len(stored)


def make_or_check(file: Path, cases: Callable[[], list[dict[str, Any]]], check: Callable[[], int]) -> None:
    """Write the cases of an encoding where there is no file of them yet, and check that they hold."""
    if not file.exists():
        _write(file, cases())
    print(f"{check()} cases hold")


def _write(file: Path, cases: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    file.write_text(f'{{"version": 1, "cases": [\n{lines}\n]}}\n', "utf-8")


def main(arguments: list[str]) -> None:
    """Check, or write the file where it does not exist yet: version 1 is frozen."""
    if arguments != ["--check"]:
        if FILE.exists():
            sys.exit(f"{FILE.name} is frozen; a change of the stream is a new version with a file of its own.")
        _write(FILE, cases(random.Random(1)))
    print(f"{check()} cases hold")


if __name__ == "__main__":
    main(sys.argv[1:])
