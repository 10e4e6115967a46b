"""Receipts: what was bought, signed by the market, so that anybody can check it who knows the market's public key.

By hand and not as a JWS: that signs a text, of which equal receipts could have many.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from relaxdp.errors import EpsilonError
from relaxdp.sampling.keys import Key, add_length_prefix
from relaxdp.server_errors import MarketError, ReceiptForgedError
from relaxdp.theory.epsilon import ONE, as_epsilon, format_epsilon
from relaxdp.theory.randomized_response import compute_retention

VERSION = 1
HEADER = b"relaxdp market receipt 1\n"
SIGNATURE_BYTES = 64
PUBLIC_KEY_BYTES = 32
MOST_LETTERS = 10_000
_MOST = 1 << 63
_NAME = re.compile("[a-z0-9][a-z0-9-]{0,63}")
_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{1,6})?Z")
_NO_RECEIPT = "this is no signed receipt of a market."


@dataclass(frozen=True, slots=True)
class Receipt:
    """One purchase. Each field has one spelling, so that equal receipts have equal bytes and one signature."""

    version: int
    number: int
    listing: str
    buyer: str
    epsilon: str
    threshold: str
    retention: str
    """The threshold as a fraction in lowest terms: what an estimate from the file is made with."""
    price: int
    paid: int
    """The price, less what was paid for the level before it."""
    objects: int
    digest: str
    """SHA-256 of the very bytes of the file, in hexadecimal digits."""
    previous: int | None
    """The number of the purchase that this one is an upgrade of."""
    issued: str
    market: str
    """The fingerprint of the public key."""

    def __post_init__(self) -> None:
        for name, check in _RULES.items():
            if not check(getattr(self, name)):
                raise ReceiptForgedError("the field {field!r} of this receipt is not what a market signs.", field=name)
        if self.retention != str(compute_retention(int(self.threshold))):
            raise ReceiptForgedError(
                "the retention of this receipt is not that of its threshold, so no market signed it.", field="retention"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    def to_bytes(self) -> bytes:
        """Return the bytes that are signed: a header that no other signature of ours has, and canonical JSON."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return HEADER + text.encode("ascii")


@dataclass(frozen=True, slots=True)
class VerifiableReceipt:
    """A receipt as it is handed out. Nothing in it is proven before `verify`."""

    receipt: Receipt
    signature: str
    """64 bytes in base 64."""
    public_key: str | None = None
    """The key that the receipt names, in hexadecimal digits. A forger names another one, so it proves nothing."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON in which a receipt travels."""
        key = {} if self.public_key is None else {"public_key": self.public_key}
        return {"receipt": self.receipt.to_json(), "signature": self.signature, **key}


class Signer:
    """The market's signing key, which belongs to its one key and is never shown.

    >>> Signer(Key.from_bytes(bytes(range(32))))
    <relaxdp market signer ebf943e81a077397>
    """

    __slots__ = ("__private", "fingerprint", "public_key")

    def __init__(self, key: Key) -> None:
        self.__private = Ed25519PrivateKey.from_private_bytes(key.derive(add_length_prefix(b"market receipt")))
        self.public_key = self.__private.public_key().public_bytes_raw()
        self.fingerprint = fingerprint_of(self.public_key)

    def sign(self, receipt: Receipt) -> VerifiableReceipt:
        """Return the signed receipt: the same bytes whenever the same receipt is signed again."""
        if receipt.market != self.fingerprint:
            raise MarketError("this receipt names another market.")
        signature = base64.b64encode(self.__private.sign(receipt.to_bytes())).decode("ascii")
        return VerifiableReceipt(receipt, signature, self.public_key.hex())

    def __repr__(self) -> str:
        return f"<relaxdp market signer {self.fingerprint}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a market's signer is not pickled; load the market's key where it is needed.")


def fingerprint_of(public_key: bytes) -> str:
    """Return the short public name of a market: it tells markets apart, and only the whole key proves anything."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def verify(signed: VerifiableReceipt, public_key: bytes) -> Receipt:
    """Return the receipt if the market with this public key has signed exactly it, and refuse it otherwise.

    The key has to come from the market itself, never from the receipt: everybody can sign with a key of their own.
    """
    if not isinstance(public_key, bytes) or len(public_key) != PUBLIC_KEY_BYTES:
        raise MarketError("the public key of a market is {bytes} bytes.", bytes=PUBLIC_KEY_BYTES)
    receipt = signed.receipt
    if receipt.market != fingerprint_of(public_key) or signed.public_key not in (None, public_key.hex()):
        raise ReceiptForgedError("this receipt names another market, so its signature proves nothing here.")
    signature = _signature_bytes(signed.signature)
    if signature is None or not _is_signed(receipt.to_bytes(), signature, public_key):
        raise ReceiptForgedError("this receipt was not signed by the market, or it was changed after it was signed.")
    return receipt


def check_data(receipt: Receipt, path: str | os.PathLike[str]) -> None:
    """Refuse a file that is not, byte for byte, the one that was bought; the receipt has to be verified before."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except (OSError, ValueError):  # a path with a null character in it is a ValueError
        raise MarketError("the file {path!r} cannot be read.", path=str(place)) from None
    if digest.hexdigest() != receipt.digest:
        raise ReceiptForgedError("this is not the file that the receipt names.")


def read_signed(text: str | bytes) -> VerifiableReceipt:
    """Return the signed receipt that a text holds, not yet verified; whatever else it holds is never shown."""
    content = _parsed(text) if len(text) <= MOST_LETTERS else None
    return signed_of(content)


def signed_of(content: object) -> VerifiableReceipt:
    """Return the signed receipt that parsed JSON holds, not yet verified. The public key may be left out."""
    if not isinstance(content, dict) or not {"receipt", "signature"} <= set(content) <= _SIGNED_FIELDS:
        raise ReceiptForgedError(_NO_RECEIPT)
    signature = content["signature"]
    names_key = "public_key" in content
    if type(signature) is not str or (names_key and not _is_hexadecimal(content["public_key"], 2 * PUBLIC_KEY_BYTES)):
        raise ReceiptForgedError(_NO_RECEIPT)
    return VerifiableReceipt(receipt_of(content["receipt"]), signature, content.get("public_key"))


def receipt_of(content: object) -> Receipt:
    """Return the receipt that parsed JSON holds: exactly its fields, of exactly their types."""
    if not isinstance(content, dict) or set(content) != _FIELDS:
        raise ReceiptForgedError("this receipt has other fields than a market signs.")
    return Receipt(**content)


def _parsed(text: str | bytes) -> object:
    """Return what a JSON text holds, or None: an exception's context would carry the text along."""
    try:
        letters = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(letters, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError):
        return None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a field that is there twice: readers would disagree about which one counts."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a field is repeated")
    return content


def _signature_bytes(text: str) -> bytes | None:
    """Return the signature, or None unless it is the one spelling of 64 bytes: spare bits of base 64 must be 0."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == SIGNATURE_BYTES and base64.b64encode(raw).decode("ascii") == text else None


def _is_signed(message: bytes, signature: bytes, public_key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _is_whole(value: object, least: int = 0) -> bool:
    return type(value) is int and least <= value < _MOST  # True is an int, but not of this type


def _is_name(value: object) -> bool:
    return type(value) is str and _NAME.fullmatch(value) is not None


def _is_hexadecimal(value: object, digits: int) -> bool:
    return type(value) is str and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


def _is_epsilon(value: object) -> bool:
    try:
        return type(value) is str and format_epsilon(as_epsilon(value)) == value
    except EpsilonError:
        return False


def _is_threshold(value: object) -> bool:
    return type(value) is str and re.fullmatch("[1-9][0-9]{0,19}", value) is not None and int(value) < ONE


def _is_time(value: object) -> bool:
    if type(value) is not str or _TIME.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_FIELDS = {field.name for field in fields(Receipt)}
_SIGNED_FIELDS = {field.name for field in fields(VerifiableReceipt)}
_RULES: dict[str, Callable[[Any], bool]] = {
    "version": lambda value: type(value) is int and value == VERSION,
    "number": lambda value: _is_whole(value, 1),
    "listing": _is_name,
    "buyer": _is_name,
    "epsilon": _is_epsilon,
    "threshold": _is_threshold,
    "retention": lambda value: type(value) is str,
    "price": _is_whole,
    "paid": _is_whole,
    "objects": _is_whole,
    "digest": lambda value: _is_hexadecimal(value, 64),
    "previous": lambda value: value is None or _is_whole(value, 1),
    "issued": _is_time,
    "market": lambda value: _is_hexadecimal(value, 16),
}
