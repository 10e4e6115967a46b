"""The public names, each once: type checkers read them here, and `__init__.py` reads them at run time."""

from relaxdp import audit as audit
from relaxdp import errors as errors
from relaxdp import theory as theory
from relaxdp.estimation import poisoning as poisoning
from relaxdp.estimation import schedules as schedules
from relaxdp.estimation import shuffling as shuffling
from relaxdp.estimation.compare import compare as compare
from relaxdp.estimation.counts import Counts as Counts
from relaxdp.estimation.crosstab import crosstab as crosstab
from relaxdp.estimation.mean import variance as variance
from relaxdp.estimation.planning import Plan as Plan
from relaxdp.estimation.planning import plan as plan
from relaxdp.mechanisms.base import Mechanism as Mechanism
from relaxdp.mechanisms.categorical import Categorical as Categorical
from relaxdp.mechanisms.categorical import Unary as Unary
from relaxdp.mechanisms.local_hash import LocalHash as LocalHash
from relaxdp.mechanisms.numeric import Numeric as Numeric
from relaxdp.mechanisms.relaxation import Relaxation as Relaxation
from relaxdp.mechanisms.square_wave import SquareWave as SquareWave
from relaxdp.sampling.keys import Key as Key
from relaxdp.tables.estimate import count as count
from relaxdp.tables.estimate import description as description
from relaxdp.tables.estimate import estimate as estimate
from relaxdp.tables.release_result import Release as Release
from relaxdp.tables.vault import Vault as Vault

__all__: list[str]
__version__: str
