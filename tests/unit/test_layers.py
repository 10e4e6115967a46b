"""The layers of the package: a layer imports only from the layers above it, and only experiments import hazmat."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

LAYERS = [
    "errors", "lazy_imports", "theory", "sampling", "hazmat", "mechanisms", "estimation", "ledger", "tables", "rappor",
    "server_errors", "storage", "service", "device", "collector", "market", "audit", "paper", "cli", "web",
]  # fmt: skip
MAY_IMPORT_HAZMAT = {"hazmat", "audit", "paper"}
EXCEPTIONS = {
    # `Mechanism.estimate` is the last of the three calls of a mechanism (path, release, estimate). Estimation needs the
    # mechanism's probabilities, so the method imports it when it is called.
    ("mechanisms/base.py", "estimate"): {"estimation"},
}
"""Imports from a lower layer, by the file and the function that may have them."""
TYPES = {"mechanisms": {"estimation"}}
"""Layers from which a layer may import types for its type checker: a mechanism states which result it estimates."""
SHARED_CLASS_NAMES = {"Counts"}
"""Names of two classes each, of which one is a schema in the description of the service."""
SOURCE = Path(__file__).parents[2] / "src" / "relaxdp"


def find_imports(tree: ast.AST) -> set[str]:
    """Return the layers that a syntax tree imports from, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "relaxdp":
            names += [f"relaxdp.{alias.name}" for alias in node.names if alias.name in LAYERS]
        found |= {name.split(".")[1] for name in names if name.startswith("relaxdp.")}
        assert not (isinstance(node, ast.ImportFrom) and node.level), "write imports in full"
    return found


def read_imports(file: Path) -> set[str]:
    """Return the layers that a file imports from."""
    return find_imports(ast.parse(file.read_text("utf-8")))


def read_checked_imports(file: Path) -> set[str]:
    """Return the layers that a file imports from, without its exceptions."""
    tree = ast.parse(file.read_text("utf-8"))
    for (place, function), allowed in EXCEPTIONS.items():
        if file == SOURCE / place:
            (found,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
            assert find_imports(found) == allowed, f"{place} no longer needs its exception"
            found.body = []
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            types = TYPES.get(file.relative_to(SOURCE).parts[0], set())
            node.body = [each for each in node.body if not find_imports(each) <= types] or [ast.Pass()]
    return find_imports(tree)


def test_a_layer_imports_only_from_the_layers_above_it() -> None:
    files = [
        file
        for file in SOURCE.rglob("*.py")
        if file.name not in ("__init__.py", "__main__.py") or file.parent != SOURCE
    ]
    assert len(files) > 20
    for file in files:
        layer = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        assert layer in LAYERS, f"{file.name} is in no layer"
        for imported in read_checked_imports(file):
            assert LAYERS.index(imported) <= LAYERS.index(layer), f"{file.name} imports {imported} from below"
            assert imported != "hazmat" or layer in MAY_IMPORT_HAZMAT, f"{file.name} imports hazmat"


def test_an_import_from_below_would_be_seen(tmp_path: Path) -> None:
    for line in ("from relaxdp import hazmat", "import relaxdp.hazmat", "from relaxdp.hazmat import bridge_once"):
        (tmp_path / "file.py").write_text(line)
        assert read_imports(tmp_path / "file.py") == {"hazmat"}


def test_theory_has_no_randomness_clock_file_or_float() -> None:
    forbidden = {"random", "secrets", "os", "time", "datetime", "pathlib", "numpy"}
    files = list((SOURCE / "theory").glob("*.py"))
    assert len(files) > 3
    for file in files:
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                assert not forbidden & {name.split(".")[0] for name in names}, file.name
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), f"{file.name} has a float"


def test_collector_market_and_device_do_not_import_each_other() -> None:
    """Code that collector and market share is in the service. A device talks to both over HTTP."""
    separate = {"market": {"collector"}, "collector": {"market", "device"}, "device": {"collector", "market"}}
    for layer, others in separate.items():
        for file in (SOURCE / layer).rglob("*.py"):
            assert not read_imports(file) & others, f"{layer}/{file.name}"


def test_no_two_classes_have_the_same_name() -> None:
    classes = Counter(
        node.name
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 300
    assert {name for name, count in classes.items() if count > 1} <= SHARED_CLASS_NAMES
