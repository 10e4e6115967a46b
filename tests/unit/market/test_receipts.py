"""Receipts: each field is signed, each has one spelling, and nothing else passes for one."""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.market.test_level_file import make_file, set_first, write_again

from relaxdp.errors import TableFileError
from relaxdp.market.level_file import compute_level_digest, read_level_file
from relaxdp.market.receipts import (
    MAX_LETTERS,
    Receipt,
    SignedReceipt,
    Signer,
    compute_fingerprint,
    create_signing_key,
    parse_receipt,
    read_receipt,
    verify_file,
    verify_receipt,
)
from relaxdp.server_errors import LevelFileError, ReceiptError

SIGNER, OTHER = Signer(bytes(range(32))), Signer(bytes(32))
RECEIPT = Receipt(
    version=1, market=SIGNER.fingerprint, order="3f9a2c71d0", listing="patients", seller="clinic", buyer="acme",
    release="survey", column="diagnosis", epsilon="0.5", threshold="3279723050338863581", rows=400, digest="ab" * 32,
    price="60", due="40", currency="EUR", previous=None, issued="2026-03-01T12:00:00.000000Z",
)  # fmt: skip
SIGNED = SIGNER.sign(RECEIPT)
MESSAGE = (
    b'relaxdp market receipt 1\n{"buyer":"acme","column":"diagnosis","currency":"EUR","digest":"'
    + b"ab" * 32
    + b'","due":"40","epsilon":"0.5","issued":"2026-03-01T12:00:00.000000Z","listing":"patients",'
    b'"market":"56475aa75463474c","order":"3f9a2c71d0","previous":null,"price":"60","release":"survey","rows":400,'
    b'"seller":"clinic","threshold":"3279723050338863581","version":1}'
)


def change(**changes: Any) -> dict[str, Any]:
    """Return the JSON of the signed receipt with other fields."""
    content = SIGNED.to_json()
    return {**content, "receipt": {**content["receipt"], **changes}}


def test_the_signed_bytes_are_frozen() -> None:
    """Verified with the signature scheme alone: old receipts stay valid."""
    assert RECEIPT.to_bytes() == MESSAGE
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    assert base64.b64decode(SIGNED.signature) == private.sign(MESSAGE)
    assert SIGNER.public_key == private.public_key().public_bytes_raw()
    assert verify_receipt(SIGNED, SIGNER.public_key) is RECEIPT


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


@given(
    texts=st.fixed_dictionaries(
        {each.name: TEXTS for each in fields(Receipt) if each.type == "str" and each.name not in ("market", "digest")}
    ),
    rows=st.integers(0, 10**9), previous=st.none() | TEXTS, digest=st.binary(min_size=32, max_size=32),
)  # fmt: skip
def test_a_receipt_survives_the_way_through_json(texts: Any, rows: int, previous: Any, digest: bytes) -> None:
    receipt = replace(RECEIPT, **texts, rows=rows, previous=previous, digest=digest.hex())
    signed = SIGNER.sign(receipt)
    assert parse_receipt(json.dumps(signed.to_json(), indent=3, ensure_ascii=False)) == signed
    assert verify_receipt(parse_receipt(json.dumps(signed.to_json()).encode()), SIGNER.public_key) == receipt


@pytest.mark.parametrize("field", [each.name for each in fields(Receipt)])
def test_a_changed_field_is_found(field: str) -> None:
    old = getattr(RECEIPT, field)
    new = {"version": 2, "rows": 401, "previous": "3f9a2c71d1", "digest": "ab" * 31 + "ac"}.get(field, f"{old}0")
    changes: dict[str, Any] = {field: new}
    changed = replace(RECEIPT, **changes)
    with pytest.raises(ReceiptError):
        verify_receipt(replace(SIGNED, receipt=changed), SIGNER.public_key)
    assert SIGNER.sign(changed).signature != SIGNED.signature
    with pytest.raises(ReceiptError):  # the field has another type
        read_receipt(change(**{field: 1.0 if field in ("version", "rows") else 7}))
    if field != "previous":
        with pytest.raises(ReceiptError):
            read_receipt(change(**{field: None}))
    without = change()
    del without["receipt"][field]
    with pytest.raises(ReceiptError):
        read_receipt(without)


def test_a_signature_has_one_spelling() -> None:
    """Base 64 ignores the last bits of `==`, and readers accept line feeds: each would be a second signature."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = SIGNED.signature[-3]
    twin = SIGNED.signature[:-3] + letters[letters.index(last) + 1] + "=="
    assert base64.b64decode(twin) == base64.b64decode(SIGNED.signature)
    spellings = [twin, SIGNED.signature + "\n", " " + SIGNED.signature, SIGNED.signature[:-2], "", "é" * 88, "AA=="]
    for signature in [*spellings, SIGNED.signature.replace("+", "-").replace("/", "_").lower()]:
        with pytest.raises(ReceiptError, match="does not belong to this receipt"):
            verify_receipt(SignedReceipt(RECEIPT, signature), SIGNER.public_key)


def test_another_market_is_named() -> None:
    with pytest.raises(ReceiptError, match=f"names the market {SIGNER.fingerprint}.*{OTHER.fingerprint}"):
        verify_receipt(SIGNED, OTHER.public_key)
    forged = OTHER.sign(RECEIPT)  # which names the right market, and has another signature
    with pytest.raises(ReceiptError, match="does not belong"):
        verify_receipt(forged, SIGNER.public_key)
    with pytest.raises(ReceiptError):  # a key of another length
        verify_receipt(SIGNED, SIGNER.public_key[:-1])
    assert compute_fingerprint(SIGNER.public_key) == SIGNER.fingerprint


TEXT = json.dumps(SIGNED.to_json())


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "7", '"SECRET"', "{", "[" * 100_000, "\ud800", " " * MAX_LETTERS + TEXT,
        TEXT.replace('"rows": 400', '"rows": 400, "rows": 400'), TEXT.replace('"rows": 400', '"rows": true'),
        TEXT.replace('"rows": 400', '"rows": 4e2'), TEXT[:-1] + ', "signature": "SECRET"}', TEXT[:-1] + ', "more": 1}',
        json.dumps(change(more=1)), json.dumps(change(version=2)), json.dumps(change(digest="AB" * 32)),
        json.dumps(change(digest="ab" * 32 + "\n")), json.dumps({**change(), "signature": None}),
        json.dumps({**change(), "signature": "A" * 201}), json.dumps({**change(), "receipt": list(asdict(RECEIPT))}),
        b"\xff\xfe", TEXT.encode()[:-1],
    ],
)  # fmt: skip
def test_other_texts_are_no_receipts(text: str | bytes) -> None:
    with pytest.raises(ReceiptError, match="This is not a signed receipt of a market.") as found:
        parse_receipt(text)
    assert "SECRET" not in found.value.message


def test_a_receipt_is_about_rows_and_not_about_bytes(tmp_path: Path) -> None:
    path = make_file(tmp_path)
    receipt = replace(RECEIPT, digest=compute_level_digest(read_level_file(path)))
    verify_file(receipt, path)
    again = write_again(path, lambda table: table.take(list(range(39, -1, -1))), compression="gzip")
    verify_file(receipt, again.rename(tmp_path / "whatever.download"))
    for other in (set_first("id", -11)(path), make_file(tmp_path, epsilon="0.5"), make_file(tmp_path, name="other")):
        with pytest.raises(ReceiptError, match="is not the one that the receipt is about"):
            verify_file(receipt, other)
    (tmp_path / "no.parquet").write_text("SECRET")
    with pytest.raises(LevelFileError) as found:
        verify_file(receipt, tmp_path / "no.parquet")
    assert "SECRET" not in found.value.message
    with pytest.raises(TableFileError, match="There is no file"):
        verify_file(receipt, tmp_path / "missing.parquet")


def test_a_signer_shows_no_key() -> None:
    key = create_signing_key()
    assert key != create_signing_key()
    signer = Signer(key)
    assert repr(signer) == f"<relaxdp market {signer.fingerprint}>"
    with pytest.raises(TypeError):
        pickle.dumps(signer)
