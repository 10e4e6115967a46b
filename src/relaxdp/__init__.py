"""Local differential privacy whose budget is released gradually. Start here: `Categorical`, `Key`, `release`."""

from typing import TYPE_CHECKING, Any

from relaxdp import errors

if TYPE_CHECKING:
    from relaxdp.draw.key import Key
    from relaxdp.estimation.advice import Advice, best_encoding
    from relaxdp.estimation.compare import compare
    from relaxdp.estimation.counts import Counts, highest_only
    from relaxdp.estimation.cross import cross
    from relaxdp.estimation.integrity import Integrity, integrity, transitions
    from relaxdp.estimation.mean import variance
    from relaxdp.estimation.planning import Plan, plan
    from relaxdp.estimation.schedules import ByDate, Explicit, Geometric, Linear, NoisySampling, Schedule, UntilPrecise
    from relaxdp.estimation.shuffled import Shuffled, shuffled
    from relaxdp.estimation.transitions import Transitions
    from relaxdp.law.level import Level
    from relaxdp.law.relaxation import RelaxationLaw, relaxation_law
    from relaxdp.law.transcript import PrivacyLoss, privacy_loss
    from relaxdp.ledger.ledger import Ledger
    from relaxdp.mechanisms import Categorical, LocalHash, Numeric, Unary, Wave, mechanism
    from relaxdp.publication.column import Column
    from relaxdp.relaxation import Relaxation
    from relaxdp.table.calls import BESIDE_KEY, Released, count, description, estimate, relax, relax_reports, release

__version__ = "0.1.0"
__all__ = [
    "BESIDE_KEY",
    "Advice",
    "ByDate",
    "Categorical",
    "Column",
    "Counts",
    "Explicit",
    "Geometric",
    "Integrity",
    "Key",
    "Ledger",
    "Level",
    "Linear",
    "LocalHash",
    "NoisySampling",
    "Numeric",
    "Plan",
    "PrivacyLoss",
    "Relaxation",
    "RelaxationLaw",
    "Released",
    "Schedule",
    "Shuffled",
    "Transitions",
    "Unary",
    "UntilPrecise",
    "Wave",
    "best_encoding",
    "compare",
    "count",
    "cross",
    "description",
    "errors",
    "estimate",
    "highest_only",
    "integrity",
    "mechanism",
    "plan",
    "privacy_loss",
    "relax",
    "relax_reports",
    "relaxation_law",
    "release",
    "shuffled",
    "transitions",
    "variance",
]

# Where each name lives; a module is imported when one of its names is first asked for. Who wants a key does not wait
# for Arrow, nor who wants a release for a database. Type checkers read the imports above; a test compares the two.
_HOMES = {
    "relaxdp.draw.key": "Key",
    "relaxdp.estimation.advice": "Advice best_encoding",
    "relaxdp.estimation.compare": "compare",
    "relaxdp.estimation.counts": "Counts highest_only",
    "relaxdp.estimation.cross": "cross",
    "relaxdp.estimation.integrity": "Integrity integrity transitions",
    "relaxdp.estimation.mean": "variance",
    "relaxdp.estimation.planning": "Plan plan",
    "relaxdp.estimation.schedules": "ByDate Explicit Geometric Linear NoisySampling Schedule UntilPrecise",
    "relaxdp.estimation.transitions": "Transitions",
    "relaxdp.estimation.shuffled": "Shuffled shuffled",
    "relaxdp.law.level": "Level",
    "relaxdp.law.relaxation": "RelaxationLaw relaxation_law",
    "relaxdp.law.transcript": "PrivacyLoss privacy_loss",
    "relaxdp.ledger.ledger": "Ledger",
    "relaxdp.mechanisms": "Categorical LocalHash Numeric Unary Wave mechanism",
    "relaxdp.publication.column": "Column",
    "relaxdp.relaxation": "Relaxation",
    "relaxdp.table.calls": "BESIDE_KEY Released count description estimate relax relax_reports release",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'relaxdp' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (here it is no name of the package's own)

    globals()[name] = found = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
