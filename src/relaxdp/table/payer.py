"""Who pays for a release: which ledger, whose budget, and what the person who releases has agreed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaxdp.ledger.account import Account
from relaxdp.ledger.ledger import Charge, Ledger
from relaxdp.ledger.paths import Entry, PathFacts
from relaxdp.ledger.spending import refuse_second, spending
from relaxdp.ledger.subject import Subject


@dataclass(frozen=True, slots=True)
class Payer:
    """A subject of a ledger that a release is charged to."""

    ledger: Ledger
    subject: Subject
    budget: Any = None
    reason: str = ""
    again: bool = False
    force: bool = False
    growing: Path | None = None
    """The folder of row tags where the table may grow, see `tags_folder`; None where it may not."""
    new_ledger: str = ""
    """Why a key that has spent in another ledger is to begin one more; empty where it may not."""

    def look(self) -> Account:
        """Return how the account stands before anything is drawn."""
        return self.ledger.account(self.subject)

    def quote(self, entries: Sequence[Entry], known: Account) -> list[Charge]:
        """Return what a release would cost, as the account is known; or refuse what the ledger would refuse."""
        for fingerprint in {entry.facts.key_fingerprint for entry in entries}:
            refuse_second(self.ledger, fingerprint, self.new_ledger)
        return self.ledger.quote_all(
            self.subject, entries, again=self.again, force=self.force, budget=self.budget, known=known
        )

    def charge(self, entries: Sequence[Entry]) -> list[Charge]:
        """Charge everything together, durably. What was drawn on an epoch that is over meanwhile is refused."""
        with spending(self.ledger, entries[0].facts.key_fingerprint, self.new_ledger) as anew:
            return self.ledger.charge_all(
                self.subject,
                entries,
                again=self.again,
                force=self.force,
                budget=self.budget,
                reason=self.reason,
                anew=anew,
            )


def path_encoding(facts: PathFacts) -> tuple[str, dict[str, Any]]:
    """Return name and options of the encoding that a path was opened with; the options stand in its parameters."""
    if facts.encoding == "local-hash":
        return facts.encoding, {"buckets": int.from_bytes(bytes.fromhex(facts.params)[:8], "little")}
    return facts.encoding, {}
