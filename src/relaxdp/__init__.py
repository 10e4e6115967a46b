"""Local differential privacy whose budget is released gradually. Start here: `Categorical`, `Key`, `Relaxation`."""

from relaxdp import errors
from relaxdp.draw.key import Key
from relaxdp.estimate.combined import difference
from relaxdp.estimate.counts import Counts, highest_only
from relaxdp.estimate.cross import cross
from relaxdp.estimate.mean import variance
from relaxdp.front import Categorical, Numeric, Relaxation
from relaxdp.law.relaxation import RelaxationLaw, relaxation_law
from relaxdp.law.transcript import PrivacyLoss, privacy_loss

__version__ = "0.1.0.dev0"
__all__ = [
    "Categorical",
    "Counts",
    "Key",
    "Numeric",
    "PrivacyLoss",
    "Relaxation",
    "RelaxationLaw",
    "cross",
    "difference",
    "errors",
    "highest_only",
    "privacy_loss",
    "relaxation_law",
    "variance",
]
