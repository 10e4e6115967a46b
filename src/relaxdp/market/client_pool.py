"""A single seller: an answer and a key become one report of a pool, on this machine. Only the report leaves.

All reports of a member are one path, and the path protects one answer. So what was answered is remembered beside the
key (as a tag, which tells nothing without the key), and another answer under the same key is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from relaxdp.device.offer import encoding_of
from relaxdp.device.report import read_typed_answer, written_report
from relaxdp.errors import add_consequence
from relaxdp.market.levels import MOST_LEVELS, level_on
from relaxdp.market.marks import Marks
from relaxdp.mechanisms.base import Mechanism
from relaxdp.mechanisms.bloom import Bloom
from relaxdp.mechanisms.declared_values import DeclaredMechanism
from relaxdp.mechanisms.keyed_reports import ReportPath
from relaxdp.sampling.keyed_stream import PathId, encode_canonical
from relaxdp.sampling.keys import Key, add_length_prefix
from relaxdp.sampling.private_file import PrivateFileError, lock_folder, read_private_file, write_private_file
from relaxdp.server_errors import AnswerChangedError, DeviceFileError, OfferError, ValuesChangedError
from relaxdp.theory.epsilon import as_epsilon

ATTRIBUTE = "answer"
_UNSENT = "Nothing was sent."
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool, as its market describes it: its name, and how an answer becomes a report."""

    id: str
    encoding: Mechanism
    levels: tuple[Decimal, ...]

    @classmethod
    @add_consequence(_UNSENT)
    def of(cls, listing: dict[str, Any], asked: str) -> Pool:
        """Read a listing with suspicion: it must be the open pool that was asked for, of an encoding that is known."""
        if listing.get("id") != asked or listing.get("kind") != "pool":
            raise OfferError("{pool!r} is no pool: only pools are joined with a single answer.", pool=asked)
        if listing.get("state") != "open":
            raise OfferError("the pool {pool!r} is closed.", pool=asked)
        try:
            encoding = encoding_of(listing.get("encoding"))
        except OfferError:
            encoding = None
        if encoding is None or isinstance(encoding, Bloom):
            raise OfferError("the pool's encoding or its values cannot be used by this version.")
        return cls(asked, encoding, _levels(listing.get("levels")))

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from, as they are written; none where the answer is a number."""
        return tuple(map(str, self.encoding.values)) if isinstance(self.encoding, DeclaredMechanism) else ()

    @add_consequence("Nothing was kept, and nothing was sent.")
    def answer(self, text: str) -> Any:
        """Return the answer that a text stands for. A refusal shows nothing of it."""
        return read_typed_answer(self.encoding, text)

    @add_consequence(_UNSENT)
    def report(self, answer: Any, *, key: Key, epsilon: Decimal) -> dict[str, Any]:
        """Return level and report as they travel: a pure function of key, answer and level, the same at every call.

        A report at what is no level of the pool would be refused, after it had left.
        """
        level = level_on(self.levels, epsilon, self.encoding)
        path = ReportPath(self.encoding, answer, key=key, object_id=self.id, path=PathId(self.id, ATTRIBUTE))
        return {"level": level.to_dict(), "report": written_report(path.at(level.epsilon))}


@add_consequence(_UNSENT)
def remember(pool: Pool, answer: Any, *, key: Key) -> None:
    """Write down, before anything leaves, what a key was used for; refuse what does not fit what it was used for.

    A second answer, or other values, would be a second path: what both tell adds up, and a changed answer shows. Levels
    need not be remembered: on one path they may be read in any order, and cost the largest one. It is beside the file
    itself, whatever links lead there; where the key is a copy, a mark in the state folder says where it is. A key that
    comes from no file has its memory in the state folder.
    """
    marks = Marks(key.fingerprint)
    place = _memory_of(key, marks)
    now = {
        "encoding": pool.encoding.name,
        "params": pool.encoding.params.hex(),
        "tag": _tag(pool, answer, key),
    }
    try:
        with marks.held() as can_be_written, lock_folder(place.parent):
            known = _read(place)
            if not known:
                _refuse_second(marks, place)
            _check(pool, known.get(pool.id), now)
            known[pool.id] = now
            # Before it: a crash in between leaves a mark that leads to nothing, and nothing was sent.
            if can_be_written and not marks.is_confirmed(str(place)):
                marks.write(str(place), sure=False)
            write_private_file(place, json.dumps({"version": _VERSION, "pools": known}).encode(), replace=True)
            if can_be_written and not marks.is_confirmed(str(place)):
                marks.write(str(place), sure=True)
    except PrivateFileError as problem:
        raise DeviceFileError("{path!r} {why}.", why=problem, path=str(place)) from None


def _memory_of(key: Key, marks: Marks) -> Path:
    if key.source is not None:
        real = key.source.resolve()
        return real.with_name(f"{real.name}.pools")
    try:
        return marks.folder().with_suffix(".pools")  # beside the marks, whose folder is held meanwhile
    except RuntimeError:
        raise DeviceFileError("a key that comes from no file has no place for what it answered in pools.") from None


def _refuse_second(marks: Marks, place: Path) -> None:
    """Refuse to begin a second memory of a key that has one, or had one here."""
    others = marks.elsewhere(str(place), os.path.exists)
    if others:
        raise DeviceFileError(
            "this key was used for pools before, which {path!r} remembers: use the key there, or copy that "
            "file to {place!r}. If it is lost, take another key; if you know what you answered, remove "
            "{mark!r}.",
            place=str(place),
            mark=str(marks.mark_of(others[0])),
            path=others[0],
        )


def _check(pool: Pool, before: Any, now: dict[str, str]) -> None:
    if before is None:
        return
    if (before["encoding"], before["params"]) != (now["encoding"], now["params"]):
        raise ValuesChangedError(
            "the values of the pool {pool!r} (or their order) are not those that this key was used with.", pool=pool.id
        )
    if before["tag"] != now["tag"]:
        raise AnswerChangedError(
            "this is another answer than the one that this key was used with for the pool {pool!r}: that it "
            "changed would show.",
            pool=pool.id,
        )


def _read(place: Path) -> dict[str, Any]:
    content = read_private_file(place)
    if content is None:
        return {}
    try:
        found = json.loads(content)
        pools = found["pools"]
        whole = found["version"] == _VERSION and all(
            isinstance(each[name], str) for each in pools.values() for name in ("encoding", "params", "tag")
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise PrivateFileError("is damaged: what this key was used for is not known any more")
    return dict(pools)


def _tag(pool: Pool, answer: Any, key: Key) -> str:
    info = add_length_prefix(b"market pool answer") + add_length_prefix(pool.id.encode()) + encode_canonical(answer)
    return key.derive(info)[:16].hex()


def _levels(content: Any) -> tuple[Decimal, ...]:
    try:
        levels = tuple(as_epsilon(each["epsilon"]) for each in content)
    except (KeyError, TypeError, ValueError):  # an epsilon that is none is a wrong value, too
        levels = ()
    if not 0 < len(levels) <= MOST_LEVELS or any(low >= high for low, high in pairwise(levels)):
        raise OfferError("the pool's levels cannot be read.")
    return levels
