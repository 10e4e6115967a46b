"""Local differential privacy whose budget is released gradually. Start here: `Categorical`, `Key`, `release`."""

from typing import TYPE_CHECKING, Any

from relaxdp import errors
from relaxdp.draw.key import Key
from relaxdp.estimation.advice import Advice, best_encoding
from relaxdp.estimation.combined import difference
from relaxdp.estimation.counts import Counts, highest_only
from relaxdp.estimation.cross import cross
from relaxdp.estimation.mean import variance
from relaxdp.estimation.planning import Plan, plan
from relaxdp.estimation.schedules import (
    ByDate,
    Explicit,
    Geometric,
    Linear,
    NoisySampling,
    Schedule,
    UntilPrecise,
)
from relaxdp.law.level import Level
from relaxdp.law.relaxation import RelaxationLaw, relaxation_law
from relaxdp.law.transcript import PrivacyLoss, privacy_loss
from relaxdp.mechanisms import Categorical, LocalHash, Numeric, Relaxation, Unary, mechanism
from relaxdp.table.calls import BESIDE_KEY, Released, count, description, estimate, relax_reports, release

if TYPE_CHECKING:
    from relaxdp.ledger.ledger import Ledger
    from relaxdp.publication.request import Column

__version__ = "0.1.0.dev0"
__all__ = [
    "BESIDE_KEY",
    "Advice",
    "ByDate",
    "Categorical",
    "Column",
    "Counts",
    "Explicit",
    "Geometric",
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
    "Unary",
    "UntilPrecise",
    "best_encoding",
    "count",
    "cross",
    "description",
    "difference",
    "errors",
    "estimate",
    "highest_only",
    "mechanism",
    "plan",
    "privacy_loss",
    "relax_reports",
    "relaxation_law",
    "release",
    "variance",
]

# What needs a database is imported by whoever asks for it.
_LATER = {"Ledger": "relaxdp.ledger.ledger", "Column": "relaxdp.publication.request"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'relaxdp' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    globals()[name] = found = getattr(import_module(_LATER[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
