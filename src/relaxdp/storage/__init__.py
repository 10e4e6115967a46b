"""Databases of a server, SQLite and PostgreSQL: addresses, engines, versions of a schema."""
