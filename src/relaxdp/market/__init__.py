"""One release, many buyers: levels are sold and resold from what was delivered, within one budget."""
