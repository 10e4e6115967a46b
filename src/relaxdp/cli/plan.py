"""`relaxdp plan`: two of half-width, objects and epsilon give the third; with a schedule, where to stop."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from relaxdp.cli.options import JsonOption, encoding_and_options
from relaxdp.cli.render import show_json
from relaxdp.errors import PlanError
from relaxdp.estimation.advice import NUMBER_ENCODINGS
from relaxdp.estimation.planning import Asked, Plan, Step, epsilon_for
from relaxdp.estimation.planning import plan as plan_release
from relaxdp.estimation.schedules import Explicit, Geometric, Linear, NoisySampling, Schedule
from relaxdp.estimation.sides import Numbers, Planned
from relaxdp.law.epsilon import epsilon_text
from relaxdp.mechanisms import mechanism

_STEPS = "A schedule of levels"


class AboutChoice(StrEnum):
    """What an interval is about."""

    OBJECTS = "objects"
    POPULATION = "population"


class ScheduleChoice(StrEnum):
    """The schedules that can be written on the command line."""

    EXPLICIT = "explicit"
    LINEAR = "linear"
    GEOMETRIC = "geometric"
    NOISY_SAMPLING = "noisy-sampling"


_NEEDED = {
    ScheduleChoice.EXPLICIT: ("levels",),
    ScheduleChoice.LINEAR: ("first", "last", "steps"),
    ScheduleChoice.GEOMETRIC: ("first", "last", "steps"),
    ScheduleChoice.NOISY_SAMPLING: ("alpha", "beta", "steps"),
}


def plan(
    values: Annotated[int | None, typer.Option(help="How many values an answer can have.")] = None,
    number_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", help="Answers are numbers from LOW to HIGH, for means."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="How answers become reports, like local-hash:buckets=16 or wave:bins=32  [default: auto]"),
    ] = None,
    half_width: Annotated[float | None, typer.Option(help="The wanted half-width of an interval, like 0.01.")] = None,
    objects: Annotated[int | None, typer.Option(help="How many objects report.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The epsilon that is allowed.")] = None,
    cross: Annotated[
        int | None, typer.Option(help="How many values a second column has: plan a two-way table.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="The share that is expected; without it, the plan holds for every share.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="The confidence level of the interval.")] = 0.95,
    about: Annotated[
        AboutChoice, typer.Option(help="These objects, or the population that they are a sample of.")
    ] = AboutChoice.OBJECTS,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all values at once.")
    ] = False,
    schedule: Annotated[
        ScheduleChoice | None,
        typer.Option(help="Show every step of a schedule, and where to stop.", rich_help_panel=_STEPS),
    ] = None,
    first: Annotated[
        str | None, typer.Option(help="First level of a linear or geometric schedule.", rich_help_panel=_STEPS)
    ] = None,
    last: Annotated[
        str | None, typer.Option(help="Last level of a linear or geometric schedule.", rich_help_panel=_STEPS)
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of levels, or of noisy samples.", rich_help_panel=_STEPS)
    ] = None,
    levels: Annotated[
        str | None, typer.Option(help="Levels of an explicit schedule, like 0.1,0.5,1.", rich_help_panel=_STEPS)
    ] = None,
    alpha: Annotated[
        str | None, typer.Option(help="Noisy sampling: epsilon of the permanent response.", rich_help_panel=_STEPS)
    ] = None,
    beta: Annotated[
        str | None, typer.Option(help="Noisy sampling: epsilon of one sample.", rich_help_panel=_STEPS)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a release: half-width, objects or epsilon from the other two.

    From --objects alone: a table of the usual levels. With --schedule: how precise each of its levels will be, and at
    which one to stop. Plans never look at an answer.
    """
    asked: Asked = {
        "share": share,
        "confidence_level": confidence,
        "about": about.value,
        "simultaneous": simultaneous,
        "cross": cross,
    }
    options = {"first": first, "last": last, "steps": steps, "levels": levels, "alpha": alpha, "beta": beta}
    given = {name: option for name, option in options.items() if option is not None}
    if schedule is None and given:
        raise PlanError("--{given} belongs to a schedule: name one with --schedule.", given=next(iter(given)))
    chosen = None if schedule is None else _schedule(schedule, given)
    of = _planned(values, number_range, encoding, epsilon)
    if isinstance(of, int | Numbers):
        asked["encoding"] = "auto" if encoding is None else encoding_and_options(encoding)[0]
    wanted: Any = {"values": of, "half_width": half_width, "objects": objects, "epsilon": epsilon}
    made = plan_release(**wanted, schedule=chosen, **asked)
    if as_json:
        what: dict[str, Any] = {"values": values} if number_range is None else {"range": number_range}
        chosen_name = made.encoding if encoding is None else encoding
        what = what if chosen_name is None else {**what, "encoding": chosen_name}
        show_json({**_answer(made), "wanted_half_width": half_width, "objects": made.objects, **asked, **what})
        return
    console = Console()
    console.print(_heading(made.objects, values, number_range, encoding or made.encoding, asked))
    console.print(_third(made) if made.epsilon is not None else _step_table(list(made.steps), half_width))
    if schedule is not None and half_width is not None:
        console.print(_advice(made.stop, half_width, made.objects, of, asked))


def _planned(
    values: int | None, number_range: tuple[float, float] | None, encoding: str | None, epsilon: str | None
) -> Planned:
    """Return what is planned: the plain number of values, numbers, or a mechanism with options."""
    if (values is None) == (number_range is None):
        raise PlanError("say what can be answered: --values, how many there are, or --range.")
    if values is not None and ":" not in (encoding or ""):
        return values
    name, options = encoding_and_options(encoding or "auto")
    if number_range is not None and name in ("auto", *NUMBER_ENCODINGS) and not set(options) - {"bins"}:
        return Numbers(*number_range, **options)
    declared = {"range": number_range} if values is None else {"values": range(values)}
    asked: Any = {**declared, **options}
    return mechanism(encoding=name, epsilon=epsilon, **asked)


def _answer(made: Plan) -> dict[str, Any]:
    if made.epsilon is not None:
        return {"found": made.found, "epsilon": epsilon_text(made.epsilon), "half_width": made.half_width}
    rows = [
        {"epsilon": epsilon_text(step.epsilon), "half_width": step.half_width, "met": step.met}
        | ({} if step.encoding is None else {"encoding": step.encoding})
        for step in made.steps
    ]
    return {"steps": rows, "stop_at": None if made.stop is None else epsilon_text(made.stop.epsilon)}


def _third(made: Plan) -> Table:
    assert made.epsilon is not None  # noqa: S101
    table = Table()
    for column in ("objects", "epsilon", "half-width"):
        is_found = column == made.found.replace("_", "-")
        table.add_column(f"{column} (found)" if is_found else column, justify="right")
    table.add_row(f"{made.objects:,}", epsilon_text(made.epsilon), f"{made.half_width:.4g}")
    return table


def _schedule(kind: ScheduleChoice, given: dict[str, Any]) -> Schedule:
    needed = _NEEDED[kind]
    wrong = [name for name in needed if name not in given] + [name for name in given if name not in needed]
    if wrong:
        verb = "is missing" if wrong[0] in needed else "does not belong to it"
        listed = " and ".join(f"--{name}" for name in needed)
        raise PlanError(
            "a schedule of kind {kind} needs {listed}: --{wrong} {verb}.",
            kind=kind.value,
            listed=listed,
            wrong=wrong[0],
            verb=verb,
        )
    if kind is ScheduleChoice.EXPLICIT:
        return Explicit([level.strip() for level in given["levels"].split(",")])
    if kind is ScheduleChoice.NOISY_SAMPLING:
        return NoisySampling(given["alpha"], given["beta"], given["steps"])
    return (Linear if kind is ScheduleChoice.LINEAR else Geometric)(given["first"], given["last"], given["steps"])


def _step_table(planned: list[Step], target: float | None) -> Table:
    table = Table()
    for column in ("step", "epsilon", "half-width"):
        table.add_column(column, justify="right")
    if target is not None:
        table.add_column(f"at most {target:g}")
    if any(step.encoding for step in planned):
        table.add_column("encoding")
    for place, step in enumerate(planned, 1):
        words = [] if step.met is None else ["yes" if step.met else "no"]
        words += [] if step.encoding is None else [step.encoding]
        table.add_row(str(place), epsilon_text(step.epsilon), f"{step.half_width:.4g}", *words)
    return table


def _advice(stop: Step | None, target: float, objects: int, values: Planned, asked: Asked) -> str:
    if stop is not None:
        return f"Stop at epsilon {epsilon_text(stop.epsilon)}: the half-width is {stop.half_width:.4g}."
    try:
        needed: Decimal = epsilon_for(target, objects=objects, values=values, **asked)
    except PlanError as problem:
        return f"No level of this schedule is precise enough: {problem.message}"
    return f"No level of this schedule is precise enough: it takes epsilon {epsilon_text(needed)}."


def _heading(
    objects: int, values: int | None, ends: tuple[float, float] | None, encoding: str | None, asked: Asked
) -> str:
    share = "whatever the shares are" if asked["share"] is None else f"a share of {asked['share']:g}"
    answers = f"{values} values"
    subject = "these objects" if asked["about"] == "objects" else "the population"
    together = "all values at once" if asked["simultaneous"] else "each value"
    if ends is not None:
        answers, share, together = f"numbers from {ends[0]:g} to {ends[1]:g}", "whatever they are", "the mean"
    if asked["cross"] is not None:
        answers += f" by {asked['cross']}"
        together = "all pairs at once" if asked["simultaneous"] else "each pair"
    answers += "" if encoding is None else f" as {encoding}"
    return (
        f"{objects:,} objects, {answers}, {share}; "
        f"{100 * asked['confidence_level']:g} % intervals of {together}, about {subject}."
    )
