"""A member of a pool: an answer and a key become the reports of all levels up to the own limit, on this machine.

All reports of a member are one path, which protects one answer. So the answer is remembered next to the key, as a tag
that reveals nothing without the key, and another answer under the same key is rejected.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from relaxdp.device.offer import encoding_of
from relaxdp.device.report import read_typed_answer, written_report
from relaxdp.errors import add_consequence
from relaxdp.market.client import MarketClient, understood
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.sampling.keyed_stream import PathId, encode_canonical
from relaxdp.sampling.keys import Key, add_length_prefix
from relaxdp.sampling.private_file import PrivateFileError, lock_folder, read_private_file, write_private_file
from relaxdp.server_errors import AnswerChangedError, DeviceFileError, OfferError
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon

_ATTRIBUTE = "answer"


@add_consequence("Nothing was sent.")
def join_pool(
    market: MarketClient, pool: str, answer: str, *, key: Key, limit: Epsilon, memory: Path | None = None
) -> dict[str, Any]:
    """Send the reports of an answer at all levels of a pool up to a limit, and return the pool.

    Args:
        market: The market, with a seller's token.
        pool: The name of the pool.
        answer: The answer as text. It stays on this machine.
        key: The key of the individual.
        limit: One of the pool's levels. No report above it is ever sent.
        memory: The file that remembers the answer. By default next to the key's file.
    """
    most = as_epsilon(limit)
    with understood():
        listing = market.listing(pool)
        is_pool = listing["id"] == pool and listing["kind"] == "pool"
        levels = [as_epsilon(str(each["epsilon"])) for each in listing["levels"]]
        described = listing["mechanism"]
    if not is_pool or most not in levels:
        raise OfferError(
            "{pool!r} is not a pool with the level {limit}.",
            hint="List its levels: relaxdp market list {pool}.",
            pool=pool,
            limit=format_epsilon(most),
        )
    mechanism = encoding_of({**described, "name": described.get("encoding")})
    true_value = read_typed_answer(mechanism, answer)
    _remember(pool, mechanism, true_value, key, memory)
    path = ReportPath(mechanism, true_value, key=key, object_id=pool, path=PathId(pool, _ATTRIBUTE))
    reports = {format_epsilon(each): written_report(path.at(each)) for each in levels if each <= most}
    return market.join_pool(pool, reports)


def _remember(pool: str, mechanism: Mechanism, answer: Any, key: Key, memory: Path | None) -> None:
    """Write down what a key is used for, before anything is sent; reject another answer or other values."""
    info = (
        add_length_prefix(b"market pool answer")
        + add_length_prefix(pool.encode())
        + add_length_prefix(mechanism.params)
    )
    tag = key.derive(info + encode_canonical(answer))[:16].hex()
    place = memory
    if place is None and key.source is not None:
        place = key.source.resolve().with_suffix(".pools")
    if place is None:
        raise DeviceFileError(
            "The key comes from no file, so there is no place to remember the answer.",
            hint="Save the key to a file and pass it: --key FILE.",
        )
    try:
        with lock_folder(place.parent):
            known = _read_tags(place)
            if known.get(pool, tag) != tag:
                raise AnswerChangedError(
                    "The answer, or the values of {pool!r}, differ from those that this key was used with before.",
                    hint="Use the same answer. A changed answer would be visible.",
                    pool=pool,
                )
            write_private_file(place, json.dumps({**known, pool: tag}).encode(), replace=True)
    except PrivateFileError as problem:
        raise DeviceFileError("{path!r} {why}.", why=problem, path=str(place)) from None


def _read_tags(place: Path) -> dict[str, str]:
    content = read_private_file(place)
    try:
        found = {} if content is None else json.loads(content)
        if isinstance(found, dict) and all(isinstance(each, str) for each in found.values()):
            return found
    except (ValueError, RecursionError):
        pass
    raise PrivateFileError("is damaged: it is unknown what this key was used for")
