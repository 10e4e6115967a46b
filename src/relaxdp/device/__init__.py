"""The other end of the wire: devices, what they remember and send, and clients of a service."""

from relaxdp.device.device import Device
from relaxdp.device.participation import Participation

__all__ = ["Device", "Participation"]
