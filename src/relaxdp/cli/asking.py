"""A release without enough options, at a terminal: the missing questions one by one, and the command they amount to.

Nothing is proposed that was read from a column: values, ranges and edges come from the person. Names of columns are
shown where they are a schema, and not where the first line of a file may be somebody's data.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from relaxdp.cli.commands import GroupedCommand
from relaxdp.errors import BudgetMissingError, RelaxdpError
from relaxdp.law.epsilon import epsilon_text

if TYPE_CHECKING:
    from relaxdp.table.calls import Released

_QUESTIONS = {
    "source": "Which table",
    "target": "Where does the released table go (a new file)",
    "column": "Which column is to be released",
    "id_column": "Which column holds the ids; one id is one person",
    "epsilon": "At which epsilon, like 0.5; a smaller one hides more",
}
_KEY = "Which key file (`relaxdp keygen FILE` makes one)"
_WHAT = ("values", "values_file", "public_values", "number_range", "bins", "value_map", "part")
_ASKED = "relaxdp.asked"


def is_interactive() -> bool:
    """Tell whether a person sits there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class AskingCommand(GroupedCommand):
    """A command that asks for what it needs and was not told; in a pipe it refuses, as every other one does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; where one is missing, ask for it and read them again."""
        if (
            ctx.resilient_parsing or not is_interactive()
        ):  # a shell that completes a line has a terminal, and no answers
            return super().parse_args(ctx, args)
        words, asked = list(args), False
        while True:
            try:
                rest = super().parse_args(ctx, list(words))
                break
            except Exception as problem:
                parameter = getattr(problem, "param", None)
                question = _QUESTIONS.get(getattr(parameter, "name", ""))
                is_missing = type(problem).__name__ == "MissingParameter"  # typer keeps its own to itself
                if not is_missing or question is None:
                    raise
                words, asked = [*words, *_answer(parameter, question, ctx.params.get("source"))], True
        if not ctx.params.get("key") and not ctx.params.get("key_command"):
            words, asked = [*words, "--key", typer.prompt(_KEY, err=True)], True
            rest = super().parse_args(ctx, list(words))
        if not any(ctx.params.get(name) for name in _WHAT):
            words, asked = [*words, *_what_it_can_be(ctx.params["column"])], True
            rest = super().parse_args(ctx, list(words))
        ctx.meta[_ASKED] = words if asked else None
        return rest


def _answer(parameter: Any, question: str, source: str | None) -> list[str]:
    if parameter.name in ("column", "id_column") and source is not None:
        _show_columns(source)
    told = typer.prompt(question, err=True)
    return [told] if parameter.param_type_name == "argument" else [parameter.opts[0], told]


def _show_columns(source: str) -> None:
    from relaxdp.table.formats import Input  # noqa: PLC0415 (slow to import)

    with suppress(RelaxdpError, OSError):
        names = Input(Path(source)).names
        if names.seen_in is None:
            typer.echo(f"The table has: {', '.join(map(str, names.names))}", err=True)


def _what_it_can_be(columns: list[str]) -> list[str]:
    """Ask what the truth can be, in the words of the options."""
    named = " and ".join(map(repr, columns))
    kinds = "values (v), numbers whose mean is wanted (n), or classes of numbers (c)"
    kind = typer.prompt(f"Does {named} hold {kinds}", err=True).strip().lower()[:1]
    if kind == "n":
        words = ["--range", typer.prompt("The smallest number that is possible", err=True)]
        words.append(typer.prompt("The largest number that is possible", err=True))
        if typer.confirm("Put numbers outside of that into it?", err=True):
            words.append("--clip")
        return [*words, "--missing"] if typer.confirm("May numbers be missing?", err=True) else words
    if kind == "c":
        return ["--bins", typer.prompt("The edges of the classes, like 18,30,65", err=True)]
    words = []
    for column in columns:
        told = typer.prompt(f"All values that {column!r} can have, like a,b,c", err=True)
        words += ["--values", told if len(columns) == 1 else f"{column}={told}"]
    return words


def agreed_budget(context: typer.Context, quote: Callable[[Any], Released] | None, budget: str | None) -> str | None:
    """Show the command and its cost to a person who was asked, and return the budget; else that which was said.

    Without a ledger there is no `quote`.
    """
    words = context.meta.get(_ASKED)
    if words is None:
        return budget
    try:
        quoted = None if quote is None else quote(budget)
    except BudgetMissingError:
        budget = typer.prompt("There is no budget yet. What may everything together cost, like 2", err=True)
        words = [*words, "--budget", str(budget)]
        quoted = None if quote is None else quote(budget)
    typer.echo(f"This is the same as:\n  relaxdp release {shlex.join(words)}", err=True)
    if quoted is not None and quoted.charges:
        last = quoted.charges[-1]
        costs = " and ".join(epsilon_text(charge.cost) for charge in quoted.charges)
        spent, whole = epsilon_text(last.spent_after), epsilon_text(last.budget)
        typer.echo(f"It costs {costs}; then {spent} of the budget {whole} are spent, for good.", err=True)
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(1)
    return budget
