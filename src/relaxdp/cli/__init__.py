"""The command line: arguments -> one library call -> words, tables, progress bars."""

from relaxdp.cli.main import main

__all__ = ["main"]
