"""Secret keys: made, saved with mode 0600, loaded with suspicion, and never shown."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import shlex
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from relaxdp.errors import KeyFileError, add_consequence, hide_secret_keys
from relaxdp.sampling.private_file import PrivateFileError, read_private_file, write_private_file

_GIVE_PATH = 'Pass a path such as "study.key".'

SALT = b"relaxdp stream 1"
KEY_BYTES = 32
_HEADER = "relaxdp key 1"
_VAULT_HEADER = "relaxdp vault key 1"
_NAME_ONE = "Pass a file that rx.Key.generate().save(...) wrote, or restore the file from a backup."
_DIGITS = re.compile(rb"\s*([0-9a-fA-F]{64})\s*", re.ASCII)


def add_length_prefix(data: bytes) -> bytes:
    """Return lp(data): its length in four bytes, then the data."""
    return struct.pack("<I", len(data)) + data


class Key:
    """Hold the 32-byte secret of all draws. Anyone who has it can check guesses of true values against reports.

    Create a key with `Key.generate`, and read a saved one with `Key.load`.

    Args:
        secret: Exactly 32 bytes.

    Raises:
        KeyFileError: The secret is not 32 bytes.

    Example:
        >>> Key.from_bytes(bytes(range(32)))
        <relaxdp.Key 404702b4a9c7e559>
    """

    __slots__ = ("__secret", "source")

    source: Path | None
    """The file that the key was loaded from, for workers that have to load it themselves; None where there is none."""

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes | bytearray) or len(secret) != KEY_BYTES:
            raise KeyFileError(
                "A key must be exactly {key_bytes} bytes, got {given}.",
                hint='Use rx.Key.generate() for a new key, or rx.Key.load("study.key") for a saved one.',
                key_bytes=KEY_BYTES,
                given=f"{len(secret)} bytes" if isinstance(secret, bytes | bytearray) else type(secret).__name__,
            )
        self.__secret = bytes(secret)
        self.source = None

    @classmethod
    def generate(cls) -> Key:
        """Return a new key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Key:
        """Return the key with these 32 bytes."""
        return cls(raw)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Key:
        """Read a key file.

        Args:
            path: The path of a file that `save` wrote.

        Returns:
            The key.

        Raises:
            KeyFileError: The file is missing or damaged, or others may read it. The key of a vault is rejected too,
                because every draw with it must be charged to the vault.
        """
        return cls._load(path, _HEADER)

    @classmethod
    def load_from_vault(cls, path: str | os.PathLike[str]) -> Key:
        """Read the key of a vault, which only the vault does."""
        return cls._load(path, _VAULT_HEADER)

    @classmethod
    def _load(cls, path: str | os.PathLike[str], header: str) -> Key:
        place = check_key_path(path)
        try:
            content = read_private_file(place)
        except PrivateFileError as problem:
            if _has_no_key_header(place):  # no advice to change the mode of a file that is no key
                raise KeyFileError(
                    "The file {path!r} is not a relaxdp key file.", hint=_NAME_ONE, path=str(place)
                ) from None
            hint = problem.hint or "Check the owner and the mode of the file."
            raise KeyFileError(
                "The key file {path!r} {problem}.", hint=hint, problem=problem.what, path=str(place)
            ) from None
        if content is None:
            raise KeyFileError(
                "There is no key file {path!r}.",
                hint="Make one with rx.Key.generate().save({path!r}), or create a vault, which holds its own key.",
                path=str(place),
            )
        key = cls._parse(content, header)
        if key is None and cls._parse(content, _VAULT_HEADER) is not None:
            raise KeyFileError(
                "The file {path!r} is the key of a vault. Only the vault may use it, because all reports are charged.",
                hint="Use the vault: rx.Vault(...).release(...), or `relaxdp release`.",
                path=str(place),
            )
        if key is None:
            raise KeyFileError(
                "The file {path!r} is not a relaxdp key file, or it is damaged.", hint=_NAME_ONE, path=str(place)
            )
        key.source = place.absolute()
        return key

    @classmethod
    def from_command(cls, command: str | Sequence[str]) -> Key:
        """Run a command, without a shell, that prints a key.

        Its standard error goes to the terminal. Its output is never shown.

        Args:
            command: A command that prints the content of a key file, or 64 hexadecimal digits.

        Returns:
            The key.

        Raises:
            KeyFileError: The command fails, or does not print a key.
        """
        return cls._read_from_command(command, [_HEADER])

    @classmethod
    def from_command_for_vault(cls, command: str | Sequence[str]) -> Key:
        """Run a command that prints the key of a vault, which only the vault does."""
        return cls._read_from_command(command, [_VAULT_HEADER, _HEADER])

    @classmethod
    def _read_from_command(cls, command: str | Sequence[str], headers: Sequence[str]) -> Key:
        program = ""
        try:
            words = split_command(command)
            program = Path(words[0]).name  # its other words may be private
            if any(hide_secret_keys(word) != word for word in words):
                raise KeyFileError(
                    "The key command contains what looks like the key itself. With the key, anyone can check "
                    "guesses against reports.",
                    hint="Pass a command that prints the key, such as 'pass show study'. Remove this one from the "
                    "history of your shell.",
                )
            key = cls._parse_command_output(run_command(words), headers)
        except KeyCommandError as problem:
            raise KeyFileError(
                "The key command {program!r} {problem}.",
                hint="Run the command yourself. It must print the key and end with status 0.",
                program=program,
                problem=problem,
            ) from None
        if key is None:
            raise KeyFileError(
                "The key command {program!r} printed no key: expected the content of a key file, or 64 hex digits.",
                hint="Run the command yourself and check its output.",
                program=program,
            )
        return key

    @classmethod
    def _parse_command_output(cls, content: bytes, headers: Sequence[str]) -> Key | None:
        """Return the key that a command printed: like a file, or its digits alone."""
        digits = _DIGITS.fullmatch(content)
        if digits is not None:
            return cls(bytes.fromhex(digits[1].decode("ascii")))
        return next(filter(None, (cls._parse(content, header) for header in headers)), None)

    @classmethod
    def _parse(cls, content: bytes, expected_header: str = _HEADER) -> Key | None:
        """Return the key, or None for what is none: an exception's context would carry the secret along."""
        try:
            header, secret, fingerprint = content.decode("ascii").splitlines()
            key = cls(bytes.fromhex(secret))
        except (ValueError, KeyFileError):
            return None
        # The fingerprint doubles as a checksum: one wrong character would silently be another key.
        return key if header == expected_header and hmac.compare_digest(key.fingerprint, fingerprint) else None

    @add_consequence("Nothing was written.")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a key file that only its owner can read. No key is ever overwritten."""
        self._save(path, _HEADER)

    @add_consequence("Nothing was written.")
    def save_for_vault(self, path: str | os.PathLike[str]) -> None:
        """Write the key of a vault, which `load` rejects."""
        self._save(path, _VAULT_HEADER)

    def _save(self, path: str | os.PathLike[str], header: str) -> None:
        place = check_key_path(path)
        content = f"{header}\n{self.__secret.hex()}\n{self.fingerprint}\n"
        try:
            write_private_file(place, content.encode("ascii"), replace=False)
        except FileExistsError:
            raise KeyFileError(
                "The file {path!r} exists already. A key that is overwritten cannot be recovered.",
                hint="Choose a new name for the key file, such as 'study-2.key'.",
                path=str(place),
            ) from None
        except PrivateFileError as problem:
            raise KeyFileError(
                "The key file {path!r} {problem}.",
                hint="Choose a folder that exists and that you can write to.",
                problem=problem,
                path=str(place),
            ) from None

    def derive(self, info: bytes) -> bytes:
        """Return 32 bytes that belong to `info` alone: HKDF-SHA256 with the salt of stream version 1."""
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=SALT, info=info).derive(self.__secret)

    @property
    def fingerprint(self) -> str:
        """Return a public name of the key: it tells keys apart and nothing else."""
        return self.derive(add_length_prefix(b"key fingerprint"))[:8].hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and hmac.compare_digest(self.__secret, other.__secret)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<relaxdp.Key {self.fingerprint}>"

    def __reduce__(self) -> NoReturn:
        # A pickled key would end up in caches, logs and task descriptions.
        raise TypeError(
            'A key cannot be pickled. Save it with key.save("study.key"), and use '
            'rx.Key.load("study.key") where you need it.'
        )


def require_key(key: object) -> Key:
    """Return a key, or reject other types. Only the type is shown, because it may be the secret itself."""
    if not isinstance(key, Key):
        raise KeyFileError(
            "The key must be a relaxdp.Key, not {type}.",
            hint='Pass rx.Key.load("study.key"), or rx.Key.generate() for a new key.',
            type=type(key).__name__,
        )
    return key


def is_key_text(text: str) -> bool:
    """Tell whether this is the content of a key file, which is given by mistake where another file belongs."""
    return text.lstrip("\ufeff \r\n").startswith(_HEADER[:-1])


def check_key_path(path: object) -> Path:
    """Return the path of a key file, or reject other types. It may be the secret itself, so it is not shown."""
    if not isinstance(path, str | os.PathLike):
        raise KeyFileError(
            "Expected a path to a key file (str or Path), got {type}.", hint=_GIVE_PATH, type=type(path).__name__
        )
    place = Path(path)
    if not _is_encodable_path(place):
        raise KeyFileError(
            "The path of the key file contains half of a character, so it is not a valid path.", hint=_GIVE_PATH
        )
    if not os.path.exists(place) and hide_secret_keys(str(place)) != str(place):  # noqa: PTH110 (of any length)
        raise KeyFileError(
            "This looks like the key itself, not like the path of a key file. With the key, anyone "
            "can check guesses against reports.",
            hint="Pass the path of the key file. Remove the key from the history of your shell.",
        )
    return place


def _is_encodable_path(path: Path) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # whose context would carry the path along
        return False
    return True


def _has_no_key_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) != _HEADER.encode("ascii")
    except OSError:
        return False


_MAX_PRINTED = 1 << 16


class KeyCommandError(Exception):
    """Hold the reason why a command gives no key, as a predicate: the caller adds the subject."""


def split_command(command: str | Sequence[str]) -> list[str]:
    """Return a command's words, as a shell would cut them; no shell ever sees them."""
    try:
        words = shlex.split(command, posix=os.name == "posix") if isinstance(command, str) else list(command)
    except ValueError:
        raise KeyCommandError("has an unclosed quotation mark") from None
    if not words:
        raise KeyCommandError("is empty")
    return words


def run_command(words: Sequence[str]) -> bytes:
    """Run a command and return what it prints. It may ask at the terminal, and complain there."""
    # Where no person sits at standard input, a table may come from there, and is not the command's.
    is_asked = sys.stdin is not None and sys.stdin.isatty()
    try:
        with subprocess.Popen(  # noqa: S603 (it is what the person asked for, and no shell reads it)
            list(words), stdout=subprocess.PIPE, stdin=None if is_asked else subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None  # noqa: S101
            content = process.stdout.read(_MAX_PRINTED + 1)
            if len(content) > _MAX_PRINTED:
                process.kill()
    except (OSError, ValueError) as problem:
        raise KeyCommandError(f"cannot be run: {getattr(problem, 'strerror', None) or 'no such command'}") from None
    if len(content) > _MAX_PRINTED:
        raise KeyCommandError("printed more than a key")
    if process.returncode < 0:
        raise KeyCommandError(f"was stopped by signal {-process.returncode}")
    if process.returncode > 0:
        raise KeyCommandError(f"failed with exit status {process.returncode}")
    return content
