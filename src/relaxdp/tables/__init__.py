"""Tables on the command line and in Python: the vault, its releases, and what files say about themselves."""
