"""What must come back years later: a key and its ledger, backed up, restored, and compared with what was released."""
