"""The pages of proofs name tests, mutants and code that exist, and leave out no encoding."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.mutation.mutants import mutants_of
from tests.mutation.run import read_equivalents
from tests.mutation.targets import TARGETS
from tests.mutation.trial import ROOT, SOURCE

from relaxdp.mechanisms.registry import BUILT_IN

FOLDER = ROOT / "docs" / "proofs"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "index.md")
SECTIONS = ["Statement", "Proof", "Assumptions", "Tests and mutants", "Computational"]
LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)")
PLANTED = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


@cache
def defined_in(file: Path) -> frozenset[str]:
    """All names of functions and classes, and all texts, of a Python file."""
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    named = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return frozenset(named | {f'"{text}"' for text in texts if isinstance(text, str)})


def wrong_links(text: str, folder: Path) -> list[str]:
    """What a page links to and is not there: a file, a name in backticks in it, or a text in quotation marks in it."""
    wrong = []
    for found in LINK.finditer(text):
        (said, target), quoted = found.groups(), text[found.start() - 1 : found.end() + 1]
        file = folder / target
        name = f'"{said}"' if quoted.startswith('"') and quoted.endswith('"') else said.strip("`")
        is_named = name != said
        if not file.exists() or (is_named and file.suffix == ".py" and name not in defined_in(file.resolve())):
            wrong.append(f"{said} in {target}")
    return wrong


@cache
def planted(module: str) -> frozenset[tuple[str, str, str, str]]:
    """The mutants of a module that `make mutants` sees killed."""
    if module not in TARGETS:
        return frozenset()
    found = mutants_of(module, (SOURCE / module).read_text("utf-8"), module)
    return frozenset(mutant.key for mutant in found) - read_equivalents().keys()


@pytest.mark.parametrize("page", [FOLDER / "index.md", *PAGES], ids=lambda page: page.stem)
def test_what_is_named_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not wrong_links(text, FOLDER)
    rows = PLANTED.findall(text)
    assert page.stem == "checked" or len(rows) == len(re.findall(r"^\| `", text, re.MULTILINE)), (
        "a row that is not read"
    )
    assert [row for row in rows if row not in planted(row[0])] == []


def test_names_that_do_not_exist_would_be_seen() -> None:
    here = "[`test_unary`](../../tests/exact/mechanisms/test_mechanisms.py)"
    said = '"[a rejected operation was charged](../../tests/faults/tables/test_mutants.py)"'
    assert not wrong_links(f"{here}, {said}, [chain](chain.md#proof)", FOLDER)
    for wrong in (here.replace("unary", "trinary"), said.replace("rejected", "harmless"), "[chain](chains.md)"):
        assert len(wrong_links(wrong, FOLDER)) == 1
    row = ("sampling/keyed_path.py", "find_report", "if draw.position < threshold:", "if draw.position <= threshold:")
    assert row in planted("sampling/keyed_path.py")
    assert (*row[:3], "if draw.position == threshold:") not in planted("sampling/keyed_path.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_says_the_same_things(page: Path) -> None:
    """What is claimed, why, if what, which tests and mutants, and what is computational; in this order."""
    sections = re.findall(r"^## (.+)$", page.read_text("utf-8"), re.MULTILINE)
    assert [section for section in sections if section in SECTIONS] == SECTIONS
    assert f"({page.name})" in (FOLDER / "index.md").read_text("utf-8")


def test_every_theorem_that_is_named_is_among_those_that_assume_nothing() -> None:
    files = {file.name: file.read_text("utf-8") for file in (ROOT / "proofs").glob("*.v")}
    listed = set(re.findall(r"@(\w+)", files["Assumptions.v"]))
    table = re.findall(r"^\| (`.+?) \|.+\| \[(\w+\.v)\]", (FOLDER / "checked.md").read_text("utf-8"), re.MULTILINE)
    for cell, file in table:
        for name in re.findall(r"`(\w+)`", cell):
            assert re.search(rf"^(Theorem|Corollary) {name} ", files[file], re.MULTILINE), f"{name} in {file}"
            assert name in listed
    assert len(table) == 11


def test_every_encoding_has_a_page() -> None:
    index = (FOLDER / "index.md").read_text("utf-8")
    assert [kind.name for kind in BUILT_IN if f"`{kind.name}`" not in index] == []


def test_estimates_are_given_no_key() -> None:
    """What estimates costs nothing, as estimates.md says, because it cannot draw and reads no key."""
    for file in (SOURCE / "estimation").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("relaxdp.sampling"):
                assert node.module in ("relaxdp.sampling.arrow_columns", "relaxdp.sampling.keyed_stream"), file.name
                assert {alias.name for alias in node.names} <= {"Words", "column_slice"}, file.name
