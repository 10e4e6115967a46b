"""How a value becomes symbols: one protocol, one registry, and the encodings that come with the package."""

from relaxdp.encodings.conformance import check

__all__ = ["check"]
