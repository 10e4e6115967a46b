"""`relaxdp plan`: two of half-width, objects and epsilon give the third; with a schedule, where to stop."""

from __future__ import annotations

import json
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from relaxdp.cli.options import JsonOption
from relaxdp.errors import PlanError
from relaxdp.estimation.planning import Asked, Step, epsilon_for, half_width, objects_for, steps
from relaxdp.estimation.schedules import Explicit, Geometric, Linear, NoisySampling, Schedule
from relaxdp.law.epsilon import as_epsilon, epsilon_text


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
    values: Annotated[int, typer.Option(help="How many values an answer can have.", show_default=False)],
    half_width: Annotated[float | None, typer.Option(help="The wanted half-width of an interval, like 0.01.")] = None,
    objects: Annotated[int | None, typer.Option(help="How many objects report.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The epsilon that is allowed.")] = None,
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
        ScheduleChoice | None, typer.Option(help="Show every step of a schedule, and where to stop.")
    ] = None,
    first: Annotated[str | None, typer.Option(help="First level of a linear or geometric schedule.")] = None,
    last: Annotated[str | None, typer.Option(help="Last level of a linear or geometric schedule.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of levels, or of noisy samples.")] = None,
    levels: Annotated[str | None, typer.Option(help="Levels of an explicit schedule, like 0.1,0.5,1.")] = None,
    alpha: Annotated[str | None, typer.Option(help="Noisy sampling: epsilon of the permanent response.")] = None,
    beta: Annotated[str | None, typer.Option(help="Noisy sampling: epsilon of one sample.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a release: half-width, objects or epsilon from the other two.

    With --schedule: how precise each of its levels will be, and at which one to stop. Plans never look at an answer.
    """
    asked: Asked = {
        "share": share,
        "confidence_level": confidence,
        "about": about.value,
        "simultaneous": simultaneous,
    }
    options = {"first": first, "last": last, "steps": steps, "levels": levels, "alpha": alpha, "beta": beta}
    given = {name: option for name, option in options.items() if option is not None}
    if schedule is not None:
        _plan_schedule(_schedule(schedule, given), half_width, objects, epsilon, values, asked, as_json)
        return
    if given:
        raise PlanError(f"--{next(iter(given))} belongs to a schedule: name one with --schedule.")
    _plan_third(half_width, objects, epsilon, values, asked, as_json)


def _schedule(kind: ScheduleChoice, given: dict[str, Any]) -> Schedule:
    needed = _NEEDED[kind]
    wrong = [name for name in needed if name not in given] + [name for name in given if name not in needed]
    if wrong:
        verb = "is missing" if wrong[0] in needed else "does not belong to it"
        listed = " and ".join(f"--{name}" for name in needed)
        raise PlanError(f"a schedule of kind {kind.value} needs {listed}: --{wrong[0]} {verb}.")
    if kind is ScheduleChoice.EXPLICIT:
        return Explicit([level.strip() for level in given["levels"].split(",")])
    if kind is ScheduleChoice.NOISY_SAMPLING:
        return NoisySampling(given["alpha"], given["beta"], given["steps"])
    return (Linear if kind is ScheduleChoice.LINEAR else Geometric)(given["first"], given["last"], given["steps"])


def _plan_third(
    width: float | None, objects: int | None, epsilon: str | None, values: int, asked: Asked, as_json: bool
) -> None:
    level = None if epsilon is None else as_epsilon(epsilon)
    if width is not None and objects is not None and level is None:
        found, level = "epsilon", epsilon_for(width, objects=objects, values=values, **asked)
    elif width is not None and level is not None and objects is None:
        found, objects = "objects", objects_for(width, epsilon=level, values=values, **asked)
    elif objects is not None and level is not None and width is None:
        found = "half_width"
    else:
        raise PlanError("give two of --half-width, --objects and --epsilon to get the third.")
    expected = half_width(objects=objects, values=values, epsilon=level, **asked)
    if as_json:
        answer = {"found": found, "epsilon": epsilon_text(level), "half_width": expected}
        _print_json(answer, width, objects, values, asked)
        return
    console, table = Console(), Table()
    for column in ("objects", "epsilon", "half-width"):
        is_found = column == found.replace("_", "-")
        table.add_column(f"{column} (found)" if is_found else column, justify="right")
    table.add_row(f"{objects:,}", epsilon_text(level), f"{expected:.4g}")
    console.print(_heading(objects, values, asked))
    console.print(table)


def _plan_schedule(
    schedule: Schedule,
    target: float | None,
    objects: int | None,
    epsilon: str | None,
    values: int,
    asked: Asked,
    as_json: bool,
) -> None:
    if objects is None or epsilon is not None:
        raise PlanError("a schedule is planned with --objects, and without --epsilon: its levels are the epsilons.")
    planned = steps(schedule, objects=objects, values=values, half_width=target, **asked)
    stop = next((step for step in planned if step.met), None)
    if as_json:
        rows = [{"epsilon": epsilon_text(s.epsilon), "half_width": s.half_width, "met": s.met} for s in planned]
        answer = {"steps": rows, "stop_at": None if stop is None else epsilon_text(stop.epsilon)}
        _print_json(answer, target, objects, values, asked)
        return
    console = Console()
    console.print(_heading(objects, values, asked))
    console.print(_step_table(planned, target))
    if target is not None:
        console.print(_advice(stop, target, objects, values, asked))


def _step_table(planned: list[Step], target: float | None) -> Table:
    table = Table()
    for column in ("step", "epsilon", "half-width"):
        table.add_column(column, justify="right")
    if target is not None:
        table.add_column(f"at most {target:g}")
    for place, step in enumerate(planned, 1):
        met = [] if step.met is None else ["yes" if step.met else "no"]
        table.add_row(str(place), epsilon_text(step.epsilon), f"{step.half_width:.4g}", *met)
    return table


def _advice(stop: Step | None, target: float, objects: int, values: int, asked: Asked) -> str:
    if stop is not None:
        return f"Stop at epsilon {epsilon_text(stop.epsilon)}: the half-width is {stop.half_width:.4g}."
    try:
        needed: Decimal = epsilon_for(target, objects=objects, values=values, **asked)
    except PlanError as problem:
        return f"No level of this schedule is precise enough: {problem.message}"
    return f"No level of this schedule is precise enough: it takes epsilon {epsilon_text(needed)}."


def _heading(objects: int, values: int, asked: Asked) -> str:
    share = "whatever the shares are" if asked["share"] is None else f"a share of {asked['share']:g}"
    subject = "these objects" if asked["about"] == "objects" else "the population"
    together = "all values at once" if asked["simultaneous"] else "each value"
    return (
        f"{objects:,} objects, {values} values, {share}; "
        f"{100 * asked['confidence_level']:g} % intervals of {together}, about {subject}."
    )


def _print_json(answer: dict[str, Any], target: float | None, objects: int, values: int, asked: Asked) -> None:
    typer.echo(json.dumps({**answer, "wanted_half_width": target, "objects": objects, "values": values, **asked}))
