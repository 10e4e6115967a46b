"""Every exception of the package: a sentence for people, fields for programs, and never a truth or a key."""

from __future__ import annotations

import re
from typing import Any


class RelaxdpError(Exception):
    """The base of all errors that this package raises on purpose.

    `fields` holds what a program may want to know (never a secret). `code` is the class name in snake case; it is
    what a JSON error carries.
    """

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    @property
    def code(self) -> str:
        """Return the class name in snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()


class EpsilonError(RelaxdpError, ValueError):
    """An epsilon is not a positive, finite, exactly written number, or cannot be realised."""


class LevelError(RelaxdpError, ValueError):
    """A level is out of order: a lower epsilon after a higher one, or ends of a bridge that do not fit."""


class ValuesError(RelaxdpError, ValueError):
    """The declared values are not usable: too few, repeated, or of different kinds."""


class UndeclaredValueError(RelaxdpError, ValueError):
    """A truth is not one of the declared values. The truth itself is never part of the message."""


class RangeError(RelaxdpError, ValueError):
    """A number lies outside of the declared range, or the range is none. The number is never part of the message."""


class ObjectIdError(RelaxdpError, ValueError):
    """An object id is null, of a kind that has no exact bytes, or repeated."""


class ColumnError(RelaxdpError, TypeError):
    """A column is not a list, array or series of one dimension, or hides part of itself behind a mask."""


class PathNameError(RelaxdpError, ValueError):
    """A release or an attribute has no usable name."""


class LengthError(RelaxdpError, ValueError):
    """Two columns that belong together have different lengths."""


class KeyFileError(RelaxdpError):
    """A key file is missing, damaged, readable by others, or would be overwritten."""


class ChainFileError(RelaxdpError):
    """The file that keeps the last report of a relaxation is damaged or belongs to something else."""


class EncodingError(RelaxdpError, ValueError):
    """An encoding is unknown, or its name is already taken."""


class CountsError(RelaxdpError, ValueError):
    """Counts are negative, empty or do not fit the declared values, or a question to an estimate makes no sense."""


class MissingPartError(RelaxdpError, ImportError):
    """Something optional is not installed; the sentence says how to install it."""


class ScheduleError(RelaxdpError, ValueError):
    """A schedule of levels makes no sense: it is empty, it falls, or it has too few steps."""


class PlanError(RelaxdpError, ValueError):
    """A question to the planner makes no sense, or nothing can reach what it asks for."""


class DescriptionError(RelaxdpError, ValueError):
    """A released file does not say what it holds, or in a way that this version cannot read."""
