"""The reference of the Python library: every public name with its docstring, in the groups of docs/api.md."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

from tests.docs.api_page import GROUPS

import relaxdp as rx
from relaxdp import errors

BEYOND: dict[str, tuple[str, ...]] = {
    "relaxdp.device": ("Device", "Participation"),
    "relaxdp.device.operator": ("Operator",),
    "relaxdp.device.server": ("own_server",),
    "relaxdp.audit.auditor": ("audit",),
    "relaxdp.audit.laws": ("Law",),
    "relaxdp.encodings": ("check",),
    "relaxdp.encodings.registry": ("register",),
    "relaxdp.market.client": ("MarketClient",),
    "relaxdp.rappor.device": ("Device",),
    "relaxdp.rappor.filter": ("BloomShape", "epsilon_of", "noise_of"),
    "relaxdp.estimation.baselines": (
        "noisy_sampling_epsilon", "noisy_sampling_variance", "relaxation_variance", "split_budget_variance",
    ),
    "relaxdp.hazmat": ("SeededEntropy", "relax_once", "blur_once", "bridge_once"),
}  # fmt: skip
"""What pages use beside `rx`."""


def kinds_of_errors() -> list[str]:
    """Return the names of all kinds, general ones first."""
    return [
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and each.__module__ == errors.__name__ and not name.startswith("_")
    ]


def python_pages() -> dict[str, str]:
    """Return the pages by their place."""
    pages, listed = {}, []
    for heading, names in GROUPS.items():
        if names == ("errors",):
            continue
        place = slug(heading)
        listed.append(place)
        body = "\n".join(directive("relaxdp", name) for name in names)
        pages[f"reference/python/{place}.md"] = page(heading, body)
    kinds = "\n".join(directive("relaxdp.errors", name) for name in kinds_of_errors())
    head = "What went wrong is said as a sentence, a kind and fields: the first for people, the others for programs."
    pages["reference/python/errors.md"] = page("Errors", kinds, head)
    beyond = "\n".join(directive(module, name) for module, names in BEYOND.items() for name in names)
    head = "What pages of this site use beside `rx`. These names may still change where those of `rx` do not."
    pages["reference/python/beyond.md"] = page("Beyond `rx`: devices, audits, encodings of your own", beyond, head)
    toc = "\n".join([*listed, "errors", "beyond"])
    pages["reference/python/index.md"] = (
        "# Python\n\nEvery public name of `import relaxdp as rx`, with its signature and its whole docstring. "
        "[One line each](../../api.md) is the shorter list.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n"
    )
    return pages


def page(heading: str, body: str, head: str = "") -> str:
    """Return one page of directives."""
    return f"# {heading}\n\n{head}\n\n```{{eval-rst}}\n{body}```\n"


def directive(module: str, name: str) -> str:
    """Return what shows one name: a class with all its public members, a function, or a value."""
    found = getattr(rx if module == "relaxdp" else import_module(module), name)
    if isinstance(found, type):
        kind = "autoexception" if issubclass(found, BaseException) else "autoclass"
        members = "   :members:\n   :undoc-members:\n   :inherited-members: Exception, tuple, dict, Generic, Protocol\n"
        if kind == "autoexception":
            members = "   :show-inheritance:\n   :members:\n"
        return f".. {kind}:: {module}.{name}\n{members}\n"
    kind = "autofunction" if inspect.isroutine(found) else "autodata"
    return f".. {kind}:: {module}.{name}\n\n"


def slug(heading: str) -> str:
    """Return a heading as part of an address."""
    return re.sub(r"[^a-z]+", "-", heading.lower()).strip("-")


def linked(api: str) -> str:
    """Return docs/api.md with every name leading to its docstring."""
    api = re.sub(r"^\| `rx\.(\w+)` \|", r"| {py:obj}`rx.\1 <relaxdp.\1>` |", api, flags=re.MULTILINE)
    api = api.replace("{py:obj}`rx.errors <relaxdp.errors>`", "[`rx.errors`](reference/python/errors.md)")
    return re.sub(r"^\| `(\w+)` \|", r"| {py:obj}`\1 <relaxdp.errors.\1>` |", api, flags=re.MULTILINE)
