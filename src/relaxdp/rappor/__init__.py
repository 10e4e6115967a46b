"""RAPPOR with relaxation: filters, the encoding, files and reports, counts, decoding and planning."""
