"""The people of the service's scenarios: fixed secrets, limits and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.golden.driver_server import Device, Secrets

QUESTIONS = (
    "commute", "diet", "lunch", "sport", "age", "city-oue", "city-sue", "city-olh", "years", "minutes", "word",
    "smoker", "weekly", "dated", "precise", "kept",
)  # fmt: skip
"""Every question of a scenario has its place here, which is part of the secrets of its devices."""
T = TypeVar("T")
LIMITS = ("0.5", "1", "1.5", "2", "4")


def secrets_of(number: int) -> Secrets:
    """Return the secrets of a device: a key and a pseudonym for every question."""
    return Secrets(
        keys={name: bytes([1, number, place]) + bytes(range(29)) for place, name in enumerate(QUESTIONS)},
        pseudonyms={name: bytes([2, number, place]) + bytes(range(13)) for place, name in enumerate(QUESTIONS)},
    )


def pseudonyms(count: int, first: int = 0) -> list[str]:
    """Return pseudonyms of devices that send their reports all at once."""
    return [f"{number:032x}" for number in range(first, first + count)]


def make_devices(folder: Path, limits: Mapping[int, str]) -> dict[int, Device]:
    """Make Python devices by their numbers, each with its limit."""
    folder.mkdir(parents=True, exist_ok=True)
    return {number: Device(folder / f"device-{number}", limit, secrets_of(number)) for number, limit in limits.items()}


def at_once(action: Callable[[T], object], devices: Iterable[T]) -> None:
    """Let devices act at the same time: most of what they do is waiting for the disk."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(action, devices))
