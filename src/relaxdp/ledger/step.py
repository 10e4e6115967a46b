"""What a step of Algorithm 1 costs: it is drawn afresh from the last reports, so once, and from the highest level."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from relaxdp.errors import LevelError, PathChangedError
from relaxdp.law.epsilon import epsilon_text
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.amounts import difference
from relaxdp.ledger.events import Event, LevelReleased, PathOpened
from relaxdp.ledger.paths import PathFacts, PathIdentity
from relaxdp.ledger.rules import FORCING, Charge, Decision, differs, exceeded, first_budget

_STEPPED = ", algorithm 1"


def stepped(encoding: str) -> str:
    """Return the name of an encoding whose reports are drawn by Algorithm 1, and not on the keyed path."""
    return encoding if encoding.endswith(_STEPPED) else encoding + _STEPPED


def keyed(encoding: str) -> str:
    """Return the name of the encoding itself, however its reports are drawn."""
    return encoding.removesuffix(_STEPPED)


def decide_step(
    account: Account,
    identity: PathIdentity,
    facts: PathFacts,
    old: Decimal,
    epsilon: Decimal,
    *,
    budget: Decimal | None,
    reason: str,
    time: datetime,
) -> Decision:
    """Return what a step from `old` to `epsilon` costs, or refuse it.

    The step must start at the highest level that was ever read: a step from a lower one would ignore what is out
    already. A keyed path is closed by it, because its own next level would be a second draw. A path that this ledger
    does not know yet is opened at the old level. The total is the new epsilon in any case.

    Claim: the reports before and after the step cost as much as the last one; tests/unit/test_release_last.py.
    """
    events: list[Event] = first_budget(account, budget, reason, time)
    for event in events:
        account = account.after(event)
    path, subject, before = account.path(identity), account.subject, account
    facts = replace(facts, encoding=stepped(facts.encoding))
    if path is not None:
        _check(path, facts, old, epsilon)
    if epsilon <= old:
        raise LevelError(
            f"epsilon may only grow: the last reports are at {epsilon_text(old)} and {epsilon_text(epsilon)} was asked "
            "for. Nothing was released.",
            previous=epsilon_text(old),
            epsilon=epsilon_text(epsilon),
        )
    epoch = 1 if path is None else path.epoch
    happened: list[Event] = []
    if path is None or path.facts.encoding != facts.encoding:
        happened.append(PathOpened(subject, time, identity, epoch, facts, reason))
    if path is None:
        happened.append(LevelReleased(subject, time, identity, epoch, old, old, facts.table_fingerprint, reason))
    rest = difference(epsilon, old)
    happened.append(LevelReleased(subject, time, identity, epoch, epsilon, rest, facts.table_fingerprint, reason))
    cost = epsilon if path is None else rest
    if cost > account.left:
        raise exceeded(account, cost)
    for event in happened:
        account = account.after(event)
    assert account.budget is not None  # noqa: S101
    previous = None if path is None else old
    charge = Charge(identity, cost, epoch, previous, before.spent, account.spent, account.budget, path is None)
    return Decision(account, (*events, *happened), (charge,))


def _check(path: PathState, facts: PathFacts, old: Decimal, epsilon: Decimal) -> None:
    if path.facts.growing:
        raise PathChangedError(f"{path.identity} is a growing table, and is continued as one only. {_NOTHING}")
    # Only a keyed path of the same values may go over to Algorithm 1; everything else must be as it was.
    known = replace(path.facts, encoding=stepped(path.facts.encoding))
    problem = differs(replace(path, facts=known), facts)
    if problem is not None:
        text = problem.message.partition(f" {FORCING}")[0]  # a new path cannot begin with old reports
        raise type(problem)(text, **problem.fields)
    if path.facts.encoding == facts.encoding and path.largest == epsilon:
        raise already_released(path.identity, epsilon)
    if path.largest != old:
        raise LevelError(
            f"the step must start at the highest level that was released: {path.identity} is at "
            f"{epsilon_text(path.largest)}, and these reports are at {epsilon_text(old)}. {_NOTHING}",
            largest=epsilon_text(path.largest),
            old=epsilon_text(old),
        )


def already_released(identity: PathIdentity, epsilon: Decimal) -> LevelError:
    """Return the refusal of a second draw."""
    return LevelError(
        f"{identity} at {epsilon_text(epsilon)} was released already; a second draw at one level would break the "
        f"guarantee. {_NOTHING}",
        release=identity.release,
        attribute=identity.attribute,
        epsilon=epsilon_text(epsilon),
    )


_NOTHING = "Nothing was released."
