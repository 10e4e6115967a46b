"""The recorded values are those that were checked in, and the comparison notices a difference."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.golden import recorded

SCENARIOS = Path(__file__).parent


def test_every_recorded_file_has_its_digest() -> None:
    assert recorded.digests() == recorded.recorded_digests()


def test_every_recorded_file_belongs_to_a_scenario() -> None:
    files = [file for file in SCENARIOS.glob("test_*.py") if file.name != Path(__file__).name]
    text = "".join(file.read_text("utf-8") for file in files)
    checked = set(re.findall(r'recorded\.check(?:_part)?\(\s*"([a-z0-9-]+)"', text))
    assert checked == {Path(name).stem for name in recorded.digests()}


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("driver*.py")), ids=lambda file: file.stem)
def test_no_arithmetic_in_the_driver(file: Path) -> None:
    """The driver translates names. Values that a scenario compares are computed by the product alone."""
    operators = (ast.Sub, ast.Mult, ast.Pow, ast.FloorDiv, ast.Mod)
    banned = ("sum", "round", "abs", "min", "max", "pow")
    lines = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.BinOp) and isinstance(node.op, operators):
            lines.append(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned:
            lines.append(node.lineno)
    assert lines == []


def test_scenarios_use_the_product_through_the_driver_alone() -> None:
    """A scenario that imported the product would have to change with its names."""
    for file in SCENARIOS.glob("*.py"):
        if file.stem.startswith("driver"):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "relaxdp" for name in names), file.name


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"reports": ["a", "b"], "mean": 0.5}, None),
        ({"reports": ["a", "b"], "mean": 0.5 + 1e-12}, None),
        ({"reports": ["a", "c"], "mean": 0.5}, r"/reports\[1\] is 'c' instead of 'b'"),
        ({"reports": ["a"], "mean": 0.5}, "has 1 items instead of 2"),
        ({"reports": ["a", "b"], "mean": 0.5001}, "/mean is 0.5001"),
        ({"reports": ["a", "b"], "mean": 1}, "/mean is 1 instead of 0.5"),
        ({"reports": ["a", "b"]}, "has the keys"),
        ({"reports": ["a", "b"], "mean": True}, "/mean is True instead of 0.5"),
    ],
)
def test_differences_are_noticed(
    found: dict[str, object], message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "EXPECTED", tmp_path)
    monkeypatch.delenv("RELAXDP_RECORD_GOLDEN", raising=False)
    (tmp_path / "x.json").write_text('{"reports": ["a", "b"], "mean": 0.5}', "utf-8")
    if message is None:
        recorded.check("x", found)
    else:
        with pytest.raises(AssertionError, match=message):
            recorded.check("x", found)
