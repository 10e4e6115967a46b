"""The `relaxdp` command: every error is `Error:`, `Hint:`, what did not happen, and exit status 2.

Only the command that is called is imported: a person who asks for the version, or which commands there are, does not
wait for a database.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp import __version__
from relaxdp.cli.commands import Commands, explain_usage_error
from relaxdp.cli.remedies import ON_COMMAND_LINE
from relaxdp.cli.streams import all_arrives, say, stops_in_order, take_all_text
from relaxdp.errors import RelaxdpError, StateFolderWarning, refusing

COMMANDS = {
    "init": (
        "relaxdp.cli.vault:init",
        "Create a vault: a folder with the key, the ledger and the snapshots of all releases about a group of people.",
    ),
    "release": ("relaxdp.cli.release:release", "Release columns of a table at a level, and charge the vault."),
    "relax": (
        "relaxdp.cli.relax:relax",
        "Relax an earlier release to a larger epsilon. The table is not needed any more.",
    ),
    "budget": (
        "relaxdp.cli.vault:budget",
        "Show the budget of a vault, what was spent, and on which columns.",
    ),
    "retire": (
        "relaxdp.cli.vault:retire",
        "Erase the snapshots of a release. Its name is never released or relaxed again, and its cost stays.",
    ),
    "check": (
        "relaxdp.cli.vault:check",
        "Verify a vault: its chain of events, snapshots, file modes, and released files.",
    ),
    "backup": ("relaxdp.cli.vault:backup", "Copy a vault into a new folder, without its key."),
    "estimate": (
        "relaxdp.cli.estimate:estimate",
        "Estimate shares or means from released files; the files say their own values and levels.",
    ),
    "plan": ("relaxdp.cli.plan:plan", "Plan a release: half-width, objects or epsilon from the other two."),
    "audit": (
        "relaxdp.cli.audit:audit",
        "Measure how much of its claimed epsilon every mechanism really gives away; takes about a minute.",
    ),
    "rappor": ("relaxdp.cli.rappor:app", "RAPPOR with relaxation instead of noisy sampling."),
    "demo": (
        "relaxdp.cli.demo:demo",
        "Release a real column at four levels, compare, crash, and overspend in vain; takes a few seconds.",
    ),
    "reproduce": (
        "relaxdp.cli.reproduce:reproduce",
        "Run the paper's tables, figures and experiments again, and judge every claim; takes under a minute.",
    ),
    "serve": (
        "relaxdp.cli.serve:serve",
        "Serve the collector, the market and their pages; SQLite by default, PostgreSQL by URL.",
    ),
    "campaign": (
        "relaxdp.cli.campaign:app",
        "Ask many devices a question: create and steer campaigns of a collector.",
    ),
    "survey": (
        "relaxdp.cli.survey:app",
        "Ask many devices several questions: create and steer surveys of a collector.",
    ),
    "market": ("relaxdp.cli.market:app", "Sell and buy released data, level by level, on a market."),
    "admin": ("relaxdp.cli.admin:app", "Back up, restore, recover, and renew the token of a service."),
    "tour": (
        "relaxdp.cli.tour:tour",
        "Start a service with an empty database, let simulated people answer and trade, and show where to look.",
    ),
}
"""Where each command lives and the first sentence of its help, in the order of the help text.

The sentences stand here as well, so that whoever lists the commands need not import them; a test compares them.
"""

CONSEQUENCES = {
    "init": "Nothing was created.",
    "release": "Nothing was released.",
    "relax": "Nothing was released.",
    "budget": "Nothing was changed.",
    "retire": "Nothing was retired.",
    "backup": "Nothing was copied.",
    "audit": "Nothing was audited.",
    "reproduce": "Nothing was written.",
}
"""What does not happen where a command is refused, unless what it calls says so; commands of a group say it."""


class _Commands(Mapping[str, Any]):
    """The commands by name: each is imported when it is looked up, and none because somebody wants their names."""

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = COMMANDS[name][0].partition(":")
        found, alone = getattr(import_module(module), attribute), Commands()
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name)
        else:
            alone.command(name)(found)
        return typer.main.get_group(alone).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Careful(TyperGroup):
    """The command line. Errors of typer become ours, which never show a key."""

    commands: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the name of a command without importing every command, which takes seconds."""
        commands = self.commands
        self.commands = {name: TyperCommand(name, help=sentence) for name, (_, sentence) in COMMANDS.items()}
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands = commands

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the options that stand before a command."""
        with _plain_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            with _plain_usage_errors(ctx):
                return super().invoke(ctx)
        except RelaxdpError as problem:
            refusing(CONSEQUENCES.get(ctx.invoked_subcommand, ""), ON_COMMAND_LINE).add_to(problem)
            raise


@contextmanager
def _plain_usage_errors(ctx: Any) -> Iterator[None]:
    """Raise typer's own errors as ours, so that they look the same."""
    try:
        yield
    except Exception as problem:
        usage: Any = problem
        # Without arguments, typer shows the help; that is not an error.
        if hasattr(usage, "format_message") and type(usage).__name__ != "NoArgsIsHelpError":
            raise explain_usage_error(usage, ctx.invoked_subcommand) from None
        raise


def _version(wanted: bool) -> None:
    if wanted:
        from relaxdp.draw.kernel.loaded import in_use  # noqa: PLC0415 (nobody else waits for it)

        typer.echo(f"relaxdp {__version__} (drawn by {in_use()})")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Start very private, relax later, and pay only for the last level."""


app = typer.Typer(
    cls=_Careful,
    help="Local differential privacy whose budget is released gradually.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.callback()(_root)


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say a warning of ours in one sentence; whoever types a command wrote none of our lines."""
    said = f"{message}\n" if issubclass(category, UnicodeWarning | StateFolderWarning) else None
    sys.stderr.write(said or warnings.formatwarning(message, category, filename, lineno, line))


def main() -> None:
    """Run the command line. An error is shown without a traceback."""
    take_all_text()
    try:
        with stops_in_order(), all_arrives(), warnings.catch_warnings():
            warnings.showwarning = _say_warning
            app()
    except RelaxdpError as problem:
        say(format_error(problem))
        sys.exit(2)


def format_error(problem: RelaxdpError) -> str:
    """Return an error as three lines: the problem, a hint, and the consequence."""
    hint = f"Hint: {problem.hint}" if problem.hint else ""
    return "\n".join(filter(None, (f"Error: {problem.sentence}", hint, problem.consequence)))
