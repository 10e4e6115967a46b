"""Counts -> answers: shares and means with honest intervals, at one level or many, and planning."""
