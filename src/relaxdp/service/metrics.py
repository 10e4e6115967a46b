"""Counters, gauges and histograms, as Prometheus reads them; several workers add up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

if find_spec("prometheus_client") is None:  # it is imported later, see `_library`, and would be missed too late
    raise ModuleNotFoundError("there is no prometheus_client.", name="prometheus_client")

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_RESERVED_BYTES = 512 << 10
"""Enough for every route with several statuses."""


class Metrics:
    """The numbers of one worker, and of all that were given the same folder; of one that died they stay there.

    With a single worker nothing is written. Only what is named here is shown: nothing of the process or the machine.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._library = _library(folder)
        # In one registry what is counted, in another what is asked for: that no other worker can be asked.
        self._counted = self._library.CollectorRegistry(auto_describe=False)
        self._asked = self._library.CollectorRegistry(auto_describe=False)
        self._shown = self._counted
        if folder is not None:
            self._shown = self._library.CollectorRegistry(auto_describe=False)
            self._library.multiprocess.MultiProcessCollector(self._shown, str(folder))

    def counter(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
        """Return a counter, the sum over all workers. Whoever counts often keeps what `labels` returns."""
        made: Counter = self._library.Counter(name, meaning, labels, registry=self._counted)
        return made

    def histogram(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Histogram:
        """Return a histogram of seconds, the sum over all workers."""
        made: Histogram = self._library.Histogram(name, meaning, labels, registry=self._counted, buckets=BOUNDS)
        return made

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Declare a number of this worker that is asked for when it is read."""
        self._asked.register(_Asked(name, meaning, read))

    def text(self) -> bytes:
        """Return Prometheus text."""
        shown: list[bytes] = [self._library.generate_latest(each) for each in (self._shown, self._asked)]
        return b"".join(shown)


class _Asked:
    """A gauge that keeps nothing: one of the library would leave a file of its own for the other workers."""

    def __init__(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        self._name, self._meaning, self._read = name, meaning, read

    def collect(self) -> Iterable[Any]:
        from prometheus_client.metrics_core import GaugeMetricFamily  # noqa: PLC0415

        yield GaugeMetricFamily(self._name, self._meaning, value=self._read())


def _library(folder: Path | None) -> Any:
    """Import the library. It decides by a variable, once and for all metrics, whether numbers are kept in files.

    So nothing may import it earlier, and a variable that was meant for another program must not decide for us.
    """
    if folder is None:
        os.environ.pop(_FOLDER, None)
    else:
        os.environ[_FOLDER] = str(folder)
        for kind in ("counter", "histogram"):
            _reserve(folder / f"{kind}_{os.getpid()}.db")
    import prometheus_client.multiprocess  # noqa: PLC0415

    library: Any = prometheus_client  # not all of it has types
    library.disable_created_metrics()  # they would double every series, and several workers have none
    return library


def _reserve(place: Path) -> None:
    """Make a file of numbers before the library does, with all of its bytes, and under its name only then.

    The library's own begins empty, on which another worker that reads it fails, and then has holes, in which writing on
    a full disk kills the process. One that exists is of a dead worker with our number, and is added to.
    """
    if place.exists():
        return
    whole = place.with_suffix("")
    with whole.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, _RESERVED_BYTES)
    whole.rename(place)
