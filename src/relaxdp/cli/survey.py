"""`relaxdp survey ...`: several questions to many devices under one limit, from a JSON file, asked of a collector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.campaign_options import (
    About,
    Confidence,
    Invitations,
    Method,
    ServerOption,
    TokenFile,
    operator_of,
    say,
    say_invitations,
)
from relaxdp.cli.campaign_request import described_in
from relaxdp.cli.campaign_tables import expected, overview, overview_table, questions_table, text, two_way_table
from relaxdp.cli.main import CommandGroup
from relaxdp.cli.options import MAX_ROWS, CaFile, JsonOption
from relaxdp.device.address import Server

app = CommandGroup(help="Ask many devices several questions: create and steer surveys of a collector.")

Survey = Annotated[str, typer.Argument(metavar="SURVEY", help="Name of the survey.")]


@app.command("create")
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The whole survey as JSON.")],
    server: ServerOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Create a survey with all its questions. Which of them are counted together is said now, or never."""
    made = operator_of(server, token_file, ca_file).create_survey(described_in(file, "survey"))
    if as_json:
        typer.echo(json.dumps(made))
        return
    where = Server.parse(server)
    with expected():
        name, questions, cross = text(made["id"]), len(made["questions"]), made["cross"]
        pairs = [f"{text(rows)} and {text(columns)}" for rows, columns in cross]
    typer.echo(f"created {name} with {questions} questions")
    typer.echo(f"people answer at {where}/surveys/{name}; apps use {where}/v1/surveys/{name}")
    if pairs:
        typer.echo(f"counted together: {', '.join(pairs)}")


@app.command("list")
def list_(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """List all surveys of a collector, with their questions."""
    found = operator_of(server, token_file, ca_file).surveys()
    say(found, as_json, lambda: [overview_table(_rows(found), "survey")])


def _rows(surveys: list[dict[str, Any]]) -> Iterator[list[str]]:
    for each in surveys:
        for place, question in enumerate(each["questions"]):
            yield [text(each["id"]) if place == 0 else "", *overview(question)]


@app.command("show")
def show(
    survey: Survey,
    server: ServerOption,
    method: Method = "average",
    confidence: Confidence = 0.95,
    about: About = "sample",
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Show what all devices say to each question, and the two-way tables of those that are counted together."""
    shown = {} if as_json else {"largest": MAX_ROWS}
    options = {"method": method, "confidence_level": confidence, "about": about, **shown}
    found = operator_of(server, token_file, ca_file).survey(survey, **options)
    say(found, as_json, lambda: [questions_table(found), *(two_way_table(found, each) for each in found["tables"])])


def _steering(verb: str, sentence: str) -> None:
    """Make the command for one step in the life of a survey."""

    @app.command(verb, help=sentence)
    def steer(
        survey: Survey,
        server: ServerOption,
        token_file: TokenFile = None,
        ca_file: CaFile = None,
        as_json: JsonOption = False,
    ) -> None:
        found = operator_of(server, token_file, ca_file).act_survey(survey, verb)
        say(found, as_json, lambda: [f"{text(each['id'])}: {text(each['state'])}" for each in found["questions"]])


_steering("relax", "Open the next level of all questions that have one. It cannot be closed again.")
_steering("pause", "Take no reports to any question for a while.")
_steering("resume", "Go on after a pause.")
_steering("finish", "End all questions for good. Devices erase their answers and keys when they hear of it.")
_steering("reduce", "Delete the reports of a survey whose questions are all finished, and keep their counts.")


@app.command("invite")
def invite(
    survey: Survey,
    server: ServerOption,
    count: Invitations = 1,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Make invitations, each of which serves once in every question. They are shown this once, one a line."""
    made = operator_of(server, token_file, ca_file).invite_to_survey(survey, count)
    say_invitations(made, as_json)
