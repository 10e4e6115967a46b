"""The compiled path: optional, chosen when it is first needed, and bit for bit what NumPy draws."""
