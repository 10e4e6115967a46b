"""The compiled path draws what NumPy draws, bit for bit; it is left alone where it cannot be used."""

from __future__ import annotations

import ctypes
import hashlib
import math
import platform
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from tests.conftest import missing
from tests.refusals import refused
from tests.vectors.scalar import words

from relaxdp.errors import IdError, KernelError
from relaxdp.hazmat import SeededEntropy
from relaxdp.mechanisms.report_arrays import count_codes
from relaxdp.sampling.arrow_columns import _make_ascii_array, get_code_points, read_ids
from relaxdp.sampling.bridge import FRESH_CHUNK, _FreshBridgeSampler, draw_fresh_bridge_reports
from relaxdp.sampling.entropy import Keystream
from relaxdp.sampling.kernel import build, c_library, self_test
from relaxdp.sampling.kernel.c_library import SETTING, Kernel, get_kernel
from relaxdp.sampling.keyed_path import (
    NumpyPathSampler,
    compute_tags,
    compute_tags_with_numpy,
    find_report,
    iterate_path_draws,
    replace_symbols_by_reports,
)
from relaxdp.sampling.keyed_stream import CHUNK, Ids, MacInputs, encode_canonical
from relaxdp.theory.epsilon import ONE, compute_threshold
from relaxdp.theory.randomized_response import NOISE, TRUTH, BridgeMixture

FED = Path(__file__).parents[2] / "kernel" / "fed.c"
KINDS = ("integers", "unsigned", "small integers", "text", "letters", "bytes", "uuids", "blocks")


_ON_ARM = platform.machine().lower() in ("arm64", "aarch64")


@pytest.fixture(params=["neon"] if _ON_ARM else ["aesni", "vaes", "avx512"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Return the compiled path with each set of instructions that this machine has."""
    library = c_library._open_library()
    if library is None:
        missing("the compiled path is not built")
    if request.param not in c_library._get_instruction_sets(library):
        pytest.skip(f"this processor has no {request.param}")
    monkeypatch.setenv(SETTING, request.param)
    found = get_kernel()
    assert found is not None
    assert found.name == request.param
    return found


def some_ids(kind: str, count: int, random: np.random.Generator) -> Ids:
    """Ids that begin anywhere in their arrays."""
    skip = int(random.integers(0, 4))
    size = count + skip
    if kind == "integers":
        return Ids.from_integers(random.integers(-(2**63), 2**63, size)[skip:])
    if kind == "unsigned":
        return Ids.from_integers(random.integers(0, 2**64, 2 * size, np.uint64)[::2][skip:])
    if kind == "small integers":
        return Ids.from_integers(random.integers(-128, 128, size, np.int8)[skip:])
    lengths = np.full(size, 16) if kind == "uuids" else random.integers(0, random.choice([3, 9, 26, 300]), size)
    whole = random.integers(32, 127, int(lengths.sum()), np.uint8).tobytes()
    ends = np.cumsum(lengths).tolist()
    items = [whole[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
    if kind == "uuids":
        return read_ids(pa.array(items, pa.uuid())[skip:], 0)
    if kind == "bytes":
        return read_ids(pa.array(items, pa.binary())[skip:], 0)
    return read_ids(pa.array(items, pa.binary()).cast(pa.string() if kind == "text" else pa.large_string())[skip:], 0)


def some_messages(kind: str, count: int, random: np.random.Generator) -> MacInputs:
    more = random.integers(0, 2**64, (int(random.integers(1, 4)), count, 2), np.uint64)
    if kind == "blocks":
        return MacInputs(None, more)
    return MacInputs(some_ids(kind, count, random), more if random.random() < 0.3 else None)


def some_level(random: np.random.Generator) -> tuple[int, int]:
    """Values from 2 to a million, or far more; epsilon from 0.001 to 40, or any threshold."""
    values = int(10 ** random.uniform(math.log10(2), 6))
    if random.random() < 0.1:
        return int(random.choice([2, 256, 257, 2**32, 2**63 + 1])), int(2 ** random.uniform(41, 63.9))
    return values, compute_threshold(f"{10 ** random.uniform(-3, math.log10(40)):.6f}", values)


def compare(compiled: Kernel, objects: int, seed: int) -> None:
    """Draw so many objects in cases of random sizes, once by NumPy and once by the compiled path."""
    random = np.random.default_rng(seed)
    drawn = 0
    while drawn < objects:
        count = int(random.choice([0, 1, 7, 16, 17, 1023, 1024, 1025, int(random.integers(0, 6000))]))
        values, level = some_level(random)
        kind = str(random.choice(KINDS))
        symbols = int(random.choice([1, 1, 1, 2, 40])) if count < 2000 else 1
        messages, derived = some_messages(kind, count, random), random.bytes(32)
        most = min(values, 2**63)
        index, symbol = random.integers(0, most, (2, count)).astype(np.uint64)
        truths = random.integers(0, most, (count, symbols)).astype(np.min_scalar_type(values - 1))
        case = (kind, count, values, level, symbols)
        if count:
            expected = truths.copy()
            NumpyPathSampler(derived, values, level).replace_symbols_by_reports(messages, index, expected)
            compiled.replace_symbols_by_reports(derived, values, level, messages, index, truths)
            assert np.array_equal(truths, expected), case
            words = compute_tags_with_numpy(derived, messages, index, symbol)
            assert np.array_equal(compiled.compute_tags(derived, messages, index, symbol)[0], words), case
        else:
            compiled.replace_symbols_by_reports(derived, values, level, messages, index, truths)
            assert compiled.compute_tags(derived, messages, None, None)[1].tolist() == [0, 0]
        drawn += max(1, count * symbols)


def test_the_compiled_path_draws_what_numpy_draws(compiled: Kernel) -> None:
    compare(compiled, 300_000, 1)


@pytest.mark.long
def test_the_compiled_path_draws_what_numpy_draws_ten_million_times(compiled: Kernel) -> None:
    compare(compiled, 10_000_000, 2)


@pytest.mark.parametrize("setting", ["off", ""])
def test_tags_are_codes_of_whole_messages(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Id, what follows it, index, symbol and try 0, under CMAC; by NumPy and by whatever draws here."""
    monkeypatch.setenv(SETTING, setting)
    ids, derived = ["", "abc", "x", "a text of many letters", "twelve bytes"], bytes(range(32))
    more = np.random.default_rng(1).integers(0, 2**64, (2, len(ids), 2), np.uint64)
    numbers = np.array([5, 2**40, 3, 0, 7], np.uint64)
    cases: list[tuple[Any, Any, Any]] = [
        *((None, None, 0), (None, None, 1), (None, numbers, 0)),
        (more, numbers, numbers % np.uint64(8)),
    ]
    for after, index, symbol in cases:
        tags = compute_tags(derived, MacInputs(read_ids(pa.array(ids), 0), after), index, symbol)
        indices = [0] * len(ids) if index is None else index.tolist()
        symbols = [symbol] * len(ids) if isinstance(symbol, int) else symbol.tolist()
        for row, each in enumerate(ids):
            prefix = encode_canonical(each) + (b"" if after is None else after[:, row].tobytes())
            assert tags[row] == next(words(derived, prefix, indices[row], symbols[row]))[0]


def test_nothing_has_no_length() -> None:
    assert len(MacInputs(None)) == 0
    assert [*MacInputs(None).group_by_block_count()] == []
    without_offsets = pa.StringArray.from_buffers(0, pa.py_buffer(b""), pa.py_buffer(b""))
    for column in (pa.array([], pa.string()), pa.array([], pa.binary()), without_offsets):
        nothing = read_ids(column, 0)
        assert (len(nothing), nothing.offsets.tolist(), len(nothing.data)) == (0, [0], 0)
        assert [*nothing.group_by_block_count()] == []
    assert [len(read_ids(pa.array(ids), 0)) for ids in ([7], ["a", "b"], np.arange(3))] == [1, 2, 3]


def test_small_thresholds_too(compiled: Kernel) -> None:
    """Below 2^44 a quotient is not taken from floating-point numbers."""
    messages, index = MacInputs(Ids.from_integers(np.arange(300))), np.zeros(300, np.uint64)
    for level in (1, 2**20, 2**44 - 1, 2**44):
        expected, truths = np.ones((2, 300, 1), np.uint8)
        NumpyPathSampler(bytes(32), 3, level).replace_symbols_by_reports(messages, index, expected)
        compiled.replace_symbols_by_reports(bytes(32), 3, level, messages, index, truths)
        assert np.array_equal(truths, expected)


def test_more_objects_than_a_chunk(compiled: Kernel) -> None:
    """NumPy's cipher has room for a chunk; the compiled path takes any number."""
    count = CHUNK + 3
    ids, index = np.arange(count), np.arange(count, dtype=np.uint64) % np.uint64(2)
    together = np.zeros((count, 1), np.uint8)
    compiled.replace_symbols_by_reports(bytes(32), 2, ONE // 3, MacInputs(Ids.from_integers(ids)), index, together)
    for part in (slice(0, CHUNK), slice(CHUNK, count)):
        alone = np.zeros((len(ids[part]), 1), np.uint8)
        compiled.replace_symbols_by_reports(
            bytes(32), 2, ONE // 3, MacInputs(Ids.from_integers(ids[part])), index[part], alone
        )
        assert np.array_equal(together[part], alone)


def test_what_is_asked_for_is_what_draws(compiled: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    messages, index = MacInputs(Ids.from_integers(np.arange(100))), np.arange(100, dtype=np.uint64) % np.uint64(7)
    by_numpy: list[str] = []
    monkeypatch.setattr(NumpyPathSampler, "replace_symbols_by_reports", lambda *_: by_numpy.append("path"))
    monkeypatch.setattr("relaxdp.sampling.keyed_path.compute_tags_with_numpy", lambda *_: by_numpy.append("tags"))
    for setting, threshold, expected in [
        (compiled.name, ONE // 3, []),
        (compiled.name, 0, ["path"]),
        ("off", 1, ["path", "tags"]),
    ]:
        monkeypatch.setenv(SETTING, setting)
        target = np.zeros((100, 3), np.uint8)
        replace_symbols_by_reports(bytes(32), 7, threshold, messages, index, target)
        if threshold:
            compute_tags(bytes(32), messages, index)
        assert by_numpy == expected
        assert target.any() == (not expected)
        by_numpy.clear()
    assert c_library.get_sampler_name() == "numpy"


def test_offsets_that_cannot_be_are_refused_and_nothing_is_read(compiled: Kernel) -> None:
    data, index = np.zeros(10, np.uint8), np.zeros(2, np.uint64)
    for offsets in ([0, 4, 11], [0, 5, 4], [-1, 3, 4]):
        messages = MacInputs(Ids("bytes", 5, None, np.array(offsets), data))
        with refused(IdError, says="The id column is damaged"):
            compiled.replace_symbols_by_reports(bytes(32), 2, 1, messages, index, np.zeros((2, 1), np.uint8))
        with refused(IdError, says="The id column is damaged"):
            compiled.compute_tags(bytes(32), messages, None, None)


def test_arrays_that_do_not_fit_together_are_refused(compiled: Kernel) -> None:
    messages, two = MacInputs(Ids.from_integers(np.arange(2))), np.zeros(2, np.uint64)
    for index, target in [
        (two[:1], np.zeros((2, 1), np.uint8)),
        (two, np.zeros((3, 1), np.uint8)),
        (two, np.zeros((2, 4), np.uint8)[:, ::2]),
    ]:
        with pytest.raises(ValueError, match="numbers of true values, messages and indices differ"):
            compiled.replace_symbols_by_reports(bytes(32), 2, 1, messages, index, target)
    with pytest.raises(ValueError, match="numbers of messages and last words differ"):
        compiled.compute_tags(bytes(32), messages, two[:1], None)


@pytest.mark.parametrize("values", [2, 3, 10, 200, 255, 256, 257, 65537, 2**63 + 1])
def test_a_step_reads_the_same_bytes_and_draws_the_same(
    compiled: Kernel, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of several lengths, all from one keystream: what follows shows where the last one ended.

    At 2^63 + 1 values half of the words are rejected, and again.
    """
    random = np.random.default_rng(values)
    level = Fraction(7, 19)
    laws = [(NOISE, level, TRUTH), (level, Fraction(1, 2), TRUTH), (level, Fraction(3, 7), Fraction(4, 7)),
            (level, level, TRUTH), (level, TRUTH, TRUTH), (NOISE, Fraction(1, 2), Fraction(3, 4))]  # fmt: skip
    cases = []
    for count, law in product([0, 1, 31, 32, 8191, 8200, FRESH_CHUNK + 77], laws):
        codes = random.integers(0, values, (2, count + 3), np.uint64)
        codes[0, ::3] = codes[1, ::3]
        lower, upper = codes.astype(np.min_scalar_type(values - 1))[:, 3:]
        cases.append((law, lower, upper))
    drawn = []
    for setting in (compiled.name, "off"):
        monkeypatch.setenv(SETTING, setting)
        entropy = SeededEntropy(values)
        drawn.append([
            draw_fresh_bridge_reports(
                values, *law, lower_reports=lower if law[0] else None, upper_reports=upper, entropy=entropy
            )
            for law, lower, upper in cases
        ])  # fmt: skip
    for case, one, other in zip(cases, *drawn, strict=True):
        assert np.array_equal(one, other), (case[0], len(one))


def test_a_step_takes_codes_of_one_byte(compiled: Kernel) -> None:
    """What is compiled is what draws: codes with gaps and wider codes are left to NumPy."""
    always = BridgeMixture(Fraction(0), Fraction(0), Fraction(1))
    for values, dtype, drawn in [(2, np.uint8, 50), (256, np.uint8, 50), (256, np.uint16, 0)]:
        bridge = _FreshBridgeSampler(values, always, always, Keystream(bytes(48)))
        lower, upper, result = np.zeros((3, 50), dtype)
        lower.flags.writeable = False
        assert bridge._compiled is not None
        bridge._compiled._flags[:50], bridge._compiled._places[:52] = 1, 1
        assert bridge._compiled.draw_into(result, lower, upper) == drawn
        # Who was drawn anew is not left behind.
        assert bool(bridge._compiled._flags[:50].any() or bridge._compiled._places[:52].any()) == (drawn == 0)
        assert bridge._compiled.draw_into(result[::2], lower[::2], upper[::2]) == 0
    assert _FreshBridgeSampler(257, always, always, Keystream(bytes(48)))._compiled is None


@pytest.mark.parametrize("values", [2, 3])
def test_a_step_whose_digits_do_not_suffice_is_left_to_numpy(compiled: Kernel, values: int) -> None:
    """A chance whose first 72 binary digits are those that the keystream gives: the next ones decide, exactly."""
    seed = bytes(range(48))
    stream = Keystream(seed)
    first, words = np.empty(1, np.uint8), np.empty(2, np.uint64)
    stream.fill(first)
    stream.fill(words.view(np.uint8))
    tie, following = (int(word) for word in words)
    for step, flagged in [(1, True), (0, False)]:
        chance = (int(first[0]) + (tie + Fraction(following + step, ONE)) / ONE) / 256
        always = (
            BridgeMixture(1 - chance, chance, Fraction(0))
            if values == 2
            else BridgeMixture(chance, 1 - chance, Fraction(0))
        )
        source = Keystream(seed)
        bridge = _FreshBridgeSampler(values, always, always, source)
        lower, upper, result = (np.array([code], np.min_scalar_type(values - 1)) for code in (0, 1, 9))
        assert bridge._compiled is not None
        assert bridge._compiled.draw_into(result, lower, upper) == 0
        assert source.position == 0
        bridge.draw_into(result, lower, upper)
        assert result[0] == (flagged ^ (values == 2))


def test_a_step_goes_on_after_a_chunk_that_was_left_to_numpy(compiled: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of three chunks meets a tie with 72 binary digits; NumPy draws that one alone, from the same bytes."""
    top, count, stream = 77, 2 * FRESH_CHUNK + 1000, Keystream(bytes(range(48)))
    random = np.empty(FRESH_CHUNK, np.uint8)
    for _ in range(2):
        stream.fill(random)
        words = np.empty(np.count_nonzero(random == top), np.uint64)
        stream.fill(words.view(np.uint8))
    chance = (top + (int(words[3]) + Fraction(1, 3)) / ONE) / 256
    always = BridgeMixture(1 - chance, chance, Fraction(0))
    upper = np.random.default_rng(1).integers(0, 2, count).astype(np.uint8)
    lower = upper ^ np.uint8(1)
    drawn, sources = np.empty((2, count), np.uint8), [Keystream(stream.seed) for _ in range(2)]
    for result, source, setting in zip(drawn, sources, (compiled.name, "off"), strict=True):
        monkeypatch.setenv(SETTING, setting)
        bridge = _FreshBridgeSampler(2, always, always, source)
        if bridge._compiled is not None:
            assert bridge._compiled.draw_into(result, lower, upper) == FRESH_CHUNK
            source.position = 0
        bridge.draw_into(result, lower, upper)
    assert np.array_equal(*drawn)
    assert sources[0].position == sources[1].position


@pytest.mark.parametrize("setting", ["off", "compiled"])
def test_a_step_from_a_code_outside_of_the_alphabet_is_refused(
    compiled: Kernel, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, compiled.name if setting == "compiled" else setting)
    for values, place, end in product((2, 3, 255, 300), (0, 31, 40, 1024, FRESH_CHUNK + 4), (0, 1)):
        ends = np.full((2, FRESH_CHUNK + 5), values - 1, np.min_scalar_type(values))
        levels = Fraction(1, 3), Fraction(1, 2), TRUTH
        entropy = SeededEntropy(1)
        draw_fresh_bridge_reports(values, *levels, lower_reports=ends[0], upper_reports=ends[1], entropy=entropy)
        ends[end, place] = values
        with pytest.raises(ValueError, match="outside of the alphabet"):
            draw_fresh_bridge_reports(values, *levels, lower_reports=ends[0], upper_reports=ends[1], entropy=entropy)


def test_a_keystream_goes_on_where_somebody_else_read() -> None:
    whole, rest = np.empty(1000, np.uint8), np.empty(300, np.uint8)
    for counter in (bytes(16), b"\xff" * 16, bytes(8) + b"\xff" * 8):
        Keystream(bytes(32) + counter).fill(whole)
        for position in (1, 16, 17, 640):
            stream = Keystream(bytes(32) + counter)
            stream.fill(rest)
            stream.position = position
            stream.fill(rest)
            assert np.array_equal(rest, whole[position : position + 300])
            assert stream.position == position + 300


@pytest.mark.parametrize("counter", [b"\xff" * 16, bytes(8) + b"\xff" * 8])
def test_a_counter_that_overflows(compiled: Kernel, counter: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = np.random.default_rng(1).integers(0, 5, (2, 1000)).astype(np.uint8)
    some = BridgeMixture(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
    drawn = np.empty((2, 1000), np.uint8)
    for result, setting in zip(drawn, (compiled.name, "off"), strict=True):
        monkeypatch.setenv(SETTING, setting)
        _FreshBridgeSampler(5, some, some, Keystream(bytes(32) + counter)).draw_into(result, *ends)
    assert np.array_equal(*drawn)


def test_histograms_of_bytes(compiled: Kernel) -> None:
    random = np.random.default_rng(3)
    for size in (1, 2, 5, 17, 24, 25, 48, 49, 128, 255, 256):
        for count in (0, 1, 31, 32, 33, 255 * 32, 255 * 32 + 1, 30_000):
            codes = random.integers(0, size, count + 1).astype(np.uint8)[1:]
            expected = np.bincount(codes, minlength=size)
            assert np.array_equal(count_codes(codes, size), expected)
            if size <= 128:
                assert np.array_equal(count_codes(codes.view(np.int8), size), expected)
            for outside in (size, 255) if count and size < 256 else ():
                codes[count // 2] = outside
                with pytest.raises(ValueError, match="outside of the alphabet"):
                    count_codes(codes, size)
                if size <= 128:
                    with pytest.raises(ValueError, match="outside of the alphabet"):
                        count_codes(codes.view(np.int8), size)
    many = np.full(1_000_001, 3, np.uint8)  # more than a lane can count
    assert count_codes(many, 4).tolist() == [0, 0, 0, len(many)]
    assert count_codes(many, 200)[3] == len(many)


@pytest.mark.parametrize("width", [1, 3, 4, 15, 16, 17, 24, 33])
def test_text_of_numpy(compiled: Kernel, width: int) -> None:
    """Letters of all lengths up to the whole width, at odd places; what is not ASCII, and a NUL that is no end."""
    random = np.random.default_rng(width)
    texts = random.integers(1, 128, (300, width), np.uint32)
    texts[np.arange(width) >= random.integers(0, width + 1, 300)[:, None]] = 0
    cases = [texts, texts[:1], texts[299:], texts[:0]]
    for place, letter in product(range(width), (0x80, 0x100, 0x161, 0x10061, 0x1F600, 0x110061)):
        wrong = texts[:20].copy()
        wrong[19, : place + 1] = 97
        wrong[19, place] = letter
        cases.append(wrong)
    for place in range(width - 1):
        gap = texts[:20].copy()
        gap[7] = 97
        gap[7, place] = 0
        cases.append(gap)
    taken = 0
    for case in cases:
        part = np.frombuffer(b"\0" + case.tobytes(), np.uint8)[1:].view(f"<U{width}")
        made = _make_ascii_array(get_code_points(part)) if len(part) else None
        assert made is None or made.to_pylist() == part.tolist()
        taken += made is not None
    assert taken == 3  # there is nothing to convert in the last one


# What no random word meets, by words that are fed.


@pytest.fixture(scope="module", params=[1, 4, 8])
def fed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> ctypes.CDLL:
    """Return the walks of 1, 4 or 8 words at a time with prepared words in the place of a cipher."""
    flags = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    library = tmp_path_factory.mktemp("fed") / "fed.so"
    if "avx2" not in flags or not build.build_library(library, flags=[f"-DWORDS={request.param}"], sources=[FED]):
        missing("a C compiler and AVX2")
    if request.param == 8 and "avx512_vbmi2" not in flags:
        pytest.skip("this processor has no AVX-512")
    return ctypes.CDLL(str(library))


def fed_reports(fed: ctypes.CDLL, prepared: NDArray[np.uint64], level: int, values: int) -> NDArray[np.uint64]:
    objects, tries, _ = prepared.shape
    room = np.empty(prepared.size + 2, np.uint64)  # blocks are aligned
    aligned = room[room.ctypes.data % 16 // 8 :][: prepared.size]
    aligned[:] = prepared.reshape(-1)
    numbers, target = np.arange(objects, dtype=np.uint64), np.ones(objects, np.uint64)
    word = ctypes.c_uint64
    fed.fed_draw(
        ctypes.c_void_p(aligned.ctypes.data), word(objects), word(tries), word(level), word(values),
        ctypes.c_void_p(numbers.ctypes.data), ctypes.c_void_p(target.ctypes.data),
    )  # fmt: skip
    return target


@pytest.mark.parametrize("values", [2, 3, 2**63 + 1])
@pytest.mark.parametrize(
    "level",
    [1, 2**44 - 1, 2**44, 2**61 - 1, 2**61, ONE // 5, 2**62 - 1, 2**62, 2**63, 2**63 + 1, ONE - 1],
)
def test_words_that_lie_on_a_boundary(fed: ctypes.CDLL, level: int, values: int) -> None:
    """The last word that is accepted, the first that is rejected, the threshold itself, at every place of a group."""
    random = np.random.default_rng(level % 1000)
    limit, tries, objects = ONE - ONE % values, 12, 2100
    near = [level - 1, level, min(level + 1, ONE - 1), 2 * level % ONE, 3 * level % ONE]
    positions = np.array([0, 1, 2**63 - 1, 2**63, 2**63 + 1, ONE - 2, ONE - 1, *near], np.uint64)
    numbers = np.array([0, 1, values, limit - 1, limit % ONE, ONE - 1], np.uint64)
    prepared = np.stack([random.choice(each, (objects, tries)) for each in (positions, numbers)], axis=2)
    prepared[::3, :, 1] = random.integers(0, 2, (700, tries))  # not a rejected word in every walk
    prepared[:, -1] = 0  # the end of every path
    alone = [find_report(iterate_path_draws(each.tolist(), values), level, truth=1) for each in prepared]
    for first in (0, 1077):
        made = fed_reports(fed, prepared[first:], level, values)
        assert made.tolist() == alone[first:]


def test_remainders_at_their_edges(fed: ctypes.CDLL) -> None:
    """Multiples of a bound and the words beside them, for the smallest bounds and the largest."""
    random = np.random.default_rng(4)
    edges = [2**44, 2**44 + 1, 2**52 - 1, 2**52, 2**61, 2**62, 2**63 - 1, 2**63, 2**63 + 1, ONE - 1]
    bounds = np.concatenate([
        np.repeat(np.array(edges, np.uint64), 500),
        (np.exp2(random.uniform(44, 63.99, 100_000))).astype(np.uint64),
    ])  # fmt: skip
    runs = [int(random.integers(0, (ONE - 1) // int(bound) + 1)) for bound in bounds]
    words = np.array(
        [
            min(max(run * int(bound) + int(step), 0), ONE - 1)
            for run, bound, step in zip(runs, bounds, random.integers(-1, 2, len(bounds)), strict=True)
        ],
        np.uint64,
    )
    for digits in (0, 2, 3):
        large = np.flatnonzero(bounds > (ONE - 1) // 2**digits) if digits else np.arange(len(bounds))
        word, bound = (each[large[: len(large) // 8 * 8]] for each in (words, bounds))
        rests = np.empty_like(word)
        places: list[Any] = [ctypes.c_void_p(each.ctypes.data) for each in (word, bound, rests)]
        fed.fed_remainders(*places, ctypes.c_uint64(len(word)), digits)
        assert np.array_equal(rests, word % bound)


# Where it cannot be used.


@pytest.fixture
def unloaded() -> Iterator[None]:
    """Load the library anew, before and after."""
    c_library._load_kernel.cache_clear()
    yield
    c_library._load_kernel.cache_clear()


@pytest.mark.usefixtures("unloaded")
def test_without_a_library_numpy_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(c_library, "LIBRARY", tmp_path / "none.so")
    monkeypatch.delenv(SETTING, raising=False)
    assert get_kernel() is None
    assert c_library.get_sampler_name() == "numpy"
    monkeypatch.setenv(SETTING, "aesni")
    with refused(KernelError, says="is not available on this machine", asked="aesni"):
        get_kernel()
    monkeypatch.setenv(SETTING, "fast")
    with refused(KernelError, says="off, aesni, vaes, avx512 or neon"):
        get_kernel()


@pytest.mark.usefixtures("unloaded")
def test_a_library_of_other_sources_is_left_alone(compiled: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    c_library._load_kernel.cache_clear()
    monkeypatch.delenv(SETTING)
    monkeypatch.setattr(c_library, "_VERSION", c_library._VERSION + 1)
    assert get_kernel() is None


@pytest.mark.usefixtures("unloaded")
def test_a_library_that_draws_something_else_is_refused(compiled: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wrong in [("_NIST_CODE", bytes(16)), ("_PATH", {921569357186432047: 0})]:
        with monkeypatch.context() as patch:
            c_library._load_kernel.cache_clear()
            patch.setattr(self_test, name, wrong)
            with refused(KernelError, says="draws wrong reports"):
                get_kernel()


def test_without_a_compiler_nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for command in ("", "no-such-compiler"):
        monkeypatch.setenv("CC", command)
        assert not build.build_library(tmp_path / "kernel.so")
    monkeypatch.setenv("CC", "false")
    assert not build.build_library(tmp_path / "kernel.so")
    assert not [*tmp_path.iterdir()]


def test_what_is_called_has_a_version() -> None:
    """A library of other sources must not be loaded: whoever changes kernel.h gives it a new number."""
    header = (Path(c_library.__file__).parent / "kernel.h").read_bytes()
    assert hashlib.sha256(header).hexdigest()[:16] == "8d75228e862d2015"
    assert f"#define KERNEL_VERSION {c_library._VERSION}".encode() in header
