"""Make the package of the browser's device for npm in dist/: the modules as they are, their types, vectors as tests.

The archive is written here and not by npm, so that the same sources give the same bytes on every machine.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEVICE = ROOT / "src" / "relaxdp" / "web" / "device"
TESTS = ("relaxdp.test.mjs", "encodings.test.mjs")
WRITTEN = 499162500  # the time that npm gives to every file: 26 October 1985


def types() -> dict[str, bytes]:
    """Return what tsc makes of the types in comments."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"noEmit": False, "declaration": True, "emitDeclarationOnly": True, "rootDir": str(DEVICE)}
        asked = {"extends": str(ROOT / "tsconfig.json"), "compilerOptions": {**options, "outDir": f"{folder}/types"}}
        Path(folder, "tsconfig.json").write_text(json.dumps({**asked, "include": [str(DEVICE)]}), "utf-8")
        subprocess.run([ROOT / "node_modules" / ".bin" / "tsc", "-p", folder], check=True)
        made = sorted(Path(folder, "types").rglob("*.d.ts"))
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in made}


def tests() -> dict[str, bytes]:
    """Return the tests of what draws, which find modules and vectors where they lie in the package."""
    found = {}
    for name in TESTS:
        text = (ROOT / "tests" / "browser" / name).read_text("utf-8")
        text = text.replace("../../src/relaxdp/web/device/", "../").replace("node --test tests/browser/", "npm test")
        found[f"test/{name}"] = text.replace("../vectors/", "./vectors/").encode()
        if "relaxdp/web" in found[f"test/{name}"].decode():
            sys.exit(f"{name} asks for something that is not in the package")
    asked = re.findall(rb"[a-z-]+-1\.json", b"".join(found.values()))
    for vector in sorted({each.decode() for each in asked}):
        found[f"test/vectors/{vector}"] = (ROOT / "tests" / "vectors" / vector).read_bytes()
    return found


def contents() -> dict[str, bytes]:
    """Return every file of the package by its name in it."""
    modules = [DEVICE / "package.json", *DEVICE.rglob("*.js")]
    found = {file.relative_to(DEVICE).as_posix(): file.read_bytes() for file in modules}
    found["README.md"] = (ROOT / "packages" / "browser" / "README.md").read_bytes()
    found["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return {**found, **types(), **tests()}


def archive(files: dict[str, bytes]) -> bytes:
    """Return them packed as npm does: below `package/`, of nobody in particular."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mtime, entry.mode = len(files[name]), WRITTEN, 0o644
            packed.addfile(entry, io.BytesIO(files[name]))
    return gzip.compress(plain.getvalue(), 9, mtime=0)


def make(target: Path) -> Path:
    """Write the archive and return where it is."""
    files = contents()
    version = json.loads(files["package.json"])["version"]
    target.mkdir(parents=True, exist_ok=True)
    made = target / f"relaxdp-{version}.tgz"
    made.write_bytes(archive(files))
    return made


if __name__ == "__main__":
    package = make(ROOT / "dist")
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    print(f"{package.stat().st_size:>9,} bytes  {digest[:16]}  {package.name}")
