"""What the collector and the market share: application shell, storage, tokens, limits, metrics."""
