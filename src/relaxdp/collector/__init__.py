"""Many devices, one estimate: campaigns, their reports and counts, and the device-side client."""

from relaxdp.collector.device import Device
from relaxdp.collector.device_participation import Participation

__all__ = ["Device", "Participation"]
