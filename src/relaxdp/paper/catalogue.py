"""All claims of the paper that are checked, in the order of the paper."""

from __future__ import annotations

from relaxdp.paper import (
    discussion,
    experiment_1,
    experiment_2,
    feasibility,
    laws,
    market,
    mean,
    motivation,
    proofs,
    rappor,
    response,
    tables,
    utility,
)
from relaxdp.paper.claims import Claim

CLAIMS: list[Claim] = [
    *motivation.CLAIMS,
    *response.CLAIMS,
    *laws.CLAIMS,
    *tables.CLAIMS,
    *feasibility.CLAIMS,
    *proofs.CLAIMS,
    *discussion.CLAIMS,
    *rappor.CLAIMS,
    *utility.CLAIMS,
    *mean.CLAIMS,
    *market.CLAIMS,
    *experiment_1.CLAIMS,
    *experiment_2.CLAIMS,
]
