"""Whether an encoding keeps its promise: all transcripts of a small instance, in fractions.

An encoding says how a truth becomes symbols and which threshold an epsilon has; nothing else stands between a truth and
its report. So a small instance can be enumerated: every word of what an object keeps, every report at three levels. The
largest ratio between two truths is then known exactly, and compared with e^epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from relaxdp.errors import MechanismError
from relaxdp.mechanisms.base import PUBLIC, Mechanism
from relaxdp.mechanisms.report_arrays import code_dtype
from relaxdp.sampling.keyed_stream import Purpose, Words
from relaxdp.theory.epsilon import Epsilon, as_epsilon, format_epsilon
from relaxdp.theory.level import compute_log_rounded_up
from relaxdp.theory.randomized_response import NOISE, compute_next_report_distribution

_FIX_THRESHOLD = "Correct `threshold` of the mechanism."
_SAME_WORDS = "Draw the same permanent words for every individual."
_FIX_SUPPORT = "Correct `support` of the mechanism."

Symbols = tuple[int, ...]
Transcript = tuple[int, ...]
Law = dict[Any, Fraction]

EPSILONS = ("0.5", "1", "3")
_ENDS = 3
"""A kept word is enumerated in its first and its last so many bits: that is where encodings look."""
_MAX_TRANSCRIPTS = 200_000
_MAX_WORDS = 1 << 16
_ALIKE = 1e-9


@dataclass(frozen=True, slots=True)
class Conformance:
    """The number of enumerated transcripts, and how much of epsilon they use."""

    epsilon: Decimal
    """The last level."""
    realised: Decimal
    """The logarithm of the largest ratio of any two truths' chances, rounded up: never above epsilon."""
    transcripts: int


def check_exactly(
    mechanism: Mechanism, values: Sequence[Any], *, epsilons: Sequence[Epsilon] = EPSILONS
) -> Conformance:
    """Enumerate all transcripts of a small mechanism at growing epsilons, and raise an error if they exceed epsilon.

    The permanent choices of an individual (a coin, a rounding, an offset) are made with every pattern of the first and
    last bits of a word. They must not depend on other bits: use multiples of 1/8 of a range.
    A public seed is drawn from some words, and epsilon must hold for each. Estimates must be unbiased, too.

    Args:
        mechanism: The mechanism, with few values.
        values: The true values that must be hidden from each other.
        epsilons: Growing levels.

    Raises:
        MechanismError: The reports reveal more than epsilon, or the mechanism miscounts.

    >>> from relaxdp.mechanisms.categorical import Categorical
    >>> found = check_exactly(Categorical(["a", "b", "c"]), ["a", "b", "c"])
    >>> found.transcripts, round(found.realised, 6)
    (27, Decimal('3.000000'))
    """
    exact = [as_epsilon(each) for each in epsilons]
    levels = [mechanism.level(each) for each in exact]
    size = mechanism.alphabet ** (mechanism.symbols * len(levels))
    if size > _MAX_TRANSCRIPTS:
        raise MechanismError(
            "The mechanism has {size:,} transcripts. The exact check covers at most {most:,}.",
            hint="Check a smaller instance, with fewer values or fewer levels.",
            size=size,
            most=_MAX_TRANSCRIPTS,
        )
    if any(old >= new for old, new in itertools.pairwise(levels)):
        raise MechanismError(
            "The thresholds do not grow with epsilon. A larger epsilon must have a larger threshold.",
            hint=_FIX_THRESHOLD,
        )
    keeps = [level.retention for level in levels]
    symbol_laws = [_symbol_law(mechanism, truth) for truth in values]
    realised = Decimal(0)
    for last in range(1, len(keeps) + 1):
        laws = [_transcript_law(mechanism, law, tuple(keeps[:last])) for law in symbol_laws]
        ratio = _largest_ratio(laws)
        realised = Decimal("Infinity") if ratio is None else compute_log_rounded_up(ratio, digits=60)
        if realised > exact[last - 1]:
            raise MechanismError(
                "The mechanism {mechanism!r} reveals more than it claims. At epsilon {epsilon}, the "
                "privacy loss of its reports is {realised}.",
                hint=_FIX_THRESHOLD,
                mechanism=mechanism.name,
                epsilon=format_epsilon(exact[last - 1]),
                realised="everything" if ratio is None else f"{realised:.6f}",
            )
        _check_unbiased(mechanism, values, symbol_laws, keeps[last - 1])
    return Conformance(exact[-1], realised, size)


def chain_law(values: int, levels: Sequence[Fraction], truth: int, step: Any = compute_next_report_distribution) -> Law:
    """Return the distribution of all reports of one symbol, by Algorithm 1, at retentions `levels`."""
    laws: Law = {(): Fraction(1)}
    old = NOISE
    for new in levels:
        following: defaultdict[Transcript, Fraction] = defaultdict(Fraction)
        for reports, probability in laws.items():
            last = reports[-1] if reports else 0
            for report, chance in enumerate(step(values, old, new, truth=truth, last=last)):
                following[*reports, report] += probability * chance
        laws, old = {key: chance for key, chance in following.items() if chance}, new
    return laws


class _Fed:
    """Kept words that are fed: one array for each purpose and symbol that is asked for."""

    def __init__(self, objects: int, words: dict[tuple[Purpose, bytes], Words] | None = None) -> None:
        self._objects, self._words = objects, words or {}
        self.asked: list[tuple[Purpose, bytes]] = []

    def words(self, purpose: Purpose, symbol: Words | int = 0) -> Words:
        """Return the words that are fed, zeros where nobody said which."""
        asked = np.unique(np.asarray(symbol, dtype=np.uint64))
        if len(asked) > 1:
            raise MechanismError(
                "The exact check does not cover this mechanism: a permanent word depends on another permanent word.",
                hint=_SAME_WORDS,
            )
        slot = (purpose, b"" if purpose in PUBLIC else asked.tobytes())
        if slot not in self.asked:
            self.asked.append(slot)
        return self._words.get(slot, np.zeros(self._objects, np.uint64))


def _patterns(middle: int) -> Words:
    """Return words with every pattern in their first and last bits, and ones or zeros between them."""
    ends = range(1 << _ENDS)
    between = ((1 << (64 - 2 * _ENDS)) - 1) * middle << _ENDS
    return np.array([high << (64 - _ENDS) | between | low for high in ends for low in ends], dtype=np.uint64)


def _symbol_law(encoding: Mechanism, truth: Any) -> Law:
    """Return the law of (seed, symbols before noise) of a truth, over all that an object keeps."""
    asked = _Fed(1)
    encoding.symbol_truths(encoding.truths([truth]), asked)
    encoding.seeds(asked)
    slots = asked.asked
    if (1 << 2 * _ENDS) ** len(slots) > _MAX_WORDS:
        raise MechanismError(
            "An individual keeps {words} permanent words, too many for the exact check.",
            hint="Check a smaller instance.",
            words=len(slots),
        )
    found = [_symbols(encoding, truth, slots, middle) for middle in (0, 1)]
    if found[0] != found[1]:
        raise MechanismError(
            "The symbols depend on more bits of a permanent word than the first and last {bits}.",
            hint="Choose other true values for the check.",
            bits=_ENDS,
        )
    law: defaultdict[Any, Fraction] = defaultdict(Fraction)
    for each in found[0]:
        law[each] += Fraction(1, len(found[0]))
    return dict(law)


def _symbols(encoding: Mechanism, truth: Any, slots: list[tuple[Purpose, bytes]], middle: int) -> list[Any]:
    # Public words are the same in both runs: of these any bit may be looked at, because the promise holds for each.
    grid = np.meshgrid(*(_patterns(0 if purpose in PUBLIC else middle) for purpose, _ in slots), indexing="ij")
    objects = grid[0].size if slots else 1
    permanent = _Fed(objects, {slot: words.reshape(-1) for slot, words in zip(slots, grid, strict=True)})
    symbols = encoding.symbol_truths(encoding.truths([truth] * objects), permanent)
    if symbols.shape != (objects, encoding.symbols) or int(symbols.max()) >= encoding.alphabet:
        raise MechanismError(
            "The symbols of a true value do not fit `symbols` and `alphabet` of the mechanism.",
            hint="Correct `symbol_truths` of the mechanism.",
        )
    seeds = encoding.seeds(permanent)
    if set(permanent.asked) != set(slots):
        raise MechanismError(
            "The exact check does not cover this mechanism: a permanent word depends on another permanent word.",
            hint=_SAME_WORDS,
        )
    public = [None] * objects if seeds is None else seeds.tolist()
    return [(seed, tuple(row)) for seed, row in zip(public, symbols.tolist(), strict=True)]


def _transcript_law(encoding: Mechanism, symbols: Law, keeps: tuple[Fraction, ...]) -> Law:
    """Return the law of (seed, all reports): symbols are blurred independently."""
    chains = [chain_law(encoding.alphabet, keeps, symbol) for symbol in range(encoding.alphabet)]
    law: defaultdict[Any, Fraction] = defaultdict(Fraction)
    for (seed, truths), chance in symbols.items():
        for parts in itertools.product(*(chains[symbol].items() for symbol in truths)):
            reports = tuple(part for part, _ in parts)
            law[seed, reports] += chance * prod((each for _, each in parts), start=Fraction(1))
    return dict(law)


def _largest_ratio(laws: Sequence[Law]) -> Fraction | None:
    """Return the largest ratio of a transcript's chances under two truths; None where one of them is 0."""
    largest = Fraction(1)
    for transcript in {transcript for law in laws for transcript in law}:
        chances = [law.get(transcript, Fraction(0)) for law in laws]
        if not min(chances):
            return None
        largest = max(largest, max(chances) / min(chances))
    return largest


def _reports(encoding: Mechanism) -> Iterator[Symbols]:
    return itertools.product(range(encoding.alphabet), repeat=encoding.symbols)


def _check_unbiased(encoding: Mechanism, truths: Sequence[Any], laws: Sequence[Law], keep: Fraction) -> None:
    """Refuse supports that are not as likely as is said, and means that are biased. With seeds it takes all of them."""
    if encoding.seeded:
        return
    codes = np.array(list(_reports(encoding)), dtype=code_dtype(encoding.alphabet))
    supports, said = encoding.supports(codes), encoding.support(keep)
    for truth, law in zip(truths, laws, strict=True):
        found = _transcript_law(encoding, law, (keep,))
        chances = [found.get((None, tuple((code,) for code in row)), Fraction(0)) for row in codes.tolist()]
        supported = [
            sum((chance for chance, is_supported in zip(chances, column, strict=True) if is_supported), Fraction(0))
            for column in supports.T.tolist()
        ]
        shares = [said.debias(chance) for chance in supported]
        measure = encoding.measure
        if measure is not None and measure.absent is not None:
            is_missing = truth is None or math.isnan(float(truth))
            if shares[measure.absent] != is_missing:
                raise MechanismError(
                    "`support` of the mechanism is wrong for a missing value, so estimates would be biased.",
                    hint=_FIX_SUPPORT,
                )
            if is_missing:
                continue
        if encoding.measure is not None:
            mean = float(sum(Fraction(w) * share for w, share in zip(encoding.measure.weights, shares, strict=True)))
            width = encoding.measure.most - encoding.measure.least
            within = min(max(float(truth), encoding.measure.least), encoding.measure.most)  # where it is clipped
            if abs(mean - within) > _ALIKE * width:
                raise MechanismError(
                    "The mean of this mechanism is biased.", hint="Correct `measure` or `support` of the mechanism."
                )
        elif encoding.domain == "values":
            own = int(encoding.truths([truth]).index[0])
            if shares != [Fraction(place == own) for place in range(len(shares))]:
                raise MechanismError(
                    "`support` of the mechanism is wrong for a value, so estimates would be biased.",
                    hint=_FIX_SUPPORT,
                )
