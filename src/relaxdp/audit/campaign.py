"""Many audits in a row, with one confidence for all of their findings together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from relaxdp.audit.auditor import Audit, audit
from relaxdp.audit.cases import Case
from relaxdp.law.epsilon import as_epsilon, epsilon_text


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one case; no audit where a peer is not installed."""

    case: Case
    audit: Audit | None

    @property
    def verdict(self) -> str:
        """Return what it means, in a few words."""
        if self.audit is None:
            return "not installed"
        if self.case.group == "planted":
            return "flagged, as it must be" if self.audit.violated else "MISSED"
        return "VIOLATED" if self.audit.violated else "not refuted"

    @property
    def as_expected(self) -> bool:
        """Whether this package's mechanisms kept their word, and its mistakes on purpose were seen."""
        if self.audit is None or self.case.group == "peer":
            return True
        return self.audit.violated == (self.case.group == "planted")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        found = self.audit
        numbers = {} if found is None else {
            "epsilon_low": found.epsilon_low, "share": found.share, "trials": found.trials, "guessed": found.guessed,
            "right": found.right, "confidence": found.confidence, "violated": found.violated,
            "looked_at": found.looked_at,
        }  # fmt: skip
        claimed = epsilon_text(as_epsilon(self.case.claimed))
        return {
            "group": self.case.group, "mechanism": self.case.name, "claimed": claimed, **numbers,
            "verdict": self.verdict, "as_expected": self.as_expected,
        }  # fmt: skip


def run(
    cases: Sequence[Case],
    *,
    trials: int,
    confidence: float,
    seed: int,
    progress: Callable[[Case, int], None] | None = None,
) -> Iterator[Finding]:
    """Return the findings one by one. With at most 1 - `confidence`, any of their bounds is too high.

    A case's randomness follows from the seed and its name, so it is the same whichever other cases are audited.
    """
    audited = [case for case in cases if case.source is not None]
    each = 1 - (1 - confidence) / max(len(audited), 1)
    for case in cases:
        if case.source is None:
            yield Finding(case, None)
            continue
        own = int.from_bytes(sha256(f"{seed} {case.name}".encode()).digest()[:8], "little")
        step = None if progress is None else _stepper(progress, case)
        found = audit(
            case.source, case.truths, claimed=case.claimed, trials=case.trials(trials), confidence=each, law=case.law,
            seed=own, progress=step,
        )  # fmt: skip
        yield Finding(case, found)


def _stepper(progress: Callable[[Case, int], None], case: Case) -> Callable[[int], None]:
    return lambda trials: progress(case, trials)
