"""A column of a table -> a released column: files in, files out, on a laptop."""
