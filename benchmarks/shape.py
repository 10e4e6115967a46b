"""The shape of the code, in figures: what a renovation should make smaller.

python -m benchmarks.shape (`make shape`) writes docs/shape.md. `shape_places.py` states what is counted in the files.
`shape_operations.py` states what a file and a switch of an operation are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.shape_places import Module, charging, error_edits, importers, modules_of, prose_reads

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "src" / "relaxdp", ROOT / "docs" / "shape.md"
SMALL, LARGE = 50, 400


class Measure(NamedTuple):
    """One line of the page; what was measured before the renovation is written here and stays as it is."""

    before: str
    aim: str


MEASURES = {
    "Python in src: files": Measure("340", "at most 220"),
    "Python in src: lines": Measure("40,000", "at most 30,000"),
    f"Python in src: files under {SMALL} lines": Measure("56", "fewer"),
    f"Python in src: files over {LARGE} lines": Measure("1", "fewer"),
    "Python in tests: files": Measure("202", ""),
    "Python in tests: lines": Measure("38,626", ""),
    "JavaScript in src: files": Measure("75", ""),
    "JavaScript in src: lines": Measure("8,558", ""),
    "modules with a single importer": Measure("92", "at most 40"),
    "modules without an importer": Measure("2", "0"),
    "places that edit an error's text": Measure("14", "0"),
    "places that parse stored prose": Measure("5", "0"),
    "copies of the release transaction": Measure("6", "1"),
    "one release, by command: files / switches": Measure("49 / 76", "at most 25 / 25"),
    "one release, by function: files / switches": Measure("40 / 59", ""),
    "one estimate, by command: files / switches": Measure("26 / 37", ""),
    "one sale: files / switches": Measure("39 / 45", "at most 20 / 20"),
    "one report of a device: files / switches": Measure("21 / 10", ""),
}


class Shape(NamedTuple):
    """What was read from the files: figures, and lists of places by the figure that counts them."""

    figures: dict[str, str]
    packages: list[tuple[str, int, int]]
    places: dict[str, list[str]]


def read_shape(source: Path, tests: Path) -> Shape:
    """Measure everything that does not have to be run."""
    modules = modules_of(source)
    known = importers(modules)
    places = {
        "modules without an importer": [place for place, found in known.items() if not found],
        "places that edit an error's text": _places(modules, error_edits),
        "places that parse stored prose": _places(modules, prose_reads),
        "copies of the release transaction": _places(modules, charging),
        "modules with a single importer": [
            f"{place}` by `{next(iter(found))}" for place, found in known.items() if len(found) == 1
        ],
    }
    figures = {
        "Python in src: files": len(modules),
        "Python in src: lines": sum(module.lines for module in modules),
        f"Python in src: files under {SMALL} lines": sum(module.lines < SMALL for module in modules),
        f"Python in src: files over {LARGE} lines": sum(module.lines > LARGE for module in modules),
        **_sizes("Python in tests", tests, "*.py"),
        **_sizes("JavaScript in src", source, "*.js"),
        **{name: len(found) for name, found in places.items()},
    }
    files, lines = Counter(module.package for module in modules), Counter[str]()
    for module in modules:
        lines[module.package] += module.lines
    packages = [(name, files[name], lines[name]) for name, _ in lines.most_common()]
    return Shape({name: f"{figure:,}" for name, figure in figures.items()}, packages, places)


def _places(modules: list[Module], lines: Callable[[Module], list[int]]) -> list[str]:
    return [f"{module.place}:{line}" for module in modules for line in lines(module)]


def _sizes(what: str, folder: Path, pattern: str) -> dict[str, int]:
    texts = [file.read_text("utf-8").splitlines() for file in folder.rglob(pattern)]
    return {f"{what}: files": len(texts), f"{what}: lines": sum(map(len, texts))}


_HEAD = """# The shape of the code

This page is for developers. `make shape` measures the code and writes this page. The second column was measured before
the renovation and does not change. `benchmarks/shape_places.py` states how places and modules are counted.

Files and switches belong to one operation. The functions of the operation are listed in the order in which they are
first entered. *Files* counts the files of these functions. *Switches* counts how often the next function is in another
package (`benchmarks/shape_operations.py`).

| measure | before the renovation | now | aim |
|---|---:|---:|---:|
"""


_OPERATIONS = """## Packages that an operation uses

Each list shows the packages that an operation uses, in the order of their first use, with their modules. Most switches
are between neighbouring layers: `theory` defines a level, a mechanism computes it, a ledger and a file store it.
"""


def page(figures: dict[str, str], shape: Shape, packages: dict[str, list[str]]) -> str:
    """Return the page, from what was read and run."""
    rows = [f"| {name} | {each.before} | {figures[name]} | {each.aim} |" for name, each in MEASURES.items()]
    sizes = [f"| `{name}` | {files:,} | {lines:,} |" for name, files, lines in shape.packages]
    parts = [
        _HEAD + "\n".join(rows),
        "## Packages",
        "| package | files | lines |\n|---|---:|---:|\n" + "\n".join(sizes),
    ]
    lists = [f"- **{name}**: {', '.join(found)}." for name, found in packages.items()]
    parts.append(_OPERATIONS + "\n" + "\n".join(lists))
    for name, found in shape.places.items():
        parts += [f"## {name[0].upper()}{name[1:]}", "\n".join(f"- `{place}`" for place in found) or "None."]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the page."""
    from benchmarks.shape_operations import OPERATIONS, follow_operation  # noqa: PLC0415 (slow)

    shape = read_shape(SOURCE, ROOT / "tests")
    followed = {name: follow_operation(operation, SOURCE) for name, operation in OPERATIONS.items()}
    ran = {f"{name}: files / switches": f"{len(each.files)} / {each.switches}" for name, each in followed.items()}
    PAGE.write_text(page(shape.figures | ran, shape, {name: each.packages for name, each in followed.items()}), "utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
