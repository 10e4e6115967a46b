"""What travels over HTTP of estimates: which one is asked for, and what it says."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from relaxdp.collector.wire import State
from relaxdp.service.wire import About, Label, Method, Target


class Row(Struct, frozen=True, omit_defaults=True):
    """One estimated number with its interval."""

    value: Label | float
    estimate: float
    std_error: float | None
    low: float
    high: float
    beyond: Literal["below", "above"] | UnsetType = UNSET
    """Where the number lies below or above what can be told at this level; the interval is then only a bound."""
    share: float | UnsetType = UNSET
    p_value: float | UnsetType = UNSET
    found: bool | UnsetType = UNSET


QUANTILES = r"^0?[.]\d*[1-9]\d*(,0?[.]\d*[1-9]\d*)*$"
"""Numbers between 0 and 1, such as 0.1,0.5,0.9."""


class Quantile(Struct, frozen=True):
    """The number below which this share of all numbers lies, with its interval."""

    probability: float
    estimate: float
    low: float
    high: float


class LevelEstimate(Struct, frozen=True):
    """The estimate from all reports at one level, also of devices that have moved on to a higher one."""

    epsilon: str
    threshold: str
    devices: int
    """How many devices have this level as their highest."""
    reports: int
    rows: list[Row]


class Unlisted(Struct, frozen=True):
    """The share of devices whose word is not among the candidates."""

    estimate: float
    std_error: float


class MadeUp(Struct, frozen=True):
    """How many devices break the law of honest reports, at least, with a 95 % interval."""

    estimate: float
    low: float
    high: float


class PushedValue(Struct, frozen=True):
    """A value that is not reported as honest devices report it."""

    value: Label | float
    kind: Literal["repeated", "changed", "older"]
    """Whether it is sent again too often, or too seldom, or too often before another one."""
    devices: MadeUp


class Reach(Struct, frozen=True):
    """What one device can move that makes up its newest report and is not noticed, counted in honest devices."""

    epsilon: str
    most: float
    at_once: str


class Integrity(Struct, frozen=True):
    """Whether reports were made up: older reports of honest devices have a known law, given their newer ones."""

    tested: int
    """How many devices have two reports or more; of the others nothing is known."""
    untested: int
    alarm: bool
    false_alarms: float
    """At most this share of honest campaigns ever raises an alarm, however often somebody looks."""
    p_value: float
    """At a single look that was planned before."""
    p_value_ever: float
    """However often somebody looks."""
    unnoticed: int
    """About how many of the tested devices can repeat every report before half of such campaigns raise an alarm."""
    made_up: MadeUp
    pushed: list[PushedValue]
    shares: list[Row] | None
    """What the tested devices say, made-up reports included; None where values are not told apart."""
    without: list[Row] | None
    """What they say without the made-up reports, if there is an alarm; these intervals hold for all values at once."""
    reach: Reach | None
    limits: list[str]
    """What must be said wherever this is shown."""


class Estimate(Struct, frozen=True):
    """Estimates per level and pooled."""

    campaign: str
    version: int
    devices: int
    state: State
    open_level: int | None
    half_width: float | None
    target: Target | None
    target_met: bool
    method: Method
    confidence_level: float
    about: About
    simultaneous: bool
    """Which intervals these are: of all values at once, always where only the largest are shown, or of each alone."""
    values: int
    """How many rows there are in all, of which the largest may have been asked for; 0 before the first report."""
    levels: list[LevelEstimate]
    pooled: list[Row] | None
    unlisted: Unlisted | None
    quantiles: list[Quantile] | None
    """Where they were asked for and the reports tell them; their intervals cover at least at the confidence level."""
    integrity: Integrity | None
    """None where a campaign has one level: then no device can be tested."""


class EstimateOptions(Struct, frozen=True):
    """Which estimate is asked for."""

    method: Method = "average"
    confidence_level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    about: About = "sample"
    simultaneous: bool = False
    largest: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    quantiles: Annotated[str, Meta(pattern=QUANTILES, max_length=200)] | UnsetType = UNSET
