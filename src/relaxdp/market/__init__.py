"""The market: sellers publish one file for each level, buyers order, and receipts prove what was delivered."""
