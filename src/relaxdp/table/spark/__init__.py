"""Spark: the same reports on many machines, and their counts."""
