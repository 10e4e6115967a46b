"""`relaxdp plan`: two of margin, n and epsilon give the third; with a schedule, where to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from relaxdp.cli import options, results
from relaxdp.errors import PlanError
from relaxdp.estimation.mechanism_choice import NUMBER_MECHANISMS
from relaxdp.estimation.planning import Plan, PlannedRange, PlannedValues, PlanOptions, find_epsilon
from relaxdp.estimation.planning import plan as plan_release
from relaxdp.mechanisms.registry import create_mechanism, get_mechanism_title
from relaxdp.theory.epsilon import format_epsilon


def plan(
    values: Annotated[int | None, typer.Option(help="The number of values that an answer can have.")] = None,
    number_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="Answers are numbers from LOW to HIGH, for means.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Mechanism, like k-ary, oue, olh:buckets=16 or wave:bins=32  [default: the best]")
    ] = None,
    margin: Annotated[float | None, typer.Option(help="The margin of error that you want, like 0.01.")] = None,
    n: Annotated[int | None, typer.Option(help="The number of individuals.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The level, like 0.5.")] = None,
    crosstab: Annotated[
        int | None, typer.Option(help="The number of values of a second column: plan a crosstab.")
    ] = None,
    share: Annotated[float | None, typer.Option(help="The share that you expect  [default: the worst case]")] = None,
    confidence_level: options.ConfidenceOption = 0.95,
    about: options.AboutOption = "sample",
    simultaneous: options.SimultaneousOption = False,
    schedule: options.ScheduleOption = None,
    plot: options.PlotOption = None,
    as_json: options.JsonOption = False,
    as_csv: options.CsvOption = False,
) -> None:
    """Plan a release: give two of margin, n and epsilon, and get the third.

    From --n alone, print a table of the usual levels. With --schedule, print the margin of error at each of its
    levels, and at which one to stop. A plan never looks at an answer.

    Example: relaxdp plan --values 5 --n 100000 --margin 0.01
    """
    output = results.OutputOptions(as_json, as_csv, plot)
    plan_options: PlanOptions = {
        "share": share,
        "confidence_level": confidence_level,
        "about": about,
        "simultaneous": simultaneous,
        "crosstab": crosstab,
    }
    name, settings = options.parse_mechanism(mechanism or "auto")
    of = _parse_planned_answers(values, number_range, name, settings, epsilon)
    wanted: Any = {"range": (of.low, of.high), "bins": of.bins} if isinstance(of, PlannedRange) else {"values": of}
    wanted |= {"margin": margin, "n": n, "epsilon": epsilon, **plan_options}
    document: dict[str, Any] = dict(plan_options)
    if isinstance(of, int | PlannedRange):
        wanted["mechanism"] = plan_options["mechanism"] = document["mechanism"] = name
    made = plan_release(**wanted, schedule=None if schedule is None else options.parse_schedule(schedule))
    if plot is not None:
        results.plot_plan(plot, made.levels, margin)
    document |= {"values": values} if number_range is None else {"range": number_range}
    if mechanism or made.mechanism:
        document["mechanism"] = mechanism or made.mechanism
    heading = _format_plan_heading(made.n, values, number_range, mechanism or made.mechanism, plan_options)
    advice = _advise_stop_level(made, margin, of, plan_options) if schedule is not None and margin is not None else []
    results.print_result(_make_plan_view(made, heading, margin, document, advice), output)


def _parse_planned_answers(
    values: int | None,
    number_range: tuple[float, float] | None,
    name: str,
    settings: dict[str, Any],
    epsilon: str | None,
) -> PlannedValues:
    """Return what is planned: the number of values, a range of numbers, or a mechanism with settings."""
    if (values is None) == (number_range is None):
        raise PlanError(
            "A plan needs exactly one of --values and --range, to know what an answer can be.",
            hint="Pass the number of values, such as --values 5, or a range of numbers, such as --range 0 120.",
        )
    if values is not None and not settings:
        return values
    if number_range is not None and name in ("auto", *NUMBER_MECHANISMS) and not set(settings) - {"bins"}:
        return PlannedRange(*number_range, **settings)
    declared: Any = {"range": number_range} if values is None else {"values": range(values)}
    return create_mechanism(name, options=settings, epsilon=epsilon, **declared)


def _make_plan_view(
    plan: Plan, heading: str, margin: float | None, document: dict[str, Any], advice: Sequence[str]
) -> results.PrintableResult:
    steps = plan.levels
    names = {each: f"{each} (found)" if each == plan.found else each for each in ("n", "epsilon", "margin")}
    has_target, has_mechanism = (
        any(step.is_precise is not None for step in steps),
        any(step.mechanism for step in steps),
    )
    records = [
        {"n": plan.n, "epsilon": format_epsilon(step.epsilon), "margin": step.margin, "met": step.is_precise}
        | ({"mechanism": step.mechanism} if has_mechanism else {})
        for step in steps
    ]
    rows = [
        results.TableRow(
            (format_epsilon(step.epsilon), *([get_mechanism_title(step.mechanism or "")] if has_mechanism else [])),
            (f"{plan.n:,}", f"{step.margin:.4g}", *(["yes" if step.is_precise else "no"] if has_target else [])),
        )
        for step in steps
    ]
    if plan.epsilon is not None:
        found: dict[str, Any] = {"found": plan.found, "epsilon": format_epsilon(plan.epsilon), "margin": plan.margin}
    else:
        stop = None if plan.first_precise_level is None else format_epsilon(plan.first_precise_level.epsilon)
        found = {"steps": [{k: v for k, v in each.items() if k != "n"} for each in records], "stop_at": stop}
    return results.PrintableResult(
        heading,
        (names["epsilon"], *(["mechanism"] if has_mechanism else [])),
        (names["n"], names["margin"], *([f"at most {margin:g}"] if has_target else [])),
        rows,
        {**found, "wanted_margin": margin, "n": plan.n, **document},
        records,
        advice,
    )


def _advise_stop_level(plan: Plan, margin: float, values: PlannedValues, settings: PlanOptions) -> list[str]:
    stop = plan.first_precise_level
    if stop is not None:
        return [f"Stop at epsilon {format_epsilon(stop.epsilon)}: the margin of error is {stop.margin:.4g}."]
    try:
        epsilon = find_epsilon(margin, n=plan.n, planned_values=values, **settings)
        needed = f"it takes epsilon {format_epsilon(epsilon)}."
    except PlanError as problem:
        needed = problem.message
    return [f"No level of this schedule is precise enough: {needed}"]


def _format_plan_heading(
    n: int,
    n_values: int | None,
    value_range: tuple[float, float] | None,
    mechanism: str | None,
    plan_options: PlanOptions,
) -> str:
    share = "whatever the shares are" if plan_options["share"] is None else f"a share of {plan_options['share']:g}"
    answers = f"{n_values} values"
    subject = "these individuals" if plan_options["about"] == "sample" else "the population"
    together = "all values at once" if plan_options["simultaneous"] else "each value"
    if value_range is not None:
        answers, share = f"numbers from {value_range[0]:g} to {value_range[1]:g}", "whatever they are"
        together = "the mean"
    if plan_options["crosstab"] is not None:
        answers += f" by {plan_options['crosstab']}"
        together = "all pairs at once" if plan_options["simultaneous"] else "each pair"
    if mechanism is not None:
        name, _, details = mechanism.partition(":")
        answers += f" as {get_mechanism_title(name)}" + (f" with {details}" if details else "")
    return (
        f"{n:,} individuals, {answers}, {share}; "
        f"{100 * plan_options['confidence_level']:g} % intervals of {together}, about {subject}."
    )
