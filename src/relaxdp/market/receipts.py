"""Receipts: what was delivered to whom, signed by the market, so that everyone with its public key can check it.

A JSON Web Signature would sign a text, of which equal receipts could have many. Here each field has one spelling.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from relaxdp.errors import TableFileError
from relaxdp.market.level_file import compute_level_digest, read_level_file
from relaxdp.server_errors import ReceiptError
from relaxdp.tables.atomic_files import make_temporary_folder

VERSION = 1
MAX_LETTERS = 10_000
_HEADER = b"relaxdp market receipt 1\n"
_NOT_A_RECEIPT = "This is not a signed receipt of a market."
_DOWNLOADED = "Pass the file as it was downloaded with this receipt."
_HINT = "Pass the receipt file as `relaxdp market download` wrote it."


@dataclass(frozen=True, slots=True)
class Receipt:
    """One approved order. All fields are text or whole numbers, so that equal receipts have equal bytes."""

    version: int
    market: str
    """The fingerprint of the market's public key."""
    order: str
    listing: str
    seller: str
    buyer: str
    release: str
    column: str
    epsilon: str
    threshold: str
    rows: int
    digest: str
    """The digest of path, level, ids and reports (`compute_level_digest`)."""
    price: str
    due: str
    """The price, less the price of the level that the order upgrades."""
    currency: str
    previous: str | None
    """The order that this one upgrades."""
    issued: str

    def to_bytes(self) -> bytes:
        """Return the bytes that are signed."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return _HEADER + text.encode("ascii")


@dataclass(frozen=True, slots=True)
class SignedReceipt:
    """A receipt as it is handed out. It proves nothing before `verify`."""

    receipt: Receipt
    signature: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON in which a receipt travels."""
        return {"receipt": asdict(self.receipt), "signature": self.signature}


class Signer:
    """The signing key of a market. Its `repr` shows the fingerprint alone.

    >>> Signer(bytes(range(32)))
    <relaxdp market 56475aa75463474c>
    """

    __slots__ = ("__private", "fingerprint", "public_key")

    def __init__(self, signing_key: bytes) -> None:
        self.__private = Ed25519PrivateKey.from_private_bytes(signing_key)
        self.public_key = self.__private.public_key().public_bytes_raw()
        self.fingerprint = compute_fingerprint(self.public_key)

    def sign(self, receipt: Receipt) -> SignedReceipt:
        """Return the signed receipt."""
        return SignedReceipt(receipt, base64.b64encode(self.__private.sign(receipt.to_bytes())).decode("ascii"))

    def __repr__(self) -> str:
        return f"<relaxdp market {self.fingerprint}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("The signing key of a market cannot be pickled.")


def create_signing_key() -> bytes:
    """Return a new signing key."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def compute_fingerprint(public_key: bytes) -> str:
    """Return the short name of a market. Only the whole public key proves anything."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def verify_receipt(signed: SignedReceipt, public_key: bytes) -> Receipt:
    """Return the receipt if the market with this public key signed it.

    The key has to come from the market itself and never from the receipt: a forger would name another key.
    """
    receipt = signed.receipt
    if receipt.market != compute_fingerprint(public_key):
        raise ReceiptError(
            "The receipt names the market {market}, and this public key belongs to the market {expected}.",
            hint="Use the public key of the market that signed it: relaxdp market list prints it.",
            market=receipt.market,
            expected=compute_fingerprint(public_key),
        )
    try:
        signature = base64.b64decode(signed.signature, validate=True)
        if base64.b64encode(signature).decode("ascii") == signed.signature:  # its only spelling
            Ed25519PublicKey.from_public_bytes(public_key).verify(signature, receipt.to_bytes())
            return receipt
    except (ValueError, InvalidSignature):
        pass
    raise ReceiptError(
        "The signature does not belong to this receipt. The market did not sign it, or it was changed.", hint=_HINT
    )


def verify_file(receipt: Receipt, path: Path) -> None:
    """Reject a file that does not hold the path, level, ids and reports of the receipt, in whatever order of rows."""
    if not path.is_file():
        raise TableFileError(
            "There is no file {path!r}.", hint="Name the file that was downloaded with the receipt.", path=str(path)
        )
    with make_temporary_folder() as folder:  # an unfinished file has another ending
        link = folder / "level.parquet"
        link.symlink_to(path.absolute())
        digest = compute_level_digest(read_level_file(link, is_sorted=False))
    if digest != receipt.digest:
        raise ReceiptError(
            "The file {path!r} is not the one that the receipt is about: its ids, reports, level or path differ.",
            hint=_DOWNLOADED,
            path=str(path),
        )


def parse_receipt(text: str | bytes) -> SignedReceipt:
    """Return the signed receipt in a text, which is not verified yet. No error shows what else the text holds."""
    content = None
    if len(text) <= MAX_LETTERS:
        with suppress(ValueError, RecursionError):
            content = json.loads(text, object_pairs_hook=_reject_repeated_fields)
    return read_receipt(content)


def _reject_repeated_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):  # readers would disagree about which one counts
        raise ValueError("a field is repeated")
    return content


def read_receipt(content: object) -> SignedReceipt:
    """Return the signed receipt in parsed JSON: exactly its fields, of exactly their types."""
    if isinstance(content, dict) and set(content) == {"receipt", "signature"}:
        found, signature = content["receipt"], content["signature"]
        names = {field.name for field in fields(Receipt)}
        if isinstance(found, dict) and set(found) == names and type(signature) is str and len(signature) <= 200:
            numbers = {"version", "rows"}
            is_valid = all(
                type(value) is int if name in numbers else type(value) is str or (name == "previous" and value is None)
                for name, value in found.items()
            )
            if is_valid and found["version"] == VERSION and re.fullmatch("[0-9a-f]{64}", found["digest"]):
                return SignedReceipt(Receipt(**found), signature)
    raise ReceiptError(_NOT_A_RECEIPT, hint=_HINT)
