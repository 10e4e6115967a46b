"""Many simulated devices at once: their truths, and what each of them reports at a level.

They differ from real ones in that one key serves them all and nothing is kept in files: a report is drawn on the keyed
path of its pseudonym, as a real device draws it, but for all devices together. The law of the reports is the same.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from relaxdp.collector.device_offer import ATTRIBUTE, Offer
from relaxdp.collector.device_report import written_report
from relaxdp.draw.key import Key
from relaxdp.draw.stream import PathId
from relaxdp.encodings.declared import DeclaredEncoding
from relaxdp.encodings.release import release_reports
from relaxdp.errors import SimulationError, refusing
from relaxdp.law.level import Level

MOST_DEVICES = 10_000_000


class Fleet:
    """Simulated devices. The seed decides everything, so a run can be repeated; that is why it is no real campaign."""

    def __init__(self, devices: int, values: int, seed: int) -> None:
        if not 1 <= devices <= MOST_DEVICES:
            raise SimulationError(
                "from 1 to {most:,} devices can be simulated, not {devices:,}.", most=MOST_DEVICES, devices=devices
            )
        random = np.random.default_rng(seed)
        weights = 1 / np.arange(1, values + 1)  # a few values are common and many are rare, as in life
        self.pseudonyms = _pseudonyms(random, devices)
        self.truths = random.choice(values, devices, p=weights / weights.sum())
        self._key = Key.from_bytes(sha256(f"relaxdp simulation {seed}".encode()).digest())

    def shares(self, values: int) -> NDArray[np.float64]:
        """Return what the campaign is to find out: the share of each value among these devices."""
        return np.bincount(self.truths, minlength=values) / len(self.truths)

    @refusing("Nothing was sent.")
    def reports(self, offer: Offer, level: Level) -> list[dict[str, Any]]:
        """Return the report of every device at a level, as it travels."""
        encoding = offer.encoding
        if not isinstance(encoding, DeclaredEncoding) or encoding.level(level.epsilon) != level:
            raise SimulationError("the server's campaign is not the one that was created.")
        labels = np.array(encoding.values, dtype=object)
        column = release_reports(
            encoding,
            labels[self.truths],
            self.pseudonyms,
            key=self._key,
            level=level,
            path=PathId(offer.address.id, ATTRIBUTE),
        )
        travelling, same = level.to_json(), zip(self.pseudonyms, column.to_pylist(), strict=True)
        return [{"device": name, "level": travelling, "report": written_report(report)} for name, report in same]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a fleet holds truths and is not pickled.")


def _pseudonyms(random: np.random.Generator, devices: int) -> list[str]:
    text = random.bytes(16 * devices).hex()
    return [text[start : start + 32] for start in range(0, len(text), 32)]
