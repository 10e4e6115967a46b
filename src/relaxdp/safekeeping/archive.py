"""The file of a backup: an ordinary ZIP archive, with a list of what is in it and of what each part hashes to.

The key is in it only sealed, and the list is sealed with it: who does not know the passphrase can change nothing that
is not noticed. Without a key the hashes find damage, and not somebody who means to change it.
"""

from __future__ import annotations

import json
import re
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from relaxdp.draw.key import KEY_BYTES, Key
from relaxdp.errors import BackupError, RelaxdpError
from relaxdp.ledger.payer import BESIDE

LIST, SEALED, LEDGER = "backup.json", "key.sealed", "ledger"
_PART = re.compile(rf"(?:{'|'.join(BESIDE)})/(?!\.)[A-Za-z0-9._-]{{1,200}}", re.ASCII)
_VERSION = 1
_MOST_LISTED, _CHUNK = 64 << 20, 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """How long a file of a backup is, and what it hashes to."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup says that it holds."""

    made: str
    """When, in UTC."""
    ledger: str
    """Where the ledger was."""
    events: int
    last: str | None
    """When the last of its events happened."""
    key: str | None
    """The fingerprint of the key that is sealed in it; None where there is none."""
    parts: dict[str, Part]

    def dumps(self) -> bytes:
        """Return it as it stands in the file."""
        return json.dumps({"relaxdp backup": _VERSION, **asdict(self)}, indent=1).encode()

    @classmethod
    def loads(cls, text: bytes) -> Contents | None:
        """Read it back; None for what is none of this version."""
        try:
            found = json.loads(text)
            if found.pop("relaxdp backup") != _VERSION:
                return None
            found["parts"] = {str(name): Part(**part) for name, part in found["parts"].items()}
            contents = cls(**found)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return contents if all(each == LEDGER or is_part(each) for each in contents.parts) else None


def is_part(name: str) -> bool:
    """Tell whether a file beside a ledger can be part of a backup: a plain name, and nothing that leads elsewhere."""
    return _PART.fullmatch(name) is not None


class Writer:
    """Writes the parts one after the other, however large, and knows what each hashes to."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(file, "w")
        self.parts: dict[str, Part] = {}

    def add(self, name: str, source: IO[bytes]) -> None:
        """Add a file from where it stands to its end."""
        digest, size = sha256(), 0
        with self._archive.open(_member(name), "w", force_zip64=True) as member:
            while chunk := source.read(_CHUNK):
                member.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        self.parts[name] = Part(size, digest.hexdigest())

    def finish(self, contents: Contents, sealed: bytes | None) -> None:
        """Add the list, and the sealed key."""
        if sealed is not None:
            self._archive.writestr(_member(SEALED), sealed)
        self._archive.writestr(_member(LIST), contents.dumps())
        self._archive.close()


class Reader:
    """Reads a backup, and refuses whatever is not as its list says."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        names = archive.namelist()
        self.listed = self._small(LIST, _MOST_LISTED) if LIST in names else b""
        contents = Contents.loads(self.listed)
        expected = {LIST, *([SEALED] if contents and contents.key else []), *(contents.parts if contents else ())}
        if contents is None or LEDGER not in expected or sorted(names) != sorted(expected):
            raise damaged(path)
        self.contents = contents

    def sealed(self) -> bytes:
        """Return the sealed key."""
        return self._small(SEALED, 1 << 12)

    def extract(self, name: str, target: IO[bytes]) -> None:
        """Write a part, and compare it with what the list says."""
        expected, digest, size = self.contents.parts[name], sha256(), 0
        with self._archive.open(name) as member:
            while chunk := member.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                if size > expected.size:
                    break
                target.write(chunk)
        if Part(size, digest.hexdigest()) != expected:
            raise damaged(self._path)

    def _small(self, name: str, most: int) -> bytes:
        with self._archive.open(name) as member:
            return member.read(most)


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """Open a backup; one that is cut off, changed, or no backup at all is refused, at the latest when it is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield Reader(path, archive)
    except RelaxdpError:
        raise
    except FileNotFoundError:
        raise BackupError("there is no backup {path!r}.", path=str(path)) from None
    except OSError as problem:
        raise BackupError("{path!r} cannot be read: {why}.", path=str(path), why=problem.strerror) from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise damaged(path) from None


def damaged(path: Path) -> BackupError:
    """Return the refusal of a file that is no whole backup."""
    return BackupError("{path!r} is not a backup of relaxdp, or it is damaged.", path=str(path))


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)  # with no time of its own: the list says when
    member.external_attr = 0o600 << 16
    return member


LEAST_LETTERS = 8
_SALT, _NONCE, _TAG = 16, 12, 16
SEALED_BYTES = _SALT + _NONCE + KEY_BYTES + _TAG
_COST, _BLOCK, _LANES = 1 << 17, 8, 1
"""128 MiB and about half a second for each guess. They belong to version 1 of a backup: a file cannot ask for less."""


def check_passphrase(passphrase: str) -> str:
    """Refuse a passphrase that is no protection."""
    if len(passphrase) < LEAST_LETTERS:
        raise BackupError("a passphrase has at least {least} letters.", least=LEAST_LETTERS)
    return passphrase


def seal(key: Key, passphrase: str, beside: bytes) -> bytes:
    """Return the key, sealed together with what stands beside it, which stays readable and cannot be changed."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    return salt + nonce + AESGCM(_derived(passphrase, salt)).encrypt(nonce, key.to_bytes(), beside)


def unseal(sealed: bytes, passphrase: str, beside: bytes) -> Key | None:
    """Return the key; None where the passphrase is another, or anything was changed."""
    if len(sealed) != SEALED_BYTES:
        return None
    salt, nonce = sealed[:_SALT], sealed[_SALT : _SALT + _NONCE]
    try:
        return Key(AESGCM(_derived(passphrase, salt)).decrypt(nonce, sealed[_SALT + _NONCE :], beside))
    except InvalidTag:
        return None


def _derived(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=_COST, r=_BLOCK, p=_LANES).derive(passphrase.encode("utf-8", "replace"))
