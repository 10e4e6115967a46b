"""A key sealed under a passphrase: scrypt makes the passphrase costly to guess, AES-GCM notices every change."""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from relaxdp.draw.key import KEY_BYTES, Key
from relaxdp.errors import BackupError

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
