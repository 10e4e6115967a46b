"""How every command reads: its help with panels and an example, names for what an option takes, and usage errors."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp import __version__
from relaxdp.cli.terminal import IS_QUIET, print_note
from relaxdp.errors import ArgumentError, RelaxdpError

_METAVARS = {
    "NUMBER": "budget epsilon planned_epsilon",
    "NUMBERS": "levels",
    "LOW HIGH": "number_range",
    "NAME": "by column crosstab encoding id_column method name only passthrough population",
    "VALUES": "values",
    "FILE": "values_file",
    "FOLDER": "folder out",
    "FILE|URL": "db ledger",
    "URL": "embed master server",
    "HOST": "host trusted_proxy",
    "TIME": "opens closes",
    "PRICES": "prices",
    "FORMULA": "formula",
    "REASON": "reason",
    "DIGITS": "public_key",
}
_USAGE_WORDS = {
    "Input should be a valid integer": "expected a whole number",
    "Input should be a valid number": "expected a number",
    "Input should be greater": "expected a number greater",
}
_METAVAR_BY_NAME = {name: word for word, names in _METAVARS.items() for name in names.split()}


def _get_metavar(parameter: Any) -> str:
    """Return the placeholder of a parameter in the help: by its name, or else by its type."""
    kind = str(parameter.type_descriptor.annotation)
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    if "int" in kind or ("float" in kind and "tuple" not in kind):
        return "NUMBER"
    return _METAVAR_BY_NAME.get(parameter.name, "FILE" if "Path" in kind else "TEXT")


class _HelpWithExample:
    """Help whose last section is the `Example:` of the docstring, line by line."""

    help: str | None

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.help, _, example = (self.help or "").partition("\n\nExample: ")
        self.example = [line.strip() for line in example.splitlines()]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.example:
            with formatter.section("Example"):
                for before, line in zip(("", *self.example), self.example, strict=False):
                    indent = formatter.current_indent + (2 if before.endswith("\\") else 0)
                    formatter.write(f"{'':{indent}}{line}\n")


class _PanelCommand(_HelpWithExample, TyperCommand):
    """A command whose help shows related options in a panel with a heading."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **settings)
        parameters: list[Any] = list(self.params)
        for each in parameters:
            if each.metavar is None and not getattr(each, "is_flag", False) and not each.type_descriptor.is_choice:
                each.metavar = _get_metavar(each)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Typer puts braces around required arguments.
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and then the panels in the order in which they first occur."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel, (name, text) = "Options", record
                if parameter.param_type_name == "argument":  # Typer adds a type of Python to its name.
                    panel, name = "Arguments", name.partition(" <")[0]
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or panel, []).append((name, text))
        for heading, records in panels.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class _PanelGroup(_HelpWithExample, TyperGroup):
    """A group of commands that lists the whole first sentence of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, (each.help or "").partition("\n\n")[0]) for name, each in self.commands.items()])


class CommandGroup(typer.Typer):
    """A group of commands with panels, examples, --quiet and --verbose."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": _PanelGroup, "no_args_is_help": True, "rich_markup_mode": None, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command; the function itself stays what it was."""
        add = super().command(name, **{"cls": _PanelCommand, **settings})

        def register(function: Any) -> Any:
            add(add_verbosity_options(function))
            return function

        return register


_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
_Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print what draws, how long it took, and the fields of an error.")
]


def add_verbosity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that also takes --quiet and --verbose."""

    @wraps(command)
    def run(*, quiet: bool, verbose: bool, **arguments: Any) -> Any:
        if quiet and verbose:
            raise ArgumentError("--quiet and --verbose cannot be combined.", hint="Leave one of them out.")
        before = IS_QUIET.set(quiet)
        try:
            with _print_version_and_duration() if verbose else nullcontext():
                return command(**arguments)
        finally:
            IS_QUIET.reset(before)

    wrapped: Any = run
    shown = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", _Quiet), ("verbose", _Verbose))
    ]
    wrapped.__signature__ = shown.replace(parameters=[*shown.parameters.values(), *added])
    wrapped.__annotations__ = {each.name: each.annotation for each in wrapped.__signature__.parameters.values()}
    return run


@contextmanager
def _print_version_and_duration() -> Iterator[None]:
    from relaxdp.sampling.kernel.c_library import get_sampler_name  # noqa: PLC0415 (importing it takes time)

    print_note(f"relaxdp {__version__}, drawn by {get_sampler_name()}")
    began = time.monotonic()
    try:
        yield
    except RelaxdpError as problem:
        fields = "".join(f", {name}={value!r}" for name, value in problem.fields.items())
        print_note(f"rejected: {problem.code}{fields}")  # fields hold no secret, see `errors`
        raise
    finally:
        print_note(f"took {time.monotonic() - began:.2f} s")


def convert_usage_error(problem: Any, command: str | None) -> ArgumentError:
    """Return typer's error as one of ours: the problem, and a hint with the likely meaning."""
    words: list[str] = []
    context = getattr(problem, "ctx", None)
    while context is not None and context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    called = " ".join(["relaxdp", *(words or filter(None, [command]))])
    param, likely = getattr(problem, "param", None), getattr(problem, "possibilities", None)
    problem.possibilities = None  # Typer would add all of them to its sentence.
    sentence, _, meant = problem.format_message().partition(" Did you mean ")
    sentence = sentence.partition(", unable to parse ")[0].replace("Value error, ", "")
    for typed, ours in _USAGE_WORDS.items():
        sentence = sentence.replace(typed, ours)
    hint = f"Did you mean {meant}" if meant else f"Did you mean {likely[0]!r}?" if likely else ""
    if sentence.startswith(("Missing option", "Invalid value")) and param is not None and param.opts[0][0] == "-":
        hint = f"{'Add' if sentence.startswith('Missing') else 'Write'} {param.opts[0]} {param.metavar or 'VALUE'}."
    elif sentence.startswith(("Missing argument", "Got unexpected")):
        hint = f"Write: {called} {' '.join(problem.ctx.command.collect_usage_pieces(problem.ctx))}."
    return ArgumentError(
        "{sentence}",
        hint="{hint_text} Run `{called} --help` for more." if hint else "Run `{called} --help`.",
        sentence=f"{sentence.rstrip('.')}.",
        hint_text=hint,
        called=called,
    )
