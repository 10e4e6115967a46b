"""The main `relaxdp` command, and what all commands share: help, --quiet and --verbose, and errors.

Every error is `Error:`, `Hint:`, what did not happen, and exit status 2. Only the command that is called is imported:
the version and the list of commands are shown at once.
"""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp import __version__
from relaxdp.cli.terminal import (
    IS_QUIET,
    escape_unencodable_output,
    flush_output,
    handle_signals,
    print_error,
    print_note,
)
from relaxdp.errors import ArgumentError, DeterminedColumnWarning, RelaxdpError, StateFolderWarning

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
        """Return a decorator that adds a function as a command; the function itself stays what it was."""
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


_HOLDER, _RESEARCH, _SERVER = "Commands", "Research", "Server"
COMMANDS = {
    "init": (_HOLDER, "vault:init", "Create a vault: the key, the ledger and the snapshots about a group of people."),
    "release": (_HOLDER, "release:release", "Release columns of a table at a level, and charge the vault."),
    "relax": (_HOLDER, "release:relax", "Relax an earlier release to a larger epsilon, without the table."),
    "estimate": (_HOLDER, "estimate:estimate", "Estimate shares or means of a release, with confidence intervals."),
    "compare": (_HOLDER, "estimate:compare", "Estimate the change between two releases, with confidence intervals."),
    "plan": (_HOLDER, "plan:plan", "Plan a release: give two of margin, n and epsilon, and get the third."),
    "budget": (_HOLDER, "vault:budget", "Show the budget of a vault, what was spent, and on which columns."),
    "retire": (_HOLDER, "vault:retire", "Erase the snapshots of a release, which can never be relaxed again."),
    "check": (_HOLDER, "vault:check", "Verify a vault: its events, snapshots, file modes, and released files."),
    "backup": (_HOLDER, "vault:backup", "Copy a vault into a new folder, without its key."),
    "rappor": (_HOLDER, "rappor:app", "Encode, relax and decode words by RAPPOR."),
    "audit": (_HOLDER, "audit:audit", "Measure a lower bound of the privacy loss of every mechanism, in a minute."),
    "demo": (_HOLDER, "demo:demo", "Release a real column at four levels, survive a crash, and reject an overspend."),
    "reproduce": (
        _RESEARCH, "reproduce:reproduce",
        "Run the paper's tables, figures and experiments again, and judge every claim; takes under a minute.",
    ),
    "serve": (
        _SERVER, "serve:serve",
        "Serve the collector, the market and their pages; SQLite by default, PostgreSQL by URL.",
    ),
    "campaign": (
        _SERVER, "campaign:app", "Ask many devices a question: create and steer campaigns of a collector.",
    ),
    "survey": (
        _SERVER, "survey:app", "Ask many devices several questions: create and steer surveys of a collector.",
    ),
    "market": (_SERVER, "market:app", "Sell a release at several levels, and order levels of others."),
    "admin": (_SERVER, "admin:app", "Back up, restore, and renew the token of a service."),
    "tour": (
        _SERVER, "tour:tour",
        "Start a service with an empty database, let simulated people answer and trade, and show where to look.",
    ),
}  # fmt: skip
"""The panel, the function and the first sentence of each command, in the order of the help.

The sentences are here so that the help does not import every command; a test compares them.
"""

CONSEQUENCES = {
    "init": "Nothing was created.",
    "release": "Nothing was released.",
    "relax": "Nothing was released.",
    "budget": "Nothing was changed.",
    "retire": "Nothing was retired.",
    "backup": "Nothing was copied.",
    "audit": "Nothing was audited.",
    "demo": "Nothing was released.",
    "reproduce": "Nothing was written.",
}
"""What did not happen after an error of a command, unless the error states it."""


class _LazyCommands(Mapping[str, Any]):
    """The commands by name; a command is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = COMMANDS[name][1].partition(":")
        found, alone = getattr(import_module(f"relaxdp.cli.{module}"), attribute), CommandGroup()
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name)
        else:
            alone.command(name)(found)
        return typer.main.get_group(alone).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _RootGroup(TyperGroup):
    """The command line. Errors of typer become ours, which never show a key."""

    commands: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for panel in (_HOLDER, _SERVER, _RESEARCH):
            with formatter.section(panel):
                formatter.write_dl([(name, text) for name, (where, _, text) in COMMANDS.items() if where == panel])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the name of a command without importing every command, which takes seconds."""
        commands = self.commands
        self.commands = {name: TyperCommand(name, help=sentence) for name, (_, _, sentence) in COMMANDS.items()}
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands = commands

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _convert_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _convert_usage_errors(ctx):
                return super().invoke(ctx)
        except RelaxdpError as problem:
            problem.consequence = problem.consequence or CONSEQUENCES.get(ctx.invoked_subcommand, "")
            raise


@contextmanager
def _convert_usage_errors(ctx: Any) -> Iterator[None]:
    """Raise typer's own errors as ours, so that they look the same."""
    try:
        yield
    except Exception as problem:
        usage: Any = problem
        # Without arguments, typer shows the help; that is not an error.
        if hasattr(usage, "format_message") and type(usage).__name__ != "NoArgsIsHelpError":
            raise convert_usage_error(usage, ctx.invoked_subcommand) from None
        raise


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from relaxdp.sampling.kernel.c_library import get_sampler_name  # noqa: PLC0415 (importing it takes time)

        typer.echo(f"relaxdp {__version__} (drawn by {get_sampler_name()})")
        raise typer.Exit


def _show_root_help(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Show the help of `relaxdp` itself, or with --version its version."""


app = typer.Typer(
    cls=_RootGroup,
    help="Local differential privacy whose budget is released gradually.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.callback()(_show_root_help)


def _print_warning(message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a warning of ours as one sentence, without a line of code."""
    is_ours = issubclass(category, UnicodeWarning | StateFolderWarning | DeterminedColumnWarning)
    sys.stderr.write(
        f"Warning: {message}\n" if is_ours else warnings.formatwarning(message, category, filename, lineno)
    )


def main() -> None:
    """Run the command line. An error is shown without a traceback."""
    escape_unencodable_output()
    try:
        with handle_signals(), flush_output(), warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            app()
    except RelaxdpError as problem:
        print_error(format_error(problem))
        sys.exit(2)


def format_error(problem: RelaxdpError) -> str:
    """Return an error as three lines: the problem, a hint, and the consequence."""
    hint = f"Hint: {problem.hint}" if problem.hint else ""
    return "\n".join(filter(None, (f"Error: {problem.sentence}", hint, problem.consequence)))
