"""A publication of reports: what is asked, how a truth is derived, what is said of it, and the order that is safe."""
