"""`relaxdp campaign ...`: questions to many devices, by options or a JSON file, asked of a running collector."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from relaxdp.cli.campaign_check import limits, pushed_table, shares_table, verdict
from relaxdp.cli.campaign_options import (
    Confidence,
    Invitations,
    Method,
    ServerOption,
    TokenFile,
    operator_of,
    say,
    say_invitations,
)
from relaxdp.cli.campaign_request import Asked, campaign_request
from relaxdp.cli.campaign_tables import (
    estimate_table,
    expected,
    heading,
    level_table,
    overview,
    overview_table,
    plain,
    publication,
)
from relaxdp.cli.main import CommandGroup
from relaxdp.cli.options import MAX_ROWS, QUARTILES, CaFile, JsonOption, QuantilesOption, parse_quantiles
from relaxdp.cli.terminal import print_done
from relaxdp.device.address import Server
from relaxdp.errors import ArgumentError, add_consequence

app = CommandGroup(help="Ask many devices a question: create and steer campaigns of a collector.")

Campaign = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Name of the campaign.")]


@app.command("create")
def create(
    server: ServerOption,
    question: Annotated[str | None, typer.Option(help="The question, as people read it.")] = None,
    levels: Annotated[str | None, typer.Option(help="Epsilons of the levels, like 0.1,0.5,1,2.")] = None,
    values: Annotated[str | None, typer.Option(help="Values to choose from, like a,b,c.")] = None,
    values_file: Annotated[Path | None, typer.Option(help="File of values, one a line.")] = None,
    number_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="Answers are numbers from LOW to HIGH.")
    ] = None,
    free_text: Annotated[
        Path | None, typer.Option("--words", help="Answers are free text; the file lists the words to look for.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="How values become reports; auto takes the best one.")] = "auto",
    half_width: Annotated[
        float | None, typer.Option(help="Finish by itself when the intervals are so narrow, like 0.01.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="Relax by itself when so many devices have reported at a level.")
    ] = None,
    name: Annotated[str | None, typer.Option("--id", help="Name of the campaign  [default: a random one]")] = None,
    opens: Annotated[str | None, typer.Option(help="When it opens, like 2026-12-01T08:00:00Z.")] = None,
    closes: Annotated[str | None, typer.Option(help="When it closes.")] = None,
    invitations: Annotated[bool, typer.Option("--invitations", help="Only devices with an invitation count.")] = False,
    publish_least: Annotated[
        int | None, typer.Option(help="Publish it when it has ended by itself: levels with so many devices at least.")
    ] = None,
    asker: Annotated[str | None, typer.Option(help="Who asks; the survey says it first.")] = None,
    about: Annotated[str | None, typer.Option(help="What it is about, in one line; not the question.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What the answers are for.")] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask, like a mail address.")] = None,
    privacy_notice: Annotated[str | None, typer.Option(help="The privacy notice, or its https address.")] = None,
    colour: Annotated[
        str | None, typer.Option(help="Colour of the survey's buttons, like #1a5fb4; dark enough for text.")
    ] = None,
    logo: Annotated[Path | None, typer.Option(help="Small picture of who asks: PNG, SVG, WebP or JPEG.")] = None,
    suggested: Annotated[
        str | None, typer.Option(help="Limit that you suggest, one of --levels; people choose their own.")
    ] = None,
    shows_results: Annotated[
        bool, typer.Option("--shows-results", help="The survey shows what is published when it has ended.")
    ] = False,
    file: Annotated[Path | None, typer.Option(help="The whole campaign as JSON, instead of all other options.")] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Create a campaign. Question, values and levels stay as they are for its whole life."""
    asked = Asked(
        question, levels, values, values_file, number_range, free_text, encoding, half_width, devices, name, opens,
        closes, invitations, publish_least, asker, about, purpose, contact, privacy_notice, colour, logo,
        suggested, shows_results,
    )  # fmt: skip
    request = campaign_request(asked, file)
    made = operator_of(server, token_file, ca_file).create(request)
    if as_json:
        typer.echo(json.dumps(made))
        return
    where, made_as = Server.parse(server), made.get("id")
    typer.echo(f"created {made_as}")
    typer.echo(f"people answer at {where}/survey/{made_as}; apps use {where}/v1/campaigns/{made_as}")
    with expected():
        words = publication(made, str(where))
    if words is not None:
        typer.echo(words)


@app.command("list")
def list_(
    server: ServerOption, token_file: TokenFile = None, ca_file: CaFile = None, as_json: JsonOption = False
) -> None:
    """List all campaigns of a collector."""
    found = operator_of(server, token_file, ca_file).campaigns()
    say(found, as_json, lambda: [overview_table(map(overview, found))])


@app.command("show")
def show(
    campaign: Campaign,
    server: ServerOption,
    method: Method = "average",
    confidence: Confidence = 0.95,
    quantiles: QuantilesOption = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a campaign stands: its levels, and what is estimated from all devices together."""
    asked, operator = parse_quantiles(quantiles) or QUARTILES, operator_of(server, token_file, ca_file)
    status = operator.status(campaign)
    shown: dict[str, Any] = {} if as_json else {"largest": MAX_ROWS}
    with expected():
        if "range" in status["encoding"]:
            shown["quantiles"] = ",".join(format(Decimal(repr(each)), "f") for each in asked)
    found = operator.estimate(campaign, method=method, confidence_level=confidence, **shown)
    answer, where = {"status": status, "estimate": found}, str(Server.parse(server))
    say(
        answer,
        as_json,
        lambda: [heading(status), publication(status, where), level_table(status), estimate_table(found)],
    )


@app.command("check")
def check(
    campaign: Campaign,
    server: ServerOption,
    confidence: Confidence = 0.95,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Test for fabricated reports: which values are pushed, how many devices do it, and shares without them.

    An honest device's older report is its newer one after a blur that never sees the answer. So its distribution is
    known, and devices that always send one value do not have it. Look as often as you like. A few devices can go
    unnoticed, above all if reports are numbers. The result states how many.
    """
    shown = {} if as_json else {"largest": MAX_ROWS}
    answer = operator_of(server, token_file, ca_file).estimate(campaign, confidence_level=confidence, **shown)
    with expected():
        found = answer["integrity"]
    say(
        found,
        as_json,
        lambda: [verdict(found), pushed_table(found), shares_table(found, confidence), limits(found)],
    )


def _steering(verb: str, sentence: str) -> None:
    """Make the command for one step in the life of a campaign."""

    @app.command(verb, help=sentence)
    def steer(
        campaign: Campaign,
        server: ServerOption,
        token_file: TokenFile = None,
        ca_file: CaFile = None,
        as_json: JsonOption = False,
    ) -> None:
        status = operator_of(server, token_file, ca_file).act(campaign, verb)
        say(status, as_json, lambda: [heading(status)])


_steering("relax", "Open the next level. It cannot be closed again.")
_steering("pause", "Take no reports for a while.")
_steering("resume", "Go on after a pause.")
_steering("finish", "End a campaign for good, unpublished. Devices erase their answers and keys when they hear of it.")
_steering(
    "reduce", "Delete the reports of a finished campaign and keep their counts. They cannot be exported any more."
)


@app.command("export")
def export(
    campaign: Campaign,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where a Parquet file for each level goes.")],
    server: ServerOption,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Write all reports to Parquet files, one for each level, which `relaxdp estimate` reads together."""
    operator = operator_of(server, token_file, ca_file)
    status = operator.status(campaign)
    with expected():
        opened = [] if status["open_level"] is None else status["levels"][: status["open_level"] + 1]
        files = [folder / f"epsilon-{plain(level['epsilon'])}.parquet" for level in opened]
    _make_room(folder, files)
    for place, file in enumerate(files):
        operator.export(campaign, place, file)
    if as_json:
        typer.echo(json.dumps({"files": [str(file) for file in files]}))
        return
    print_done(f"wrote {len(files)} files to {folder}; relaxdp estimate {folder}/*.parquet reads them")


@add_consequence("Nothing was written.")
def _make_room(folder: Path, files: list[Path]) -> None:
    if folder.is_dir() and any(file.exists() for file in files):
        raise ArgumentError("the folder {path!r} holds an export already.", path=str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ArgumentError(
            "the folder {path!r} cannot be made: {why}.", path=str(folder), why=problem.strerror
        ) from None


@app.command("invite")
def invite(
    campaign: Campaign,
    server: ServerOption,
    count: Invitations = 1,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: JsonOption = False,
) -> None:
    """Make one-time invitations. They are shown this once, one a line."""
    made = operator_of(server, token_file, ca_file).invite(campaign, count)
    say_invitations(made, as_json)
