"""The law: everything that can be computed with fractions. No randomness, no clock, no file, no float."""
