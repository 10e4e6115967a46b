"""Errors that programs can read: a constant sentence, fields, and one hint for Python and the command line."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import relaxdp
from relaxdp import errors, server_errors
from relaxdp.cli.main import app
from relaxdp.errors import EpsilonError, KeyFileError, LevelError, RelaxdpError, add_consequence

SOURCE = Path(relaxdp.__file__).parent
KINDS = {
    name: each
    for module in (errors, server_errors)
    for name, each in vars(module).items()
    if isinstance(each, type) and issubclass(each, RelaxdpError)
}
LIBRARY = ("theory", "sampling", "mechanisms", "estimation", "front.py")


@cache
def parsed(file: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(file.read_text("utf-8"))))


def raised(file: Path) -> Iterator[tuple[ast.Call, list[str]]]:
    """Every place where an error of ours is made, and the sentences that it may have."""
    constants = {
        node.targets[0].id: node.value.value
        for node in parsed(file)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }

    def sentences(node: ast.expr) -> list[str]:
        if isinstance(node, ast.IfExp):
            return sentences(node.body) + sentences(node.orelse)
        if isinstance(node, ast.Name):
            return [str(constants[node.id])]
        if isinstance(node, ast.Attribute) and node.attr == "template":  # of an error that is raised as another kind
            return []
        assert isinstance(node, ast.Constant), (
            f"{file.name}:{node.lineno}: a sentence is written out, with fields in it"
        )
        return [str(node.value)]

    for node in parsed(file):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS and node.args:
            yield node, sentences(node.args[0])


def files() -> list[Path]:
    return [file for file in sorted(SOURCE.rglob("*.py")) if file.stem not in ("errors", "server_errors")]


def test_sentences_are_constants_whose_fields_are_given() -> None:
    count = 0
    for file in files():
        for call, sentences in raised(file):
            given = {each.arg for each in call.keywords}
            for sentence in sentences:
                count += 1
                named = {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}
                assert named <= given or None in given, f"{file.name}:{call.lineno}: {sentence}"
    assert count > 700


def test_no_sentence_says_what_did_not_happen() -> None:
    """That is known where a person stands, not where something is wrong."""
    for file in files():
        for call, sentences in raised(file):
            for sentence in sentences:
                assert not re.search(r"[Nn]othing was", sentence), f"{file.name}:{call.lineno}: {sentence}"


def hints(file: Path) -> Iterator[tuple[ast.Call, str]]:
    """Every hint that is written out where an error is made; it may be one of two."""
    for call, _ in raised(file):
        for each in call.keywords:
            if each.arg == "hint":
                for node in ast.walk(each.value):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield call, node.value


def test_a_hint_has_the_fields_that_it_names() -> None:
    for file in files():
        for call, hint in hints(file):
            given = {each.arg for each in call.keywords}
            named = {field for _, field, _, _ in Formatter().parse(hint) if field is not None}
            assert named <= given or None in given, f"{file.name}:{call.lineno}: {hint}"


def test_options_and_names_of_hints_exist() -> None:
    """Every option, command and public name that a hint of the library names is there."""

    def commands(group: Any, *above: str) -> Iterator[tuple[str, Any]]:
        for name, each in getattr(group, "commands", {}).items():
            yield " ".join((*above, name)), each
            yield from commands(each, *above, name)

    known = dict(commands(get_command(app)))
    options = {option for each in known.values() for parameter in each.params for option in parameter.opts}
    functions = (
        relaxdp.Vault.create, relaxdp.Vault.release, relaxdp.Vault.backup, relaxdp.estimate, relaxdp.plan,
        relaxdp.Numeric, relaxdp.SquareWave,
    )  # fmt: skip
    arguments = {name for each in functions for name in signature(each).parameters}
    count = 0
    for file in files():
        for call, hint in hints(file):
            where = f"{file.name}:{call.lineno}: {hint}"
            assert set(re.findall(r"(?<![-\w{])--[a-z][-a-z]*", hint)) <= options | {"--help"}, where
            assert set(re.findall(r"`relaxdp ([a-z]+)", hint)) <= set(known), where
            assert all(hasattr(relaxdp, name) for name in re.findall(r"\brx\.(\w+)", hint)), where
            in_both = re.findall(r"\b([a-z_]+)=(?:True)? \(--", hint)
            assert set(in_both) <= arguments, where
            count += len(in_both)
    assert count >= 8


def test_no_code_looks_into_what_an_error_says() -> None:
    """`message` and `sentence` are shown; nobody cuts, searches or replaces in them."""
    edits = re.compile(
        r"\.(message|sentence)(\.(replace|removesuffix|removeprefix|split|partition|startswith|endswith)|\[)"
    )
    searches = re.compile(
        r"\bin (problem|error|refusal|found)\.(message|sentence)\b|(match|search)\([^)]*\.(message|sentence)\)"
    )
    for file in files():
        text = file.read_text("utf-8")
        assert not edits.search(text), file.name
        assert not searches.search(text), file.name


def test_the_inner_consequence_counts() -> None:
    def inner() -> None:
        raise LevelError("Epsilon may only grow: {old} is out.", hint="Pass more than {old}.", old="0.5", row=17)

    with (
        pytest.raises(LevelError) as caught,
        add_consequence("Nothing was sent."),
        add_consequence("Nothing was released."),
    ):
        inner()
    problem = caught.value
    assert problem.sentence == "Row 17: epsilon may only grow: 0.5 is out."
    assert str(problem) == "Row 17: epsilon may only grow: 0.5 is out. Pass more than 0.5. Nothing was released."
    assert (problem.code, problem.fields) == ("level_error", {"old": "0.5", "row": 17})


def test_an_error_survives_a_process_and_a_copy() -> None:
    problem = KeyFileError("there is no key file {path!r}.", hint="Make {path!r}.", path="a{b}")
    problem.consequence = "Nothing was written."
    again = pickle.loads(pickle.dumps(problem))
    assert (type(again), str(again), again.fields) == (KeyFileError, str(problem), problem.fields)
    assert str(again) == "there is no key file 'a{b}'. Make 'a{b}'. Nothing was written."


@pytest.mark.parametrize("way", [{"epsilon": "ab" * 32}, {"epsilon": ["ab" * 32]}, {"epsilon": np.str_("ab" * 32)}])
def test_neither_sentence_nor_field_shows_a_key(way: dict[str, Any]) -> None:
    problem = EpsilonError("not {epsilon}.", **way)
    assert "abab" not in str(problem) + repr(problem) + repr(problem.fields)


def test_every_kind_can_be_made() -> None:
    for kind in KINDS.values():
        assert str(kind("a {b}.", b=1)) == "a 1."
