"""What can break the guarantee in careless hands: the stateless step, and randomness from a seed.

A stateless step that is retried draws twice, and two independent draws at one level reveal more than its epsilon.
Seeded randomness can be recomputed by anybody who guesses the seed. Only experiments, audits and tests belong here.
"""

from relaxdp.hazmat.seeded import SeededEntropy
from relaxdp.hazmat.step import blur_once, bridge_once, relax_once

__all__ = ["SeededEntropy", "blur_once", "bridge_once", "relax_once"]
