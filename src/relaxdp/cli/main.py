"""The `relaxdp` command: every mistake is one sentence and exit status 2.

Only the command that is called is imported: a person who asks for the version does not wait for a database.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from relaxdp import __version__
from relaxdp.cli.options import GroupedCommand
from relaxdp.cli.remedies import ON_COMMAND_LINE
from relaxdp.cli.streams import all_arrives, say, stops_in_order, take_all_text
from relaxdp.errors import RelaxdpError, StateFolderWarning, refusing, without_keys

# Where each command lives, in the order of the help text.
COMMANDS = {
    "demo": "relaxdp.cli.demo:demo",
    "keygen": "relaxdp.cli.keygen:keygen",
    "release": "relaxdp.cli.release:release",
    "relax": "relaxdp.cli.release:relax",
    "budget": "relaxdp.cli.budget:app",
    "estimate": "relaxdp.cli.estimate:estimate",
    "plan": "relaxdp.cli.plan:plan",
    "audit": "relaxdp.cli.audit:audit",
    "rappor": "relaxdp.cli.rappor:app",
    "reproduce": "relaxdp.cli.reproduce:reproduce",
    "serve": "relaxdp.cli.serve:serve",
    "campaign": "relaxdp.cli.campaign:app",
    "simulate": "relaxdp.cli.simulate:simulate",
    "market": "relaxdp.cli.market:app",
    "admin": "relaxdp.cli.admin:app",
    "tour": "relaxdp.cli.tour:tour",
}


CONSEQUENCES = {
    "keygen": "Nothing was written.",
    "release": "Nothing was released.",
    "relax": "Nothing was released.",
    "audit": "Nothing was audited.",
    "reproduce": "Nothing was written.",
}
"""What does not happen where a command is refused, unless what it calls says so; commands of a group say it."""


class _Careful(TyperGroup):
    """The commands; what typer says of a word that it cannot use does not show a key."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except RelaxdpError as problem:
            refusing(CONSEQUENCES.get(ctx.invoked_subcommand, ""), ON_COMMAND_LINE).add_to(problem)
            raise
        except Exception as problem:
            told: Any = problem
            if hasattr(told, "format_message") and isinstance(told.message, str):  # typer's own
                told.message = without_keys(told.message)
            raise


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relaxdp {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Start very private, relax later, and pay only for the last level."""


def application(only: str | None = None) -> typer.Typer:
    """Return the command line, with all commands or with the one that was asked for."""
    made = typer.Typer(
        cls=_Careful,
        help="Local differential privacy whose budget is released gradually.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    made.callback()(_root)
    for name, place in COMMANDS.items():
        if only not in (None, name):
            continue
        module, _, attribute = place.partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            made.add_typer(found, name=name)
        else:
            made.command(name, cls=GroupedCommand)(found)
    return made


def __getattr__(name: str) -> Any:
    if name == "app":  # all of it, for those who look at every command
        globals()["app"] = made = application()
        return made
    raise AttributeError(name)


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
    """Run the command line; an error of ours becomes one sentence, and so does a wish that it stop."""
    take_all_text()
    asked = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    try:
        with stops_in_order(), all_arrives(), warnings.catch_warnings():
            warnings.showwarning = _say_warning
            application(asked if asked in COMMANDS else "" if "--version" in sys.argv else None)()
    except RelaxdpError as problem:
        say(problem.message)
        sys.exit(2)
