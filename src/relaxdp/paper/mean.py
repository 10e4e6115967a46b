"""Mean estimation: the formula as printed and as corrected, on numbers whose rounding is kept while ε grows."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.estimation.counts import Counts
from relaxdp.estimation.mechanism_choice import compute_categorical_support
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.paper import figures, judge
from relaxdp.paper.claims import Claim, ClaimOutcome, Data, Picture
from relaxdp.paper.lab import Lab
from relaxdp.theory.randomized_response import SupportProbabilities

LOW, HIGH = 20.0, 80.0
LEVELS = tuple(map(Decimal, ("0.5", "1", "2", "4")))
OBJECTS = 1000
SQUARED = (-4, -2, 1, 2, 3, 3, 5)
SQUARE_RANGE = (1, 36)
"""Of f(x), and known beforehand."""
SQUARE_KEEPS = [Fraction(*pair) for pair in ((1, 10), (1, 2), (9, 10))]

Floats = NDArray[np.float64]


def numbers() -> Floats:
    """Return the numbers: evenly spread over the lower half of the range, so that the mean is 35."""
    return LOW + (HIGH - LOW) / 2 * (np.arange(OBJECTS) + 0.5) / OBJECTS


def corrected(upper: Any, low: float, high: float) -> Any:
    """Return low + (high - low) * share: what this package estimates."""
    return low + (high - low) * upper


def as_printed(upper: Any, low: float, high: float) -> Any:
    """Return low + high * share: what the paper prints."""
    return low + high * upper


def mean_estimates(lab: Lab) -> ClaimOutcome:
    """Check that the corrected formula is unbiased at every level, and that the printed one is not."""
    formula = lab.mean or corrected
    truth, ends = numbers(), Numeric(LOW, HIGH)
    expected = float(truth.mean())
    variances = np.array([_variance(truth, level) for level in LEVELS])
    checks, rows = [], []
    curves: dict[str, tuple[Floats, Floats]] = {}
    for sampler in lab.samplers:
        lab.say(f"mean estimation, {sampler.name}")
        runs = lab.settings.runs
        bits = sampler.numeric(ends, LEVELS, np.tile(truth, runs), purpose="mean")
        reported = bits.reshape(len(LEVELS), runs, OBJECTS).mean(axis=-1)
        upper = np.stack(
            [compute_categorical_support(level, 2).debias(each) for level, each in zip(LEVELS, reported, strict=True)]
        )
        means, printed = formula(upper, LOW, HIGH), as_printed(upper, LOW, HIGH)
        curves[sampler.name] = (means, printed)
        bias = judge.standard_errors(
            float(printed[-1].mean()) - expected, float(variances[-1]) * (HIGH / 60) ** 2, runs
        )
        checks += [
            judge.means(f"{sampler.name}: unbiased at every level", means, np.full(len(LEVELS), expected), variances),
            judge.variances(
                f"{sampler.name}: variance, rounding included", means, np.full(len(LEVELS), expected), variances
            ),
            judge.exact(f"{sampler.name}: as printed it is biased", bias > 10, f"{bias:.0f} standard errors at ε = 4"),
            judge.exact(f"{sampler.name}: the package's own estimate", _agrees(ends, bits, means, formula), ""),
        ]
        rows += [
            [sampler.name, level, expected, float(means[place].mean()), float(printed[place].mean()),
             float(means[place].std()), float(np.sqrt(variances[place]))]
            for place, level in enumerate(LEVELS)
        ]  # fmt: skip
    said = "; ".join(
        f"{name} {means[-1].mean():.3f} (corrected), {printed[-1].mean():.3f} (printed)"
        for name, (means, printed) in curves.items()
    )
    columns = ["sampler", "epsilon", "true_mean", "corrected", "printed", "deviation", "theoretical_deviation"]
    return ClaimOutcome(
        f"True mean {expected:.3f} of numbers in [{LOW:g}, {HIGH:g}]. Mean of {lab.settings.runs:,} estimates at "
        f"ε = 4: {said}.",
        "Means against the truth (normal), variances with the kept rounding included (chi-square).",
        checks,
        {"mean": Data(columns, rows)},
        {
            "mean": Picture(
                f"Estimated means of numbers in [{LOW:g}, {HIGH:g}], by the corrected formula and as printed: mean "
                f"and two standard deviations of {lab.settings.shown} runs. Open marks: as printed.",
                partial(figures.mean_estimates, curves, LEVELS, expected, lab.settings.shown),
            )
        },
    )


def mean_of_square(lab: Lab) -> ClaimOutcome:
    """Check that the mean of x² is estimated by f(x) = x², in fractions over all outputs and by the package."""
    formula = lab.mean or corrected
    uppers = [expected_upper(keep) for keep in SQUARE_KEEPS]
    means, printed = ([each(upper, *SQUARE_RANGE) for upper in uppers] for each in (formula, as_printed))
    wanted = Fraction(sum(number**2 for number in SQUARED), len(SQUARED))
    checks = [
        judge.exact("the expected estimate is the mean of x²", all(each == wanted for each in means), f"{wanted}"),
        judge.exact("as printed it is biased", all(each != wanted for each in printed), f"{printed[0]}"),
    ]
    low, high = map(float, SQUARE_RANGE)
    ends = Numeric(low, high)
    numbers = np.tile(np.square(np.array(SQUARED, dtype=float)), lab.settings.runs)
    share = (wanted - SQUARE_RANGE[0]) / (SQUARE_RANGE[1] - SQUARE_RANGE[0])
    supports = [compute_categorical_support(level, 2) for level in LEVELS]
    chances = [float(support.noise + support.gain * share) for support in supports]
    for sampler in lab.samplers:
        bits = sampler.numeric(ends, LEVELS, numbers, purpose="mean of square")
        name = f"{sampler.name}: upper ends reported, at every level"
        # Each number is rounded on its own, so their sum varies less than a binomial: the test is on the safe side.
        checks.append(judge.rates(name, bits.sum(axis=1, dtype=np.int64), len(numbers), chances))
    return ClaimOutcome(
        f"Of {len(SQUARED)} numbers with squares in [{SQUARE_RANGE[0]}, {SQUARE_RANGE[1]}], the expected estimate "
        f"is {wanted} = {float(wanted):.3f}, the mean of their squares; as printed {float(printed[0]):.3f}.",
        "Expectations over rounding and response in fractions; counts of reported upper ends (binomial).",
        checks,
    )


def expected_upper(keep: Fraction) -> Fraction:
    """Return the expected share of upper ends of x², debiased, over all roundings and responses."""
    low, high = SQUARE_RANGE
    support = SupportProbabilities.from_one_symbol(keep, 2)
    ups = [Fraction(number**2 - low, high - low) for number in SQUARED]
    reported = sum((up * support.hit + (1 - up) * support.noise for up in ups), start=Fraction(0))
    upper: Fraction = support.debias(reported / len(SQUARED))
    return upper


def _variance(truth: Floats, level: Decimal) -> float:
    """Return the variance of one run: every bit is random through its rounding and its response."""
    support = compute_categorical_support(level, 2)
    chance = float(support.noise) + float(support.gain) * (truth - LOW) / (HIGH - LOW)
    spread = float((chance * (1 - chance)).sum()) / OBJECTS**2
    return spread * ((HIGH - LOW) / float(support.gain)) ** 2


def _agrees(ends: Numeric, bits: Any, means: Floats, formula: Any) -> bool:
    """Tell whether the estimate that the package gives for the first run is the formula's."""
    ones = int(bits[-1][:OBJECTS].sum())
    counts = Counts(ends)
    counts.add_counts([OBJECTS - ones, ones], epsilon=LEVELS[-1])
    return formula is not corrected or bool(np.isclose(counts.estimate().value, means[-1, 0], rtol=1e-12))


CLAIMS = [
    Claim(
        "mean",
        "Mean estimation under relaxation",
        "Section V-B",
        "The mean of numbers in [l, h], rounded to l or h at random once, is estimated by l + h · π_h from the outputs "
        "after each relaxation.",
        mean_estimates,
        correction="l + (h - l) · π_h. As printed it is biased by l · π_h, unless l is 0.",
    ),
    Claim(
        "mean-of-square",
        "The mean of x²",
        "Section V-B",
        "f(x) = x and f(x) = x² are used to estimate E[X] and E[X²], where f(x) lies in [l, h].",
        mean_of_square,
        correction="With l + (h - l) · π_h, as for the mean.",
    ),
]
