"""The record that the public registry of differential-privacy deployments asks for, from a ledger or a campaign.

The registry keeps a YAML file for each deployment, in three tiers of completeness. What a ledger or a campaign knows is
filled in: model, unit of privacy, parameters, releases, composition, mechanisms. What only a person knows is left
empty, with a remark. Names of releases and columns stand in it, so that a person reads it before it is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from relaxdp import __version__
from relaxdp.encodings.registry import encoding_named
from relaxdp.errors import DeploymentError, EncodingError, EpsilonError
from relaxdp.law.epsilon import as_epsilon, epsilon_text
from relaxdp.ledger.account import Account, PathState
from relaxdp.ledger.entries import Sampler, Subject
from relaxdp.ledger.events import BegunAnew, LevelReleased
from relaxdp.ledger.ledger import Ledger

_KNOWN_AS = {
    "categorical": "Randomized response (k-ary)",
    "unary-symmetric": "Symmetric unary encoding (basic RAPPOR)",
    "unary-optimised": "Optimised unary encoding (OUE)",
    "local-hash": "Optimised local hashing (OLH)",
    "numeric": "Randomised rounding to both ends of a range, then randomized response",
    "numeric-missing": "Randomised rounding to both ends of a range, then randomized response",
    "wave": "Square wave",
    "bloom": "RAPPOR's permanent randomized response",
}
"""What the literature calls our encodings."""


@dataclass(frozen=True, slots=True)
class Blank:
    """A field that only a person can fill in, and what belongs there."""

    remark: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A record of the registry. `print` shows the YAML."""

    fields: dict[str, Any]

    def to_yaml(self) -> str:
        """Return the record as the registry takes it, once the fields that are left empty are filled in."""
        return "\n".join([*_lines(self.fields), ""])

    @property
    def left(self) -> tuple[str, ...]:
        """The fields that are left for a person."""
        return tuple(_blanks(self.fields, ""))

    __str__ = to_yaml


def deployment_of_ledger(ledger: Ledger, subject: Subject) -> Deployment:
    """Return the record of all releases that a ledger has charged to a population."""
    account, spent = ledger.account(subject), ledger.balance(subject)  # which refuses a name that it does not know
    history = ledger.history(subject)
    released = [event for event in history if isinstance(event, LevelReleased) and event.cost]
    if not released:
        raise DeploymentError("{subject} is in this ledger, and nothing of it was released.", subject=str(subject))
    paths = [state for state in account.paths if state.largest]
    growing = any(state.facts.growing or state.path.date for state in paths)
    levels = [f"{event.time:%Y-%m-%d}: {event.path} at epsilon {epsilon_text(event.epsilon)}" for event in released]
    unit = f"An object of the {subject}: all its columns, in all releases and on all dates"
    return Deployment(
        _record(
            product="Dataset",
            published=f"{released[0].time:%Y-%m-%d}",
            domain=_listed(
                "Tables with one row for each object, and an id that is the same in all of them:",
                [f"{state.path} ({_meaning(state.facts.encoding)})" for state in paths],
            ),
            unprotected=[
                "How many objects there are, and which ids they have.",
                "The values or the range that were declared for each column.",
                "When each level was released.",
                *(["Which objects joined and left between two releases."] if growing else []),
            ],
            unit=unit,
            epsilon=spent.spent,
            parameters=[
                f"All that was released: epsilon {epsilon_text(spent.spent)}, of a budget of "
                f"{epsilon_text(spent.budget)}. A budget is never reset.",
                *(f"{state.path}: epsilon {epsilon_text(state.largest)}" for state in paths),
                *(
                    ["A key of these releases has spent elsewhere too, which is not in these numbers: add it."]
                    if any(isinstance(event, BegunAnew) for event in history)
                    else []
                ),
            ],
            model="Central",
            model_details=(
                "Whoever holds the table has the truths. Each value is randomised on its own (the randomizers of the "
                "local model) before the table is released: that is what the parameters say of every recipient."
            ),
            many=len({event.time for event in released}) > 1,
            releases=[*levels, *_dates(account)],
            dynamic=growing,
            encodings=sorted({state.facts.encoding for state in paths}),
            drawn=_drawn(paths),
        )
    )


def deployment_of_campaign(campaign: Mapping[str, Any]) -> Deployment:
    """Return the record of a campaign: as it was created from a file, or as `relaxdp campaign show --json` shows it."""
    asked = campaign.get("status", campaign)
    try:
        question, encoding = str(asked["question"]), str(asked["encoding"]["name"])
        levels = [as_epsilon(level["epsilon"]) for level in asked["levels"]]
        largest = max([*levels, *([as_epsilon(asked["largest_epsilon"])] if asked.get("largest_epsilon") else [])])
        opens, devices = asked.get("opens"), asked.get("devices")
        series = (asked.get("series") or {}).get("name")
    except (KeyError, TypeError, ValueError, AttributeError, EpsilonError):
        raise DeploymentError("this is no campaign: it has no question, encoding and levels.") from None
    plural = [epsilon_text(level) for level in levels]
    return Deployment(
        _record(
            product="Summary statistics",
            published=opens[:10] if isinstance(opens, str) else Blank("the day of the first publication, YYYY-MM-DD"),
            domain=f"One answer of each device to the question: {question}",
            unprotected=[
                "That a device takes part, how far it went, and when it sent its reports.",
                "The question, the possible answers and the levels.",
            ],
            unit="A device and its answer to one question",
            number=devices.get("total") if isinstance(devices, Mapping) else None,
            epsilon=largest,
            parameters=[
                f"The campaign goes to epsilon {epsilon_text(largest)} at most, at levels {', '.join(plural)}; "
                "a device can stop at any of them, and pays for the last one that it sent.",
                *(
                    [f"It is one date of the series {series}: who is in several of them pays the sum."]
                    if series
                    else []
                ),
            ],
            model="Local",
            model_details="An answer is randomised on the device; the collector sees reports alone.",
            many=len(levels) > 1 or series is not None,
            releases=[f"Level {place}: epsilon {level}" for place, level in enumerate(plural, 1)],
            dynamic=True,
            encodings=[] if encoding == "auto" else [encoding],
            drawn=[],
        )
    )


def _record(
    *,
    product: str,
    published: str | Blank,
    domain: str,
    unprotected: Sequence[str],
    unit: str,
    epsilon: Decimal,
    parameters: Sequence[str],
    model: str,
    model_details: str,
    many: bool,
    releases: Sequence[str],
    dynamic: bool,
    encodings: Sequence[str],
    drawn: Sequence[str],
    number: int | None = None,
) -> dict[str, Any]:
    mechanisms = [f"{_KNOWN_AS.get(name, name)}: {_meaning(name)}" for name in encodings]
    return {
        "url_slug": Blank("a short name of letters and hyphens, for the address of the record"),
        "deployment": {
            "basic": {
                "name": Blank("the name of the data product"),
                "data_curators": [
                    {
                        "data_curator_name": Blank("who publishes it"),
                        "data_curator_type": Blank("Government, Industry or Nonprofit"),
                    }
                ],
                "description": Blank("what the data product is, in a sentence or two"),
                "intended_use": Blank("what it is for"),
                "data_product_type": product,
                "data_product_region": Blank("which region it describes, or whose laws apply"),
                "data_product_sector": Blank("Technology, Healthcare, Education, Government, Energy or Finance"),
                "publication_date": published,
            },
            "dp_variant": {
                "variant_name": "Pure DP",
                "data_domain": domain,
                "unprotected_quantities": _listed("", unprotected),
            },
            "privacy_loss": {
                "privacy_unit": unit,
                "privacy_unit_details": (
                    "Two data sets are adjacent if they have the same objects, and the truths of one of them differ in "
                    "any way. Whether somebody is in the data is not hidden."
                ),
                **({} if number is None else {"number_of_privacy_units": number}),
                "privacy_parameters": {"epsilon": epsilon},
                "privacy_parameters_details": _listed("", parameters),
            },
            "deployment_model": {
                "model_name": model,
                "model_name_details": model_details,
                "trust_assumptions": Blank("who has the truths, the key and the reports, and why they are trusted"),
                "release_type": "Many releases" if many else "One release",
                "release_type_details": _listed("", releases),
                "data_source_type": "Dynamic" if dynamic else "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": Blank(
                    "what was done to the data before, how epsilon was chosen, and whether by a look at the data"
                ),
                "mechanisms": _listed(
                    "",
                    [
                        *(mechanisms or ["Chosen by the number of answers and the last epsilon, without any answer."]),
                        f"Drawn by relaxdp {__version__}. Chances are whole multiples of 2^-64, rounded to the private "
                        "side; no error of floating-point numbers decides a report.",
                        *drawn,
                    ],
                ),
                "composition": (
                    "Relaxation: of all levels of one path (a column of one release or date) the largest epsilon "
                    "counts, once, because reports at lower levels are made from those at higher ones. Different paths "
                    "of an object add up (sequential composition)."
                ),
                "post_processing": (
                    "Estimates debias the reports in closed form; they may lie below 0 or above 1. Say here if yours "
                    "were made consistent, rounded or cut."
                ),
                "justification": Blank("why these levels, this unit and this model, and who decided it"),
            },
            "administrative": {"status": "Draft", "registry_authors": [Blank("who filled in this record")], "tier": 2},
        },
    }


def _meaning(encoding: str) -> str:
    try:
        return encoding_named(encoding).meaning or encoding
    except EncodingError:  # of a package that is not installed here
        return encoding


def _dates(account: Account) -> list[str]:
    return [f"{each.release} of {each.date} may cost epsilon {epsilon_text(each.budget)}" for each in account.dates]


def _drawn(paths: Sequence[PathState]) -> list[str]:
    words = {
        Sampler.PATH: "Reports are a keyed function of object and truth: a level that is released again is the same.",
        Sampler.ALGORITHM_1: "Reports were drawn with fresh randomness from the last ones, and are kept.",
    }
    return [words[each] for each in Sampler if any(state.facts.sampler is each for state in paths)]


def _listed(heading: str, items: Sequence[str]) -> str:
    if not heading and len(items) == 1:
        return items[0]
    return "\n".join([*([heading] if heading else []), *(f"- {item}" for item in items)])


def _blanks(fields: Any, place: str) -> Iterator[str]:
    if isinstance(fields, Blank):
        yield place
    elif isinstance(fields, dict):
        for name, each in fields.items():
            yield from _blanks(each, f"{place}.{name}".removeprefix("."))
    elif isinstance(fields, list):
        for each in fields:
            yield from _blanks(each, place)


def _lines(content: Mapping[str, Any] | list[Any], depth: int = 0) -> Iterator[str]:
    """Return the lines of a mapping or a list, of which every item but the last level is one itself."""
    pad = "  " * depth
    if isinstance(content, list):
        for item in content:
            first, *others = _lines(item, depth + 1) if isinstance(item, Mapping) else [_scalar(item, depth + 1)]
            yield f"{pad}- {first.lstrip()}"
            yield from others
        return
    for name, each in content.items():
        if isinstance(each, Mapping | list):
            yield f"{pad}{name}:"
            yield from _lines(each, depth + 1)
        else:
            yield f"{pad}{name}: {_scalar(each, depth + 1)}"


def _scalar(content: Any, depth: int) -> str:
    if isinstance(content, Blank):
        return f"''  # Fill in: {content.remark}."
    if isinstance(content, int | Decimal):
        return str(content) if isinstance(content, int) else epsilon_text(content)
    lines = content.split("\n")
    if len(lines) > 1 and all(line.isprintable() and line and line[0] != " " for line in lines):
        return "|-\n" + "\n".join("  " * depth + line for line in lines)
    return _quoted(content)


def _quoted(text: str) -> str:
    """Return a text in double quotes, as JSON and YAML both read it; what does not print is written as its number."""
    return re.sub(
        r"[^\x20-\x7e]",
        lambda letter: letter[0] if letter[0].isprintable() else f"\\U{ord(letter[0]):08x}",
        json.dumps(text, ensure_ascii=False),
    )
