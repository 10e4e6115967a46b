"""The law of a report, and the theorems of relaxation: closed forms, marginals and composition, on both samplers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import exp

import numpy as np

from relaxdp.audit.attacks import compute_retentions
from relaxdp.paper import judge
from relaxdp.paper.claims import Claim, ClaimCheck, ClaimOutcome, Data
from relaxdp.paper.lab import Lab, Levels
from relaxdp.theory.privacy_loss import compute_transcript_probability
from relaxdp.theory.randomized_response import compute_odds, compute_report_distribution, relaxation_law

LEVELS = tuple(map(Decimal, ("0.1", "0.5", "1", "2")))
COUNTED = tuple(map(Decimal, ("0.5", "1", "2")))
VALUES = (2, 3, 4)
GRID = [Decimal(step) / 10 for step in range(1, 21)]


def solution(values: int, old: float, new: float) -> tuple[float, float, float]:
    """Return p_aa, p_ba and p_bb as the paper prints them."""
    a, b, rest = exp(old), exp(new), values - 1
    both = (b - 1) * (b + rest)
    return b / (b - 1) - b / a * (a + rest) / both, (b * b - a * b) / both, a / (b - 1) - (a + rest) / both


def binary_solution(old: float, new: float) -> tuple[float, float]:
    """Return p_a and p_b of the binary theorem as the paper prints them."""
    return (exp(new) - exp(-old)) / (exp(new) - exp(-new)), (exp(old + new) - 1) / (exp(2 * new) - 1)


def closed_forms(lab: Lab) -> ClaimOutcome:
    """Compare the printed closed forms with the law that is drawn, for m from 2 to 10 and all pairs of a grid."""
    pairs = [(old, new) for new in GRID for old in GRID if old <= new]
    worst = worst_binary = 0.0
    for old, new in pairs:
        for m in range(2, 11):
            law = relaxation_law(m=m, old_epsilon=old, new_epsilon=new)
            drawn = [float(law.p_aa), float(law.p_ba), float(law.p_bb)]
            worst = max(worst, float(np.abs(np.subtract(drawn, solution(m, float(old), float(new)))).max()))
            if m == 2:
                p_a, p_b = binary_solution(float(old), float(new))
                worst_binary = max(worst_binary, abs(p_a - drawn[0]), abs(p_b - drawn[2]))
    return ClaimOutcome(
        f"Largest difference from the law of this package: {worst:.1e} over {9 * len(pairs):,} cases, and "
        f"{worst_binary:.1e} for the binary formulas.",
        "Numbers agree to 12 digits.",
        [
            judge.exact("p_aa, p_ba and p_bb", worst < 1e-12, f"largest difference {worst:.1e}"),
            judge.exact("p_a and p_b", worst_binary < 1e-12, f"largest difference {worst_binary:.1e}"),
        ],
    )


def marginals(lab: Lab) -> ClaimOutcome:
    """Check that every output is a randomized response of its level: exactly, and by counting reports."""
    checks = []
    for values in VALUES:
        keeps = compute_retentions(LEVELS, values)
        right = True
        for place, keep in enumerate(keeps):
            law = [Fraction(0)] * values
            for reports, probability in _transcripts(values, keeps[: place + 1]):
                law[reports[-1]] += probability
            right &= law == compute_report_distribution(values, keep, truth=0)
        checks.append(judge.exact(f"m = {values}: all marginals, in fractions", right, "summed over all transcripts"))
    for sampler in lab.samplers:
        for values in VALUES:
            seen = _drawn(lab, sampler.name, values)
            counts = np.stack([np.bincount(row, minlength=values) for row in seen])
            law_at = [
                compute_report_distribution(values, keep, truth=0) for keep in compute_retentions(COUNTED, values)
            ]
            for level, row, expected in zip(COUNTED, counts, law_at, strict=True):
                name = f"{sampler.name}, m = {values}: reports at ε = {level}"
                checks.append(judge.histogram(name, row, [float(chance) for chance in expected]))
    return ClaimOutcome(
        f"Exact for m = 2, 3, 4 and four levels; {lab.settings.objects:,} objects per sampler and m agree.",
        "Sums over all transcripts in fractions; counts of reports at 0.5, 1 and 2 against the law (chi-square).",
        checks,
    )


def composition(lab: Lab) -> ClaimOutcome:
    """Check that all outputs together have the last guarantee, and that both samplers draw that joint law."""
    checks: list[ClaimCheck] = []
    rows = []
    for values in VALUES:
        keeps = compute_retentions(LEVELS, values)
        for place, level in enumerate(LEVELS):
            ratio = _greatest_ratio(values, keeps[: place + 1])
            holds = ratio == compute_odds(keeps[place], values)
            checks.append(
                judge.exact(f"m = {values}: outputs up to ε = {level}", holds, f"greatest ratio {float(ratio):.6f}")
            )
            rows.append([values, level, float(ratio), exp(float(level))])
    for sampler in lab.samplers:
        for values in (2, 3):
            seen = _drawn(lab, sampler.name, values).astype(np.int64)
            cells = np.ravel_multi_index(tuple(seen), (values,) * len(COUNTED))
            law = [float(chance) for _, chance in _transcripts(values, compute_retentions(COUNTED, values))]
            name = f"{sampler.name}, m = {values}: whole transcripts at 0.5, 1 and 2"
            checks.append(judge.histogram(name, np.bincount(cells, minlength=len(law)), law))
    return ClaimOutcome(
        "The greatest ratio of a transcript's probability under two truths is e^ε of the last level, never more: "
        f"{len(rows)} cases. Both samplers draw the joint law of three levels ({lab.settings.objects:,} objects each).",
        "All transcripts of up to four levels in fractions; counts of whole transcripts (chi-square).",
        checks,
        {"composition": Data(["m", "last_epsilon", "greatest_ratio", "e^epsilon"], rows)},
    )


def _transcripts(values: int, keeps: tuple[Fraction, ...]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Return all transcripts with their probabilities, given the truth 0."""
    for reports in product(range(values), repeat=len(keeps)):
        yield reports, compute_transcript_probability(values, keeps, reports, truth=0)


def _greatest_ratio(values: int, keeps: tuple[Fraction, ...]) -> Fraction:
    likely = dict(_transcripts(values, keeps))
    # Values are interchangeable, so the probability under truth 1 is that of the transcript with 0 and 1 exchanged.
    swap = [1, 0, *range(2, values)]
    return max(chance / likely[tuple(swap[report] for report in reports)] for reports, chance in likely.items())


def _drawn(lab: Lab, name: str, values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]]:
    """Return transcripts of objects whose truth is 0, drawn once for all claims."""
    (sampler,) = (each for each in lab.samplers if each.name == name)

    def draw() -> object:
        lab.say(f"transcripts of {name}, m = {values}")
        levels: Levels = COUNTED
        return sampler.transcripts(values, levels, np.zeros(lab.settings.objects, np.uint8), purpose=f"law {values}")

    drawn: np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]] = lab.once(f"law {name} {values}", draw)
    return drawn


def response(lab: Lab) -> ClaimOutcome:
    """Compare the printed probability with the law of a report."""
    printed, worst = [], 0.0
    for m in range(2, 11):
        for level in GRID:
            e = exp(float(level))
            printed.append((e + m - 1) / exp(float(level) + m - 1))
            law = compute_report_distribution(m, compute_retentions([level], m)[0], truth=0)
            worst = max(worst, abs(float(law[0]) - e / (e + m - 1)), abs(float(law[1]) - 1 / (e + m - 1)))
    return ClaimOutcome(
        f"With e^ε + m - 1 below, the probabilities are those of a report (to {worst:.0e}) and sum to 1. As printed "
        f"they sum to {min(printed):.2g} to {max(printed):.2g}.",
        "Probabilities for m from 2 to 10 and ε from 0.1 to 2.",
        [
            judge.exact("corrected = law of a report", worst < 1e-12, f"largest difference {worst:.1e}"),
            judge.exact("printed probabilities do not sum to 1", max(printed) < 1, f"at most {max(printed):.3f}"),
        ],
    )


CLAIMS = [
    Claim(
        "response-probability",
        "The probability of a randomized response",
        "Section II-C",
        "The response is the true value with probability e^ε / e^(ε + m - 1), any other with 1 / e^(ε + m - 1).",
        response,
        correction="The denominator is e^ε + m - 1.",
    ),
    Claim(
        "closed-forms",
        "The closed forms of p_aa, p_ba and p_bb",
        "Sections III-A and III-B",
        "The solution for m values, and p_a and p_b of the binary theorem, which are its case m = 2.",
        closed_forms,
    ),
    Claim(
        "marginals",
        "Each output is a randomized response",
        "Section III-C, first property",
        "Whatever came before, the output at ε_i has the distribution of an ε_i-LDP randomized response.",
        marginals,
    ),
    Claim(
        "composition",
        "All outputs together cost the last ε",
        "Section III-C, second property",
        "The composition of all outputs up to the i-th is ε_i-LDP.",
        composition,
    ),
]
