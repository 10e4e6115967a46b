"""The reference of the Python library: every public name with its docstring, in the groups of docs/api.md."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from operator import attrgetter
from typing import is_typeddict

from tests.docs.api_page import GROUPS

import relaxdp as rx
from relaxdp.mechanisms.base import Mechanism

HEADS = {
    "Vaults and tables": (
        "How to: [release a column](../../data-holder.md), [data frames](../../data-frames.md), "
        "[Spark](../../spark.md), [vaults and backups](../../vaults.md), [read a released file](../../analyst.md). "
        "Why all levels cost the largest: [the chain](../../proofs/chain.md)."
    ),
    "Mechanisms, for arrays and for one individual": (
        "Which one: [mechanisms](../../mechanisms.md). All of them have `path`, `release` and `estimate` of "
        "{py:class}`Mechanism <relaxdp.Mechanism>`. Each has [its proof](../../proofs/index.md)."
    ),
    "Estimates": (
        "Meaning of the intervals, and reports at different levels: [estimation](../../estimation.md). Measured: "
        "[coverage](../../coverage.md). Estimates are post-processing: [proof](../../proofs/estimates.md)."
    ),
    "Fabricated reports": (
        "Which fabricated reports are detected: [data poisoning](../../made-up-reports.md). "
        "The reason: [proof](../../proofs/pairs.md)."
    ),
    "Plans and schedules": (
        "How to: [plan](../../planning.md), [publish](../../public.md). "
        "Amplification by shuffling: [proof](../../proofs/publication.md)."
    ),
    "Audits and errors": "How to: [audit your own mechanism](../../tutorials/audit.md).",
    "Theory": "Proofs: [the chain](../../proofs/chain.md), [Algorithm 1](../../proofs/algorithm-1.md).",
}
"""Links from a group to the idea, the task and the proof."""
GIVEN: dict[str, dict[str, tuple[str, ...]]] = {
    "Vaults and tables": {
        "relaxdp.tables.release_result": ("ReleasedColumn",),
        "relaxdp.tables.vault_check": ("CheckResult",),
        "relaxdp.tables.metadata": ("FileDescription",),
        "relaxdp.tables.counting": ("ColumnCounts", "CrosstabCounts"),
    },
    "Mechanisms, for arrays and for one individual": {
        "relaxdp.mechanisms.keyed_reports": ("ReportPath",),
    },
    "Estimates": {
        "relaxdp.estimation.result": ("Result", "GroupedResults"),
        "relaxdp.estimation.frequency": ("Frequency",),
        "relaxdp.estimation.mean": ("Mean", "NonMissingMean", "Variance"),
        "relaxdp.estimation.crosstab": ("Crosstab",),
        "relaxdp.estimation.compare": ("Change",),
    },
    "Fabricated reports": {
        "relaxdp.estimation.poisoning": ("FabricatorCount", "SuspiciousValue", "UndetectedInfluence")
    },
    "Plans and schedules": {
        "relaxdp.estimation.planning": ("PlannedLevel",),
        "relaxdp.estimation.mechanism_choice": ("RankedMechanism",),
    },
}
"""Classes of arguments and results of a group, which users do not import."""
BEYOND: dict[str, dict[str, tuple[str, ...]]] = {
    "Devices and services": {
        "relaxdp.device": ("Device", "Participation"),
        "relaxdp.device.operator": ("Operator",),
        "relaxdp.device.server": ("own_server",),
        "relaxdp.market.client": ("MarketClient",),
        "relaxdp.market.publish": ("publish", "Terms", "Published"),
    },
    "Audits": {
        "relaxdp.audit.attacks": ("TranscriptDistribution",),
    },
    "Your own mechanism": {
        "relaxdp.mechanisms.declared_values": ("DeclaredMechanism",),
        "relaxdp.mechanisms.numeric": ("RangeMechanism",),
        "relaxdp.mechanisms.base": ("TrueValues", "KeptRandomness", "MeanWeights"),
        "relaxdp.theory.randomized_response": ("SupportProbabilities",),
        "relaxdp.mechanisms.registry": ("create_mechanism", "register_mechanism", "MechanismKind", "MechanismOption"),
        "relaxdp.audit.exact_check": ("ExactCheckResult",),
    },
    "RAPPOR": {
        "relaxdp.rappor.reports": ("RapporDevice",),
        "relaxdp.mechanisms.bloom": ("Bloom", "BloomShape", "compute_epsilon", "compute_noise"),
    },
    "Baselines": {
        "relaxdp.estimation.schedules": ("compute_noisy_sampling_epsilon",),
        "relaxdp.paper.baselines": ("noisy_sampling_variance", "relaxation_variance", "split_budget_variance"),
    },
    "Unsafe steps, for experiments only": {
        "relaxdp.hazmat": ("SeededEntropy", "relax_once", "bridge_once"),
    },
}  # fmt: skip
"""Names that pages use in addition to `rx`."""
MADE_BY_PEOPLE = {
    "Categorical", "Unary", "LocalHash", "Numeric", "SquareWave", "Relaxation", "Vault", "Counts", "ReportPairs",
    "Explicit", "Linear", "Geometric", "NoisySampling", "ByDate", "UntilPrecise", "MarketClient", "Operator", "Terms",
    "Bloom", "BloomShape", "MechanismKind", "MechanismOption", "Device", "RapporDevice", "SeededEntropy",
}  # fmt: skip
"""Classes whose constructors are shown: all others are given by something."""
ALIASES = {
    "Epsilon": 'a level: a `Decimal`, a whole number, a text as `"0.5"` or a float, which stands for the shortest '
    "decimal that prints as it; above 0",
    "FileName": "a text, or a `Path`",
    "Floats": "a NumPy array of floats",
    "Codes": "a NumPy array of whole numbers, the places of values in their list",
    "About": '`"sample"`, the individuals of the release, or `"population"`, which they were sampled from',
    "Method": '`"average"` or `"precision"`, see {py:meth}`Counts.estimate <relaxdp.Counts.estimate>`',
    "Function": "takes and gives a NumPy array of floats",
    "PlannedValues": "a number of values, or a mechanism",
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
    r"(?:~typing\.)?Literal\['sample', 'population'\]": "About",
    r"(?:~typing\.)?Literal\['average', 'precision'\]": "Method",
    r"int \| [~\w.]*PlannedRange \| [~\w.]*Mechanism": "PlannedValues",
}


def python_pages() -> dict[str, str]:
    """Return the pages by their place; the errors have a module of their own."""
    pages = {}
    for heading, names in GROUPS.items():
        body = "".join(directive(*locate(name)) for name in names if not inspect.ismodule(attrgetter(name)(rx)))
        text = page(heading, body, HEADS[heading])
        if heading in GIVEN:
            text += section("Classes of arguments and results", GIVEN[heading])
        pages[f"reference/python/{slug(heading)}.md"] = text
    head = "Pages of this site also use these names. They may change more often than the names of `rx`."
    beyond = "".join(section(part, modules) for part, modules in BEYOND.items())
    pages["reference/python/beyond.md"] = f"# Beyond `rx`: devices, audits, your own mechanism\n\n{head}\n{beyond}"
    return pages


def locate(name: str) -> tuple[str, str]:
    """Return the module of a public name, and its name there.

    >>> locate("Vault"), locate("schedules.Linear")
    (('relaxdp', 'Vault'), ('relaxdp.estimation.schedules', 'Linear'))
    """
    module, _, own = name.rpartition(".")
    return (attrgetter(module)(rx).__name__ if module else "relaxdp"), own


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
        elif not issubclass(
            found, Mechanism | rx.schedules.Schedule | import_module("relaxdp.estimation.result").Result
        ):
            members += "   :inherited-members: Exception, tuple, dict, Generic, Protocol\n"
        return f".. autoclass:: {module}.{name}\n{members}\n"
    kind = "autofunction" if inspect.isroutine(found) else "autodata"
    return f".. {kind}:: {module}.{name}\n\n"


def short(signature: str) -> str:
    """Return a signature with types by the names that its source has for them."""
    for written, name in _WRITTEN_OUT.items():
        signature = re.sub(written, name, signature)
    return signature


FIELDS = {"Args:": "param", "Raises:": "raises", "Returns:": "returns"}
"""Sections of a docstring, and the fields that Sphinx has for them."""


def listed(lines: list[str]) -> list[str]:
    """Return a docstring's lines with the sections "Args:", "Raises:" and "Returns:" as Sphinx's fields."""
    made, field = [], ""
    for line in lines:
        if line in FIELDS:
            field = FIELDS[line]
            made.append("")
        elif field == "returns" and line.startswith("    "):
            made.append(line if made[-1] else f":returns: {line.strip()}")
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
    """Return docs/api.md as the start of the reference: names lead to their docstrings, and errors to their page."""
    head, found, _ = api.partition("## Error classes\n")
    api = f"{head}{found}\nEach class with its code, sentences and hints: [errors](reference/python/errors.md).\n\n"
    for name in (each for names in GROUPS.values() for each in names):
        target = f"{{py:obj}}`rx.{name} <{'.'.join(locate(name))}>`"
        if inspect.ismodule(attrgetter(name)(rx)):
            target = f"`rx.{name}`" if name != "errors" else "[`rx.errors`](reference/python/errors.md)"
        api = api.replace(f"| `rx.{name}` |", f"| {target} |")
    types = "\n".join(f"| `{name}` | {told} |" for name, told in ALIASES.items())
    beyond = "## Beyond `rx`\n\nDevices, audits, your own mechanism, RAPPOR: [beyond `rx`](reference/python/beyond.md)."
    listed = "\n".join(f"reference/python/{slug(each)}" for each in GROUPS)
    listed += "\nreference/python/errors\nreference/python/beyond"
    return (
        f"{api}{beyond}\n\n## Types in signatures\n\n| type | meaning |\n|---|---|\n{types}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
