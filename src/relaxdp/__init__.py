"""Local differential privacy whose budget is released gradually. Start here: `Categorical`, `Key`, `Relaxation`."""

from relaxdp import errors
from relaxdp.draw.key import Key
from relaxdp.front import Categorical, Relaxation
from relaxdp.law.relaxation import RelaxationLaw, relaxation_law
from relaxdp.law.transcript import PrivacyLoss, privacy_loss

__version__ = "0.1.0.dev0"
__all__ = [
    "Categorical",
    "Key",
    "PrivacyLoss",
    "Relaxation",
    "RelaxationLaw",
    "errors",
    "privacy_loss",
    "relaxation_law",
]
