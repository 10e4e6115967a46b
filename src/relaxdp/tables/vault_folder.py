"""The folder of a vault: its settings, key, ledger and snapshots, and the stamp by which an older copy is noticed.

Opening never creates anything: a missing ledger is damage. The stamp lies outside of the vault, in the user's state
folder, and names the last event that this machine has seen. A vault behind its stamp, or with another history, is
rejected until it is adopted: it would forget what was spent.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import tomllib
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import time
from typing import Any

from relaxdp.errors import OldVaultError, StateFolderWarning, VaultError, replace_os_error
from relaxdp.ledger.account import Account
from relaxdp.ledger.events import Event
from relaxdp.ledger.ledger import Ledger, open_store
from relaxdp.sampling.keys import Key
from relaxdp.sampling.private_file import (
    PrivateFileError,
    get_state_folder,
    lock_folder,
    read_private_file,
    sync_folder,
    write_private_file,
)
from relaxdp.tables.snapshot import SNAPSHOT_SUFFIX, STAGED_PREFIX, get_snapshot_path

SETTINGS, KEY, LEDGER, SNAPSHOTS, IGNORE = "vault.toml", "key", "ledger.db", "snapshots", ".gitignore"
VARIABLE = "RELAXDP_VAULT"
SUFFIX = ".vault"
_VERSION = 1
_DAY = 86_400
_PUT_KEY_BACK = "Copy the vault's key to the file that [key] in vault.toml names, or correct [key]."


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """The content of vault.toml."""

    vault: str
    """The vault's id: random, and the same in every copy."""
    key_fingerprint: str
    key_file: str | None
    """Relative to the vault, or absolute."""
    key_command: str | None
    ledger: str | None
    """The URL of a PostgreSQL database; None for the file in the vault."""
    worker_key_file: str | None
    """Where Spark's workers find the key."""

    def to_toml(self) -> str:
        """Return the content of vault.toml."""
        key = {
            "file": self.key_file, "command": self.key_command, "fingerprint": self.key_fingerprint,
            "worker_file": self.worker_key_file,
        }  # fmt: skip
        lines = [f"version = {_VERSION}", f"id = {_quote_toml(self.vault)}", "", "[key]"]
        lines += [f"{name} = {_quote_toml(text)}" for name, text in key.items() if text is not None]
        lines += [] if self.ledger is None else ["", "[ledger]", f"url = {_quote_toml(self.ledger)}"]
        return "\n".join([*lines, ""])

    @classmethod
    def from_toml(cls, text: str) -> VaultSettings | None:
        """Return the settings, or None for text that holds none."""
        try:
            content = tomllib.loads(text)
            key, ledger = content["key"], content.get("ledger", {})
            found = (key.get("file"), key.get("command"), ledger.get("url"), key.get("worker_file"))
            texts = (content["id"], key["fingerprint"], *(each for each in found if each is not None))
            if content["version"] != _VERSION or not all(isinstance(each, str) for each in texts):
                return None
            if not re.fullmatch("[0-9a-f]{32}", content["id"]) or (found[0] is None) == (found[1] is None):
                return None
            return cls(content["id"], key["fingerprint"], *found)
        except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError):
            return None


def _make_missing_error(vault: Path, name: str) -> VaultError:
    return VaultError(
        "The vault '{path}' is damaged: '{name}' is missing.",
        hint="Restore the vault from a backup. A new ledger would forget what was spent.",
        path=vault.name,
        name=name,
    )


def _quote_toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def resolve_vault_path(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of the vault: the given one, that of RELAXDP_VAULT, or the only vault in the current folder."""
    named = path if path is not None else os.environ.get(VARIABLE) or None
    if named is not None:
        if not os.fspath(named):
            raise VaultError("The path of the vault is empty.", hint="Name a folder, such as study.vault.")
        return Path(named)
    found = sorted(each for each in Path().glob(f"*{SUFFIX}") if each.is_dir())
    if len(found) == 1:
        return found[0]
    if found:
        raise VaultError(
            "There are {count} vaults in this folder: {names}.",
            hint="Name one with --vault FOLDER, or set the environment variable RELAXDP_VAULT.",
            count=len(found),
            names=", ".join(repr(each.name) for each in found),
        )
    raise VaultError(
        "There is no vault in this folder.",
        hint="Create one with `relaxdp init study.vault --budget 2`, or name one with --vault or RELAXDP_VAULT.",
    )


class VaultFolder:
    """The folder of a vault on disk: its settings, key, ledger and snapshots. The vault is open while this exists."""

    def __init__(self, path: Path) -> None:
        """Open a vault, or reject what is missing, damaged or open to others."""
        self.path = path.resolve()  # the modes of a folder count, not those of a link to it
        self.snapshots = self.path / SNAPSHOTS
        if not (self.path / SETTINGS).exists():
            raise VaultError(
                "There is no vault at '{path}'.",
                hint="Create one with rx.Vault.create('{path}', budget=2) or `relaxdp init '{path}' --budget 2`.",
                path=str(path),
            )
        problems = self.find_paths_open_to_others()
        if problems:
            raise VaultError(
                "'{path}' can be read by other users of this machine.",
                hint="Run: chmod {mode} '{path}'",
                path=str(problems[0]),
                mode="700" if problems[0].is_dir() else "600",
            )
        self.settings = settings = self._read_settings()
        self.id = settings.vault
        for name in (SNAPSHOTS, *([LEDGER] if settings.ledger is None else [])):
            if not (self.path / name).exists():
                raise _make_missing_error(self.path, name)
        self.key = self._load_key()
        ledger = self.path / LEDGER if settings.ledger is None else settings.ledger
        self.ledger = Ledger(open_store(ledger, settings.vault), self.key, self.id)

    @classmethod
    def create(
        cls,
        path: Path,
        make_first_event: Callable[[VaultSettings], Event],
        *,
        key_file: Path | None,
        key_command: str | None,
        ledger: str | None,
        worker_key_file: str | None,
    ) -> None:
        """Make a vault with a first event. It appears whole, or not at all."""
        if key_file is not None and key_command is not None:
            raise VaultError("`key_file` and `key_command` cannot be combined.", hint="Leave one of them out.")
        place = path.absolute()
        if os.path.lexists(place):
            raise VaultError("'{path}' already exists.", hint="Choose another path for the vault.", path=str(path))
        made = place.with_name(f".{place.name}.{secrets.token_hex(6)}.relaxdp-unfinished")
        vault_id = secrets.token_hex(16)
        store = open_store(made / LEDGER if ledger is None else ledger, vault_id)
        key = Key.generate() if key_command is None else Key.from_command_for_vault(key_command)
        _reject_second_vault(key.fingerprint)
        outside = None if key_file is None else key_file.absolute()
        kept = None if key_command is not None else KEY if outside is None else str(outside)
        settings = VaultSettings(vault_id, key.fingerprint, kept, key_command, ledger, worker_key_file)
        is_saved = False
        try:
            made.mkdir(0o700)
            (made / SNAPSHOTS).mkdir(0o700)
            _write_settings(made, settings)
            if key_command is None:
                key.save_for_vault(outside or made / KEY)
                is_saved = True
            account = Ledger(store, key, vault_id).create(make_first_event(settings))
            _write_stamp(settings, place, account, is_adopted=True)
            made.rename(place)
        except BaseException as problem:
            shutil.rmtree(made, ignore_errors=True)
            if not place.exists():
                with suppress(OSError, RuntimeError):
                    _get_stamp_path(vault_id).unlink(missing_ok=True)
                if is_saved and outside is not None:
                    outside.unlink(missing_ok=True)
            if isinstance(problem, OSError | PrivateFileError):
                raise VaultError(
                    "The vault '{path}' cannot be created: {why}.",
                    hint="Choose a folder that exists and that you can write to.",
                    path=str(path),
                    why=_describe_problem(problem),
                ) from None
            raise
        with suppress(OSError):  # the vault is there; a power failure may take its name away again
            sync_folder(place.parent)

    @property
    def worker_key_file(self) -> str | None:
        """Where Spark's workers find the key: as vault.toml names it, or the key file itself."""
        if self.settings.worker_key_file is not None:
            return self.settings.worker_key_file
        return None if self.settings.key_file is None else str(self.path / self.settings.key_file)

    def _read_settings(self) -> VaultSettings:
        place = self.path / SETTINGS
        try:
            settings = VaultSettings.from_toml((read_private_file(place) or b"").decode("utf-8", "replace"))
        except PrivateFileError as problem:
            raise VaultError(
                "The file '{path}' of the vault {problem}.",
                hint="Make it a file that only you can read, or restore it from a backup of the vault.",
                path=str(place),
                problem=problem,
            ) from None
        if settings is None:
            raise VaultError(
                "'{path}' is damaged, or was written by another version of relaxdp.",
                hint="Use the version that wrote it. If that is this one, restore the file from a backup of the vault.",
                path=str(place),
            )
        return settings

    def _load_key(self) -> Key:
        settings = self.settings
        if settings.key_command is not None:
            key = Key.from_command_for_vault(settings.key_command)
        else:
            place = self.path / str(settings.key_file)
            if not place.exists():
                raise VaultError("The key file '{path}' of the vault is missing.", hint=_PUT_KEY_BACK, path=str(place))
            key = Key.load_from_vault(place)
        if key.fingerprint != settings.key_fingerprint:
            raise VaultError(
                "The key of the vault '{path}' must have the fingerprint {known}, but the key found has {given}.",
                hint=_PUT_KEY_BACK,
                path=self.path.name,
                known=settings.key_fingerprint,
                given=key.fingerprint,
            )
        return key

    def find_paths_open_to_others(self) -> list[Path]:
        """Return the files and folders of the vault that other users of this machine can read or write."""
        if os.name != "posix":  # pragma: no cover
            return []
        files = [self.path, *(each for each in self.path.iterdir() if each.name != IGNORE)]
        with suppress(OSError):
            files += self.snapshots.iterdir()
        return [each for each in files if _is_open_to_others(each)]

    # The ledger and its stamp.

    def read_account(self) -> Account:
        """Read the ledger, and reject an older, forked or copied vault."""
        account, problem = self.read_account_and_problem()
        if problem:
            raise self._make_old_vault_error(problem)
        return account

    def read_account_and_problem(self) -> tuple[Account, str | None]:
        """Read the ledger, and describe how it contradicts the stamp on this machine; None where it does not."""
        # The stamp first: another process writes the ledger before the stamp.
        stamp, account = _read_stamp(self.id), self.ledger.read_account()
        if stamp is None:
            is_shared = self.settings.ledger is not None
            return account, None if is_shared else "is not known on this machine: it was copied, moved here or restored"
        return account, _find_contradiction(stamp, account, self.ledger.get_digest(stamp[0]))

    def _make_old_vault_error(self, problem: str) -> OldVaultError:
        return OldVaultError(
            "The vault '{path}' {problem}. It may have forgotten what was spent.",
            hint="Use the newest copy of the vault. If this is the newest, run "
            '`relaxdp check --adopt "why"`, or vault.adopt(reason="why").',
            path=self.path.name,
            problem=problem,
        )

    def append_event(self, make_event: Callable[[Account], Event | None]) -> Account:
        """Append an event to the ledger, durably, and then move the stamp.

        The stamp is compared again, and no other process moves it meanwhile: a copy may have been charged by now.
        """
        with _lock_stamps():
            stamp = _read_stamp(self.id)

            def check(account: Account) -> Event | None:
                if stamp is not None and stamp[0] >= account.number:
                    problem = _find_contradiction(stamp, account, account.digest)
                    if problem:
                        raise self._make_old_vault_error(problem)
                return make_event(account)

            account = self.ledger.append_event(check)
            _write_stamp(self.settings, self.path, account, is_adopted=False)
        return account

    def adopt_copy(self, make_event: Callable[[Account], Event]) -> None:
        """Adopt this copy of the vault as the newest one, with an event, although this machine has seen another."""
        account = self.ledger.append_event(make_event)
        _write_stamp(self.settings, self.path, account, is_adopted=True)

    # Snapshots.

    @contextmanager
    def lock_snapshots(self, account: Account) -> Iterator[None]:
        """Lock the folder of the snapshots while some are written, and first remove snapshots of interrupted releases.

        Releases hold the folder together, and only one that is alone removes anything. Where machines share the folder,
        the lock of another one may not be seen, so that only old files are removed.
        """
        try:
            descriptor = os.open(self.snapshots, os.O_RDONLY)
        except OSError:
            raise _make_missing_error(self.path, SNAPSHOTS) from None
        import fcntl  # noqa: PLC0415 (Windows has none, and can still estimate)

        try:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._remove_unnamed_snapshots(account)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def _remove_unnamed_snapshots(self, account: Account) -> None:
        unnamed = self._find_unnamed_snapshots(account)
        # A release may have ended after the account was read: what is removed must be unnamed under the lock.
        for left in unnamed and self._find_unnamed_snapshots(self.ledger.read_account()):
            with suppress(OSError):
                if self.settings.ledger is None or left.stat().st_mtime < time() - _DAY:
                    left.unlink()

    def _find_unnamed_snapshots(self, account: Account) -> list[Path]:
        named = {get_snapshot_path(self.snapshots, digest) for digest in list_needed_snapshot_digests(account)}
        ours = (
            each
            for each in self.snapshots.iterdir()
            if each.name.startswith(STAGED_PREFIX) or each.name.endswith(SNAPSHOT_SUFFIX)
        )
        return [each for each in ours if each not in named]

    def remove_superseded_snapshots(self, old_account: Account, new_account: Account) -> None:
        """Remove the snapshots that the ledger named before and does not name any more."""
        for digest in set(list_needed_snapshot_digests(old_account)) - set(list_needed_snapshot_digests(new_account)):
            with suppress(OSError):
                get_snapshot_path(self.snapshots, digest).unlink(missing_ok=True)


def list_needed_snapshot_digests(account: Account) -> list[str]:
    """Return the digests of all snapshots that releases continue from."""
    found: list[str] = []
    for release in account.releases.values():
        if not release.retired:
            found += [column.snapshot for column in release.columns.values()]
            found += [] if release.passthrough_snapshot is None else [release.passthrough_snapshot]
    return found


def _is_open_to_others(path: Path) -> bool:
    with suppress(FileNotFoundError):  # another process may have removed it: a journal, or an older snapshot
        found = path.lstat().st_mode
        return not stat.S_ISLNK(found) and bool(found & (stat.S_IRWXG | stat.S_IRWXO))
    return False


def _write_settings(folder: Path, settings: VaultSettings) -> None:
    write_private_file(folder / SETTINGS, settings.to_toml().encode(), replace=False)
    write_private_file(folder / IGNORE, b"*\n", replace=False)


def _describe_problem(problem: BaseException) -> str:
    return getattr(problem, "strerror", None) or str(problem)


# Stamps.


def _get_stamp_folder() -> Path:
    return get_state_folder() / "vaults"


def _get_stamp_path(vault: str) -> Path:
    return _get_stamp_folder() / f"{vault}.json"


def _read_stamp(vault: str) -> tuple[int, str] | None:
    content = _read_json(_get_stamp_path(vault))
    try:
        return None if content is None else (int(content["event"]), str(content["digest"]))
    except (KeyError, TypeError, ValueError):
        return None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_private_file(path) or b"null")
    except (ValueError, PrivateFileError, OSError, RuntimeError):
        return None


@contextmanager
def _lock_stamps() -> Iterator[None]:
    """Hold all stamps of this user against other processes, where the state folder can be used."""
    with ExitStack() as stack:
        with suppress(OSError, PrivateFileError, RuntimeError):
            _get_stamp_folder().mkdir(0o700, parents=True, exist_ok=True)
            stack.enter_context(lock_folder(_get_stamp_folder()))
        yield


def _find_contradiction(stamp: tuple[int, str], account: Account, digest: str | None) -> str | None:
    """Describe how a stamp contradicts a vault, which has this digest of its event; None where it does not."""
    if stamp[0] > account.number:
        return f"is older than its last use here: it has {account.number} events, and had {stamp[0]}"
    if stamp[1] != digest:
        return "has another history than the vault that was used here before: two copies were used"
    return None


def _write_stamp(settings: VaultSettings, path: Path, account: Account, *, is_adopted: bool) -> None:
    """Write a stamp, the last event of a vault. It only moves forward, under the caller's lock, unless adopted."""
    content = {
        "vault": settings.vault, "path": str(path), "key": settings.key_fingerprint,
        "event": account.number, "digest": account.digest,
    }  # fmt: skip
    try:
        _get_stamp_folder().mkdir(0o700, parents=True, exist_ok=True)
        with lock_folder(_get_stamp_folder()) if is_adopted else nullcontext():
            known = _read_stamp(settings.vault)
            if known is None or known[0] < account.number or is_adopted:
                write_private_file(_get_stamp_path(settings.vault), json.dumps(content).encode(), replace=True)
    except (OSError, PrivateFileError, RuntimeError) as problem:
        why = _describe_problem(problem)
        if is_adopted:
            raise VaultError(
                "The state folder of this user cannot be written: {why}. relaxdp notes there which copy of the vault "
                "is the newest.",
                hint="Set the environment variable XDG_STATE_HOME to a folder that you can write to.",
                why=why,
            ) from None
        warnings.warn(
            f"The stamp of the vault cannot be written: {why}. An older copy of the vault may go unnoticed.",
            StateFolderWarning,
            stacklevel=2,
        )


def _reject_second_vault(fingerprint: str) -> None:
    """Reject a key that another vault of this machine has: the two would not add up."""
    with suppress(OSError, RuntimeError):
        for place in _get_stamp_folder().glob("*.json"):
            content = _read_json(place)
            if isinstance(content, dict) and content.get("key") == fingerprint:
                raise VaultError(
                    "The vault '{path}' already uses this key.",
                    hint="Use another key. Each vault needs its own key, because costs of two vaults are not added up.",
                    path=str(content.get("path")),
                )


_ATTEMPTS = 5


def copy_vault(vault: VaultFolder, folder: Path, *, with_key: bool) -> Path:
    """Copy a vault to a new folder, which is itself a vault if it has the key."""
    if os.path.lexists(folder):
        raise VaultError("{path!r} already exists.", hint="Choose a new folder for the backup.", path=str(folder))
    if with_key and vault.settings.key_file is None:
        raise VaultError(
            "The vault was not copied: its key comes from a command, so there is no key file to copy with it.",
            hint="Leave out `with_key` (--with-key), and back up the key where the command gets it from.",
        )
    hint = "Choose a new folder in one that exists, that you can write to, and that has enough free space."
    with replace_os_error(VaultError, "The backup {path!r} cannot be written: {why}.", hint=hint, path=str(folder)):
        folder.mkdir(0o700)
        try:
            _copy_vault_files(vault, folder, with_key=with_key)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def _copy_vault_files(vault: VaultFolder, folder: Path, *, with_key: bool) -> None:
    (folder / SNAPSHOTS).mkdir(0o700)
    settings = replace(vault.settings, key_file=KEY) if with_key else vault.settings
    _write_settings(folder, settings)
    for attempt in range(_ATTEMPTS):
        # A release that ends meanwhile replaces snapshots: then ledger and snapshots are copied again.
        (folder / LEDGER).unlink(missing_ok=True)
        account = vault.ledger.copy_to(folder / LEDGER)
        digests = list_needed_snapshot_digests(account)
        missing = [digest for digest in digests if not _copy_snapshot(vault.snapshots, folder / SNAPSHOTS, digest)]
        if not missing:
            break
        if attempt == _ATTEMPTS - 1:
            raise VaultError(
                "The vault '{path}' lacks {count} of its snapshots (its copies of released rows).",
                hint="Run `relaxdp check` to see which, and restore them from an older backup.",
                path=vault.path.name,
                count=len(missing),
            )
    for left in (folder / SNAPSHOTS).iterdir():
        if left not in {get_snapshot_path(folder / SNAPSHOTS, digest) for digest in digests}:
            left.unlink()
    if with_key:
        vault.key.save_for_vault(folder / KEY)
    sync_folder(folder / SNAPSHOTS)
    sync_folder(folder)


def _copy_snapshot(source: Path, target: Path, digest: str) -> bool:
    place = get_snapshot_path(target, digest)
    if place.exists():
        return True
    try:
        with get_snapshot_path(source, digest).open("rb") as file:
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
    except FileNotFoundError:
        return False
    return True
