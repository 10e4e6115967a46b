"""The public names, each once: type checkers read them here, and `__init__.py` reads them at run time."""

from relaxdp import errors as errors
from relaxdp.draw.key import Key as Key
from relaxdp.estimation.advice import Advice as Advice
from relaxdp.estimation.advice import best_encoding as best_encoding
from relaxdp.estimation.compare import compare as compare
from relaxdp.estimation.counts import Counts as Counts
from relaxdp.estimation.counts import highest_only as highest_only
from relaxdp.estimation.cross import cross as cross
from relaxdp.estimation.integrity import Integrity as Integrity
from relaxdp.estimation.integrity import integrity as integrity
from relaxdp.estimation.integrity import transitions as transitions
from relaxdp.estimation.mean import variance as variance
from relaxdp.estimation.planning import Plan as Plan
from relaxdp.estimation.planning import plan as plan
from relaxdp.estimation.schedules import ByDate as ByDate
from relaxdp.estimation.schedules import Explicit as Explicit
from relaxdp.estimation.schedules import Geometric as Geometric
from relaxdp.estimation.schedules import Linear as Linear
from relaxdp.estimation.schedules import NoisySampling as NoisySampling
from relaxdp.estimation.schedules import Schedule as Schedule
from relaxdp.estimation.schedules import UntilPrecise as UntilPrecise
from relaxdp.estimation.shuffled import Shuffled as Shuffled
from relaxdp.estimation.shuffled import shuffled as shuffled
from relaxdp.estimation.transitions import Transitions as Transitions
from relaxdp.law.level import Level as Level
from relaxdp.law.relaxation import RelaxationLaw as RelaxationLaw
from relaxdp.law.relaxation import relaxation_law as relaxation_law
from relaxdp.law.transcript import PrivacyLoss as PrivacyLoss
from relaxdp.law.transcript import privacy_loss as privacy_loss
from relaxdp.mechanisms import Categorical as Categorical
from relaxdp.mechanisms import LocalHash as LocalHash
from relaxdp.mechanisms import Numeric as Numeric
from relaxdp.mechanisms import Unary as Unary
from relaxdp.mechanisms import Wave as Wave
from relaxdp.mechanisms import mechanism as mechanism
from relaxdp.relaxation import Relaxation as Relaxation
from relaxdp.tables.estimate import count as count
from relaxdp.tables.estimate import description as description
from relaxdp.tables.estimate import estimate as estimate
from relaxdp.tables.released import Release as Release
from relaxdp.tables.vault import Vault as Vault

__all__: list[str]
__version__: str
