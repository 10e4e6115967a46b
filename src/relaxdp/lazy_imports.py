"""Modules that are slow to import, or may be missing: each is imported when one of its names is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "duckdb", "narwhals", "pandas", "polars", "scipy"]


class LazyModule:
    """A module that is imported when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    import duckdb
    import narwhals
    import pandas
    import polars
    import scipy
else:
    duckdb, narwhals, pandas, polars, scipy = map(LazyModule, __all__[1:])
