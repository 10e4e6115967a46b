"""The command line: arguments -> one library call -> words, tables, progress bars."""
