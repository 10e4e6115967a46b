"""A release and the ledger: what is asked before anything is drawn, and charged before anything leaves.

Files, data frames and Spark draw in different places but account for it in this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaxdp.errors import PathChangedError, UnknownSubjectError
from relaxdp.ledger.account import PathState
from relaxdp.ledger.ledger import Charge, Ledger
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.spending import refuse_second, spending
from relaxdp.ledger.step import keyed
from relaxdp.ledger.subject import Subject
from relaxdp.table.request import ReleaseRequest

Entry = tuple[PathIdentity, PathFacts, Any]


@dataclass(frozen=True, slots=True)
class Account:
    """Who is charged, in which ledger, and what the person who releases has agreed to."""

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


def epoch_names(release: str, epochs: Sequence[int]) -> list[str]:
    """Return the release's name in the stream for each column: what was forced through has noise of its own."""
    return [release if epoch == 1 else f"{release} (epoch {epoch})" for epoch in epochs]


def entries(request: ReleaseRequest, account: Account, id_type: str, prints: Sequence[str | None]) -> list[Entry]:
    """Return what the ledger is told of every column; a fingerprint that is not known yet is None."""
    found = []
    for each, fingerprint in zip(request.columns, prints, strict=True):
        encoding = each.mechanism.encoding
        facts = PathFacts(
            encoding=encoding.name,
            params=encoding.params.hex(),
            key_fingerprint=request.key.fingerprint,
            id_type=id_type,
            table_fingerprint=fingerprint,
            growing=account.growing is not None,
        )
        found.append((PathIdentity(request.release, each.column), facts, request.epsilon))
    return found


def quote(account: Account, wanted: list[Entry], changed: Sequence[PathIdentity] = ()) -> list[Charge]:
    """Return what a release would cost, or refuse what the ledger would refuse at the end."""
    for fingerprint in {facts.key_fingerprint for _, facts, _ in wanted}:
        refuse_second(account.ledger, fingerprint, account.new_ledger)
    if account.growing is None:
        refuse_growing(path_states(account.ledger, account.subject), [identity for identity, _, _ in wanted])
    return account.ledger.quote_all(
        account.subject, wanted, again=account.again, force=account.force, budget=account.budget, changed=changed
    )


def plan_epochs(
    request: ReleaseRequest, account: Account | None, id_type: str, fingerprints: Callable[[], Sequence[str]]
) -> list[int]:
    """Return which epoch of each path is to be drawn, before anything is.

    Where a change may be forced, whether the table changed decides the epoch: its fingerprint is needed first.
    """
    if account is None:
        return [1] * len(request.columns)
    prints = fingerprints() if account.force else [None] * len(request.columns)
    return [found.epoch for found in quote(account, entries(request, account, id_type, prints))]


def charge(
    request: ReleaseRequest,
    account: Account | None,
    id_type: str,
    prints: Sequence[str],
    epochs: list[int],
    changed: Sequence[PathIdentity] = (),
) -> list[Charge]:
    """Charge everything together. An epoch that moved on while we drew would not be what we drew: it is refused."""
    if account is None:
        return []
    with spending(account.ledger, request.key.fingerprint, account.new_ledger) as anew:
        return account.ledger.charge_all(
            account.subject,
            entries(request, account, id_type, prints),
            again=account.again,
            force=account.force,
            budget=account.budget,
            reason=account.reason,
            epochs=epochs,
            changed=changed,
            anew=anew,
        )


def path_states(ledger: Ledger, subject: Subject) -> dict[PathIdentity, PathState]:
    """Return the last epoch of every path of a subject; none of one that the ledger has never heard of."""
    try:
        paths = ledger.balance(subject).paths
    except UnknownSubjectError:
        return {}
    return {path.identity: path for path in paths}  # epochs ascend


def path_encoding(facts: PathFacts) -> tuple[str, dict[str, Any]]:
    """Return name and options of the encoding that a path was opened with; the options stand in its parameters."""
    name = keyed(facts.encoding)
    if name == "local-hash":
        return name, {"buckets": int.from_bytes(bytes.fromhex(facts.params)[:8], "little")}
    return name, {}


def refuse_growing(states: dict[PathIdentity, PathState], identities: Sequence[PathIdentity]) -> None:
    """Refuse to go on with a growing path as if its table did not grow: nobody would look at its rows."""
    for identity in identities:
        state = states.get(identity)
        if state is not None and state.facts.growing:
            raise PathChangedError(
                f"{identity} was released as a growing table, and is continued as one only. Nothing was released.",
                release=identity.release,
                attribute=identity.attribute,
            )
