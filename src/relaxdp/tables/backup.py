"""Backups of a vault: a new folder with its settings, its ledger and the snapshots that the ledger names."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from relaxdp.errors import VaultError
from relaxdp.sampling.private_file import sync_folder, write_private
from relaxdp.tables.folder import IGNORE, KEY, LEDGER, SETTINGS, SNAPSHOTS, VaultFolder, list_snapshots
from relaxdp.tables.snapshot import snapshot_path

_ATTEMPTS = 5


def back_up(vault: VaultFolder, folder: Path, *, with_key: bool) -> Path:
    """Copy a vault to a new folder, which is itself a vault if it has the key."""
    if os.path.lexists(folder):
        raise VaultError("{path!r} already exists.", hint="Choose a new folder for the backup.", path=str(folder))
    if with_key and vault.settings.key_file is None:
        raise VaultError(
            "The key of this vault comes from a command, so it is not copied.", hint="Back it up where it is kept."
        )
    try:
        folder.mkdir(0o700)
        try:
            _copy(vault, folder, with_key=with_key)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as problem:
        raise VaultError(
            "The backup {path!r} cannot be written: {why}.",
            hint="Choose a new folder in one that exists, that you can write to, and that has enough free space.",
            path=str(folder),
            why=problem.strerror or "the disk may be full",
        ) from None
    return folder


def _copy(vault: VaultFolder, folder: Path, *, with_key: bool) -> None:
    (folder / SNAPSHOTS).mkdir(0o700)
    settings = replace(vault.settings, key_file=KEY) if with_key else vault.settings
    write_private(folder / SETTINGS, settings.to_toml().encode(), replace=False)
    write_private(folder / IGNORE, b"*\n", replace=False)
    for attempt in range(_ATTEMPTS):
        # A release that ends meanwhile replaces snapshots: then ledger and snapshots are copied again.
        (folder / LEDGER).unlink(missing_ok=True)
        account = vault.ledger.copy_to(folder / LEDGER)
        digests = list_snapshots(account)
        missing = [digest for digest in digests if not _copy_snapshot(vault.snapshots, folder / SNAPSHOTS, digest)]
        if not missing:
            break
        if attempt == _ATTEMPTS - 1:
            raise VaultError(
                "The vault '{path}' lacks {count} snapshots.",
                hint="Run `relaxdp check` to see which, and restore them from an older backup.",
                path=vault.path.name,
                count=len(missing),
            )
    for left in (folder / SNAPSHOTS).iterdir():
        if left not in {snapshot_path(folder / SNAPSHOTS, digest) for digest in digests}:
            left.unlink()
    if with_key:
        vault.key.save_for_vault(folder / KEY)
    sync_folder(folder / SNAPSHOTS)
    sync_folder(folder)


def _copy_snapshot(source: Path, target: Path, digest: str) -> bool:
    place = snapshot_path(target, digest)
    if place.exists():
        return True
    try:
        with snapshot_path(source, digest).open("rb") as file:
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
    except FileNotFoundError:
        return False
    return True
