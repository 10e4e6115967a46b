"""Compare the result of a scenario with the values recorded for it.

`expected/NAME.json` holds the report values, costs and estimates of one scenario, and `expected/SHA256SUMS` the digests
of these files. Only `RELAXDP_RECORD_GOLDEN=1` writes them, with one process (`-p no:xdist`). Changing a recorded value
needs a reason that is written down with the change.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

EXPECTED = Path(__file__).parent / "expected"
SUMS = EXPECTED / "SHA256SUMS"
RELATIVE_TOLERANCE = 1e-9
LONGEST_SHOWN = 40


def check(name: str, found: Mapping[str, Any], relative_tolerance: float = RELATIVE_TOLERANCE) -> None:
    """Compare a scenario's result with the recorded one: floats within a tolerance, everything else exactly."""
    plain = _plain(found)
    if os.environ.get("RELAXDP_RECORD_GOLDEN"):
        _write(_file_of(name), plain)
    _compare(name, _read(name), plain, relative_tolerance)


def check_part(name: str, part: str, found: Any, relative_tolerance: float = RELATIVE_TOLERANCE) -> None:
    """Compare one part of what is recorded together, like the result of one of several mechanisms."""
    plain = _plain(found)
    if os.environ.get("RELAXDP_RECORD_GOLDEN"):
        _write(_file_of(name), {**(_read(name) if _file_of(name).exists() else {}), part: plain})
    _compare(f"{name}, {part}", _read(name)[part], plain, relative_tolerance)


def digests() -> dict[str, str]:
    """Return the digest of each file of recorded values."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(EXPECTED.glob("*.json"))}


def recorded_digests() -> dict[str, str]:
    """Return the digests in SHA256SUMS."""
    lines = (line.split("  ", 1) for line in SUMS.read_text("utf-8").splitlines())
    return {name: digest for digest, name in lines}


def _file_of(name: str) -> Path:
    return EXPECTED / f"{name}.json"


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_file_of(name).read_text("utf-8"))
    return content


def _compare(name: str, expected: Any, found: Any, relative_tolerance: float) -> None:
    differences = list(_differences(expected, found, "", relative_tolerance))
    assert not differences, f"{name}: " + "; ".join(differences[:5])


def _write(file: Path, content: Mapping[str, Any]) -> None:
    """Write one line for each top-level entry, so that a change is readable in a diff."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items())
    file.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in digests().items()), "utf-8")


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; decimals become text, because they are exact."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a scenario returned a {type(value).__name__}, which cannot be recorded")


def _differences(expected: Any, found: Any, place: str, relative_tolerance: float) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            yield f"{place or 'top level'} has the keys {sorted(found)} instead of {sorted(expected)}"
            return
        for key, value in expected.items():
            yield from _differences(value, found[key], f"{place}/{key}", relative_tolerance)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{place} has {len(found)} items instead of {len(expected)}"
            return
        for number, value in enumerate(expected):
            yield from _differences(value, found[number], f"{place}[{number}]", relative_tolerance)
    elif isinstance(expected, float) and isinstance(found, float):
        if not math.isclose(expected, found, rel_tol=relative_tolerance, abs_tol=1e-12):
            yield f"{place} is {found!r} instead of {expected!r}"
    elif type(expected) is not type(found) or expected != found:
        yield f"{place} is {_shorten(found, expected)} instead of {_shorten(expected, found)}"


def _shorten(value: Any, other: Any) -> str:
    """Return a value as it is shown: of a long text the part that begins with the first difference."""
    if not isinstance(value, str) or not isinstance(other, str) or len(value) <= LONGEST_SHOWN:
        return repr(value)
    start = next((place for place, letters in enumerate(zip(value, other, strict=False)) if len({*letters}) > 1), 0)
    return f"{value[start : start + LONGEST_SHOWN]!r} from place {start} on"
