"""An address that becomes a QR code: one that a telephone opens, and nothing behind it."""

from __future__ import annotations

import msgspec
import pytest

from relaxdp.collector.sharing_routes import CodeRequest


@pytest.mark.parametrize(
    "address", ["https://x/\n", "javascript:alert(1)", "https://x/ y", "https://x/\u202e", "https://"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"address": address}, CodeRequest)


def test_an_address() -> None:
    assert msgspec.convert({"address": "http://x/y#z"}, CodeRequest).address == "http://x/y#z"
