"""The reference of errors: every kind, its code and status, and every sentence that says it, with its hints."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from docs.site.staging import ROOT

from relaxdp import errors, server_errors
from relaxdp.errors import RelaxdpError
from relaxdp.service.observe import status_of

_USUAL = 422
_HEAD = """# Errors

This page is for programmers. An error has a sentence and a hint for people, and a class and fields for programs.
Commands print the sentence and the hint, or all of it with `--json`. A service answers with a
[`Problem`](../http/messages.md#problem). Over HTTP the code is without `_error`, and the status is 422 unless another
one is listed.

Every class is listed with its `code` and its sentences. Names in braces are fields, and the text in *italics* is the
hint. It names arguments of Python and, in parentheses, options of the command line.

```python
import relaxdp as rx

try:
    rx.Categorical(["no", "yes"]).level(0)
except rx.errors.EpsilonError as problem:
    print(problem.code, problem.fields)  # epsilon_error {'epsilon': '0'}
```

"""


_SECTIONS = {
    "Errors of the library: `rx.errors`": errors,
    "Errors of servers and their clients: `relaxdp.server_errors`": server_errors,
}


def kinds_of_errors() -> dict[str, type[Exception]]:
    """Return all kinds by their name, general ones first."""
    return {
        name: each
        for module in _SECTIONS.values()
        for name, each in vars(module).items()
        if isinstance(each, type) and each.__module__ == module.__name__ and issubclass(each, Exception)
    }


def error_pages() -> dict[str, str]:
    """Return the page, by its place."""
    said = sentences()
    page = _HEAD
    for heading, module in _SECTIONS.items():
        kinds = [kind for kind in kinds_of_errors().values() if kind.__module__ == module.__name__]
        body = "\n".join(_kind(kind, said[kind.__name__]) for kind in kinds)
        page += f"## {heading}\n\n```{{eval-rst}}\n{body}```\n\n"
    return {"reference/python/errors.md": page}


def _kind(kind: type[Exception], found: dict[str, set[str]]) -> str:
    members = ["   :members:"] if kind is RelaxdpError else []
    lines = [f".. autoexception:: {kind.__module__}.{kind.__name__}", "   :show-inheritance:", *members, ""]
    if issubclass(kind, RelaxdpError) and kind is not RelaxdpError:
        status = status_of(kind)
        lines += [f"   ``{code_of(kind.__name__)}``" + (f", status {status}" if status != _USUAL else ""), ""]
    if found:
        lines += [f"   .. dropdown:: {len(found)} sentence{'s' if len(found) > 1 else ''}", ""]
        lines += [f"      - {_plain(each)}{_format_hints(hints)}" for each, hints in sorted(found.items())]
    return "\n".join([*lines, ""])


def _format_hints(hints: set[str]) -> str:
    return "".join(f" *{_plain(each)}*" for each in sorted(hints))


def _plain(sentence: str) -> str:
    """Return a sentence as text that is shown letter by letter; of a field, its name."""
    fields = re.sub(r"(?<!\{)\{(\w+)[^{}]*\}", r"{\1}", " ".join(sentence.split()))
    return re.sub(r"([\\`*_|])", r"\\\1", fields.replace("{{", "{").replace("}}", "}"))


def code_of(name: str) -> str:
    """Return the code of a kind."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def sentences() -> dict[str, dict[str, set[str]]]:
    """Return for each kind its sentences, and their hints."""
    kinds = kinds_of_errors()
    found: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for file in sorted((ROOT / "src" / "relaxdp").rglob("*.py")):
        for name, call in _calls(file, kinds):
            hints = {text for each in call.keywords if each.arg == "hint" for text in _texts(each.value)}
            for sentence in _texts(call.args[0]) if call.args else ():
                found[name].setdefault(sentence, set()).update(hints)
    return found


def _calls(file: Path, kinds: Collection[str]) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
            yield node.func.id, node


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may be: itself, or either of two."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
