"""The folder of results: it appears whole or not at all, and only takes the place of what an earlier run wrote."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from relaxdp.errors import OutputFolderError

MANIFEST = "manifest.json"
_FORMAT = "relaxdp reproduce 1"


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds anything but the unchanged files of an earlier run. An empty one is fine."""
    if not folder.exists():
        return
    if not folder.is_dir():
        _refuse(folder, "is not a folder")
    present = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    if not present:
        return
    written = _written(folder / MANIFEST)
    if written is None:
        _refuse(folder, "holds files that no earlier run has written")
    for name, path in sorted(present.items()):
        if name != MANIFEST and written.get(name) != _digest(path.read_bytes()):
            _refuse(folder, f"holds {name!r}, which no earlier run has written or which was changed since")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files aside, then give the folder its name; an earlier run's folder goes away."""
    refuse_foreign(folder)
    manifest = {"format": _FORMAT, "files": {name: _digest(content) for name, content in sorted(files.items())}}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as aside:
            place = Path(aside) / "new"
            place.mkdir()
            for name, content in {**files, MANIFEST: json.dumps(manifest, indent=1).encode()}.items():
                target = place / name
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(content)
            _replace(place, folder, old=Path(aside) / "old")
    except OSError as problem:
        raise OutputFolderError(
            "the folder {path!r} cannot be written: {why}.", why=problem.strerror, path=str(folder)
        ) from None


def _replace(place: Path, folder: Path, *, old: Path) -> None:
    """Give the new folder its name; if that fails, the earlier one gets its name back."""
    if folder.exists():
        folder.rename(old)
    try:
        place.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise


def _written(manifest: Path) -> dict[str, str] | None:
    """Return the digests of what an earlier run wrote, or None where there was none."""
    try:
        content = json.loads(manifest.read_text("utf-8"))
        return dict(content["files"]) if content["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _refuse(folder: Path, reason: str) -> NoReturn:
    raise OutputFolderError("{path!r} {reason}. Name another folder.", reason=reason, path=str(folder))
