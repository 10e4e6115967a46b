"""People in tables, however their ids are spelled, and the operations that a vault is asked for."""

from __future__ import annotations

import random
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from relaxdp.mechanisms.categorical import Unary
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.tables.vault import Vault

VALUES = ["x", "y", "z"]
GROUPS = ["u", "v"]
PLANNED = Decimal(20)
"""Few rows tell next to nothing at low levels, unless a larger one is planned."""
OUTPUTS = {"a": "a", "b": "b_report", "g": "g"}
SPELLINGS = 8
"""How many ways there are to write an id; the first six of a text differ only in spelling."""
_INTEGERS = {"int64": pa.int64(), "uint64": pa.uint64(), "int32": pa.int32()}

Id = str | int


@dataclass(frozen=True, slots=True)
class Row:
    """A person in a table."""

    person: int
    spelling: int
    a: str
    b: float
    g: str

    def get_id(self, kind: str) -> Id:
        """Return the id of the person in this spelling."""
        if kind != "text":
            others = {"uint64": (0, 1000, 2**63), "int32": (0, 1000, 2000), "int64": (0, -1000, 2**40)}
            return self.person + others[kind][max(0, self.spelling - 5)]
        known = f"{self.person}k"
        wide = "".join(chr(ord(each) + 0xFEE0) if each.isdigit() else each for each in known)
        return [known, f" {known}", known.upper(), f"00{known}", f"{known}.0", wide, f"{known}z", f"w{known}"][
            self.spelling
        ]


def make_person(number: int) -> Row:
    """Return a person as it is at first."""
    chance = random.Random(number)
    return Row(number, 0, chance.choice(VALUES), float(chance.randrange(11)), chance.choice(GROUPS))


def fold(written: Id) -> Id:
    """Return one form for all spellings of an id that a vault must see through."""
    if isinstance(written, int):
        return written
    plain = re.sub(r"\s", "", unicodedata.normalize("NFKC", written).casefold())
    return re.sub(r"\.0+$", "", plain).lstrip("0")


@dataclass(frozen=True, slots=True)
class Job:
    """One operation: release, relax, retire or raise."""

    kind: str
    name: str = ""
    epsilon: str = "1"
    columns: tuple[str, ...] = ()
    """None for all columns of a relaxation."""
    rows: tuple[Row, ...] = ()
    passthrough: tuple[str, ...] = ()
    accept: bool = False
    ids: str = "text"
    unary: bool = False
    """Whether the column 'a' is declared with another mechanism."""
    source: str = "frame"
    sink: str = "memory"
    output: str = ""
    """The name of the file; a new one for each run, if it is empty."""

    @property
    def id_type(self) -> str:
        """What kind of ids they are, whatever their width."""
        return "text" if self.ids == "text" else "integer"

    def list_ids(self) -> dict[Id, Row]:
        """Return the rows by their ids."""
        return {row.get_id(self.ids): row for row in self.rows}

    def make_data(self, folder: Path, number: int) -> Any:
        """Return the table as a frame, or write it as a file."""
        ids = pa.array(self.list_ids(), pa.string() if self.ids == "text" else _INTEGERS[self.ids])
        columns = {name: [getattr(row, name) for row in self.rows] for name in OUTPUTS}
        table = pa.table({"id": ids, **columns})
        if self.source == "frame":
            return table
        place = folder / f"in-{number}.{self.source}"
        pa_parquet.write_table(table, place) if self.source == "parquet" else pa_csv.write_csv(table, place)
        return place

    def run(self, vault: Vault, data: Any, output: Path | None) -> Any:
        """Run it, and return what was released."""
        if self.kind == "retire":
            return vault.retire(self.name, reason="test")
        if self.kind == "raise":
            return vault.raise_budget(self.epsilon, reason="test")
        if self.kind == "relax":
            return vault.relax(self.name, self.epsilon, columns=self.columns or None, output=output)
        declared = {"a": Unary(VALUES, optimised=False) if self.unary else VALUES, "b": Numeric(0, 10), "g": GROUPS}
        return vault.release(
            data, {name: declared[name] for name in self.columns}, id="id", epsilon=self.epsilon, name=self.name,
            output=output, passthrough=self.passthrough, planned_epsilon=PLANNED, accept_new_rows=self.accept,
        )  # fmt: skip
