"""What an operator asks for to share a campaign: its address as a QR code, for a poster or a screen."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from relaxdp.collector.service import Collector
from relaxdp.collector.views import ENCODER
from relaxdp.service.limits import Limits, decode, decoder_of, read_body
from relaxdp.service.operations import Operation
from relaxdp.service.wire import WHOLE_TEXT


class CodeRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """An address, as whoever scans the code should open it: only the page knows under which one people reach it."""

    address: Annotated[str, Meta(pattern=f"^https?://[!-~]+{WHOLE_TEXT}", max_length=1000)]


class Code(Struct, frozen=True):
    """The code's rows from the top, each a text of 0 (light) and 1 (dark), without the light edge around them."""

    rows: list[str]


_CODE = decoder_of(CodeRequest)


class SharingRoutes:
    """An address travels in a body: it may hold an invitation, and proxies write addresses down."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        self._collector, self._limits = collector, limits

    async def make_code(self, request: Request) -> Response:
        """Return an address as a QR code."""
        await self._collector.check_operator(request)
        asked: CodeRequest = decode(await read_body(request, self._limits), _CODE)
        found = await self._collector.compute(lambda: code_of(asked.address))
        return Response(ENCODER.encode(found), media_type="application/json")

    def operations(self) -> list[Operation]:
        """Return what the routes are."""
        return [
            Operation("POST", "/v1/qr-code", self.make_code, "Return an address as a QR code.", CodeRequest, Code,
                      security="operator", nothing="Nothing was made."),
        ]  # fmt: skip


def code_of(address: str) -> Code:
    """Return the code. A fifth of it may be covered or dirty (its level of correction is M, or better where it fits).

    >>> len(code_of("https://collect.example/survey/commute").rows)
    29
    """
    import segno  # noqa: PLC0415 (only whoever shares needs it)

    found = segno.make(address, error="m", micro=False)
    return Code(["".join(map(str, row)) for row in found.matrix])
