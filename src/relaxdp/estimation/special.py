"""The special functions of scipy, which are imported when the first of them is used.

They take as long to import as all else that a release needs, and only estimates use them. So callers import this module
and write `special.ndtri`: one lazy module in place of an import in each of their functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what the import system and inspection ask every module for
        raise AttributeError(name)
    globals()[name] = found = getattr(import_module("scipy.special"), name)
    return found
