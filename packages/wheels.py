"""Make the packages for an index into dist/: the sources, a pure wheel, and one with the compiled path per platform.

The wheels are made from the unpacked sources, so that what is missing there is missed here. A cross compiler (`zig cc`)
makes the compiled path of every platform on any of them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PURE = "any"
# What pip calls a platform, and what the compiler calls it: the oldest system for which the wheel is meant.
PLATFORMS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64.manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}


def compiler(platform: str) -> list[str]:
    """Return the command that compiles for a platform. Symbols are left out: they hold the paths of this machine."""
    return [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[platform], "-s"]


def make(kind: str, source: Path, target: Path, **settings: str) -> Path:
    """Make one package in a folder of its own, and move it to `target` when it is whole."""
    with tempfile.TemporaryDirectory(dir=target) as folder:
        line = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
        # Hatchling's own time is the same for everybody, and settings of the person who packs do not count.
        ignored = ("SOURCE_DATE_EPOCH", "RELAXDP_BUNDLE")
        environment = {name: value for name, value in os.environ.items() if name not in ignored}
        done = subprocess.run(
            line, cwd=source, env={**environment, **settings}, capture_output=True, text=True, check=False
        )
        if done.returncode or "could not be built" in done.stderr:
            sys.exit(f"{kind} {settings.get('RELAXDP_PLATFORM', '')}: {done.stderr}")
        (made,) = Path(folder).iterdir()
        return made.replace(target / made.name)


def packages(target: Path, platforms: Sequence[str]) -> Iterator[Path]:
    """Make the sources, and a wheel for each platform."""
    target.mkdir(parents=True, exist_ok=True)
    sources = make("sdist", ROOT, target)
    yield sources
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sources) as archive:
            archive.extractall(folder, filter="data")
        (tree,) = Path(folder).iterdir()
        (tree / "node_modules").symlink_to(ROOT / "node_modules")  # what bundles the pages
        for platform in platforms:
            if platform == PURE:
                yield make("wheel", tree, target, RELAXDP_KERNEL="off")
            else:
                yield make("wheel", tree, target, RELAXDP_PLATFORM=platform, CC=shlex.join(compiler(platform)))


def main() -> None:
    """Make all, or those that are named, and say what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "dist")
    parser.add_argument(
        "--platform", action="append", choices=[PURE, *PLATFORMS], help="only this one; may be repeated"
    )
    asked = parser.parse_args()
    if not (ROOT / "node_modules" / ".bin" / "esbuild").exists() or not shutil.which("node"):
        sys.exit("pages are bundled with esbuild and node: run `make node_modules/.stamp` first")
    for made in packages(asked.target, asked.platform or [PURE, *PLATFORMS]):
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        print(f"{made.stat().st_size:>9,} bytes  {digest[:16]}  {made.name}", flush=True)


if __name__ == "__main__":
    main()
