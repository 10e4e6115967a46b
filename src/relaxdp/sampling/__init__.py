"""Where randomness enters: keys, entropy, the stream, the keyed path, bridges and Algorithm 1."""
