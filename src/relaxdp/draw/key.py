"""Secret keys: made, saved with mode 0600, loaded with suspicion, and never shown."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.key_sources import SourceError, printed_by, program_of, words_of
from relaxdp.draw.private_file import PrivateFileError, read_private, write_private
from relaxdp.errors import KeyFileError, refusing, without_keys

SALT = b"relaxdp stream 1"
KEY_BYTES = 32
_HEADER = "relaxdp key 1"
_VAULT_HEADER = "relaxdp vault key 1"
_NAME_ONE = "Name a file that rx.Key.generate().save(...) wrote, or restore it from a copy."
_DIGITS = re.compile(rb"\s*([0-9a-fA-F]{64})\s*", re.ASCII)


class Key:
    """A 32-byte secret. Whoever has it and guesses a truth can check the guess against released reports.

    >>> Key.from_bytes(bytes(range(32)))
    <relaxdp.Key 404702b4a9c7e559>
    """

    __slots__ = ("__secret", "source")

    source: Path | None
    """The file that the key was loaded from, for workers that have to load it themselves; None where there is none."""

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes | bytearray) or len(secret) != KEY_BYTES:
            raise KeyFileError("a key is exactly {key_bytes} bytes.", key_bytes=KEY_BYTES)
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
        """Read a key file. A file that others may read, or that is damaged, is rejected.

        So is the key of a vault: what is drawn with it must be charged to the vault.
        """
        return cls._load(path, _HEADER)

    @classmethod
    def load_from_vault(cls, path: str | os.PathLike[str]) -> Key:
        """Read the key of a vault, which only the vault does."""
        return cls._load(path, _VAULT_HEADER)

    @classmethod
    def _load(cls, path: str | os.PathLike[str], header: str) -> Key:
        place = key_place(path)
        try:
            content = read_private(place)
        except PrivateFileError as problem:
            if _is_something_else(place):  # no advice to change the mode of a file that is no key
                raise KeyFileError("{path!r} is not a relaxdp key file.", hint=_NAME_ONE, path=str(place)) from None
            raise KeyFileError("the key file {path!r} {problem}.", problem=problem, path=str(place)) from None
        if content is None:
            raise KeyFileError(
                "There is no key file {path!r}.",
                hint="Make one with rx.Key.generate().save({path!r}), or create a vault, which holds its own key.",
                path=str(place),
            )
        key = cls._parse(content, header)
        if key is None and cls._parse(content, _VAULT_HEADER) is not None:
            raise KeyFileError(
                "{path!r} is the key of a vault. Everything that is drawn with it is charged to the vault.",
                hint="Use the vault: rx.Vault(...).release(...), or `relaxdp release`.",
                path=str(place),
            )
        if key is None:
            raise KeyFileError("{path!r} is not a relaxdp key file, or it is damaged.", hint=_NAME_ONE, path=str(place))
        key.source = place.absolute()
        return key

    @classmethod
    def from_command(cls, command: str | Sequence[str]) -> Key:
        """Run a command, without a shell, that prints a key: what a key file holds, or its 64 hexadecimal digits.

        What the command complains about goes to the terminal. What it prints is shown nowhere.
        """
        return cls._run(command, [_HEADER])

    @classmethod
    def from_command_for_vault(cls, command: str | Sequence[str]) -> Key:
        """Run a command that prints the key of a vault, which only the vault does."""
        return cls._run(command, [_VAULT_HEADER, _HEADER])

    @classmethod
    def _run(cls, command: str | Sequence[str], headers: Sequence[str]) -> Key:
        program = program_of(command)
        try:
            words = words_of(command)
            if any(without_keys(word) != word for word in words):
                raise KeyFileError(
                    "The key command contains what looks like the key itself. With it, guesses can be checked against "
                    "reports.",
                    hint="Name a command that prints the key, such as 'pass show study'. Remove this one from the "
                    "history of your shell.",
                )
            key = cls._understood(printed_by(words), headers)
        except SourceError as problem:
            raise KeyFileError(
                "the key command {program!r} {problem}.",
                hint="Run the command yourself: it must print the key, and end with status 0.",
                program=program,
                problem=problem,
            ) from None
        if key is None:
            raise KeyFileError(
                "The key command {program!r} did not print a key.",
                hint="It must print the content of a key file, or the key's 64 hexadecimal digits.",
                program=program,
            )
        return key

    @classmethod
    def _understood(cls, content: bytes, headers: Sequence[str]) -> Key | None:
        """Return the key that a command printed: like a file, or its digits alone."""
        digits = _DIGITS.fullmatch(content)
        if digits is not None:
            return cls(bytes.fromhex(digits[1].decode("ascii")))
        return next(filter(None, (cls._parse(content, header) for header in headers)), None)

    @classmethod
    def _parse(cls, content: bytes, expected: str = _HEADER) -> Key | None:
        """Return the key, or None for what is none: an exception's context would carry the secret along."""
        try:
            header, secret, fingerprint = content.decode("ascii").splitlines()
            key = cls(bytes.fromhex(secret))
        except (ValueError, KeyFileError):
            return None
        # The fingerprint doubles as a checksum: one wrong character would silently be another key.
        return key if header == expected and hmac.compare_digest(key.fingerprint, fingerprint) else None

    @refusing("Nothing was written.")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a key file that only its owner can read. No key is ever overwritten."""
        self._save(path, _HEADER)

    @refusing("Nothing was written.")
    def save_for_vault(self, path: str | os.PathLike[str]) -> None:
        """Write the key of a vault, which `load` rejects."""
        self._save(path, _VAULT_HEADER)

    def _save(self, path: str | os.PathLike[str], header: str) -> None:
        place = key_place(path)
        content = f"{header}\n{self.__secret.hex()}\n{self.fingerprint}\n"
        try:
            write_private(place, content.encode("ascii"), replace=False)
        except FileExistsError:
            raise KeyFileError(
                "{path!r} exists already, and a key that is lost cannot be made again.",
                hint="Choose a new name for the key file.",
                path=str(place),
            ) from None
        except PrivateFileError as problem:
            raise KeyFileError(
                "the key file {path!r} {problem}.",
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
        return self.derive(length_prefixed(b"key fingerprint"))[:8].hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and hmac.compare_digest(self.__secret, other.__secret)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<relaxdp.Key {self.fingerprint}>"

    def __reduce__(self) -> NoReturn:
        # A pickled key would end up in caches, logs and task descriptions.
        raise TypeError("a relaxdp key is not pickled; save it to a key file and load it where it is needed.")


def as_key(key: object) -> Key:
    """Return a key, or refuse what is none: only its type is shown, because it may be the secret itself."""
    if not isinstance(key, Key):
        raise KeyFileError(
            "the key must be a relaxdp.Key, and this is of type {type}: rx.Key.load('key') reads it from a file.",
            type=type(key).__name__,
        )
    return key


def is_key_text(text: str) -> bool:
    """Tell whether this is the content of a key file, which is given by mistake where another file belongs."""
    return text.lstrip("\ufeff \r\n").startswith(_HEADER[:-1])


def key_place(path: object) -> Path:
    """Return where a key file lies, or refuse what is no place: it may be the secret itself, and is not shown."""
    if not isinstance(path, str | os.PathLike):
        raise KeyFileError("a key file is called by its name, and this is of type {type}.", type=type(path).__name__)
    place = Path(path)
    if not _is_file_name(place):
        raise KeyFileError("the name of a key file has half of a letter, which no file name has.")
    if not os.path.exists(place) and without_keys(str(place)) != str(place):  # noqa: PTH110 (of any length)
        raise KeyFileError(
            "This looks like the key itself, not like the name of its file. With a key, guesses can be checked against "
            "reports.",
            hint="Name the file of the key. Remove the key from the history of your shell.",
        )
    return place


def _is_file_name(place: Path) -> bool:
    try:
        os.fsencode(place)
    except UnicodeEncodeError:
        return False
    return True


def _is_something_else(place: Path) -> bool:
    try:
        with place.open("rb") as file:
            return file.read(len(_HEADER)) != _HEADER.encode("ascii")
    except OSError:
        return False
