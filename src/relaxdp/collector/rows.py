"""An estimate as the rows that travel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaxdp.collector.estimate_wire import EstimateOptions, Row
from relaxdp.estimation.result import BEYOND, Result, RowIndexes
from relaxdp.rappor.decoding import DecodedWords


def rows_of(found: Result, options: EstimateOptions, chosen: RowIndexes | None) -> list[Row]:
    """Return an estimate as rows; some of them, where some were chosen by what they say."""
    shown = found if chosen is None else found.select_rows_by_estimate(chosen)
    about = options.about
    low, high = shown.interval(options.confidence_level, simultaneous=options.simultaneous, about=about)
    sides = shown.mark_impossible_rows(
        options.confidence_level, simultaneous=options.simultaneous, about=about
    ).tolist()
    columns: list[Any] = [
        np.atleast_1d(column).tolist() for column in (shown.value, shown.compute_std_error(about), low, high)
    ]
    more: list[dict[str, Any]] = [{"beyond": BEYOND[side]} if side else {} for side in sides]
    if isinstance(found, DecodedWords):
        places = slice(None) if chosen is None else chosen
        flags = found.find_detected_words()[places].tolist()
        chances = np.nan_to_num(found.p_value, nan=1.0)[places].tolist()
        for each, share, chance, flag in zip(more, found.share[places].tolist(), chances, flags, strict=True):
            each.update(share=share, p_value=chance, found=flag)
    return [
        Row(label, value, error if math.isfinite(error) else None, lower, upper, **extra)
        for label, value, error, lower, upper, extra in zip(shown.labels, *columns, more, strict=True)
    ]
