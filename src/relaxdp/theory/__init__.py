"""Exact distributions of reports and of whole transcripts, in fractions."""

from relaxdp.theory.privacy_loss import PrivacyLoss as PrivacyLoss
from relaxdp.theory.privacy_loss import privacy_loss as privacy_loss
from relaxdp.theory.randomized_response import Level as Level
from relaxdp.theory.randomized_response import RelaxationLaw as RelaxationLaw
from relaxdp.theory.randomized_response import relaxation_law as relaxation_law
