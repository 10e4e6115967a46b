"""What the figures were measured on, without what would name the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from relaxdp.sampling.kernel.c_library import get_sampler_name

PACKAGES = ("relaxdp", "numpy", "pyarrow", "cryptography", "multi-freq-ldpy", "numba", "pure-ldp", "opendp")


def machine() -> list[tuple[str, str]]:
    """Return names and descriptions."""
    flags = _flags()

    def has(prefix: str) -> str:
        return "unknown" if flags is None else "yes" if any(flag.startswith(prefix) for flag in flags) else "no"

    return [
        ("system", f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores (one is used)"),
        ("AES instructions", has("aes")),
        ("VAES instructions", has("vaes")),
        ("AVX-512 instructions", has("avx512")),
        ("what draws", get_sampler_name()),
        (platform.python_implementation(), platform.python_version()),
        *((package, _version(package)) for package in PACKAGES),
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _flags() -> set[str] | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((set(line.split()) for line in lines if line.lower().startswith(("flags", "features"))), None)
