"""How a value becomes symbols: one protocol, one registry, and the encodings that come with the package."""
