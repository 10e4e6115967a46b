"""Export: the reports of one level as a Parquet file that says what it holds, as every released file does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from sqlalchemy import Connection

from relaxdp.collector import reports
from relaxdp.collector.campaign import ATTRIBUTE, Campaign
from relaxdp.mechanisms.report_arrays import get_report_arrow_type
from relaxdp.rappor.reports import CLIENT, COHORT, REPORT
from relaxdp.sampling.keyed_stream import PathId
from relaxdp.service.transfer import nameless
from relaxdp.tables.metadata import METADATA_KEY, ColumnDescription, FileDescription, make_parquet_metadata

DEVICE = "device"
_PAGE = 50_000


def export(connection: Connection, campaign: Campaign, place: int) -> IO[bytes]:
    """Write the reports of a level, in the order of the devices, and return the file, which has no name any more.

    A device is the digest of its pseudonym: the same in all exports of a campaign, and of questions that are counted
    together with it, and in no other.
    """
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415

    schema, described = _schema(campaign, place)

    def write(path: Path) -> None:
        total = 0
        with pa_parquet.ParquetWriter(path, schema) as writer:
            for rows in reports.pages(connection, campaign.number, place, _PAGE):
                writer.write_table(_table(campaign, rows, schema))
                total += len(rows)
            writer.add_key_value_metadata(make_parquet_metadata(schema, replace(described, rows=total)))

    return nameless(write)


def _schema(campaign: Campaign, place: int) -> tuple[Any, FileDescription]:
    level = campaign.encoding.level(campaign.levels[place].epsilon)
    column = ColumnDescription.from_level(
        campaign.encoding, level, path=PathId(campaign.id, ATTRIBUTE), id_type="text"
    )  # without a key: every device has one of its own
    if campaign.words is not None:
        described = FileDescription(CLIENT, {REPORT: column})
        fields = [(CLIENT, pa.string()), (COHORT, pa.uint32()), (REPORT, get_report_arrow_type(campaign.encoding))]
    else:
        described = FileDescription(DEVICE, {ATTRIBUTE: column})
        fields = [(DEVICE, pa.string()), (ATTRIBUTE, get_report_arrow_type(campaign.encoding))]
    return pa.schema(fields, metadata={METADATA_KEY: described.to_json().encode()}), described


def _table(campaign: Campaign, rows: list[tuple[bytes, bytes]], schema: Any) -> Any:
    devices, kept = [device.hex() for device, _ in rows], [report for _, report in rows]
    columns = [pa.array(devices, pa.string())]
    cohorts = campaign.codec.cohorts(kept)
    if cohorts is not None:
        columns.append(pa.array(cohorts, pa.uint32()))
    columns.append(campaign.codec.column(kept))
    return pa.Table.from_arrays([pa.chunked_array([column]) for column in columns], schema=schema)
