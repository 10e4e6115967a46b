"""The record for the public registry: what it says, that it is YAML, and what is left for a person."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.refusals import refused
from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.draw.stream import PathId
from relaxdp.errors import DeploymentError, OptionError, TableFileError, UnknownSubjectError
from relaxdp.ledger.entries import Entry, PathFacts, Subject
from relaxdp.ledger.ledger import Ledger
from relaxdp.publication.deployment import deployment_of_campaign, deployment_of_ledger

yaml: Any = pytest.importorskip("yaml")

PEOPLE = Subject.population("everyone")
FACTS = PathFacts("categorical", params="9f2c", key_fingerprint="51ab", id_type="text", table_fingerprint="77e0")
CAMPAIGN = {
    "question": "Do you like tea?",
    "encoding": {"name": "unary-optimised", "values": ["yes", "no"], "options": {}},
    "levels": [{"epsilon": "0.5"}, {"epsilon": "2"}],
    "opens": "2026-10-01T08:00:00Z",
}

# The fields that the registry's schema has, of those that stand in a record, and what it lets choose from.
KNOWN = {
    "": {"url_slug", "deployment"},
    "deployment": {"basic", "dp_variant", "privacy_loss", "deployment_model", "implementation", "administrative"},
    "basic": {"name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
              "data_product_sector", "publication_date"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
                     "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "trust_assumptions", "release_type",
                         "release_type_details", "data_source_type", "access_type"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing",
                       "justification"},
    "administrative": {"status", "registry_authors", "tier"},
}  # fmt: skip
CHOICES: dict[str, set[Any]] = {
    "data_product_type": {"Summary statistics", "Dataset"},
    "variant_name": {"Pure DP"},
    "model_name": {"Local", "Central"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Non-interactive"},
    "status": {"Draft"},
    "tier": {2},
}


def read(text: str) -> dict[str, Any]:
    """The record, and that its fields are those of the registry."""
    record: dict[str, Any] = yaml.safe_load(text)
    parts = {"": record, "deployment": record["deployment"], **record["deployment"]}
    for name, part in parts.items():
        assert set(part) <= KNOWN[name], name
        assert all(part[field] in CHOICES[field] for field in set(part) & set(CHOICES))
    assert set(parts) == set(KNOWN)
    found: dict[str, Any] = record["deployment"]
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "key.ledger")


def test_of_a_ledger(ledger: Ledger) -> None:
    city, age = PathId("survey", "city"), PathId("survey", "age")
    ledger.charge(PEOPLE, city, FACTS, "0.5", budget=4)
    ledger.charge(PEOPLE, city, FACTS, "1.25")
    ledger.charge(PEOPLE, age, FACTS, 1)
    made = deployment_of_ledger(ledger, PEOPLE)
    record = read(made.to_yaml())
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.25}
    assert "of a budget of 4" in record["privacy_loss"]["privacy_parameters_details"]
    assert record["basic"]["publication_date"] == ledger.today()
    assert isinstance(record["basic"]["publication_date"], str)
    assert (record["deployment_model"]["model_name"], record["deployment_model"]["release_type"]) == (
        "Central",
        "Many releases",
    )
    assert record["deployment_model"]["data_source_type"] == "Static"
    assert record["deployment_model"]["release_type_details"].count("\n") == 2
    assert "Randomized response (k-ary)" in record["implementation"]["mechanisms"]
    assert "deployment.basic.name" in made.left
    assert len(made.left) == 12
    for field in made.left:
        assert field.rpartition(".")[2] in made.to_yaml()
    assert made.to_yaml().count("''  # Fill in: ") == 12


def test_one_release_and_dates(ledger: Ledger) -> None:
    ledger.declare_series(PEOPLE, "survey", {"2026": 1, "2027": 1}, reason="every year", budget=4)
    ledger.charge(PEOPLE, PathId("survey", "city", date="2026"), FACTS, 1)
    record = read(deployment_of_ledger(ledger, PEOPLE).to_yaml())
    assert record["deployment_model"]["release_type"] == "One release"
    assert record["deployment_model"]["data_source_type"] == "Dynamic"
    assert "survey of 2027 may cost epsilon 1" in record["deployment_model"]["release_type_details"]


def test_a_key_that_spent_elsewhere_is_said(ledger: Ledger) -> None:
    ledger.charge(PEOPLE, PathId("survey", "city"), FACTS, 1, budget=4)
    assert "elsewhere" not in deployment_of_ledger(ledger, PEOPLE).to_yaml()
    entry = Entry(PathId("survey", "age"), replace(FACTS, key_fingerprint="77ab"), Decimal(1))
    ledger.charge_all(PEOPLE, [entry], anew="the old ledger is on another machine")
    assert "has spent elsewhere too" in deployment_of_ledger(ledger, PEOPLE).to_yaml()


def test_nothing_to_write_of(ledger: Ledger) -> None:
    with refused(UnknownSubjectError):
        deployment_of_ledger(ledger, PEOPLE)
    ledger.set_budget(PEOPLE, 1, reason="a beginning")
    with refused(DeploymentError):
        deployment_of_ledger(ledger, PEOPLE)


def test_of_a_campaign() -> None:
    made = deployment_of_campaign(CAMPAIGN)
    record = read(made.to_yaml())
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 2}
    assert record["basic"]["publication_date"] == "2026-10-01"
    assert record["deployment_model"]["model_name"] == "Local"
    assert record["deployment_model"]["release_type_details"] == "- Level 1: epsilon 0.5\n- Level 2: epsilon 2"
    shown = {"status": {**CAMPAIGN, "largest_epsilon": "3", "devices": {"total": 700}, "opens": None}}
    record = read((made := deployment_of_campaign(shown)).to_yaml())
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 3}
    assert record["privacy_loss"]["number_of_privacy_units"] == 700
    assert "deployment.basic.publication_date" in made.left


@pytest.mark.parametrize(
    "question",
    ["A: b? # c", "'a' \"b\" \\c", "two\nlines", "a\u2028b\x85c\ufeff", "Ä 😀 é", "- x", "*a &b !c %d @e", "\tt ", ""],
)
def test_every_text_comes_back(question: str) -> None:
    made = deployment_of_campaign({**CAMPAIGN, "question": question})
    made.fields["deployment"]["basic"]["name"] = question
    assert read(made.to_yaml())["basic"]["name"] == question
    domain = read(made.to_yaml())["dp_variant"]["data_domain"]
    assert domain == f"One answer of each device to the question: {question}"


@pytest.mark.parametrize("broken", [{}, {"levels": []}, {"levels": [{"epsilon": "x"}]}, {"encoding": "unary"}])
def test_what_is_no_campaign(broken: dict[str, Any]) -> None:
    with refused(DeploymentError):
        deployment_of_campaign({**CAMPAIGN, **broken} if broken else {})


def test_the_command(tmp_path: Path) -> None:
    file, out = tmp_path / "campaign.json", tmp_path / "record.yaml"
    file.write_text(json.dumps(CAMPAIGN), "utf-8")
    shown = CliRunner().invoke(app, ["registry", "--campaign", str(file)])
    assert read(shown.stdout)["deployment_model"]["model_name"] == "Local"
    assert "12 fields are left for you: url_slug, name" in shown.stderr
    written = CliRunner().invoke(app, ["registry", "--campaign", str(file), "--output", str(out), "--quiet"])
    assert (written.exit_code, written.output) == (0, "")
    assert out.read_text("utf-8") == shown.stdout
    again = CliRunner().invoke(app, ["registry", "--campaign", str(file), "--output", str(out)])
    assert isinstance(again.exception, TableFileError)
    file.write_text("[]", "utf-8")
    assert isinstance(CliRunner().invoke(app, ["registry", "--campaign", str(file)]).exception, OptionError)
    missing = CliRunner().invoke(app, ["registry", "--campaign", str(tmp_path / "none")])
    assert isinstance(missing.exception, TableFileError)
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.charge(PEOPLE, PathId("survey", "city"), FACTS, 1, budget=4)
    of_ledger = CliRunner().invoke(app, ["registry", "--ledger", str(tmp_path / "a.ledger")])
    assert read(of_ledger.stdout)["privacy_loss"]["privacy_parameters"] == {"epsilon": 1}
