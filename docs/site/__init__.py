"""The documentation site: pages are gathered, some are made from code, Sphinx renders them, and all is checked."""
