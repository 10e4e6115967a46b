"""The laws, in exact rationals: chain, paper, blur, bridge, losses; and symbolically for every m and epsilon."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import pytest
import sympy
from tests.exact.checks import check_all, check_guarantee
from tests.exact.enumeration import Law, compute_blur_distribution, compute_transcript_distribution, level_lists

from relaxdp.theory.privacy_loss import compute_step_odds, compute_transcript_probability
from relaxdp.theory.randomized_response import (
    NOISE,
    compute_bridge_distribution,
    compute_next_report_distribution,
    compute_odds,
    compute_report_distribution,
)

LEVELS = [F(1, 7), F(2, 5), F(1, 2), F(9, 11)]


def paper_step(values: int, old: F, new: F, *, truth: int, last_report: int) -> list[F]:
    """Eq. (solution_poly) of the paper with e^eps written as odds; undefined at new = 0."""
    e1, e2, m = compute_odds(old, values), compute_odds(new, values), values
    p_aa = e2 / (e2 - 1) - e2 / e1 * (e1 + m - 1) / ((e2 - 1) * (e2 + m - 1))
    p_ba = (e2 * e2 - e1 * e2) / ((e2 - 1) * (e2 + m - 1))
    p_bb = e1 / (e2 - 1) - (e1 + m - 1) / ((e2 - 1) * (e2 + m - 1))
    if truth == last_report:
        return [p_aa if v == truth else (1 - p_aa) / (m - 1) for v in range(m)]
    return [p_ba if v == truth else p_bb if v == last_report else (1 - p_ba - p_bb) / (m - 2) for v in range(m)]


def bayes_step(values: int, old: F, new: F, *, truth: int, last_report: int) -> list[F]:
    """Section 3's definition, written out: the new report came first and was blurred into the last one."""
    weights = [
        compute_report_distribution(values, new, truth=truth)[v]
        * compute_blur_distribution(values, old, new, report=v)[last_report]
        for v in range(values)
    ]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("values", [2, 3, 4])
def test_every_transcript_of_up_to_four_levels(values: int) -> None:
    for levels in level_lists(LEVELS, 4):
        laws = [compute_transcript_distribution(values, levels, truth) for truth in range(values)]
        check_all(laws, values, levels)
        assert laws == [compute_transcript_distribution(values, levels, truth, paper_step) for truth in range(values)]


@pytest.mark.parametrize("values", [2, 3, 4, 7])
def test_the_step_is_bayes_and_the_paper(values: int) -> None:
    for old, new in itertools.combinations_with_replacement([NOISE, *LEVELS], 2):
        for truth, last in itertools.product(range(values), repeat=2):
            step = compute_next_report_distribution(values, old, new, truth=truth, last_report=last)
            assert sum(step) == 1
            if new:
                assert step == paper_step(values, old, new, truth=truth, last_report=last)
            if old < new:
                assert step == bayes_step(values, old, new, truth=truth, last_report=last)
            if old == new:
                assert step[last] == 1


def test_levels_chosen_from_earlier_reports() -> None:
    """Fully adaptive: the next level, and whether to go on, depend on the reports; the loss is the last level's."""
    values = 3

    def next_level(reports: tuple[int, ...], levels: tuple[F, ...]) -> F | None:
        if len(levels) == 4 or (len(reports) >= 2 and reports[-1] == reports[-2] == 1):
            return None
        options = [level for level in LEVELS if not levels or level >= levels[-1]]
        return options[sum(reports) % len(options)]

    laws: list[Law] = []
    for truth in range(values):
        law: Law = {}
        stack: list[tuple[tuple[int, ...], tuple[F, ...], F]] = [((), (), F(1))]
        while stack:
            reports, levels, chance = stack.pop()
            level = next_level(reports, levels)
            if level is None:
                law[reports] = chance
                continue
            old, last = (levels[-1], reports[-1]) if levels else (NOISE, 0)
            for report, step in enumerate(
                compute_next_report_distribution(values, old, level, truth=truth, last_report=last)
            ):
                if step:
                    stack.append(((*reports, report), (*levels, level), chance * step))
        assert sum(law.values()) == 1
        laws.append(law)
    for reports in laws[0]:
        levels_seen: tuple[F, ...] = ()
        for place in range(len(reports)):
            level = next_level(reports[:place], levels_seen)
            assert level is not None
            levels_seen = (*levels_seen, level)
        chances = [law[reports] for law in laws]
        assert max(chances) / min(chances) == compute_odds(levels_seen[-1], values)


def test_blur_goes_down_the_same_chain() -> None:
    """Retentions multiply, and truth -> upper -> lower has the joint law of truth -> lower -> upper."""
    for values, (lower, upper) in itertools.product([2, 3, 4], itertools.combinations(LEVELS, 2)):
        for truth in range(values):
            joint = compute_transcript_distribution(values, [lower, upper], truth)
            for below, above in itertools.product(range(values), repeat=2):
                blurred = compute_blur_distribution(values, lower, upper, report=above)[below]
                assert compute_report_distribution(values, upper, truth=truth)[above] * blurred == joint[below, above]
    assert compute_blur_distribution(3, NOISE, NOISE, report=2) == [0, 0, 1]


@pytest.mark.parametrize("values", [2, 3, 4])
def test_bridge_is_the_chain_given_its_neighbours(values: int) -> None:
    for levels in itertools.combinations(LEVELS, 3):
        for truth in range(values):
            law = compute_transcript_distribution(values, levels, truth)
            for low, high in itertools.product(range(values), repeat=2):
                weights = [law[low, middle, high] for middle in range(values)]
                bridge = compute_bridge_distribution(values, *levels, lower_report=low, upper_report=high)
                assert [weight / sum(weights) for weight in weights] == bridge


def test_bridge_ends() -> None:
    level, other = F(1, 3), F(1, 2)
    assert compute_bridge_distribution(3, level, level, other, lower_report=0, upper_report=2)[0] == 1
    assert compute_bridge_distribution(3, level, other, other, lower_report=0, upper_report=2)[2] == 1
    with pytest.raises(ValueError, match="Different reports at equal levels"):
        compute_bridge_distribution(3, level, level, level, lower_report=0, upper_report=2)
    with pytest.raises(ValueError, match="Expected 0 <= lower"):
        compute_bridge_distribution(3, other, level, other, lower_report=0, upper_report=2)
    for outside in [(F(-1, 9), level, other), (level, other, F(10, 9))]:
        with pytest.raises(ValueError, match="Expected 0 <= lower"):
            compute_bridge_distribution(3, *outside, lower_report=0, upper_report=2)
    with pytest.raises(ValueError, match="A blur only lowers a retention"):
        compute_blur_distribution(3, other, level, report=0)
    with pytest.raises(ValueError, match="zip"):
        compute_transcript_probability(3, [level, other], [0], truth=0)


@pytest.mark.parametrize("values", [2, 3, 4, 9])
def test_one_step_alone_costs_the_product_of_the_odds(values: int) -> None:
    for old, new in itertools.combinations_with_replacement(LEVELS, 2):
        ratios, pairs = [], list(itertools.product(range(values), repeat=2))
        laws = {
            (last, truth): compute_next_report_distribution(values, old, new, truth=truth, last_report=last)
            for last, truth in pairs
        }
        for (last, truth), (other, report) in itertools.product(pairs, repeat=2):
            one, two = laws[last, truth][report], laws[last, other][report]
            if two:
                ratios.append(one / two)
            else:
                assert not one
        assert max(ratios) == compute_step_odds(values, old, new)


def test_transcript_probability_is_the_chain() -> None:
    for reports, chance in compute_transcript_distribution(3, LEVELS[:3], 1).items():
        assert compute_transcript_probability(3, LEVELS[:3], reports, truth=1) == chance


def test_mutant_independent_second_report_is_caught() -> None:
    def independent(values: int, old: F, new: F, *, truth: int, last_report: int) -> list[F]:
        return compute_report_distribution(values, new, truth=truth)

    laws = [compute_transcript_distribution(3, LEVELS[:2], truth, independent) for truth in range(3)]
    with pytest.raises(AssertionError):
        check_guarantee(laws, 3, LEVELS[1])


def test_identities_for_every_m_and_epsilon() -> None:
    """Bayes = the paper's p_aa, p_ba, p_bb = the bridge's mixture to the truth, as rational functions."""
    e1, e2, m = sympy.symbols("e1 e2 m", positive=True)
    rho1, rho2 = ((e - 1) / (e - 1 + m) for e in (e1, e2))

    def report(keep: sympy.Expr, same: int) -> sympy.Expr:
        return (1 - keep) / m + (keep if same else 0)

    def bayes(next_is_truth: int, next_is_last: int, last_is_truth: int) -> sympy.Expr:
        """P(last) under the truth is known, so the normaliser is the marginal of the last report."""
        joint = report(rho2, next_is_truth) * report(rho1 / rho2, next_is_last)
        return joint / report(rho1, last_is_truth)

    p_aa = e2 / (e2 - 1) - e2 / e1 * (e1 + m - 1) / ((e2 - 1) * (e2 + m - 1))
    p_ba = (e2**2 - e1 * e2) / ((e2 - 1) * (e2 + m - 1))
    p_bb = e1 / (e2 - 1) - (e1 + m - 1) / ((e2 - 1) * (e2 + m - 1))
    for bayes_form, paper_form in [
        (bayes(1, 1, 1), p_aa),
        (bayes(0, 0, 1), (1 - p_aa) / (m - 1)),
        (bayes(1, 0, 0), p_ba),
        (bayes(0, 1, 0), p_bb),
        (bayes(0, 0, 0), (1 - p_ba - p_bb) / (m - 2)),
    ]:
        assert sympy.simplify(bayes_form - paper_form) == 0
    # The mixture that is drawn: upper = truth, above = rho2, below = rho1 / rho2.
    above, below = rho2, rho1 / rho2
    differ = 1 - above * below
    assert sympy.simplify((above * (1 - below) + (1 - above) * (1 - below) / m) / differ - p_ba) == 0
    assert sympy.simplify((below * (1 - above) + (1 - above) * (1 - below) / m) / differ - p_bb) == 0
    agree = m * above * below + differ
    assert sympy.simplify(1 - (1 - above) * (1 - below) * (m - 1) / m / agree - p_aa) == 0
    # Marginals, and the likelihood ratio of a pair of reports under two truths: the last report's alone.
    assert sympy.simplify(p_aa * e1 / (e1 + m - 1) + p_ba * (m - 1) / (e1 + m - 1) - e2 / (e2 + m - 1)) == 0
    assert sympy.simplify(e1 * p_aa / p_bb - e2) == 0
    assert sympy.simplify(p_ba / (e1 * (1 - p_aa) / (m - 1)) - e2) == 0
    assert sympy.simplify(p_ba / ((1 - p_ba - p_bb) / (m - 2)) - e2) == 0


def test_binary_case_of_the_paper() -> None:
    e1, e2 = sympy.symbols("e1 e2", positive=True)
    p_a, p_b = (e2 - 1 / e1) / (e2 - 1 / e2), (e1 * e2 - 1) / (e2**2 - 1)
    m = 2
    assert sympy.simplify(e2 / (e2 - 1) - e2 / e1 * (e1 + m - 1) / ((e2 - 1) * (e2 + m - 1)) - p_a) == 0
    assert sympy.simplify(e1 / (e2 - 1) - (e1 + m - 1) / ((e2 - 1) * (e2 + m - 1)) - p_b) == 0
    assert sympy.simplify((1 - p_b) / (1 - p_a) - e1 * e2) == 0  # e^eps_delta, reached where the report changes
