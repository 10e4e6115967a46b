"""One release, many buyers: any level is sold and resold from what was delivered, within one budget."""
