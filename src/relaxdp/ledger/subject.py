"""Who is charged: a declared population, whose people all pay for each of its tables, or a single object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from unicodedata import is_normalized

from relaxdp.errors import BudgetError, RelaxdpError, SubjectError

Kind = Literal["population", "object"]

MOST_LETTERS = 500


def check_reason(reason: object) -> None:
    """Refuse a reason that is none. Nothing is looked up by it, so its letters matter less than those of a name."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MOST_LETTERS or not reason.isprintable():
        raise BudgetError(f"the reason must be one line of 1 to {MOST_LETTERS} letters. Nothing was changed.")


def check_text(text: object, what: str, error: type[RelaxdpError]) -> None:
    """Refuse a name that is empty, or that could look like another one: then costs would not add up.

    The text itself is not shown; somebody may have put a secret in its place.
    """
    if not isinstance(text, str) or not text or len(text) > MOST_LETTERS:
        raise error(f"{what} must be text of 1 to {MOST_LETTERS} letters. Nothing was released.")
    if text != text.strip() or not text.isprintable():
        raise error(f"{what} must not begin or end with a space, nor hold control characters. Nothing was released.")
    if not is_normalized("NFC", text):
        raise error(f"{what} is not in Unicode's composed form (NFC). Nothing was released.")


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """Who is charged.

    A release of a table is one entry for all its rows. All tables of a population add up, whoever is in which of
    them: that is an upper bound for each of its people. An object (a device, a seller) has entries of its own.

    >>> print(Subject.population("hospital"), "and", Subject.object("device-17"))
    population 'hospital' and object 'device-17'
    """

    kind: Kind
    name: str

    def __post_init__(self) -> None:
        if self.kind not in ("population", "object"):
            raise SubjectError("a subject is a population or an object. Nothing was released.")
        check_text(self.name, f"the name of a {self.kind}", SubjectError)

    @classmethod
    def population(cls, name: str) -> Subject:
        """Return the subject that stands for each of the people of a population."""
        return cls("population", name)

    @classmethod
    def object(cls, name: str) -> Subject:
        """Return the subject that stands for one object."""
        return cls("object", name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"
