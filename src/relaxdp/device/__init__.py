"""The other end of the wire: devices, what they remember and send, and clients of a service."""

from relaxdp.device.device import Device
from relaxdp.device.participation import Participation
from relaxdp.device.survey import Survey

__all__ = ["Device", "Participation", "Survey"]
