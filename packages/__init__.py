"""What makes the packages that others install: wheels, the browser's package. Nothing of it is in them."""
