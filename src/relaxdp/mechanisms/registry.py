"""Mechanisms by the names that files, ledgers and campaigns use, with their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from relaxdp.errors import MechanismError
from relaxdp.mechanisms.base import Mechanism, check_option
from relaxdp.mechanisms.bloom import MAX_BITS, MAX_COHORTS, MAX_HASHES, Bloom, BloomShape
from relaxdp.mechanisms.categorical import Categorical, Unary
from relaxdp.mechanisms.local_hash import MAX_BUCKETS, LocalHash
from relaxdp.mechanisms.numeric import Numeric
from relaxdp.mechanisms.square_wave import MAX_PLACES, SquareWave
from relaxdp.theory.epsilon import Epsilon

Domain = Literal["values", "range", "words"]
"""What is declared: a list of values, a range of numbers, or nothing, because any word may occur."""


@dataclass(frozen=True, slots=True)
class MechanismOption:
    """A whole number that a mechanism takes in addition to its values or its range, and has as an attribute."""

    name: str
    meaning: str
    minimum: int
    maximum: int
    is_planned: bool = False
    """Whether it may be left out: then the last planned epsilon decides."""


@dataclass(frozen=True, slots=True)
class MechanismKind:
    """How a mechanism is created from its name, and how a form describes it."""

    name: str
    domain: Domain
    create: Callable[..., Mechanism]
    """Takes the values, the two ends of the range, or nothing; and the options as keywords."""
    meaning: str = ""
    options: tuple[MechanismOption, ...] = ()
    has_goal: bool = False
    """Whether the option `goal`, a word, says what the last planned epsilon chooses the options for."""
    title: str = ""
    """The name in the literature, for tables; without one, `name`."""
    short_name: str = ""
    """The abbreviation in the literature, for plans and commands; without one, `name`."""


def _create_bloom_from_options(**options: int) -> Bloom:
    return Bloom(BloomShape(**options))


BUILT_IN = (
    MechanismKind(
        "categorical", "values", Categorical, "the report is one of the answers",
        title="k-ary randomized response", short_name="k-ary",
    ),
    MechanismKind(
        "unary-optimised", "values", Unary, "a bit for each answer, for many answers",
        title="optimised unary encoding (OUE)", short_name="oue",
    ),
    MechanismKind(
        "unary-symmetric", "values", partial(Unary, optimised=False), "a bit for each answer, all alike",
        title="symmetric unary encoding (SUE)", short_name="sue",
    ),
    MechanismKind(
        "local-hash", "values", LocalHash, "a short hash, for very many answers",
        (MechanismOption("buckets", "Into how many buckets values are hashed.", 2, MAX_BUCKETS, is_planned=True),),
        title="local hashing (OLH)", short_name="olh",
    ),
    MechanismKind(
        "numeric", "range", Numeric, "the smallest or the largest number, for the mean",
        title="randomized rounding",
    ),
    MechanismKind(
        "numeric-missing", "range", partial(Numeric, missing=True), title="randomized rounding with missing values",
    ),
    MechanismKind(
        "wave", "range", SquareWave, "a place near the number, for the mean and the whole distribution",
        (
            MechanismOption("bins", "Into how many bins numbers are rounded.", 2, MAX_PLACES, is_planned=True),
            MechanismOption("window", "Over how many places a number is spread: a power of two.", 1, MAX_PLACES, True),
        ),
        has_goal=True, title="square wave",
    ),
    MechanismKind(
        "bloom", "words", _create_bloom_from_options, "a Bloom filter of a word that is looked for among candidates",
        (
            MechanismOption("bits", "How many bits a filter has.", 1, MAX_BITS),
            MechanismOption("hashes", "How many bits a word sets.", 1, MAX_HASHES),
            MechanismOption(
                "cohorts", "The number of cohorts of devices, each with its own hash functions.", 1, MAX_COHORTS
            ),
        ),
        title="RAPPOR",
    ),
)  # fmt: skip
_kinds = {kind.name: kind for kind in BUILT_IN}


def register_mechanism(kind: MechanismKind) -> None:
    """Make another mechanism known, so that released files and vaults find it by its name."""
    if _kinds.setdefault(kind.name, kind) is not kind:
        raise MechanismError(
            "A mechanism named {name!r} is registered already.",
            hint="Choose another `name` for your mechanism.",
            name=kind.name,
        )


def get_mechanism_kind(name: str) -> MechanismKind:
    """Return the kind of the mechanism with this name."""
    if name not in _kinds:
        known = ", ".join(sorted(_kinds))
        raise MechanismError("Unknown mechanism {name!r}.", hint="Choose one of {known}.", name=name, known=known)
    return _kinds[name]


def get_mechanism_title(name: str) -> str:
    """Return the name of a mechanism in the literature, such as 'k-ary randomized response' for 'categorical'."""
    kind = _kinds.get(parse_mechanism_name(name))
    return name if kind is None else kind.title or name


def get_short_name(name: str) -> str:
    """Return the abbreviation of a mechanism in the literature, such as 'oue' for 'unary-optimised'."""
    kind = _kinds.get(name)
    return name if kind is None else kind.short_name or name


def parse_mechanism_name(name: str) -> str:
    """Parse the name of a mechanism: return that in the stream and in files, such as 'unary-optimised' for 'oue'."""
    return next((kind.name for kind in _kinds.values() if kind.short_name and kind.short_name == name), name)


def create_mechanism(
    name: str,
    *,
    values: Sequence[Any] | None = None,
    range: tuple[float, float] | None = None,
    clip: bool = False,
    options: Mapping[str, Any] | None = None,
    epsilon: Epsilon | None = None,
) -> Mechanism:
    """Return a mechanism by its name and by what is declared.

    `epsilon` is the last one that is planned. It decides options that were not given.
    """
    kind, given = get_mechanism_kind(name), dict(options or {})
    is_declared = {"values": values is not None, "range": range is not None}
    if is_declared != {domain: domain == kind.domain for domain in is_declared}:
        raise MechanismError(
            "The mechanism {mechanism!r} works only with {domain}.",
            hint="Choose another mechanism, or pass what this one needs: values=['a', 'b'] or range=(0, 120).",
            mechanism=name,
            domain=_DOMAINS[kind.domain],
        )
    _check_options(kind, given)
    missing = [each.name for each in kind.options if each.name not in given and each.name != "bins"]
    if missing and epsilon is not None and all(each.is_planned for each in kind.options):
        given["epsilon"] = epsilon
    elif missing:
        raise MechanismError(
            "The mechanism {mechanism!r} needs the options {options}.",
            hint="Pass them, such as olh:buckets=16, or an epsilon that decides them, such as epsilon=2 (--epsilon 2).",
            options=", ".join(missing),
            mechanism=name,
        )
    if clip and kind.domain != "range":
        raise MechanismError(
            "The mechanism {mechanism!r} has no range to clip numbers to.",
            hint="Leave out `clip`, or use rx.Numeric(0, 120, clip=True).",
            mechanism=name,
        )
    if kind.domain == "range":
        assert range is not None  # noqa: S101 (checked above)
        return kind.create(*range, **given, **({"clip": True} if clip else {}))
    return kind.create(**given) if values is None else kind.create(values, **given)


def get_mechanism_arguments(mechanism: Mechanism) -> dict[str, Any]:
    """Return the arguments with which `create_mechanism` makes a mechanism again, without its name."""
    kind = get_mechanism_kind(mechanism.name)
    own: Any = mechanism
    return {
        "values": tuple(mechanism.labels) if kind.domain == "values" else None,
        "range": (own.low, own.high) if kind.domain == "range" else None,
        "clip": kind.domain == "range" and bool(own.clip),
        "options": {option.name: getattr(own, option.name) for option in kind.options},
    }


def _check_options(kind: MechanismKind, options: Mapping[str, Any]) -> None:
    known = {each.name: each for each in kind.options}
    names = [*known, "goal"] if kind.has_goal else list(known)
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise MechanismError(
            "The mechanism {mechanism!r} has no option {options}. Expected: {known}.",
            hint="Leave out {options}.",
            known=", ".join(names) or "no options",
            options=", ".join(unknown),
            mechanism=kind.name,
        )
    for name, option in known.items():
        if name in options:
            check_option(name, options[name], option.minimum, option.maximum)


_DOMAINS = {"values": "declared values", "range": "numbers in a range", "words": "words that are not declared"}
