"""Secret keys: made, saved with mode 0600, loaded with suspicion, and never shown."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from relaxdp.draw.canonical import length_prefixed
from relaxdp.errors import KeyFileError

SALT = b"relaxdp stream 1"
KEY_BYTES = 32
_HEADER = "relaxdp key 1"


class Key:
    """A 32-byte secret. Whoever has it and guesses a truth can check the guess against released reports.

    >>> Key.from_bytes(bytes(range(32)))
    <relaxdp.Key 404702b4a9c7e559>
    """

    __slots__ = ("__secret",)

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes | bytearray) or len(secret) != KEY_BYTES:
            raise KeyFileError(f"a key is exactly {KEY_BYTES} bytes.")
        self.__secret = bytes(secret)

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
        """Read a key file. A file that others may read, or that is damaged, is refused."""
        place = Path(path)
        try:
            with place.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read(1024)
        except FileNotFoundError:
            raise KeyFileError(f"there is no key file {str(place)!r}.", path=str(place)) from None
        except OSError as problem:
            raise KeyFileError(
                f"the key file {str(place)!r} cannot be read: {problem.strerror}.", path=str(place)
            ) from None
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyFileError(
                f"the key file {str(place)!r} can be read by others (mode {stat.S_IMODE(mode):04o}). "
                f"Run: chmod 600 {place}",
                path=str(place),
            )
        return cls._parse(content, place)

    @classmethod
    def _parse(cls, content: bytes, place: Path) -> Key:
        problem = KeyFileError(f"{str(place)!r} is not a relaxdp key file, or it is damaged.", path=str(place))
        try:
            header, secret, fingerprint = content.decode("ascii").splitlines()
            key = cls(bytes.fromhex(secret))
        except (ValueError, KeyFileError):
            raise problem from None
        # The fingerprint doubles as a checksum: one wrong character would silently be another key.
        if header != _HEADER or not hmac.compare_digest(key.fingerprint, fingerprint):
            raise problem
        return key

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a key file that only its owner can read. An existing file is never overwritten."""
        place = Path(path)
        content = f"{_HEADER}\n{self.__secret.hex()}\n{self.fingerprint}\n".encode("ascii")
        try:
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise KeyFileError(
                f"{str(place)!r} exists already. A key that is lost cannot be made again; nothing was written.",
                path=str(place),
            ) from None
        except OSError as problem:
            raise KeyFileError(
                f"the key file {str(place)!r} cannot be written: {problem.strerror}.", path=str(place)
            ) from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:  # a full disk must not leave half a key behind
            place.unlink(missing_ok=True)
            raise KeyFileError(
                f"the key file {str(place)!r} cannot be written: {problem.strerror}.", path=str(place)
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
