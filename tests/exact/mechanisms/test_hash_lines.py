"""The hash of local hashing: every pair of values shares a bucket for 1/g of all seeds; all seeds are enumerated."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from math import gcd

import numpy as np
import pytest

from relaxdp.mechanisms import local_hash
from relaxdp.mechanisms.report_arrays import count_supported_labels

VALUES = np.arange(6, dtype=np.uint64)


def enumerated(bits: int, *, masked: bool) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """All seeds: every slope and height once, or as often as the seed's bits give them."""
    count = (1 << bits) - (0 if masked else 1)
    grid = np.arange(count, dtype=np.uint64)
    return (grid[:, None] | grid[None, :] << np.uint64(32)).reshape(-1)


@pytest.mark.parametrize("bits", [3, 7])
def test_pairs_of_places_are_uniform(bits: int) -> None:
    prime = (1 << bits) - 1
    slope, height = local_hash.compute_hash_lines(enumerated(bits, masked=False), bits=bits)
    points = local_hash.compute_hash_points(VALUES, bits=bits)
    assert len(set(points.tolist())) == len(VALUES)
    places = (slope[:, None] * points + height[:, None]) % np.uint64(prime)
    for one, two in itertools.combinations(range(len(VALUES)), 2):
        pairs = np.bincount((places[:, one] * np.uint64(prime) + places[:, two]).astype(np.int64), minlength=prime**2)
        assert set(pairs.tolist()) == {1}


@pytest.mark.parametrize("bits", [3, 7])
@pytest.mark.parametrize("count", [2, 3, 4, 6])
@pytest.mark.parametrize("masked", [False, True])
def test_collisions(bits: int, count: int, masked: bool) -> None:
    """With uniform slopes the chance is exact; with the bits of a seed it is off by what the page says at most."""
    prime = (1 << bits) - 1
    seeds = enumerated(bits, masked=masked)
    hashed = local_hash.compute_hash_buckets(
        seeds[:, None], local_hash.compute_hash_points(VALUES, bits=bits), count, bits=bits
    )
    sizes = np.bincount(np.arange(prime) * count // prime, minlength=count).tolist()
    exact = F(sum(size * size for size in sizes), prime**2)
    assert 0 <= exact - F(1, count) <= F(count, 4 * prime**2)
    for one, two in itertools.combinations(range(len(VALUES)), 2):
        chance = F(int(np.count_nonzero(hashed[:, one] == hashed[:, two])), len(seeds))
        if masked:
            assert abs(chance - F(1, count)) <= F(2, prime + 1) + F(count, 4 * prime**2)
        else:
            assert chance == exact


def test_what_the_page_says_holds_for_31_bits() -> None:
    prime = local_hash.PRIME
    most = 2**16  # buckets
    assert F(2, prime + 1) + F(most, 4 * prime**2) < F(1, 2**29)
    assert gcd(local_hash.POWER, prime - 1) == 1
    # 7 has the full order, which only a prime allows.
    assert pow(7, prime - 1, prime) == 1
    assert all(pow(7, (prime - 1) // factor, prime) != 1 for factor in (2, 3, 7, 11, 31, 151, 331))
    assert 2654435769 % prime == local_hash.OFFSET


def test_points_are_the_fifth_power() -> None:
    rng = np.random.default_rng(5)
    index = np.concatenate([np.arange(1000), rng.integers(0, local_hash.PRIME, 1000)]).astype(np.uint64)
    expected = [pow(int(each) + local_hash.OFFSET, 5, local_hash.PRIME) for each in index]
    assert local_hash.compute_hash_points(index).tolist() == expected


@pytest.mark.parametrize("count", [2, 3, 4, 21, 257, 65536])
def test_counting_equals_hashing(count: int) -> None:
    """Also with slopes and heights at the ends of what 31 bits can say."""
    rng = np.random.default_rng(count)
    ends = [a | b << 32 for a, b in itertools.product((0, 1, 2**31 - 2, 2**31 - 1, 2**32 - 1), repeat=2)]
    seeds = np.concatenate([np.array(ends, dtype=np.uint64), rng.integers(0, 2**64, 3000, dtype=np.uint64)])
    where = local_hash.compute_hash_points(np.arange(40, dtype=np.uint64))
    hashed = local_hash.compute_hash_buckets(seeds[:, None], where, count)
    assert int(hashed.max()) < count
    codes = np.where(rng.random(len(seeds)) < 0.5, hashed[:, 7], rng.integers(0, count, len(seeds))).astype(np.uint32)
    expected = np.count_nonzero(hashed == codes[:, None], axis=0)
    mechanism = local_hash.LocalHash(range(40), buckets=count)
    assert count_supported_labels(mechanism, codes[:, None], seeds).tolist() == expected.tolist()
    for rows in (len(seeds), 3):  # more reports than values, and fewer
        found = mechanism.find_supported_labels(codes[:rows, None], seeds[:rows])
        assert np.array_equal(found, hashed[:rows] == codes[:rows, None])
