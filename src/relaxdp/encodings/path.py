"""One object's truth -> its report at every level, on the keyed path."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import numpy as np

from relaxdp.draw.canonical import canonical, kind_of
from relaxdp.draw.key import Key
from relaxdp.draw.path import accepted_draws, report_at
from relaxdp.draw.stream import Messages, PathId, path_key, words
from relaxdp.encodings.protocol import Encoding, code_dtype
from relaxdp.encodings.release import KeptWords, KeyedPermanent
from relaxdp.errors import ObjectIdError
from relaxdp.law.epsilon import Epsilon
from relaxdp.law.level import Level


class ReportPath:
    """All reports of one object, past and future: a pure function of key, object, truth and epsilon.

    Levels may be read in any order and any number of times. Everything read from one path costs the largest
    epsilon read. The `repr` shows neither the truth nor the key.
    """

    def __init__(self, encoding: Encoding, truth: Any, *, key: Key, object_id: object, path: PathId) -> None:
        truths = encoding.truths([truth])
        own = object_bytes(object_id)
        prefix = own + (b"" if truths.suffix is None else truths.suffix.tobytes())
        name = encoding.path_name(path)
        derived = path_key(key, name)
        blocks = np.frombuffer(prefix, dtype="<u8").reshape(-1, 1, 2)
        ids, messages = (Messages(None, each) for each in (blocks[: len(own) // 16], blocks))
        permanent = KeyedPermanent(KeptWords(key, name), ids, messages, truths.index)
        self._encoding = encoding
        self._where = str(path)
        self._words = partial(words, derived, prefix, index=int(truths.index[0]))
        self._truths: list[int] = encoding.symbol_truths(truths, permanent)[0].tolist()
        self.seeds = encoding.seeds(permanent)
        """The public seed of the object, as an array of one; None where the encoding has none."""

    def at(self, epsilon: Epsilon) -> Any:
        """Return the report at this level: always the same one."""
        codes = np.array([self.codes_at(self._encoding.level(epsilon))], dtype=code_dtype(self._encoding.alphabet))
        return self._encoding.reports(codes, self.seeds)[0]

    def codes_at(self, level: Level) -> list[int]:
        """Return the report as the codes of its symbols."""
        threshold = self._encoding.checked(level).threshold
        # Every reading draws the words anew: nothing is kept that an interrupt or another thread could leave half done.
        return [
            report_at(accepted_draws(self._words(symbol=symbol), self._encoding.alphabet), threshold, truth=truth)
            for symbol, truth in enumerate(self._truths)
        ]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a relaxdp path holds a truth and is not pickled.")

    def __repr__(self) -> str:
        return f"<relaxdp.ReportPath of {self._where}>"


def object_bytes(object_id: object) -> bytes:
    """Return the canonical bytes of an id, or refuse what has no identity."""
    kind = kind_of(object_id)
    if kind in (None, "number"):
        what = "missing" if object_id is None else "a floating-point number" if kind else "of another type"
        raise ObjectIdError("an id must be a whole number, text, bytes or a UUID; this one is {what}.", what=what)
    try:
        return canonical(object_id)
    except ValueError as problem:
        raise ObjectIdError("the id is not usable: {problem}.", problem=problem) from None
