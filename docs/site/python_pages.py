"""The reference of the Python library: every public name with its docstring, in the groups of docs/api.md."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import is_typeddict

from tests.docs.api_page import GROUPS

import relaxdp as rx
from relaxdp.mechanisms import Mechanism

HEADS = {
    "Vaults and tables": (
        "How to: [release a column](../../data-holder.md), [data frames](../../data-frames.md), "
        "[Spark](../../spark.md), [vaults and backups](../../vaults.md), [read a released file](../../analyst.md). "
        "Why all levels cost the largest: [the chain](../../proofs/chain.md)."
    ),
    "Mechanisms, for arrays and for one individual": (
        "Which one: [mechanisms](../../encodings.md). All of them have `path`, `release` and `estimate` of "
        "{py:class}`Mechanism <relaxdp.mechanisms.Mechanism>`. Each has [its proof](../../proofs/index.md)."
    ),
    "Estimates": (
        "What an interval means, and when levels may differ: [estimation](../../estimation.md). How often they hold: "
        "[coverage](../../coverage.md). Why they cost nothing: [proof](../../proofs/estimates.md)."
    ),
    "Made-up reports": (
        "What can be noticed, and what cannot: [made-up reports](../../made-up-reports.md). "
        "Why: [proof](../../proofs/pairs.md)."
    ),
    "Plans and schedules": (
        "How to: [plan](../../planning.md), [publish](../../public.md). "
        "Why a publication costs less: [proof](../../proofs/publication.md)."
    ),
    "The law": "Why: [the chain](../../proofs/chain.md), [Algorithm 1](../../proofs/algorithm-1.md).",
}
"""What leads from a group to the idea, the task and the proof."""
GIVEN: dict[str, dict[str, tuple[str, ...]]] = {
    "Vaults and tables": {
        "relaxdp.tables.released": ("ReleasedColumn",),
        "relaxdp.tables.check": ("Check",),
        "relaxdp.tables.metadata": ("FileDescription",),
        "relaxdp.tables.counting": ("Tally", "PairTally"),
    },
    "Mechanisms, for arrays and for one individual": {
        "relaxdp.mechanisms": ("Mechanism",),
        "relaxdp.encodings.path": ("ReportPath",),
    },
    "Estimates": {
        "relaxdp.estimation.result": ("Result",),
        "relaxdp.estimation.frequency": ("Frequency",),
        "relaxdp.estimation.mean": ("Mean", "PresentMean", "Variance"),
        "relaxdp.estimation.groups": ("Groups",),
        "relaxdp.estimation.cross": ("CrossTable",),
        "relaxdp.estimation.compare": ("Change",),
    },
    "Made-up reports": {"relaxdp.estimation.integrity": ("MadeUp", "Pushed", "Reach")},
    "Plans and schedules": {
        "relaxdp.estimation.planning": ("Asked", "Step"),
        "relaxdp.estimation.advice": ("Choice",),
    },
}
"""What the names of a group take and give, which nobody imports."""
BEYOND: dict[str, dict[str, tuple[str, ...]]] = {
    "Devices and services": {
        "relaxdp.device": ("Device", "Participation"),
        "relaxdp.device.operator": ("Operator",),
        "relaxdp.device.server": ("own_server",),
        "relaxdp.market.client": ("MarketClient",),
    },
    "Audits": {
        "relaxdp.audit.auditor": ("audit", "Audit"),
        "relaxdp.audit.laws": ("Law",),
    },
    "Encodings of your own": {
        "relaxdp.audit.exact_check": ("check_encoding", "Conformance"),
        "relaxdp.encodings.registry": ("register",),
    },
    "RAPPOR": {
        "relaxdp.rappor.device": ("Device",),
        "relaxdp.rappor.filter": ("BloomShape", "epsilon_of", "noise_of"),
    },
    "What relaxation is compared with": {
        "relaxdp.estimation.schedules": ("noisy_sampling_epsilon",),
        "relaxdp.paper.baselines": ("noisy_sampling_variance", "relaxation_variance", "split_budget_variance"),
    },
    "What can break the guarantee in careless hands": {
        "relaxdp.hazmat": ("SeededEntropy", "relax_once", "blur_once", "bridge_once"),
    },
}  # fmt: skip
"""What pages use beside `rx`."""
MADE_BY_PEOPLE = {
    "Categorical", "Unary", "LocalHash", "Numeric", "Wave", "Relaxation", "Vault", "Counts", "Transitions", "Explicit",
    "Linear", "Geometric", "NoisySampling", "ByDate", "UntilPrecise", "MarketClient", "Operator", "BloomShape",
    "Device", "SeededEntropy",
}  # fmt: skip
"""Classes whose constructors are shown: all others are given by something."""
ALIASES = {
    "Epsilon": 'a level: a `Decimal`, a whole number, a text as `"0.5"` or a float, which stands for the shortest '
    "decimal that prints as it; above 0",
    "FileName": "a text, or a `Path`",
    "Floats": "a NumPy array of floats",
    "Codes": "a NumPy array of whole numbers, the places of values in their list",
    "About": '`"objects"`, these very ones, or `"population"`, which they were sampled from',
    "Method": '`"average"` or `"precision"`, see {py:meth}`Counts.estimate <relaxdp.Counts.estimate>`',
    "Function": "takes and gives a NumPy array of floats",
    "Planned": "a number of values, or a mechanism",
    "Progress": "called with how much is done",
}
"""Types that signatures call by a name, and what they are."""
_FLOATS = r"~numpy\.ndarray\[tuple\[(?:~typing\.)?Any, \.\.\.\], ~numpy\.dtype\[~numpy\.float64\]\]"
_WRITTEN_OUT = {
    r"(?:~decimal\.)?Decimal \| int \| str \| float": "Epsilon",
    r"str \| (?:~os\.)?PathLike\[str\]": "FileName",
    rf"~collections\.abc\.Callable\[\[{_FLOATS}\], {_FLOATS}\]": "Function",
    _FLOATS: "Floats",
    _FLOATS.replace("float64", "unsignedinteger"): "Codes",
    r"(?:~typing\.)?Literal\['objects', 'population'\]": "About",
    r"(?:~typing\.)?Literal\['average', 'precision'\]": "Method",
    r"int \| [~\w.]*Numbers \| [~\w.]*_Encoded": "Planned",
}


def python_pages() -> dict[str, str]:
    """Return the pages by their place; the errors have a module of their own."""
    pages = {}
    for heading, names in GROUPS.items():
        if names == ("errors",):
            continue
        body = "".join(directive("relaxdp", name) for name in names)
        text = page(heading, body, HEADS[heading])
        if heading in GIVEN:
            text += section("What these take and give", GIVEN[heading])
        pages[f"reference/python/{slug(heading)}.md"] = text
    head = "What pages of this site use beside `rx`. These names may still change where those of `rx` do not."
    beyond = "".join(section(part, modules) for part, modules in BEYOND.items())
    pages["reference/python/beyond.md"] = f"# Beyond `rx`: devices, audits, encodings of your own\n\n{head}\n{beyond}"
    return pages


def page(heading: str, body: str, head: str = "") -> str:
    """Return one page of directives."""
    return f"# {heading}\n\n{head}\n\n```{{eval-rst}}\n{body}```\n"


def section(heading: str, modules: dict[str, tuple[str, ...]]) -> str:
    """Return a part of a page."""
    body = "".join(directive(module, name) for module, names in modules.items() for name in names)
    return f"\n## {heading}\n\n```{{eval-rst}}\n{body}```\n"


def directive(module: str, name: str) -> str:
    """Return what shows one name: a class with its public members, a function, or a value.

    What all mechanisms can do, or all results, is said once, of the class that has it.
    """
    found = getattr(rx if module == "relaxdp" else import_module(module), name)
    if isinstance(found, type):
        members = "   :members:\n   :undoc-members:\n"
        if is_typeddict(found):
            name += "()"  # else Sphinx looks for a signature, and there is none
        elif not issubclass(found, Mechanism | rx.Schedule | import_module("relaxdp.estimation.result").Result):
            members += "   :inherited-members: Exception, tuple, dict, Generic, Protocol\n"
        return f".. autoclass:: {module}.{name}\n{members}\n"
    kind = "autofunction" if inspect.isroutine(found) else "autodata"
    return f".. {kind}:: {module}.{name}\n\n"


def short(signature: str) -> str:
    """Return a signature with types by the names that its source has for them."""
    for written, name in _WRITTEN_OUT.items():
        signature = re.sub(written, name, signature)
    return signature


def listed(lines: list[str]) -> list[str]:
    """Return a docstring's lines with what stands below "Args:" and "Raises:" as Sphinx's fields."""
    made, field = [], ""
    for line in lines:
        if line in ("Args:", "Raises:"):
            field = {"Args:": "param", "Raises:": "raises"}[line]
            made.append("")
        elif field and line.startswith("    ") and not line.startswith("     "):
            name, _, told = line.strip().partition(": ")
            made.append(f":{field} {name}: {told}")
        else:
            field = field if line.startswith(" ") else ""
            made.append(line)
    return made


def slug(heading: str) -> str:
    """Return a heading as part of an address."""
    return re.sub(r"[^a-z]+", "-", heading.lower()).strip("-")


def linked(api: str) -> str:
    """Return docs/api.md as the door of the reference: names lead to their docstrings, and errors to their page."""
    head, found, _ = api.partition("## Kinds of errors\n")
    api = f"{head}{found}\nEvery one, with its code and what to do next: [errors](reference/python/errors.md).\n\n"
    api = re.sub(r"^\| `rx\.(\w+)` \|", r"| {py:obj}`rx.\1 <relaxdp.\1>` |", api, flags=re.MULTILINE)
    api = api.replace("{py:obj}`rx.errors <relaxdp.errors>`", "[`rx.errors`](reference/python/errors.md)")
    types = "\n".join(f"| `{name}` | {told} |" for name, told in ALIASES.items())
    beyond = (
        "## Beyond `rx`\n\nDevices, audits, encodings of your own, RAPPOR: [beyond `rx`](reference/python/beyond.md)."
    )
    listed = "\n".join(f"reference/python/{slug(each)}" for each in GROUPS) + "\nreference/python/beyond"
    return (
        f"{api}{beyond}\n\n## Types in signatures\n\n| type | what it is |\n|---|---|\n{types}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
