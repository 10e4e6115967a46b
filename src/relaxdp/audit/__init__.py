"""Attacks on transcripts, and measured lower bounds of epsilon."""
