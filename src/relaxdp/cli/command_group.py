"""How every command reads: its help with panels and an example, names for what an option takes, and usage errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from relaxdp.cli.messages import add_verbosity_options
from relaxdp.errors import ArgumentError

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

    def extract_example(self) -> None:
        """Take the example out of the help text, which is wrapped."""
        text, _, example = (self.help or "").partition("\n\nExample: ")
        self.help = text
        self.example = [line.strip() for line in example.splitlines()]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example."""
        if self.example:
            with formatter.section("Example"):
                for before, line in zip(("", *self.example), self.example, strict=False):
                    indent = formatter.current_indent + (2 if before.endswith("\\") else 0)
                    formatter.write(f"{'':{indent}}{line}\n")


class PanelCommand(_HelpWithExample, TyperCommand):
    """A command whose help shows related options in a panel with a heading."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.extract_example()
        parameters: list[Any] = list(self.params)
        for each in parameters:
            if each.metavar is None and not getattr(each, "is_flag", False) and not each.type_descriptor.is_choice:
                each.metavar = _get_metavar(each)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage without the braces that typer puts around required arguments."""
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


class PanelGroup(_HelpWithExample, TyperGroup):
    """A group of commands that lists the whole first sentence of each."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.extract_example()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph of each command's help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (each.help or "").partition("\n\n")[0]) for name, each in self.commands.items()])


class CommandGroup(typer.Typer):
    """A group of commands with panels, examples, --quiet and --verbose."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": PanelGroup, "no_args_is_help": True, "rich_markup_mode": None, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command; the function itself stays what it was."""
        add = super().command(name, **{"cls": PanelCommand, **settings})

        def register(function: Any) -> Any:
            add(add_verbosity_options(function))
            return function

        return register


def convert_usage_error(problem: Any, command: str | None) -> ArgumentError:
    """Return typer's error as one of ours: the problem, and a hint with the likely meaning."""
    words: list[str] = []
    context = getattr(problem, "ctx", None)
    while context is not None and context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    called = " ".join(["relaxdp", *(words or filter(None, [command]))])
    likely, param = getattr(problem, "possibilities", None), getattr(problem, "param", None)
    problem.possibilities = None  # Typer would add all of them to its sentence.
    sentence, _, meant = problem.format_message().partition(" Did you mean ")
    sentence = sentence.partition(", unable to parse ")[0].replace("Value error, ", "")
    for typed, ours in _USAGE_WORDS.items():
        sentence = sentence.replace(typed, ours)
    hint_text = f"Did you mean {meant}" if meant else f"Did you mean {likely[0]!r}?" if likely else ""
    if sentence.startswith("Missing option") and param is not None:
        hint_text = f"Add {param.opts[0]} {param.metavar or 'VALUE'}."
    elif sentence.startswith("Invalid value") and param is not None and param.opts[0].startswith("-"):
        hint_text = f"Write {param.opts[0]} {param.metavar or 'VALUE'}."
    elif sentence.startswith(("Missing argument", "Got unexpected")):
        hint_text = f"Write: {called} {' '.join(problem.ctx.command.collect_usage_pieces(problem.ctx))}."
    return ArgumentError(
        "{sentence}",
        hint="{hint_text} Run `{called} --help` for more." if hint_text else "Run `{called} --help`.",
        sentence=f"{sentence.rstrip('.')}.",
        hint_text=hint_text,
        called=called,
    )
