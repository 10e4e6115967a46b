"""Check the proofs in proofs/ with Coq: python -m tests.docs.machine_proofs (`make proofs`). Needs nothing but coqc."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parents[2] / "proofs"
FILES = ("Numbers", "Path", "Privacy", "Bridge", "Rejection", "Encodings", "Vectors", "Assumptions")
"""In the order in which they need each other."""
VECTORS = FOLDER / "Vectors.out"
CLOSED = "Closed under the global context"

# What lets a file through without a proof, or with one of something else.
_LOOPHOLES = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|bypass_check"
    r"|Unset (Guard|Positivity|Universe) Checking)\b"
)


class ProofError(Exception):
    """A proof that is none, or vectors that are not those of the model."""


def compiled(names: tuple[str, ...] = FILES, folder: Path = FOLDER) -> dict[str, str]:
    """Return what Coq says of these files, after it has checked them; they are compiled elsewhere."""
    if shutil.which("coqc") is None:
        raise ProofError("coqc was not found: install Coq 8.16 or newer, on Debian with `apt-get install coq`.")
    said: dict[str, str] = {}
    with TemporaryDirectory() as place:
        for name in names:
            shutil.copy(folder / f"{name}.v", place)
            command = ["coqc", "-q", "-Q", ".", "Relaxdp", f"{name}.v"]
            done = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
            if done.returncode:
                raise ProofError(f"{name}.v is not proven:\n{done.stdout}{done.stderr}")
            said[name] = done.stdout
    return said


def loopholes(source: str) -> list[str]:
    """Return what lets a source through without a proof; comments do not count."""
    while (bare := re.sub(r"\(\*(?:(?!\(\*|\*\)).)*\*\)", "", source, flags=re.DOTALL)) != source:
        source = bare
    return [found.group() for found in _LOOPHOLES.finditer(source)]


def check(said: dict[str, str]) -> None:
    """Refuse proofs that assume something, and vectors that are not those that are kept."""
    for name in FILES:
        if found := loopholes((FOLDER / f"{name}.v").read_text("utf-8")):
            raise ProofError(f"{name}.v has {found[0]}: it proves nothing.")
    if said["Assumptions"].strip() != CLOSED:
        raise ProofError(f"the theorems rest on something:\n{said['Assumptions']}")
    if said["Vectors"] != VECTORS.read_text("utf-8"):
        raise ProofError("Vectors.out is not what the model gives.")


def main() -> None:
    """Compile and check everything, and say how it went."""
    try:
        check(compiled())
    except ProofError as problem:
        sys.exit(str(problem))
    print(f"{', '.join(f'{name}.v' for name in FILES)}: proven. {CLOSED}.")


if __name__ == "__main__":
    main()
