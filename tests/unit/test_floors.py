"""The house: a floor imports only from the floors above it, and nobody but experiments enters hazmat."""

from __future__ import annotations

import ast
from pathlib import Path

FLOORS = [
    "errors", "remedies", "lazy", "law", "draw", "hazmat", "encodings", "estimation", "mechanisms", "relaxation",
    "storage", "ledger", "tables", "rappor", "service", "device", "collector", "market", "audit", "paper",
    "cli", "web",
]  # fmt: skip
MAY_ENTER_HAZMAT = {"hazmat", "audit", "paper"}
SOURCE = Path(__file__).parents[2] / "src" / "relaxdp"


def imports_of(file: Path) -> set[str]:
    """The floors that a file imports from, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "relaxdp":
            names += [f"relaxdp.{alias.name}" for alias in node.names if alias.name in FLOORS]
        found |= {name.split(".")[1] for name in names if name.startswith("relaxdp.")}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}: write imports in full"
    return found


def test_floors() -> None:
    files = [
        file
        for file in SOURCE.rglob("*.py")
        if file.name not in ("__init__.py", "__main__.py") or file.parent != SOURCE
    ]
    assert len(files) > 20
    for file in files:
        floor = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        assert floor in FLOORS, f"{file.name} stands on no floor"
        for imported in imports_of(file):
            assert FLOORS.index(imported) <= FLOORS.index(floor), f"{file.name} imports {imported} from below"
            assert imported != "hazmat" or floor in MAY_ENTER_HAZMAT, f"{file.name} enters hazmat"


def test_an_import_from_below_would_be_seen(tmp_path: Path) -> None:
    for line in ("from relaxdp import hazmat", "import relaxdp.hazmat", "from relaxdp.hazmat import blur_once"):
        (tmp_path / "file.py").write_text(line)
        assert imports_of(tmp_path / "file.py") == {"hazmat"}


def test_the_law_has_no_randomness_clock_file_or_float() -> None:
    forbidden = {"random", "secrets", "os", "time", "datetime", "pathlib", "numpy"}
    for file in (SOURCE / "law").glob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                assert not forbidden & {name.split(".")[0] for name in names}, file.name
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), f"{file.name} has a float"


def test_siblings_do_not_know_each_other() -> None:
    """What collector and market share is the service's; a device is the other end of the wire, and knows neither."""
    strangers = {"market": {"collector"}, "collector": {"market", "device"}, "device": {"collector", "market"}}
    for room, others in strangers.items():
        for file in (SOURCE / room).rglob("*.py"):
            assert not imports_of(file) & others, f"{room}/{file.name}"
