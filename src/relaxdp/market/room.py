"""What all routes of the market share: the worker, the market, and who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from relaxdp.market.access import Access
from relaxdp.market.market import Market
from relaxdp.market.views import ENCODER
from relaxdp.service.worker import Worker

JSON, PARQUET = "application/json", "application/vnd.apache.parquet"


@dataclass(frozen=True, slots=True)
class Room:
    """The market of one worker."""

    worker: Worker
    market: Market
    access: Access


def answer(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(ENCODER.encode(content), status, media_type=JSON, headers={"cache-control": "no-store"})
