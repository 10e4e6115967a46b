"""The `relaxdp` command: every error is `Error:`, `Hint:`, what did not happen, and exit status 2.

Only the command that is called is imported: the version and the list of commands are shown at once.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp import __version__
from relaxdp.cli.command_group import CommandGroup, convert_usage_error
from relaxdp.cli.terminal import escape_unencodable_output, flush_output, handle_signals, print_error
from relaxdp.errors import RelaxdpError, StateFolderWarning

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
    "market": (_SERVER, "market:app", "Sell and buy released data, level by level, on a market."),
    "admin": (_SERVER, "admin:app", "Back up, restore, recover, and renew the token of a service."),
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
    """Start very private, relax later, and spend only the last level."""


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
    is_ours = issubclass(category, UnicodeWarning | StateFolderWarning)
    sys.stderr.write(f"{message}\n" if is_ours else warnings.formatwarning(message, category, filename, lineno))


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
