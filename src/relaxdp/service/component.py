"""A part of the application, like the collector: its routes, and what starts and stops with a worker."""

from __future__ import annotations

from typing import Any, Protocol

from relaxdp.service.operations import Operation


class Component(Protocol):
    """What the application asks of each of its parts."""

    def operations(self) -> list[Operation]:
        """Return the routes; the part that comes first is looked through first."""

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the schemas of what stands in the paths of these routes, by name."""

    async def start(self) -> None:
        """Begin, within the running loop."""

    def stopping(self) -> None:
        """End what never ends by itself: the process was asked to stop, and waits for its connections."""

    async def stop(self) -> None:
        """Finish what is waiting, and end. Everything that a worker shares is still there."""

    async def check(self) -> None:
        """Raise StorageUnavailableError where the part could not do its work."""
