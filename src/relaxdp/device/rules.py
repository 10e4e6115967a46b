"""What a device may send, and why it may refuse. Pure: no file, no network, no clock, and never a look at the answer.

That no rule looks at the answer matters: a refusal that depended on it would tell of it, outside of every epsilon.
"""

from __future__ import annotations

from decimal import Decimal

from relaxdp.device.offer import Offer
from relaxdp.device.state import DeviceState, Record, Sent
from relaxdp.errors import BudgetExceededError, LevelError, RelaxdpError
from relaxdp.ledger.events import add_amounts, parse_amount, subtract_amounts
from relaxdp.server_errors import (
    AnswerMissingError,
    ConsentError,
    ParticipationError,
    PathChangedError,
    ValuesChangedError,
)
from relaxdp.theory.epsilon import format_epsilon
from relaxdp.theory.randomized_response import Level


def next_level(state: DeviceState, record: Record, offer: Offer) -> Level | None:
    """Return the level to report at now, None while there is nothing to do, or refuse.

    It is the highest open level that the person's consent and limit allow: a device may stay behind its campaign.
    Lower levels are skipped, because the highest report of a device makes the others worthless.

    Claim: whatever a server asks, the sum over all campaigns stays within the limit, and no level gets two reports;
    tests/faults/device/test_hostile.py.
    """
    check_same(record, offer)
    check_active(record)
    if record.answered is None:
        raise AnswerMissingError("there is no answer to report yet.")
    if not offer.open:
        return None
    _check_growth(record, offer.open[-1])
    most = add_amounts((record.spent, state.left))
    allowed = [level for level in offer.open if level.epsilon <= min(most, parse_amount(record.consent))]
    if not allowed:
        raise _too_much(state, record, offer.open[0])
    if allowed[-1].epsilon < record.spent:  # what this device has reported is more than what it may report now
        return None
    _check_growth(record, allowed[-1])
    return allowed[-1]


def _too_much(state: DeviceState, record: Record, lowest: Level) -> RelaxdpError:
    """Return why not even the lowest open level can be reported at."""
    if lowest.epsilon > parse_amount(record.consent):
        return ConsentError(
            "you agreed to an epsilon of at most {consent} in this campaign, and {epsilon} was asked for.",
            consent=record.consent,
            epsilon=format_epsilon(lowest.epsilon),
        )
    left, limit = format_epsilon(state.left), format_epsilon(state.limit)
    needed = format_epsilon(subtract_amounts(max(lowest.epsilon, record.spent), record.spent))
    return BudgetExceededError(
        "limit exceeded: {left} left of {limit}, this report needs {needed}.",
        left=left,
        limit=limit,
        needed=needed,
    )


def written(record: Record, level: Level) -> Sent | None:
    """Return the report that was written down for a level, if there is one: it is sent as it is, never drawn anew."""
    wanted = level.to_dict()
    return next((sent for sent in record.sent if sent.level == wanted), None)


def check_same(record: Record, offer: Offer) -> None:
    """Refuse a campaign that is no longer the one that was joined."""
    if (record.encoding, record.params) != (offer.encoding.name, offer.encoding.params.hex()):
        if record.encoding != offer.encoding.name:
            raise ValuesChangedError(
                "the campaign's encoding is not the one that was joined: the old answer does not fit it. A new "
                "question needs a new campaign.",
                joined=record.encoding,
                encoding=offer.encoding.name,
            )
        raise ValuesChangedError(
            "the campaign's list of values (or their order) is not the one that was joined: the old answer does not "
            "fit it. A new question needs a new campaign."
        )
    if record.question != offer.question:
        raise PathChangedError(
            "the campaign's question is not the one that was joined: the old answer is not an answer to it. "
            "A new question needs a new campaign."
        )


def check_active(record: Record) -> None:
    """Refuse to go on with what is over."""
    if record.ended is not None:
        raise ParticipationError(
            "this campaign has finished."
            if record.ended == "finished"
            else "this device has forgotten its answer to this campaign."
            if record.ended == "forgotten"
            else "this device has left the campaign.",
            ended=record.ended,
        )


def consent_to(offer: Offer, upto: Decimal | None) -> Decimal:
    """Return what the person agrees to: all that the campaign will ever ask for, or less."""
    return offer.largest_epsilon if upto is None else min(upto, offer.largest_epsilon)


def _check_growth(record: Record, level: Level) -> None:
    if not record.sent:
        return
    last = record.sent[-1]
    last_epsilon, last_threshold = parse_amount(last.epsilon), int(last.threshold)
    if level.epsilon < last_epsilon:
        raise LevelError(
            "epsilon may only grow: this device is at {last_epsilon} and {epsilon} was asked for. A report "
            "cannot be taken back.",
            last_epsilon=last.epsilon,
            epsilon=format_epsilon(level.epsilon),
        )
    same = level.epsilon == last_epsilon
    if level.threshold < last_threshold or (same and level.threshold != last_threshold):
        raise LevelError(
            "the threshold of epsilon {epsilon} does not fit what was sent at {last_epsilon}.",
            last_epsilon=last.epsilon,
            epsilon=format_epsilon(level.epsilon),
        )
