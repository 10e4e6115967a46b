"""The ledger of a vault: a chain of events that records every release and what it cost."""
