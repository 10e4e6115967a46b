"""What ledger and service share of their databases, SQLite and PostgreSQL: addresses, engines, versions of a schema."""
