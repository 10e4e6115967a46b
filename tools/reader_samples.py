"""Random samples of names and error messages, for readers who have not seen the code.

python -m tools.reader_samples names SEED [COUNT]      the sample with its meanings, and how many names there are
python -m tools.reader_samples messages SEED [COUNT]   messages and hints as their templates
Add --questions to leave out the meanings: that is the sheet for the reader. docs/decisions/0022 states the seeds.
"""

from __future__ import annotations

import ast
import random
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tools.size_budget import BUDGET, ROOT, list_files

Function = ast.FunctionDef | ast.AsyncFunctionDef


def list_names(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the module, its classes, functions and methods: each name with its arguments, and its docstring."""
    tree = ast.parse(file.read_text("utf-8"))
    module = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
    if file.stem not in ("__init__", "__main__"):
        yield f"module {module}", _get_first_line(tree)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield f"class {module}: {node.name}", _get_first_line(node)
            for member in node.body:
                if isinstance(member, Function) and not member.name.startswith("__"):
                    yield f"method {module}: {node.name}.{_describe_call(member)}", _get_first_line(member)
        elif isinstance(node, Function) and not node.name.startswith("__"):
            yield f"function {module}: {_describe_call(node)}", _get_first_line(node)


def list_messages(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of errors with their hints: calls with a constant text whose name ends in Error.

    A text that starts in lower case is part of another message. A built-in error states a mistake of a developer, or is
    caught and replaced.
    """
    tree = ast.parse(file.read_text("utf-8"))
    constants = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("Error")):
            continue
        message, hints = node.args[0], [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        if not (isinstance(message, ast.Constant) and isinstance(message.value, str)) or message.value[0].islower():
            continue
        if ast.unparse(node.func) in ("ValueError", "TypeError", "RuntimeError"):
            continue
        hint = "".join(f"\n      Hint: {_unparse_hint(each, constants)}" for each in hints)
        yield f"{message.value}{hint}", f"{file.relative_to(ROOT)}:{node.lineno}"


def _unparse_hint(hint: ast.expr, constants: dict[str, ast.expr]) -> str:
    return ast.unparse(constants.get(hint.id, hint) if isinstance(hint, ast.Name) else hint)


def _describe_call(function: Function) -> str:
    arguments = [each.arg for each in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]]
    return f"{function.name}({', '.join(name for name in arguments if name not in ('self', 'cls'))})"


def _get_first_line(node: ast.Module | ast.ClassDef | Function) -> str:
    return (ast.get_docstring(node) or "(no docstring)").splitlines()[0]


def main() -> None:
    """Print a sample."""
    words = [word for word in sys.argv[1:] if word != "--questions"]
    kind, seed, count = words[0], words[1], int(words[2]) if len(words) > 2 else 60
    library = tomllib.loads((ROOT / BUDGET).read_text("utf-8"))["parts"]["library"]["src/relaxdp"]
    files = [
        file
        for name, file in sorted(list_files(ROOT / "src/relaxdp", ["*.so"]))
        if name.endswith(".py") and any(fnmatch(name, pattern) for pattern in library)
    ]
    found = [item for file in files for item in {"names": list_names, "messages": list_messages}[kind](file)]
    chosen = random.Random(seed).sample(found, count)  # noqa: S311 (a repeatable sample, no secret)
    print(f"{len(chosen)} of {len(found)} {kind} of the library, seed {seed}")
    for number, (text, meaning) in enumerate(chosen, 1):
        print(f"{number:3}. {text}" + ("" if "--questions" in sys.argv else f"\n      = {meaning}"))


if __name__ == "__main__":
    main()
