"""The mechanism that is chosen is the best one: by closed formulas over all candidates, and by measured errors."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from math import exp, expm1, sqrt, tanh
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused

import relaxdp as rx
from relaxdp.errors import ValuesError
from relaxdp.estimation.mechanism_choice import FEW_VALUES, WINDOWS, NumberRange, choose_mechanism
from relaxdp.mechanisms.local_hash import choose_bucket_count
from relaxdp.mechanisms.square_wave import BINS, MAX_PLACES, SquareWave

SHARES = (0.0, 0.5)


def choose(declared: Any, epsilon: Any, share: Any = 0, planned: Any = None) -> Any:
    return choose_mechanism(
        declared,
        epsilon=Decimal(str(epsilon)),
        remaining_share=Decimal(str(share)),
        planned_epsilon=None if planned is None else Decimal(str(planned)),
    )


def grid(epsilon: float, last: float, size: int = 40) -> list[float]:
    last = max(epsilon, min(last, 4))
    return [epsilon * (last / epsilon) ** (place / (size - 1)) for place in range(size)]


def errors(hit: float, noise: float) -> list[float]:
    """The standard error of a value's share, times the root of the rows, for a rare and for a frequent value."""
    variances = [share * hit * (1 - hit) + (1 - share) * noise * (1 - noise) for share in SHARES]
    return [sqrt(variance) / (hit - noise) for variance in variances]


def k_ary(values: int, level: float) -> list[float]:
    return errors(exp(level) / (exp(level) + values - 1), 1 / (exp(level) + values - 1))


def oue(level: float) -> list[float]:
    return errors(1 / 2, 1 / (exp(level) + 1))


def olh(buckets: int, level: float) -> list[float]:
    return errors(exp(level) / (exp(level) + buckets - 1), 1 / buckets)


def worst_ratios(candidates: dict[Any, Any], levels: list[float]) -> dict[Any, float]:
    worst = dict.fromkeys(candidates, 1.0)
    for level in levels:
        found = {name: make(level) for name, make in candidates.items()}
        least = [min(each) for each in zip(*found.values(), strict=True)]
        for name, own in found.items():
            worst[name] = max(worst[name], *(a / b for a, b in zip(own, least, strict=True)))
    return worst


def name_of(mechanism: Any) -> Any:
    encoding = mechanism
    return encoding.alphabet if encoding.name == "local-hash" else encoding.name


# Values


@given(
    st.integers(2, 3000),
    st.decimals("0.02", "5", places=2),
    st.decimals("0", "6", places=2),
    st.none() | st.decimals("0.02", "6", places=2),
)
@settings(max_examples=150, deadline=None)
def test_no_other_mechanism_of_values_is_better(
    values: int, epsilon: Decimal, share: Decimal, planned: Decimal | None
) -> None:
    choice = choose(range(values), epsilon, share, planned)
    assert choice.mechanism.values == tuple(range(values))
    first, last = float(planned or epsilon), float(planned or epsilon + share)
    levels = [first] if planned else grid(first, last)
    most = choose_bucket_count(Decimal(str(levels[-1])))
    candidates: dict[Any, Any] = {
        "categorical": partial(k_ary, values),
        "unary-optimised": oue,
        **{buckets: partial(olh, buckets) for buckets in range(2, most + 1)},
    }
    ratios = worst_ratios(candidates, levels)
    # Within two percent the smaller report is taken, and the grid here is finer than the one of the choice.
    assert ratios[name_of(choice.mechanism)] <= 1.02 * 1.02 * min(ratios.values())


@pytest.mark.parametrize("values", range(2, FEW_VALUES + 1))
def test_few_values_are_best_as_they_are(values: int) -> None:
    for level in [*grid(0.001, 4), 5, 8, 12]:
        best = k_ary(values, level)
        for other in (oue(level), *(olh(buckets, level) for buckets in range(2, 200))):
            assert all(own <= each * (1 + 1e-9) for own, each in zip(best, other, strict=True))
    choice = choose(list("abcde")[:values], 0.1, 2)
    assert isinstance(choice.mechanism, rx.Categorical)
    assert choice.reason == "best for up to 5 values"


def test_one_value_more_is_not_always() -> None:
    assert min(oue(0.1)) < min(k_ary(FEW_VALUES + 1, 0.1))
    assert isinstance(choose(list(range(FEW_VALUES + 1)), 0.1).mechanism, rx.Unary)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"epsilon": "0.1", "share": "1.9"}, "best from epsilon 0.1 to 2"),
        ({"epsilon": "0.1", "share": "10"}, "best from epsilon 0.1 to 4"),
        ({"epsilon": "0.10", "share": "0"}, "best at epsilon 0.1"),
        ({"epsilon": "1", "share": "-0.5"}, "best at epsilon 1"),
        ({"epsilon": "5", "share": "3"}, "best at epsilon 5"),
        ({"epsilon": "0.1", "share": "1.9", "planned": "2"}, "best at the planned epsilon 2"),
    ],
)
def test_reason(asked: dict[str, str], reason: str) -> None:
    assert choose([f"city {number}" for number in range(50)], **asked).reason == reason
    assert choose(NumberRange(0, 120), **asked).reason == reason


def test_what_follows_decides() -> None:
    values = list(range(12))
    assert isinstance(choose(values, 1).mechanism, rx.Unary)
    assert isinstance(choose(values, 1, 3).mechanism, rx.Categorical)
    assert isinstance(choose(values, 1, planned=4).mechanism, rx.Categorical)
    assert isinstance(choose(range(10_000), "0.1", "1.9").mechanism, rx.LocalHash)


def test_a_missing_category_is_a_value() -> None:
    choice = choose(["flu", "covid", None], 1)
    assert choice.mechanism.values == ("flu", "covid", None)
    assert choose([*range(40), None], "0.1").mechanism.values[-1] is None


@pytest.mark.parametrize("declared", [[], ["only"], "text", {"a", "b"}, [*range(10), 3], [*range(10), "3"]])
def test_what_is_no_list_of_values(declared: Any) -> None:
    with refused(ValuesError):
        choose(declared, 1)


# Numbers


def numeric_error(level: float) -> list[float]:
    return [1 / tanh(level / 2)]


def wave_error(window: int, level: float) -> list[float]:
    """The largest standard error of the mean in halves of the range, from the distribution of the reports itself."""
    places = BINS + window - 1
    keep = expm1(level) / (expm1(level) + places / window)
    report = np.arange(places)
    worst = 0.0
    for place in (0.0, 0.5, 1.5, (BINS - 1) / 2, BINS - 1.5, BINS - 1.0):
        probability = np.full(places, (1 - keep) / places)
        for start, part in ((int(place), 1 - place % 1), (int(place) + 1, place % 1)):
            probability[start : start + window] += part * keep / window
        mean = float(probability @ report)
        variance = float(probability @ (report - mean) ** 2)
        worst = max(worst, sqrt(variance) / keep / ((BINS - 1) / 2))
    return [worst]


@given(
    st.decimals("0.05", "5", places=2),
    st.decimals("0", "5", places=2),
    st.none() | st.decimals("0.05", "8", places=2),
)
@settings(max_examples=60, deadline=None)
def test_no_other_mechanism_of_numbers_is_better(epsilon: Decimal, share: Decimal, planned: Decimal | None) -> None:
    choice = choose(NumberRange(-3, 9, clip=True), epsilon, share, planned)
    encoding = choice.mechanism
    assert (encoding.low, encoding.high, encoding.clip) == (-3, 9, True)
    levels = [float(planned)] if planned else grid(float(epsilon), float(epsilon + share), 12)
    candidates: dict[Any, Any] = {"numeric": numeric_error, **{each: partial(wave_error, each) for each in WINDOWS}}
    ratios = worst_ratios(candidates, levels)
    own = encoding.window if isinstance(encoding, SquareWave) else encoding.name
    assert ratios[own] <= 1.02 * 1.02 * min(ratios.values())


def test_all_windows_are_tried() -> None:
    assert tuple(each for each in range(1, MAX_PLACES + 1) if each & (each - 1) == 0) == WINDOWS


def test_numbers() -> None:
    assert isinstance(choose(NumberRange(0, 120), "0.1").mechanism, rx.Numeric)
    assert isinstance(choose(NumberRange(0, 120), "0.1", planned=2).mechanism, rx.SquareWave)
    missing = choose(NumberRange(0, 120, missing=True), 3)
    assert repr(missing.mechanism) == "Numeric(0, 120, missing=True)"
    assert missing.reason == "the only one for numbers that may be missing"
    with refused(ValuesError):
        choose(NumberRange(120, 0), 1)


# Measured


@pytest.mark.parametrize(
    ("epsilon", "share", "expected"), [("0.2", "1.8", "unary-optimised"), ("2", "0", "categorical")]
)
def test_measured_errors_agree(epsilon: str, share: str, expected: str) -> None:
    """The mechanism with the smallest worst ratio of errors of real reports is the chosen one: twelve values."""
    values, rows = list(range(12)), 1000
    choice = choose(values, epsilon, share)
    assert choice.mechanism.name == expected
    truths = np.repeat([0, 1], rows // 2)
    others = [
        rx.Categorical(values),
        rx.Unary(values),
        rx.LocalHash(values, buckets=2),
        rx.LocalHash(values, buckets=8),
    ]
    found: dict[str, dict[str, list[float]]] = {}
    levels = sorted({epsilon, "2"})
    for mechanism in others:
        for level in levels:
            estimates = np.array([
                mechanism.estimate(_release(mechanism, truths, level, seed), epsilon=level).value for seed in range(120)
            ])  # fmt: skip
            deviations = estimates - np.bincount(truths, minlength=12) / rows
            parts = deviations[:, 2:], deviations[:, :2]
            found.setdefault(repr(mechanism), {})[level] = [float(np.sqrt((each**2).mean())) for each in parts]
    least = {level: np.min([each[level] for each in found.values()], axis=0) for level in levels}
    worst = {name: max(float(np.max(own[at] / least[at])) for at in levels) for name, own in found.items()}
    assert min(worst, key=lambda name: worst[name]) == repr(choice.mechanism)


def _release(mechanism: Any, truths: Any, level: str, seed: int) -> Any:
    key = rx.Key.from_bytes(bytes([seed]) * 32)
    return mechanism.release(truths, np.arange(len(truths)), key=key, epsilon=level, name="r", column="a")
