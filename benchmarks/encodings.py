"""Bits and places: a fleet of RAPPOR devices, optimised unary, and what a bit or a wave costs on the keyed path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.bloom_fleet import Fleet

import relaxdp as rx
from benchmarks.kernel import beside_numpy, by_numpy
from benchmarks.results import Comparison, compare
from benchmarks.settings import Settings
from benchmarks.timing import Contender, Race, race
from relaxdp.mechanisms.bloom import BloomShape
from relaxdp.mechanisms.bridged_columns import draw_bridged_column, make_noiseless_column
from relaxdp.sampling.entropy import SystemEntropy
from relaxdp.theory.epsilon import as_epsilon
from relaxdp.theory.randomized_response import NOISE, TRUTH, compute_retention

BITS = 128
VALUES = 1_024

FLEET = "relaxdp, one step of a fleet"
RAPPOR = "pure-ldp RAPPOR"
FRESH = "relaxdp OUE, fresh randomness"
KEYED = "relaxdp OUE, keyed path"
UNARY = "pure-ldp OUE"
KEYED_BIT = "a bit of OUE, keyed path"
KEYED_SYMBOL = "a categorical symbol, m = 2, keyed path"
WAVE = "relaxdp wave, keyed path"
PLACE = "a categorical symbol of as many values as places"


def fleet_race(settings: Settings, note: Callable[[str], None], leave_out: Callable[[str], None]) -> Race:
    """Time one step of Algorithm 1 for a fleet of devices with 128 bits; the first of them, from nothing."""
    words = [f"word-{number % 100}" for number in range(settings.fleet_devices)]
    cohorts = np.arange(settings.fleet_devices) % 64
    shape = BloomShape(bits=BITS, hashes=2, cohorts=64)

    def step() -> object:
        fleet.relax(epsilon=fleet.epsilon + 1)
        return fleet.epsilon

    fleet = Fleet(shape, words, cohorts)
    fleet.relax(epsilon=1)
    contenders = [Contender(FLEET, settings.fleet_devices, step)]
    try:
        from pure_ldp.frequency_oracles.rappor import RAPPORClient  # noqa: PLC0415 (a peer may be missing)

        # Its hash functions are the caller's: the cheapest that there are, so that only the noise is timed.
        client = RAPPORClient(0.5, BITS, [[lambda _: 3, lambda _: 77]] * 64, 64, lambda item: item)
        devices = list(range(settings.unary_objects))
        contenders.append(Contender(RAPPOR, len(devices), lambda: list(map(client.privatise, devices))))
    except ModuleNotFoundError as problem:
        leave_out(f"pure-ldp is left out: there is no module {problem.name}.")
    return race(f"fleet, k = {BITS}", contenders, settings.rounds, note)


def unary_race(settings: Settings, note: Callable[[str], None], leave_out: Callable[[str], None]) -> Race:
    """Time optimised unary encoding of 1,024 values."""
    objects = settings.unary_objects
    truths = np.random.default_rng(1).integers(0, VALUES, objects)
    ids, key, answers = np.arange(objects), rx.Key.generate(), rx.Unary(range(VALUES))
    encoding = answers
    kept = make_noiseless_column(encoding, truths, entropy=SystemEntropy())
    level = compute_retention(encoding.threshold(as_epsilon(1)))

    def fresh() -> object:
        return draw_bridged_column(
            encoding, NOISE, level, TRUTH, lower_reports=None, upper_reports=kept, entropy=SystemEntropy()
        )

    def keyed() -> object:
        return answers.release(truths, ids, key=key, epsilon=1, name="benchmark", column="answer")

    own = Contender(KEYED, objects, keyed)
    contenders = [Contender(FRESH, objects, fresh), own, by_numpy(own)]
    try:
        from pure_ldp.frequency_oracles.unary_encoding import UEClient  # noqa: PLC0415

        client = UEClient(1.0, VALUES, use_oue=True, index_mapper=lambda item: item)
        few = truths[: max(1, objects // 10)].tolist()
        contenders.append(Contender(UNARY, len(few), lambda: list(map(client.privatise, few))))
    except ModuleNotFoundError as problem:
        leave_out(f"pure-ldp is left out: there is no module {problem.name}.")
    return race(f"optimised unary, m = {VALUES:,}", contenders, settings.rounds, note)


def bit_race(settings: Settings, note: Callable[[str], None]) -> Race:
    """Time one bit of 128 on the keyed path, beside a whole categorical answer of two values."""
    objects = max(1, settings.path_objects // BITS)
    truths, ids, key = np.random.default_rng(1).integers(0, BITS, objects), np.arange(objects), rx.Key.generate()
    bits, pair = rx.Unary(range(BITS)), rx.Categorical(range(2))
    many = np.arange(objects * BITS)
    zeros = np.zeros(len(many), np.uint8)
    where = {"key": key, "epsilon": 1, "name": "benchmark", "column": "answer"}
    contenders = [
        Contender(KEYED_BIT, objects * BITS, lambda: bits.release(truths, ids, **where)),  # type: ignore[arg-type]
        Contender(KEYED_SYMBOL, len(many), lambda: pair.release(zeros, many, **where)),  # type: ignore[arg-type]
    ]
    return race("what a bit costs", contenders, settings.rounds, note)


def wave_race(settings: Settings, note: Callable[[str], None]) -> Race:
    """Time numbers as places: a kept rounding and a kept offset, and then what a categorical symbol takes."""
    objects, rng, waves = settings.path_objects, np.random.default_rng(1), rx.SquareWave(0, 100, epsilon=4)
    places = rx.Categorical(range(waves.alphabet))
    numbers, truths = 100 * rng.random(objects), rng.integers(0, waves.alphabet, objects)
    ids = np.arange(objects)
    where = {"key": rx.Key.generate(), "epsilon": 1, "name": "benchmark", "column": "answer"}
    contenders = [
        Contender(WAVE, objects, lambda: waves.release(numbers, ids, **where)),  # type: ignore[arg-type]
        Contender(PLACE, objects, lambda: places.release(truths, ids, **where)),  # type: ignore[arg-type]
    ]
    return race(f"wave, {waves.alphabet} places", contenders, settings.rounds, note)


def encoding_comparisons(fleet: Race, unary: Race, bit: Race, wave: Race) -> list[Comparison]:
    """Return what the encodings are held to."""
    rows = [compare(bit, KEYED_BIT, KEYED_SYMBOL, 1.0), compare(wave, WAVE, PLACE, 0.5)]
    if RAPPOR in fleet.names:
        rows.append(compare(fleet, FLEET, RAPPOR, 20.0))
    if UNARY in unary.names:
        rows += [compare(unary, FRESH, UNARY, 10.0), *beside_numpy(unary, KEYED, UNARY, 6.0)]
    return rows
