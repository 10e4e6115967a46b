"""Errors that programs can read: a constant sentence, fields, a named way out; and words of an interface only there."""

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
from relaxdp import errors
from relaxdp.cli.main import app
from relaxdp.cli.remedies import ON_COMMAND_LINE
from relaxdp.errors import EpsilonError, KeyFileError, LevelError, RelaxdpError, refusing
from relaxdp.remedies import IN_PYTHON

SOURCE = Path(relaxdp.__file__).parent
KINDS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, RelaxdpError)}
LIBRARY = ("law", "draw", "encodings", "estimation", "mechanisms.py")


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
    return [file for file in sorted(SOURCE.rglob("*.py")) if file != SOURCE / "errors.py"]


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


def test_every_way_out_has_words() -> None:
    """Where a person types, or calls a function; some are of the one or of the other only."""
    named = set()
    for file in files():
        for node in parsed(file):
            if isinstance(node, ast.keyword) and node.arg == "remedy":
                for each in ast.walk(node.value):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        named |= set(each.value.split())
    assert named <= set(ON_COMMAND_LINE) | set(IN_PYTHON)


@pytest.mark.parametrize("words", [ON_COMMAND_LINE, IN_PYTHON], ids=["command", "Python"])
def test_a_way_out_has_the_fields_that_its_words_name(words: dict[str, str]) -> None:
    for file in files():
        for call, _ in raised(file):
            given = {each.arg for each in call.keywords}
            remedies = [each.value for each in call.keywords if each.arg == "remedy"]
            texts = [node.value for each in remedies for node in ast.walk(each) if isinstance(node, ast.Constant)]
            for name in " ".join(map(str, texts)).split():
                named = {field for _, field, _, _ in Formatter().parse(words.get(name, "")) if field is not None}
                assert named <= given or None in given, f"{file.name}:{call.lineno}: {name}"


def test_a_way_out_can_be_gone() -> None:
    """Every option, command, function and argument that one names is there."""

    def commands(group: Any, *above: str) -> Iterator[tuple[str, Any]]:
        for name, each in getattr(group, "commands", {}).items():
            yield " ".join((*above, name)), each
            yield from commands(each, *above, name)

    known = dict(commands(get_command(app)))
    options = {option for each in known.values() for parameter in each.params for option in parameter.opts}
    for words in ON_COMMAND_LINE.values():
        assert set(re.findall(r"(?<![-\w])--[a-z][-a-z]*", words)) <= options, words
        assert set(re.findall(r"`relaxdp ([a-z]+)", words)) <= set(known), words
    functions = (relaxdp.Vault.release, relaxdp.estimate, relaxdp.plan, relaxdp.Numeric)
    arguments = {name for each in functions for name in signature(each).parameters}
    for words in IN_PYTHON.values():
        assert all(hasattr(relaxdp, name) for name in re.findall(r"\brx\.(\w+)", words)), words
        assert set(re.findall(r"\b([a-z_]+)=", words)) <= arguments, words


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


def test_a_boundary_adds_what_did_not_happen_and_the_way_out() -> None:
    def inner() -> None:
        raise LevelError("epsilon may only grow: {old} is out.", remedy="again", old="0.5", row=17)

    inside, outside = refusing("Nothing was released.", {"again": "--again."}), {"again": "say again={old}."}
    with pytest.raises(LevelError) as caught, refusing("Nothing was sent.", outside), inside:
        inner()
    problem = caught.value
    assert problem.sentence == "row 17: epsilon may only grow: 0.5 is out."
    assert str(problem) == "row 17: epsilon may only grow: 0.5 is out. say again=0.5. Nothing was released."
    assert (problem.code, problem.fields) == ("level_error", {"old": "0.5", "row": 17})


def test_an_error_survives_a_process_and_a_copy() -> None:
    problem = KeyFileError("there is no key file {path!r}.", remedy="clip", hint="Make {path!r}.", path="a{b}")
    problem.consequence = "Nothing was written."
    again = pickle.loads(pickle.dumps(problem))
    assert (type(again), str(again), again.fields, again.remedy) == (
        KeyFileError,
        str(problem),
        problem.fields,
        "clip",
    )
    assert str(again) == "there is no key file 'a{b}'. Make 'a{b}'. Nothing was written."


@pytest.mark.parametrize("way", [{"epsilon": "ab" * 32}, {"epsilon": ["ab" * 32]}, {"epsilon": np.str_("ab" * 32)}])
def test_neither_sentence_nor_field_shows_a_key(way: dict[str, Any]) -> None:
    problem = EpsilonError("not {epsilon}.", **way)
    assert "abab" not in str(problem) + repr(problem) + repr(problem.fields)


def test_every_kind_can_be_made() -> None:
    for name in KINDS:
        assert str(getattr(errors, name)("a {b}.", b=1)) == "a 1."
