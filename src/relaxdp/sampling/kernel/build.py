"""Build the compiled path: one shared library without Python's headers, for any version of Python.

The package's build hook, `make` and the tests call this; it must not import relaxdp, which may not be installed yet.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
LIBRARY = SOURCES / "relaxdp_kernel.so"  # everywhere: no system asks how a library is called that is loaded by its path
PLATFORM = "RELAXDP_PLATFORM"  # what pip calls the platform for which CC compiles, if that is not this machine
FLAGS = ("-std=c11", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")


def find_compiler() -> list[str] | None:
    """Return the command of a C compiler that can build the library; None where it is missing."""
    is_known = platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64") and os.name == "posix"
    if not is_known and PLATFORM not in os.environ:
        return None
    command = shlex.split(os.environ.get("CC", "cc"))
    return command if command and shutil.which(command[0]) else None


def build_library(library: Path = LIBRARY, *, flags: Sequence[str] = (), sources: Sequence[Path] | None = None) -> bool:
    """Compile the library; return whether there is one now. It appears whole or not at all."""
    command = find_compiler()
    if command is None:
        return False
    files = sorted(SOURCES.glob("*.c")) if sources is None else sources
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder, library.name)
        # Some libraries say how they are called: as they lie here, and not where this folder happens to be.
        line = [*command, *FLAGS, *flags, "-I", str(SOURCES), "-o", made.name, *map(str, files)]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 (the compiler's own words)
        if done.returncode:
            sys.stderr.write(f"The compiled sampler could not be built. NumPy draws instead:\n{done.stderr}")
            return False
        made.replace(library)
    return True


if __name__ == "__main__":
    print(
        f"{LIBRARY.name} is built."
        if build_library()
        else "There is no compiled sampler for this machine. NumPy draws instead."
    )
