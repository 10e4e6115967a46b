"""Many devices, one estimate: campaigns, their reports and counts."""
