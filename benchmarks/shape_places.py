"""Places in the code that are counted by reading its syntax trees.

- A *module with a single importer* is one that exactly one other file of src imports, anywhere in it, also inside of
  functions and for types only. A package's `__init__` imports as any file does, and is not counted itself; neither is
  `__main__`, nor a module that a text names ("relaxdp.cli.plan:plan").
- A *place that edits an error's text* is a function that changes, splits, compares or searches `.message`, or the
  `str()` of an error of `relaxdp.errors` that it caught, or a name for one of them. To put a sentence before or behind
  it is no edit. The texts of other libraries' errors are not ours to give fields to, and do not count.
- A *place that parses stored prose* is a regular expression or a method of text that looks for one of `PROSE`, as it
  is or by a name that it has in the same file. A test whose only consequence is a refusal is none: so a name is kept
  out that would look like prose.
- A *copy of the release transaction* is a function outside of the ledger that calls `make_release_event`, or the step
  of a ledger; one that is called `charge` itself, or does nothing else, only hands on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PROSE = ("(epoch ", ", algorithm 1", "sha256 ")
"""What is written into names of releases, names of encodings and reasons, and read back from there."""
_EDITS = {
    "replace", "partition", "rpartition", "split", "rsplit", "splitlines", "removeprefix", "removesuffix", "strip",
    "lstrip", "rstrip", "startswith", "endswith", "find", "rfind", "index", "count", "translate", "lower", "upper",
}  # fmt: skip
_SEARCHES = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
_CHARGES = re.compile(r"\bmake_release_event$")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    """A Python file, its name among modules, and its tree, every node of which knows its parent."""

    def __init__(self, file: Path, source: Path) -> None:
        self.place = file.relative_to(source).as_posix()
        self.name = ".".join((source.name, *file.relative_to(source).with_suffix("").parts)).removesuffix(".__init__")
        text = file.read_text("utf-8")
        self.lines, self.tree = len(text.splitlines()), ast.parse(text)
        self.package = file.relative_to(source).parts[0].removesuffix(".py")
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Return what a node stands in, the nearest first."""
        while (found := self.parents.get(node)) is not None:
            yield found
            node = found

    def function(self, node: ast.AST) -> ast.AST:
        """Return the function that a node stands in, or the module."""
        return next((each for each in self.around(node) if isinstance(each, _FUNCTIONS)), self.tree)

    def imports(self) -> set[str]:
        """Return every name that may be a module that is imported here, or a name in one."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return found

    def entries(self) -> set[str]:
        """Return what a text here may name, such as "relaxdp.cli.plan:plan"."""
        texts = [node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant)]
        return {text.partition(":")[0] for text in texts if isinstance(text, str)}


def modules_of(source: Path) -> list[Module]:
    """Return all Python files of a package, by their places."""
    return [Module(file, source) for file in sorted(source.rglob("*.py"))]


def importers(modules: list[Module]) -> dict[str, set[str]]:
    """Return who imports each module: places, by the module's place."""
    imports = {module.place: module.imports() for module in modules}
    entries = {name for module in modules for name in module.entries()}
    return {
        module.place: {place for place, names in imports.items() if module.name in names and place != module.place}
        for module in modules
        if Path(module.place).name not in ("__init__.py", "__main__.py") and module.name not in entries
    }


def error_edits(module: Module) -> list[int]:
    """Return the lines in which the text of an error is edited or searched, the first one of each function."""
    first: dict[ast.AST, int] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.expr) and _is_edited(module, node) and _is_text(module, node):
            function = module.function(node)
            first[function] = min(node.lineno, first.get(function, node.lineno))
    return sorted(first.values())


def _is_text(module: Module, node: ast.AST) -> bool:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        given = [each for each in ast.walk(module.function(node)) if isinstance(each, ast.Assign)]
        return any(_names(each) == [node.id] and _is_said(module, each.value) for each in given)
    return _is_said(module, node)


def _is_said(module: Module, node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "message" and isinstance(node.ctx, ast.Load)
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "str" and len(node.args) == 1):
        return False
    ours = {
        alias.asname or alias.name
        for each in ast.walk(module.tree)
        if isinstance(each, ast.ImportFrom) and (each.module or "").endswith("errors")
        for alias in each.names
    }
    caught = [each for each in module.around(node) if isinstance(each, ast.ExceptHandler)]
    kinds = {name for each in caught if each.name == ast.unparse(node.args[0]) and each.type for name in _words(each)}
    return bool(kinds & ours)


def _words(handler: ast.ExceptHandler) -> set[str]:
    return set() if handler.type is None else set(re.findall(r"\w+", ast.unparse(handler.type)))


def _names(node: ast.Assign) -> list[str]:
    return [each.id for each in node.targets if isinstance(each, ast.Name)]


def _is_edited(module: Module, node: ast.AST) -> bool:
    parent = module.parents[node]
    if isinstance(parent, ast.Attribute):
        return parent.attr in _EDITS and isinstance(module.parents[parent], ast.Call)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in _SEARCHES
    if isinstance(parent, ast.Compare):
        return not isinstance(parent.ops[0], ast.Is | ast.IsNot)
    return isinstance(parent, ast.Subscript) and parent.value is node


def prose_reads(module: Module) -> list[int]:
    """Return the lines in which stored prose is looked for."""
    found: list[ast.expr] = []
    for node in ast.walk(module.tree):
        text = node.value.replace("\\", "") if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if isinstance(node, ast.expr) and any(each in text for each in PROSE):
            parent = module.parents[node]
            found.append(parent if isinstance(parent, ast.JoinedStr) else node)
    given = [module.parents[node] for node in found]
    named = {name for each in given if isinstance(each, ast.Assign) for name in _names(each)}
    found += [node for node in ast.walk(module.tree) if isinstance(node, ast.Name) and node.id in named]
    return sorted({node.lineno for node in found if _is_read(module, node)})


def _is_read(module: Module, node: ast.AST) -> bool:
    call = module.parents[node]
    if isinstance(call, ast.Compare):
        return True
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    test = module.parents[call]
    refusal = isinstance(test, ast.If) and test.test is call and all(isinstance(each, ast.Raise) for each in test.body)
    return node in call.args and call.func.attr in _EDITS | _SEARCHES and not refusal


def charging(module: Module) -> list[int]:
    """Return the lines of functions that charge a ledger."""
    found: set[int] = set()
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not re.search(_CHARGES, ast.unparse(node.func)):
            continue
        around = [each for each in module.around(node) if isinstance(each, _FUNCTIONS)]
        if around and around[0].name != "charge" and not _hands_on(around[0]):
            found.add(around[0].lineno)
    return [] if module.package == "ledger" else sorted(found)


def _hands_on(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    (*before, last) = function.body
    return isinstance(last, ast.Return) and all(isinstance(getattr(each, "value", 0), ast.Constant) for each in before)
