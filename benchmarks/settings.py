"""How much is measured: everything in full, or just enough to see that the suite works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers of objects and of rounds."""

    rounds: int
    path_objects: int
    client_objects: int
    """For peers that are called once per value: fewer, and compared by objects per second."""
    opendp_objects: int
    step_objects: int
    path_memory: tuple[int, int]
    step_memory: tuple[int, int]
    fleet_devices: int
    unary_objects: int


FULL = Settings(
    rounds=9,
    path_objects=2_000_000,
    client_objects=200_000,
    opendp_objects=10_000,
    step_objects=50_000_000,
    path_memory=(1_000_000, 8_000_000),
    step_memory=(10_000_000, 50_000_000),
    fleet_devices=1_000_000,
    unary_objects=20_000,
)
QUICK = Settings(
    rounds=2,
    path_objects=50_000,
    client_objects=5_000,
    opendp_objects=500,
    step_objects=500_000,
    path_memory=(100_000, 200_000),
    step_memory=(200_000, 400_000),
    fleet_devices=20_000,
    unary_objects=500,
)
