"""Counts -> estimates with intervals, per level and pooled, as structs and as a table."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from msgspec import UNSET
from sqlalchemy import Connection

from relaxdp.collector import counts
from relaxdp.collector.campaign import Campaign
from relaxdp.collector.estimate_wire import Estimate, EstimateOptions, LevelEstimate, Quantile, Row, Unlisted
from relaxdp.collector.integrity import integrity_of
from relaxdp.collector.pairs import Kept
from relaxdp.collector.rows import rows_of
from relaxdp.collector.rules import CampaignState
from relaxdp.estimation.counts import Counts
from relaxdp.estimation.distribution import Distribution
from relaxdp.estimation.result import Result, RowIndexes, SelectedRows
from relaxdp.mechanisms.bloom import compute_bit_support, compute_bit_threshold
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.decoding import DecodedWords, decode_words
from relaxdp.rappor.reports import RapporCounts
from relaxdp.service.codecs import Counted

Levels = list[Counted]

_MOST_BINS = 256
"""With so many bins quartiles take up to a second of one core, and with 1,024 more: too long for a live page."""


def read_counts(connection: Connection, campaign: Campaign, *, moved: bool = False) -> Levels:
    """Return the counts of all levels: a few rows, however many reports there are."""
    places = range(len(campaign.levels))
    return [counts.read_level(connection, campaign.number, level, moved=moved) for level in places]


def estimate(
    campaign: Campaign,
    state: CampaignState,
    levels: Levels,
    options: EstimateOptions,
    pairs: Kept | None = None,
    moved: Levels | None = None,
) -> Estimate:
    """Return all estimates of a campaign; and whether its reports were made up, where pairs of them are given.

    The estimate of a level is from all reports at it: `moved` has the counts of devices that are at a higher one now.
    """
    sent = [counts.total(*both) for both in zip(levels, moved or [{}] * len(levels), strict=True)]
    pooled = result_of(campaign, levels, options) if sum(state.devices) else None
    unlisted = pooled.unlisted if isinstance(pooled, DecodedWords) else None
    shown = pooled if pooled is None or options.largest is UNSET else pooled.largest(options.largest)
    places = shown.indexes if isinstance(shown, SelectedRows) else None
    pooled_rows = None if pooled is None else rows_of(pooled, options, places)
    only = sum(map(bool, state.devices)) == 1  # then that level is the pool
    return Estimate(
        campaign=campaign.id,
        version=state.version,
        devices=sum(state.devices),
        state=state.state,
        open_level=state.open_level,
        half_width=campaign.precision.half_width(state.devices),
        target=campaign.definition.target,
        target_met=campaign.target_met(list(state.devices)),
        method=options.method,
        confidence_level=options.confidence_level,
        about=options.about,
        simultaneous=options.simultaneous or places is not None,
        values=0 if pooled is None else len(pooled.labels),
        levels=[
            LevelEstimate(
                level.epsilon,
                level.threshold,
                devices,
                int(sum(numbers[0] for numbers in sent[place].values())),
                pooled_rows if devices and only and pooled_rows else level_rows(campaign, sent, place, options, places),
            )
            for place, (level, devices) in enumerate(zip(campaign.levels, state.devices, strict=True))
        ],
        pooled=pooled_rows,
        unlisted=None if unlisted is None else Unlisted(float(unlisted[0]), float(unlisted[1])),
        quantiles=_quantiles(pooled, options),
        integrity=None if pairs is None else integrity_of(campaign, state, pairs, options, places, pooled_rows),
    )


def _quantiles(found: Result | None, options: EstimateOptions) -> list[Quantile] | None:
    """Return the quantiles that are asked for; None where reports do not tell them, or not soon."""
    if options.quantiles is UNSET or not isinstance(found, Distribution) or found.wave_counts.bin_count > _MOST_BINS:
        return None
    asked = found.quantile([float(each) for each in options.quantiles.split(",")])
    low, high = asked.interval(options.confidence_level, simultaneous=options.simultaneous, about=options.about)
    rows = zip(asked.probabilities, asked.value.tolist(), low.tolist(), high.tolist(), strict=True)
    return [Quantile(*row) for row in rows]


def csv_text(found: Estimate) -> bytes:
    """Return the same for a spreadsheet."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415

    file = io.BytesIO()
    pa_csv.write_csv(_table(found), file)
    return file.getvalue()


def _table(found: Estimate) -> pa.Table:
    """Return one row for each value of each level, and of the pool (no epsilon; the newest report of each device)."""
    parts: list[tuple[str | None, int, Sequence[Row]]] = [
        (level.epsilon, level.reports, level.rows) for level in found.levels
    ]
    parts.append((None, found.devices, found.pooled or []))
    flat = [(epsilon, reports, row) for epsilon, reports, rows in parts for row in rows]
    return pa.table(
        {
            "epsilon": pa.array([epsilon for epsilon, _, _ in flat], pa.string()),
            "reports": pa.array([reports for _, reports, _ in flat], pa.int64()),
            "value": pa.array([str(row.value) for _, _, row in flat], pa.string()),
            "confidence_level": pa.array([found.confidence_level] * len(flat), pa.float64()),
            "simultaneous": pa.array([found.simultaneous] * len(flat), pa.bool_()),
            **{
                name: pa.array([getattr(row, name) for _, _, row in flat], pa.float64())
                for name in ("estimate", "std_error", "low", "high")
            },
        }
    )


def level_rows(
    campaign: Campaign, levels: Levels, place: int, options: EstimateOptions, chosen: RowIndexes | None = None
) -> list[Row]:
    """Return the estimates of one level alone; those of rows that the pool was asked for, where some were chosen."""
    only = [level if each == place else {} for each, level in enumerate(levels)]
    found = result_of(campaign, only, options)
    return [] if found is None else rows_of(found, options, chosen)


def result_of(campaign: Campaign, levels: Levels, options: EstimateOptions) -> Result | None:
    """Return what all devices together say; None before there are any."""
    if campaign.words is not None:
        return _words(campaign, campaign.words, levels, options)
    kept = Counts(campaign.mechanism)
    for level, parts in zip(campaign.levels, levels, strict=True):
        for numbers in parts.values():
            if numbers[0]:
                kept.add_counts(numbers[1:], epsilon=level.epsilon, n=int(numbers[0]))
    return kept.estimate(options.method) if kept.n else None


def _words(campaign: Campaign, words: CandidateMap, levels: Levels, options: EstimateOptions) -> Result | None:
    shape = words.shape
    kept = RapporCounts(shape)
    for level, parts in zip(campaign.levels, levels, strict=True):
        devices = np.zeros(shape.cohorts, dtype=np.int64)
        bits = np.zeros((shape.cohorts, shape.bits), dtype=np.int64)
        for cohort, numbers in parts.items():
            devices[cohort], bits[cohort] = numbers[0], numbers[1:]
        if devices.any():
            kept.add_counts(devices, bits, compute_bit_support(compute_bit_threshold(shape, level.epsilon)))
    return decode_words(kept, words, method=options.method) if kept.n_devices else None
