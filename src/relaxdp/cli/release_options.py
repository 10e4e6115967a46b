"""What is said to `relaxdp release` about its columns and its key, made ready for the library."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from relaxdp.draw.key import Key
from relaxdp.errors import KeyFileError, ValuesError
from relaxdp.law.epsilon import as_epsilon
from relaxdp.ledger.account import Account
from relaxdp.table.declare import values_from_file, values_from_text
from relaxdp.table.payer import path_encoding

# Encodings of numbers and of words that nobody declares.
_NOT_OF_VALUES = ("numeric", "bloom")

WAYS_OUT: dict[str, Any] = {
    "value": "--nulls NAME makes it a value of its own.",
    "number": "--bins with --nulls NAME makes classes of numbers, and one of what is missing.",
    "kinds": {
        "true and false": "--map FILE with the lines true,yes and false,no gives them other names.",
        "dates": "--map FILE with lines like 2026-01-31,winter gives them other names.",
        "numbers": "--range and --bins are for numbers, and --map FILE says what each value becomes.",
    },
}
"""What the command line offers where something is refused, see `relaxdp.table.derive.way_out`."""


def load_key(path: Path) -> Key:
    """Return the key of a file; where there is none, say how one is made."""
    try:
        return Key.load(path)
    except KeyFileError as problem:
        if "path" not in problem.fields or path.exists():  # a key in the place of its name needs no new one
            raise
        raise KeyFileError(
            f"{problem.message} `relaxdp keygen {shlex.quote(str(path))}` makes one; what was released before needs "
            "its own key. Nothing was released.",
            **problem.fields,
        ) from None


class Encodings:
    """How columns are encoded: as it is said, else as their path was opened, else as one of the declared values."""

    def __init__(self, known: Account | None, release: str, said: str | None, planned: str) -> None:
        self._known, self._said, self._planned, self._release = known, said, as_epsilon(planned), release

    def of(self, column: str) -> dict[str, Any]:
        """Return name and options of a column's encoding."""
        state = None if self._known is None else self._known.last_epoch(self._release, column)
        if state is not None and self._said in (None, "auto", state.facts.encoding):
            name, options = path_encoding(state.facts)
            if name not in _NOT_OF_VALUES:  # else the ledger will say that the encoding is another one
                return {"encoding": name, "options": options}
        return {"encoding": self._said or "categorical", "planned": self._planned}


class Spoken:
    """Declared values by column: plain ones are for the only column, `COLUMN=...` for the one named."""

    def __init__(self, columns: list[str], values: list[str], files: list[str]) -> None:
        self._found: dict[str, list[str]] = {}
        for texts, read in ((values, values_from_text), (files, lambda text: values_from_file(Path(text)))):
            for text in texts:
                named = next((each for each in columns if text.startswith(f"{each}=")), None)
                if named is None and len(columns) > 1:
                    raise ValuesError(
                        "with several columns, write COLUMN=... so that it is clear whose values these are."
                    )
                owner = columns[0] if named is None else named
                self._found[owner] = read(text if named is None else text[len(named) + 1 :])

    def of(self, column: str) -> list[str] | None:
        """Return the values of a column, None where none are said."""
        return self._found.get(column)


def edges(text: str) -> list[float]:
    """Return the edges of bins."""
    try:
        return [float(edge) for edge in text.split(",")]
    except ValueError:
        raise ValuesError("bins are numbers separated by commas, like 18,30,65.") from None
