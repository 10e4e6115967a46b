"""What is asked of a table that is to be released: of whom it is, who pays for it, and where it lies.

The calls of `calls.py` say it in the words of a person; here it becomes a drawing and somebody who pays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Context, Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from relaxdp.draw.key import Key, as_key
from relaxdp.draw.stream import PathId
from relaxdp.errors import LedgerError, OptionError, ValuesError
from relaxdp.law.epsilon import Epsilon, as_epsilon
from relaxdp.ledger.account import Account, PathState, as_budget
from relaxdp.ledger.entries import PathFacts, Subject
from relaxdp.ledger.ledger import Charge, Ledger
from relaxdp.ledger.marks import Marks, mark_of
from relaxdp.ledger.payer import SNAPSHOTS, TAGS, Payer, folder_beside, ledger_beside, ledger_of, refuse_other_name
from relaxdp.publication.column import Opening, requested
from relaxdp.publication.outlook import Outlook, outlook_of
from relaxdp.publication.request import ReleaseRequest, TableRequest
from relaxdp.publication.transaction import Drawing, Progress, publish, quote
from relaxdp.table.arriving import arrived, is_address, name_of
from relaxdp.table.formats import Input, row_named
from relaxdp.table.frame_release import FrameDrawing, FrameTable
from relaxdp.table.kinds import is_file, is_spark, stem_of
from relaxdp.table.release import TableDrawing, check_ending
from relaxdp.table.spark.release import SparkFrameDrawing, SparkInput
from relaxdp.table.spark.session import SparkPlace

FileName = str | os.PathLike[str]


class Place(Enum):
    """Where a ledger lies, if nobody says."""

    BESIDE_KEY = "beside the key's file"


BESIDE_KEY = Place.BESIDE_KEY
_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)  # of an epsilon that nothing is charged by: encodings are chosen for it


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a release to a file, or what would become of it."""

    release: str
    columns: tuple[str, ...]
    epsilon: Decimal
    to: Path | None
    rows: int | None
    """How many rows were released; None where it was a dry run."""
    charges: tuple[Charge, ...]
    """What each column cost; none where nobody keeps account."""
    outlooks: tuple[Outlook, ...] = ()
    """How each column is encoded, why so, and how precise what is estimated of it will be."""
    date: str = ""
    """Which of the dated releases of a series it is."""
    snapshot: Path | None = None
    """Where what was released is kept, sealed, if it was kept now."""
    is_faster_locally: bool = False
    """Whether Spark ran on this machine over a table whose ids ascend: there the local engine takes less time."""


@dataclass(frozen=True, slots=True)
class Paid:
    """Who pays, how the account stood before, and the paths that go on."""

    payer: Payer | None
    known: Account | None
    opened: Mapping[str, PathState | None]
    remembered: Mapping[str, PathFacts] | None
    """How columns were encoded before, for others too; None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be released, wherever the table lies."""

    columns: Mapping[str, Any]
    id_column: str
    epsilon: Decimal
    planned: Decimal | None
    """The last epsilon that is planned, where it was said."""
    key: Key
    release: str
    is_named: bool
    """Whether a person said how the release is called; else it is called like its file."""
    keep: tuple[str, ...]
    date: str = ""
    """Of a dated release."""
    as_of: str | None = None
    """The day whose table it is, where it was said."""

    @classmethod
    def of(
        cls,
        source: Any,
        columns: Any,
        id: str,
        epsilon: Epsilon,
        planned: Epsilon | None,
        key: Key | FileName,
        release: str | None,
        keep: Sequence[str],
        date: str = "",
        as_of: Any = None,
    ) -> Asked:
        """Take what was said, or refuse what makes no sense."""
        if not isinstance(columns, Mapping) or not columns or not all(isinstance(name, str) for name in columns):
            raise ValuesError("say what each column can be.", remedy="columns")
        if hasattr(keep, "dtype") and hasattr(keep, "to_list") and type(keep).__name__ != "Index":
            raise ValuesError("what is kept is a list of names, and this is a column.", option="keep")  # of data
        exact = as_epsilon(epsilon)
        if release is None and not is_file(source):
            raise OptionError("a release of a data frame needs a name.", remedy="release", option="release")
        return cls(
            columns,
            id,
            exact,
            None if planned is None else as_epsilon(planned),
            loaded(key),
            _name_of(source) if release is None else release,
            release is not None,
            (keep,) if isinstance(keep, str) else tuple(keep),
            date,
            None if as_of is None else _day(as_of),
        )

    @contextmanager
    def paying(
        self,
        ledger: FileName | Ledger | Place | None,
        population: str,
        budget: Epsilon | None,
        reason: str,
        *,
        growing: bool = False,
        snapshots: FileName | bool = False,
        **agreed: Any,
    ) -> Iterator[Paid]:
        """Open a ledger by its place, for one release; one that is open already stays open."""
        if ledger is None:
            if growing:
                raise OptionError("tags of the rows lie beside the ledger, so it takes one.", option="growing")
            yield Paid(None, None, {}, self._remembered_beside())
            return
        with opened_ledger(ledger, self.key) as book:
            tags = None
            if growing:
                beside = file_beside(book, self.key)
                if beside is None:
                    raise OptionError("tags of the rows need a place: this key comes from no file.", option="growing")
                tags = folder_beside(beside, TAGS)
            subject = Subject.population(population)
            known = book.account(subject)
            paths = [PathId(self.release, name, date=self.date) for name in self.columns]
            opened = {path.attribute: known.last_epoch(path) for path in paths}
            is_new = any(state is None for state in opened.values())
            remembered = book.facts_of(paths, self.key.fingerprint, known) if is_new else {}
            if not self.is_named:
                refuse_other_name(known, self.release, list(self.columns))
            agreed |= {"growing": tags, "snapshots": place_of_snapshots(snapshots, book, self.key)}
            payer = Payer(book, subject, budget, reason or f"release of {self.release}", **agreed)
            yield Paid(payer, known, opened, remembered)

    def _remembered_beside(self) -> dict[str, PathFacts] | None:
        """Return what the ledger beside the key remembers; None where there is one that cannot be read or found.

        Somebody who releases without a ledger goes on as that one says: encoded in another way a column would take
        another path, whose cost adds up where no ledger sees it.
        """
        place = None if self.key.source is None else ledger_of(self.key.source)
        if place is None or not place.exists():
            was_begun = place is not None and mark_of(place).exists()
            return None if was_begun or Marks("ledgers", self.key.fingerprint).places() else {}
        try:
            with Ledger.open(place, create=False) as beside:
                paths = [PathId(self.release, name, date=self.date) for name in self.columns]
                return beside.facts_of(paths, self.key.fingerprint)
        except LedgerError:
            return None

    def requested(self, table: Any, paid: Paid, *, to: Path | None = None, alone: str | None = None) -> Any:
        """Return what is to be released of an open table, from its file `to` another where that is said.

        `alone` is the only encoding that can be meant.
        """
        columns, planned = [], self._planned(paid)
        for name, said in self.columns.items():
            state, payer = paid.opened.get(name), paid.payer
            opened = (paid.remembered or {}).get(name) if state is None else state.facts
            begun_anew = payer is not None and bool(payer.new_ledger)
            is_unknown = opened is None and (begun_anew or paid.remembered is None)
            is_said, has_ledger = self.planned is not None, payer is not None
            opening = Opening(planned, is_said, opened, alone, is_unknown, has_ledger, self.epsilon)
            columns.append(requested(name, said, table, opening))
        whole: Any = {"id_column": self.id_column, "columns": columns, "epsilon": self.epsilon, "key": self.key}
        whole |= {"release": self.release, "keep": self.keep, "date": self.date, "as_of": self.as_of}
        return ReleaseRequest(**whole) if to is None else TableRequest(**whole, source=table.path, target=to)

    def _planned(self, paid: Paid) -> Decimal | None:
        """Return the last epsilon that new paths are for: what was said, else what is left of the budget."""
        if self.planned is not None or paid.payer is None:
            return self.planned
        dated = () if paid.known is None else paid.known.series(self.release)
        for each in dated:
            if each.date == self.date:
                return max(self.epsilon, each.budget)
        budget = paid.known.budget if paid.known is not None else None
        if budget is None:
            budget = None if paid.payer.budget is None else as_budget(paid.payer.budget)
        if budget is None or paid.known is None:
            return self.epsilon
        return max(self.epsilon, _DIGITS.plus(budget - paid.known.spent))


def carried_out(
    drawing: Drawing, payer: Payer | None, known: Account | None, target: Path | None, *, dry_run: bool
) -> Any:
    """Release to a file or return a frame; or, in a dry run, say what it would cost."""
    request = drawing.request
    if dry_run:
        if payer is None:
            raise OptionError("what it would cost is asked of the ledger, so it takes one.", option="dry_run")
        rows, charges, kept = None, quote(drawing, payer, known), None
    else:
        outcome = publish(drawing, payer, known)
        rows, charges, kept = outcome.rows, outcome.charges, outcome.snapshot
        if target is None:
            return outcome.result
    names = tuple(each.column for each in request.columns)
    outlooks = tuple(outlook_of(each, rows) for each in request.planned())
    done = (request.release, names, request.epsilon, target, rows, tuple(charges), outlooks, request.date, kept)
    return Released(*done, drawing.is_faster_locally)


@dataclass(frozen=True, slots=True)
class Where:
    """Where a table lies and where what is released of it goes: from file to file, or from frame to frame."""

    source: Any
    target: Path | None
    is_spark: bool
    spark: dict[str, Any]
    separator: str | None

    @classmethod
    def of(cls, source: Any, to: FileName | None, engine: str, spark: dict[str, Any], separator: str | None) -> Where:
        """Take what was said, or refuse what makes no sense."""
        if engine not in ("local", "spark"):
            raise OptionError("there is no engine {engine!r}: rows are drawn locally or by Spark.", engine=engine)
        from_file, is_frame_of_spark = is_file(source), is_spark(source)
        if from_file and to is None:
            raise OptionError("what is released of a file goes to a file.", remedy="to", option="to")
        if not from_file and to is not None:
            raise OptionError("what is released of a data frame is one, and is not written.", option="to")
        if spark and engine != "spark" and not is_frame_of_spark:
            raise OptionError("this is for Spark: {options}.", remedy="engine", options=", ".join(spark))
        on_spark = engine == "spark" or is_frame_of_spark
        if separator is not None and (on_spark or not from_file):
            raise OptionError("fields are separated in files, which the local engine reads.", option="separator")
        if isinstance(to, str) and "://" in to and not on_spark:
            raise OptionError("what is released goes to a file that lies here, and to no address.", option="to")
        return cls(source, None if to is None else Path(to), on_spark, spark, separator)

    @contextmanager
    def opened(
        self, asked: Asked, threads: int, progress: Progress | None
    ) -> Iterator[tuple[Any, Callable[[Any], Drawing]]]:
        """Open the table, and give what draws from it."""
        if self.target is None:
            yield self._frame(asked, threads)
        elif self.is_spark:
            place = SparkPlace(os.fspath(self.source), self.target, **self.spark)
            with place.logged():
                yield place.table, partial(place.drawing, progress=progress)
        else:
            check_ending(self.target)
            with arrived(self.source) as file:
                table = Input(file, self.separator)
                options: Any = {"threads": threads, "progress": progress, "table": table}
                with row_named(table):
                    yield table, lambda request: TableDrawing(request, **options)

    def _frame(self, asked: Asked, threads: int) -> tuple[Any, Callable[[ReleaseRequest], Drawing]]:
        if self.is_spark:
            options = {name: each for name, each in self.spark.items() if name != "master"}
            return SparkInput.of_frame(self.source), lambda request: SparkFrameDrawing(self.source, request, **options)
        table = FrameTable(self.source, asked.id_column, list(asked.columns), asked.keep)
        return table, lambda request: FrameDrawing(table, request, threads)


def _name_of(source: FileName) -> str:
    return stem_of(Path(name_of(str(source)) if is_address(source) else source))


@contextmanager
def opened_ledger(ledger: FileName | Ledger | Place, key: Key) -> Iterator[Ledger]:
    """Open a ledger by its place; one that is open already stays open."""
    place = ledger_beside(key) if isinstance(ledger, Place) else ledger
    if isinstance(place, Ledger):
        yield place
        return
    if place is None:
        raise OptionError("the ledger knows what was released, so it takes one.", option="ledger")
    with Ledger.open(place) as book:
        yield book


def file_beside(book: Ledger, key: Key) -> Path | None:
    """Return the file beside which lies what belongs to a ledger: a database has no folder, so the key's has it."""
    if "://" not in book.address:
        return Path(book.address)
    return None if key.source is None else ledger_of(key.source)


def place_of_snapshots(said: FileName | bool, book: Ledger, key: Key) -> Path | None:
    """Return the folder of the snapshots: the one that was said, or the one beside the ledger; None where none is."""
    if not isinstance(said, bool | str | os.PathLike):
        raise OptionError("snapshots lie in a folder; True and False say whether there are any.", option="snapshots")
    if not isinstance(said, bool):
        return Path(said)
    beside = file_beside(book, key) if said else None
    return None if beside is None else folder_beside(beside, SNAPSHOTS)


def loaded(key: Key | FileName) -> Key:
    """Return a key, which may be said by its file."""
    return Key.load(key) if isinstance(key, str | os.PathLike) else as_key(key)


def _day(said: Any) -> str:
    try:
        return (said if isinstance(said, date) else date.fromisoformat(said)).isoformat()[:10]
    except (TypeError, ValueError):
        raise OptionError("a day is written like 2026-01-31.", option="as_of") from None
