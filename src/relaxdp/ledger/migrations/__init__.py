"""The steps from one version of the ledger's schema to the next."""
