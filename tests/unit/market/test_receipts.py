"""Receipts: what the market signs, what it does not, and that nothing can be changed afterwards."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from relaxdp import Key
from relaxdp.market.receipts import (
    MOST_LETTERS,
    Receipt,
    Signer,
    VerifiableReceipt,
    check_data,
    fingerprint_of,
    read_signed,
    receipt_of,
    signed_of,
    verify,
)
from relaxdp.server_errors import MarketError, ReceiptForgedError

SECRET = bytes(range(32))
SIGNER = Signer(Key.from_bytes(SECRET))
OTHER = Signer(Key.from_bytes(bytes(32)))
FIELDS: dict[str, Any] = {
    "version": 1,
    "number": 7,
    "listing": "flu-2026",
    "buyer": "acme",
    "epsilon": "1",
    "threshold": "8524556932045589908",
    "retention": "2131139233011397477/4611686018427387904",
    "price": 100,
    "paid": 60,
    "objects": 1000,
    "digest": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",  # of the three letters abc
    "previous": 3,
    "issued": "2026-03-01T12:00:00Z",
    "market": "ebf943e81a077397",
}
RECEIPT = Receipt(**FIELDS)
SIGNED = SIGNER.sign(RECEIPT)

# Public key and signature were computed with the formulas of RFC 8032 in plain Python, from a seed made with HMAC.
PUBLIC_KEY = "f541557ac3a02e3eae11a6e916b5f3ab25eeea9abebc0da6914fb29d21bf7018"
SIGNATURE = (
    "2aa75cbe9becc7ffe622932f8e0cd9ad6b6f36c97e7b0ccbf34361e1da187f4d"
    "64538164f213a7dd594186ad79a6d0b29751139d6be8c673d727c9082cdbd507"
)
MESSAGE = (
    b"relaxdp market receipt 1\n"
    b'{"buyer":"acme",'
    b'"digest":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",'
    b'"epsilon":"1",'
    b'"issued":"2026-03-01T12:00:00Z",'
    b'"listing":"flu-2026",'
    b'"market":"ebf943e81a077397",'
    b'"number":7,'
    b'"objects":1000,'
    b'"paid":60,'
    b'"previous":3,'
    b'"price":100,'
    b'"retention":"2131139233011397477/4611686018427387904",'
    b'"threshold":"8524556932045589908",'
    b'"version":1}'
)


def text_of(signed: VerifiableReceipt) -> str:
    return json.dumps(signed.to_json())


def as_json(**changes: Any) -> dict[str, Any]:
    return {**SIGNED.to_json(), **changes}


def test_fixed_vector() -> None:
    extracted = hmac.digest(b"relaxdp stream 1", SECRET, "sha256")
    seed = hmac.digest(extracted, struct.pack("<I", 14) + b"market receipt" + b"\x01", "sha256")
    private = Ed25519PrivateKey.from_private_bytes(seed)
    assert private.public_key().public_bytes_raw().hex() == PUBLIC_KEY == SIGNER.public_key.hex() == SIGNED.public_key
    assert private.sign(MESSAGE).hex() == SIGNATURE == base64.b64decode(SIGNED.signature).hex()
    Ed25519PublicKey.from_public_bytes(SIGNER.public_key).verify(bytes.fromhex(SIGNATURE), MESSAGE)
    assert RECEIPT.to_bytes() == MESSAGE
    assert hashlib.sha256(SIGNER.public_key).hexdigest()[:16] == SIGNER.fingerprint == FIELDS["market"]


def test_what_was_signed_is_verified_and_reads_back() -> None:
    assert verify(SIGNED, SIGNER.public_key) == RECEIPT
    assert SIGNER.sign(RECEIPT) == SIGNED == Signer(Key.from_bytes(SECRET)).sign(RECEIPT)
    assert read_signed(text_of(SIGNED)) == read_signed(text_of(SIGNED).encode()) == SIGNED
    assert SIGNED.to_json() == {
        "receipt": FIELDS,
        "signature": base64.b64encode(bytes.fromhex(SIGNATURE)).decode(),
        "public_key": PUBLIC_KEY,
    }
    without_key = signed_of({name: part for name, part in SIGNED.to_json().items() if name != "public_key"})
    assert without_key.public_key is None
    assert "public_key" not in without_key.to_json()
    assert verify(without_key, SIGNER.public_key) == RECEIPT
    first = replace(RECEIPT, previous=None, issued="2026-03-01T12:00:00.123456Z", paid=0, price=0, objects=0)
    assert verify(read_signed(text_of(SIGNER.sign(first))), SIGNER.public_key) == first


def test_the_order_and_the_spaces_of_the_json_do_not_matter() -> None:
    backwards = {"signature": SIGNED.signature, "receipt": dict(reversed(FIELDS.items())), "public_key": PUBLIC_KEY}
    assert verify(read_signed(json.dumps(backwards, indent=7)), SIGNER.public_key) == RECEIPT


CHANGED: list[tuple[dict[str, Any], str]] = [
    ({"number": 8}, "not signed"),
    ({"listing": "flu-2027"}, "not signed"),
    ({"buyer": "acmf"}, "not signed"),
    ({"epsilon": "2"}, "not signed"),
    ({"epsilon": "1.0"}, "'epsilon'"),
    ({"threshold": "8524556932045589909", "retention": "8524556932045589909/18446744073709551616"}, "not signed"),
    ({"threshold": "8524556932045589909"}, "retention"),
    ({"retention": "1/2"}, "retention"),
    ({"retention": "8524556932045589908/18446744073709551616"}, "retention"),  # not in lowest terms
    ({"price": 101}, "not signed"),
    ({"paid": 59}, "not signed"),
    ({"objects": 1001}, "not signed"),
    ({"digest": "0" * 64}, "not signed"),
    ({"previous": 4}, "not signed"),
    ({"previous": None}, "not signed"),
    ({"issued": "2026-03-01T12:00:01Z"}, "not signed"),
    ({"issued": "2026-03-01T12:00:00.0Z"}, "not signed"),
    ({"market": OTHER.fingerprint}, "another market"),
    ({"version": 2}, "'version'"),
]


def test_a_change_of_every_field_is_tried() -> None:
    assert {name for changes, _ in CHANGED for name in changes} == set(FIELDS)


@pytest.mark.parametrize(("changes", "sentence"), CHANGED)
def test_a_changed_field(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ReceiptForgedError, match=sentence):
        verify(signed_of(as_json(receipt=FIELDS | changes)), SIGNER.public_key)


WRONG: dict[str, list[Any]] = {
    "version": [True, 1.0, "1", None, 0, 2],
    "number": [True, 7.0, "7", None, 0, -7, 2**63, [7]],
    "listing": ["", "Flu", "-flu", "flu 2026", "flu\n", "f" * 65, "fl\u00fc", 7, None],
    "buyer": ["", "ACME", "acme\n", "a/b", "a" * 65, True, None, ["acme"]],
    "epsilon": ["0", "-1", "1.0", "01", "1e0", " 1", "1\n", "inf", "NaN", "", "one", "9" * 61, 1, 1.0, None, True],
    "threshold": ["0", "-1", "08524556932045589908", str(2**64), "9" * 5000, "8.5e18", 8524556932045589908, None],
    "retention": ["", "1/2", "x", 0.5, None, FIELDS["retention"] + " "],
    "price": [True, 100.0, "100", None, -1, 2**63],
    "paid": [False, 60.0, "60", None, -1, 2**63],
    "objects": [True, 1000.0, "1000", None, -1, 2**63],
    "digest": [FIELDS["digest"].upper(), FIELDS["digest"][:-1], FIELDS["digest"] + "0", "g" * 64, "", None, 0],
    "previous": [True, 3.0, "3", 0, -3, 2**63, {}],
    "issued": [
        "2026-03-01T12:00:00", "2026-03-01T12:00:00+00:00", "2026-03-01 12:00:00Z", "2026-02-30T12:00:00Z",
        "2026-03-01T24:00:01Z", "2026-03-01T12:00:00.1234567Z", "2026-03-01", "0000-01-01T00:00:00Z", 1772366400, None,
    ],
    "market": ["EBF943E81A077397", "ebf943e81a07739", "ebf943e81a0773970", "", None, 7],
}  # fmt: skip


def test_every_field_has_wrong_values() -> None:
    assert set(WRONG) == set(FIELDS)


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, several in WRONG.items() for wrong in several])
def test_a_field_of_another_type_or_spelling(name: str, wrong: Any) -> None:
    with pytest.raises(ReceiptForgedError, match=rf"\b{name}\b"):
        receipt_of(FIELDS | {name: wrong})
    with pytest.raises(ReceiptForgedError):
        read_signed(json.dumps(as_json(receipt=FIELDS | {name: wrong})))


def test_a_retention_of_one_would_be_the_truth() -> None:
    with pytest.raises(ReceiptForgedError, match="'threshold'"):
        receipt_of(FIELDS | {"threshold": str(2**64), "retention": "1"})
    highest = {"threshold": str(2**64 - 1), "retention": f"{2**64 - 1}/{2**64}"}
    assert receipt_of(FIELDS | highest).threshold == "18446744073709551615"


@pytest.mark.parametrize("name", FIELDS)
def test_missing_and_extra_fields(name: str) -> None:
    less = {other: value for other, value in FIELDS.items() if other != name}
    for content in (less, FIELDS | {name + "2": 1}, less | {name.upper(): FIELDS[name]}):
        with pytest.raises(ReceiptForgedError, match="other fields"):
            receipt_of(content)


def test_every_flipped_bit_of_the_signature() -> None:
    good = bytes.fromhex(SIGNATURE)
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ReceiptForgedError, match="not signed"):
            verify(replace(SIGNED, signature=base64.b64encode(bad).decode()), SIGNER.public_key)


def test_every_flipped_bit_of_the_public_key() -> None:
    for bit in range(8 * 32):
        other = bytearray(SIGNER.public_key)
        other[bit // 8] ^= 1 << bit % 8
        changed = replace(RECEIPT, market=fingerprint_of(bytes(other)))
        for receipt in (RECEIPT, changed):
            with pytest.raises(ReceiptForgedError):
                verify(VerifiableReceipt(receipt, SIGNED.signature), bytes(other))


def test_a_second_spelling_of_the_number_in_the_signature() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    good = bytes.fromhex(SIGNATURE)
    scalar = int.from_bytes(good[32:], "little") + order
    assert scalar < 2**256
    with pytest.raises(ReceiptForgedError, match="not signed"):
        verify(
            replace(SIGNED, signature=base64.b64encode(good[:32] + scalar.to_bytes(32, "little")).decode()),
            SIGNER.public_key,
        )


def test_other_spellings_of_base_64() -> None:
    good = SIGNED.signature
    assert good.endswith("w==")  # the last digit has two bits of the signature and four spare ones, which must be 0
    spare = good[:-3] + "x=="
    assert base64.b64decode(spare, validate=True) == base64.b64decode(good)
    raw = bytes.fromhex(SIGNATURE)
    others = [
        spare, good[:-2], good[:-1], good + "=", good + "\n", " " + good, good[:40] + "\n" + good[40:], "",
        good[:-4], good + "AAAA", raw.hex(), base64.b64encode(raw[:63]).decode(),
        base64.b64encode(raw + b"\0").decode(),
        base64.b32encode(raw).decode(), "\u00fc" * 88, "=" * 88, "A" * 88, base64.b64encode(bytes(64)).decode(),
        good.replace("+", "-").replace("/", "_"),
    ]  # fmt: skip
    assert good not in others
    for other in others:
        with pytest.raises(ReceiptForgedError, match="not signed"):
            verify(signed_of(as_json(signature=other)), SIGNER.public_key)


def test_another_market() -> None:
    theirs = OTHER.sign(replace(RECEIPT, market=OTHER.fingerprint))
    assert verify(theirs, OTHER.public_key).market == OTHER.fingerprint
    with pytest.raises(ReceiptForgedError, match="another market"):
        verify(theirs, SIGNER.public_key)
    with pytest.raises(ReceiptForgedError, match="another market"):
        verify(SIGNED, OTHER.public_key)
    # Their signature on a receipt that names this market, with and without their key.
    private = Ed25519PrivateKey.from_private_bytes(Key.from_bytes(bytes(32)).derive(b"\x0e\0\0\0market receipt"))
    assert private.public_key().public_bytes_raw() == OTHER.public_key
    forged = base64.b64encode(private.sign(MESSAGE)).decode()
    for key, sentence in ((None, "not signed"), (PUBLIC_KEY, "not signed"), (OTHER.public_key.hex(), "another market")):
        with pytest.raises(ReceiptForgedError, match=sentence):
            verify(VerifiableReceipt(RECEIPT, forged, key), SIGNER.public_key)
    # A good signature beside a key that is not the market's: somebody would go on with the wrong key.
    with pytest.raises(ReceiptForgedError, match="another market"):
        verify(replace(SIGNED, public_key=OTHER.public_key.hex()), SIGNER.public_key)
    with pytest.raises(MarketError, match="another market"):
        SIGNER.sign(replace(RECEIPT, market=OTHER.fingerprint))


def test_swapped_signatures() -> None:
    other = SIGNER.sign(replace(RECEIPT, number=8))
    for receipt, signature in ((RECEIPT, other.signature), (other.receipt, SIGNED.signature)):
        with pytest.raises(ReceiptForgedError, match="not signed"):
            verify(VerifiableReceipt(receipt, signature, PUBLIC_KEY), SIGNER.public_key)


def test_the_header_and_the_form_are_signed_too() -> None:
    """A signature of anything but the canonical bytes is none: without the header, with spaces, in another order."""
    private = Ed25519PrivateKey.from_private_bytes(Key.from_bytes(SECRET).derive(b"\x0e\0\0\0market receipt"))
    body = MESSAGE.partition(b"\n")[2]
    spaced = MESSAGE.replace(b",", b", ")
    unsorted = b"relaxdp market receipt 1\n" + json.dumps(FIELDS, separators=(",", ":")).encode()
    for message in (body, spaced, unsorted, MESSAGE + b"\n", MESSAGE.replace(b"receipt 1", b"receipt 2")):
        assert message != MESSAGE
        with pytest.raises(ReceiptForgedError, match="not signed"):
            verify(
                VerifiableReceipt(RECEIPT, base64.b64encode(private.sign(message)).decode(), PUBLIC_KEY),
                SIGNER.public_key,
            )


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), SIGNER.public_key.hex(), None])
def test_a_public_key_that_is_none(key: Any) -> None:
    with pytest.raises(MarketError, match="32 bytes"):
        verify(SIGNED, key)


def test_a_key_that_is_no_point_of_the_curve() -> None:
    no_point = bytes([2]) + bytes(31)
    receipt = replace(RECEIPT, market=fingerprint_of(no_point))
    with pytest.raises(ReceiptForgedError, match="not signed"):
        verify(VerifiableReceipt(receipt, SIGNED.signature), no_point)


GOOD = text_of(SIGNED)
CONTENT = "SeCrEt"
NO_RECEIPTS: list[str | bytes] = [
    "",
    b"",
    CONTENT,
    "null",
    "7",
    "[]",
    f'"{CONTENT}"',
    "{}",
    "NaN",
    "[" * 9000,
    '{"receipt":' * 900,
    "1" * 9000,
    GOOD + " " * MOST_LETTERS,
    CONTENT * 10**6,
    GOOD.encode("utf-16"),
    b"\xff\xfe" + CONTENT.encode(),
    b"\xef\xbb\xbf" + GOOD.encode(),
    "\ud800",
    GOOD + CONTENT,
    GOOD[:-1],
    GOOD[:-1] + f', "{CONTENT}": 1}}',
    GOOD[:-1] + f', "signature": "{SIGNED.signature}"}}',
    GOOD.replace('"price": 100', '"price": 100, "price": 100'),
    GOOD.replace('"price": 100', '"price": NaN'),
    GOOD.replace('"price": 100', '"price": Infinity'),
    GOOD.replace('"price": 100', '"price": 1e2'),
    GOOD.replace('"price": 100', '"price": 100.0'),
    GOOD.replace('"price": 100', '"price": ' + "9" * 5000),
    GOOD.replace('"price": 100', '"price": true'),
    GOOD.replace('"price": 100', f'"price": {{"{CONTENT}": 1}}'),
    json.dumps(as_json(receipt=None)),
    json.dumps(as_json(receipt=[FIELDS])),
    json.dumps(as_json(receipt=json.dumps(FIELDS))),
    json.dumps(as_json(signature=None)),
    json.dumps(as_json(signature=7)),
    json.dumps(as_json(signature=[SIGNED.signature])),
    json.dumps(as_json(public_key=None)),
    json.dumps(as_json(public_key=CONTENT)),
    json.dumps(as_json(public_key=PUBLIC_KEY.upper())),
    json.dumps({"receipt": FIELDS}),
    json.dumps({"signature": SIGNED.signature}),
    json.dumps(FIELDS),
]


@pytest.mark.parametrize("text", NO_RECEIPTS, ids=range(len(NO_RECEIPTS)))
def test_text_that_is_no_receipt(text: str | bytes) -> None:
    with pytest.raises(ReceiptForgedError) as caught:
        read_signed(text)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None  # which would carry the text along
    assert error.message.endswith(".")
    assert error.message.count(".") == 1
    shown = f"{error} {error.fields} {error!r}"
    assert len(shown) < 300
    assert CONTENT not in shown
    assert str(SIGNED.signature) not in shown


def test_the_secret_is_never_shown() -> None:
    seed = Key.from_bytes(SECRET).derive(b"\x0e\0\0\0market receipt")
    assert repr(SIGNER) == str(SIGNER) == "<relaxdp market signer ebf943e81a077397>"
    assert seed.hex() not in f"{SIGNER!r} {SIGNED!r} {text_of(SIGNED)}"
    assert not hasattr(SIGNER, "__dict__")
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(SIGNER)


def test_the_file_that_was_bought(tmp_path: Path) -> None:
    place = tmp_path / "data.parquet"
    place.write_bytes(b"abc")
    check_data(RECEIPT, place)
    check_data(RECEIPT, str(place))
    for content in (b"", b"abd", b"abc\n", b"ab", b"abc" * 10**6):
        place.write_bytes(content)
        with pytest.raises(ReceiptForgedError, match="^this is not the file that the receipt names.$"):
            check_data(RECEIPT, place)
    large = bytes(range(256)) * 12_000  # more than is read at once
    place.write_bytes(large)
    check_data(replace(RECEIPT, digest=hashlib.sha256(large).hexdigest()), place)
    for wrong in (tmp_path / "missing", tmp_path, "null\0character"):
        with pytest.raises(MarketError, match="cannot be read"):
            check_data(RECEIPT, wrong)
