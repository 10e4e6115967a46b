"""The page about the shape of the code names all that is measured, and what is counted is counted right."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.shape import MEASURES, PAGE, Shape, page, read_shape
from benchmarks.shape_operations import OPERATIONS, Operation, follow_operation

FILES = {
    "__init__.py": "",
    "errors.py": "class OurError(Exception):\n    message = ''\n",
    "theory/__init__.py": "",
    "theory/number.py": "def double(number):\n    return 2 * number\n\ndef four(two):\n    return double(two())\n",
    "theory/alone.py": 'COMMAND = "made_up.cli.command:run"\n',
    "table/__init__.py": "",
    "table/release.py": """
from made_up.errors import OurError
from made_up.theory.number import double, four

def release(ledger):
    four(lambda: 2)
    double(1)
    write()
    ledger.make_release_event()

def write():
    return [double(each) for each in (1, 2)]

def charge(ledger):
    ledger.make_release_event()

def hand_on(ledger):
    '''Hand on.'''
    return ledger.step()
""",
    "table/edits.py": """
import re
from made_up.errors import OurError

_EPOCH, _ROW = re.compile(r" \\\\(epoch \\\\d+\\\\)$"), re.compile("row")
_STEPPED = ", algorithm 1"

def edited():
    try:
        pass
    except OurError as problem:
        said = problem.message
        raise OurError(said.replace("released", "written"))

def searched():
    try:
        pass
    except (KeyError, OurError) as problem:
        return "row" in str(problem) or _ROW.match(problem.message)

def left_alone(wanted):
    if re.search(r" \\\\(epoch ", wanted):
        raise OurError("refused")
    try:
        pass
    except KeyError as theirs:
        return "row" in str(theirs)
    except OurError as problem:
        print(wanted + _STEPPED, problem.message is None)
        raise OurError(f"{problem.message} Nothing was released.")

def plain(encoding):
    return encoding.removesuffix(_STEPPED)
""".replace("\\\\", "\\"),
    "cli/command.py": "from made_up.theory import number\nfrom made_up.table import edits, release\n\ndef run(): ...\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "made_up" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    (tmp_path / "made_up" / "page.js").write_text("a;\nb;\n")
    return tmp_path / "made_up"


@pytest.fixture
def shape(source: Path) -> Shape:
    return read_shape(source, source / "theory")


def test_the_page_names_every_measure(shape: Shape) -> None:
    ran = {f"{name}: files / switches": "1 / 2" for name in OPERATIONS}
    assert {*shape.figures, *ran} == set(MEASURES)
    written, made = (
        PAGE.read_text("utf-8"),
        page(shape.figures | ran, shape, {name: ["theory (level)"] for name in OPERATIONS}),
    )
    for name, measure in MEASURES.items():
        assert f"| {name} | {measure.before} | " in written
        assert f"| {name} | {measure.before} | {(shape.figures | ran)[name]} | {measure.aim} |" in made
    for name in OPERATIONS:
        assert f"- **{name}**: " in written
        assert f"- **{name}**: theory (level)." in made
    assert "- `table/edits.py:13`\n- `table/edits.py:19`" in made


def test_sizes(shape: Shape) -> None:
    assert shape.figures["Python in src: files"] == f"{len(FILES)}"
    assert shape.figures["Python in src: files under 50 lines"] == f"{len(FILES)}"
    assert shape.figures["Python in tests: lines"] == "6"
    assert shape.figures["JavaScript in src: lines"] == "2"
    assert ("theory", 3, 6) in shape.packages


def test_places(shape: Shape) -> None:
    # Only commands import `release` and `edits`, and nothing but a text names the command.
    single = [f"table/{name}.py` by `cli/command.py" for name in ("edits", "release")]
    assert shape.places["modules with a single importer"] == single
    assert shape.figures["modules with a single importer"] == "2"
    assert shape.places["modules without an importer"] == ["theory/alone.py"]
    assert shape.places["places that edit an error's text"] == ["table/edits.py:13", "table/edits.py:19"]
    assert shape.places["places that parse stored prose"] == ["table/edits.py:5", "table/edits.py:33"]
    assert shape.places["copies of the release transaction"] == ["table/release.py:5"]


def loaded(source: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(source.parent))
    try:
        return importlib.import_module("made_up.table.release")
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "made_up"]:
            del sys.modules[name]


def test_steps(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of release, four, double and write, each counts once, when it is first entered; a lambda does not."""
    release = loaded(source, monkeypatch)
    done = []

    class Ledger:
        def make_release_event(self) -> None:
            done.append(sys.getprofile())

    @contextmanager
    def operation(folder: Path) -> Iterator[Operation]:
        release.charge(Ledger())
        yield lambda name: release.release(Ledger()) if name == "second" else release.hand_on

    steps = follow_operation(operation, source)
    assert steps.files == {"table/release.py", "theory/number.py"}
    assert steps.switches == 2
    assert done == [steps, steps]
    assert sys.getprofile() is None
