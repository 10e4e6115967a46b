"""Local differential privacy whose budget is released gradually. Start here: `Categorical`, `Key`, `Relaxation`."""

from relaxdp import errors
from relaxdp.draw.key import Key
from relaxdp.estimation.advice import Advice, best_encoding
from relaxdp.estimation.combined import difference
from relaxdp.estimation.counts import Counts, highest_only
from relaxdp.estimation.cross import cross
from relaxdp.estimation.mean import variance
from relaxdp.law.relaxation import RelaxationLaw, relaxation_law
from relaxdp.law.transcript import PrivacyLoss, privacy_loss
from relaxdp.mechanisms import Categorical, LocalHash, Numeric, Relaxation, Unary, mechanism
from relaxdp.table.frames import description, estimate, release

__version__ = "0.1.0.dev0"
__all__ = [
    "Advice",
    "Categorical",
    "Counts",
    "Key",
    "LocalHash",
    "Numeric",
    "PrivacyLoss",
    "Relaxation",
    "RelaxationLaw",
    "Unary",
    "best_encoding",
    "cross",
    "description",
    "difference",
    "errors",
    "estimate",
    "highest_only",
    "mechanism",
    "privacy_loss",
    "relaxation_law",
    "release",
    "variance",
]
