"""What an operator asks of a collector, over HTTP and with a token."""

from __future__ import annotations

import http.client
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

from relaxdp.device.address import Server, check_campaign_id
from relaxdp.device.client import Client
from relaxdp.errors import TableFileError, add_consequence
from relaxdp.sampling.private_file import PrivateFileError, read_private_file
from relaxdp.server_errors import ServerAnswerError, TokenError
from relaxdp.tables.atomic_files import make_unfinished_file, move_to_target

VARIABLE = "RELAXDP_TOKEN"
_CAMPAIGNS, _SURVEYS = "/v1/campaigns", "/v1/surveys"
_LONGEST_EXPORT = 3600.0
_LONGEST_TOKEN = 500
_PARQUET_ENDS = b"PAR1"
_unless_written = add_consequence("Nothing was written.")


class Operator:
    """A collector, as somebody who holds its token sees it. The `repr` does not show the token."""

    def __init__(self, server: Server, token: str, client: Client | None = None) -> None:
        self.server, self._client = server, client or Client(attempts=3)
        self._headers = {"Authorization": f"Bearer {token}"}

    def create(self, campaign: Mapping[str, Any]) -> dict[str, Any]:
        """Create a campaign."""
        return self._ask("POST", _CAMPAIGNS, dict(campaign))

    def campaigns(self) -> list[dict[str, Any]]:
        """Return all campaigns."""
        found = self._ask("GET", _CAMPAIGNS).get("campaigns")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            _unexpected()
        return found

    def status(self, campaign: str) -> dict[str, Any]:
        """Return one campaign, as its operator sees it."""
        return self._ask("GET", self._path(campaign, "status"))

    def act(self, campaign: str, verb: str) -> dict[str, Any]:
        """Relax, pause, resume, finish or reduce a campaign. Never asked twice: two relaxations are two levels."""
        return self._ask("POST", self._path(campaign, verb))

    def estimate(self, campaign: str, **options: Any) -> dict[str, Any]:
        """Return estimates per level and pooled."""
        return self._ask("GET", _asking(self._path(campaign, "estimate"), options))

    def create_survey(self, survey: Mapping[str, Any]) -> dict[str, Any]:
        """Create a survey with all its questions."""
        return self._ask("POST", _SURVEYS, dict(survey))

    def surveys(self) -> list[dict[str, Any]]:
        """Return all surveys, with their questions as the operator sees them."""
        found = self._ask("GET", _SURVEYS).get("surveys")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            _unexpected()
        return found

    def survey(self, name: str, **options: Any) -> dict[str, Any]:
        """Return the estimates of each question of a survey, and the tables of those that are counted together."""
        return self._ask("GET", _asking(f"{_SURVEYS}/{check_campaign_id(name)}/estimate", options))

    def act_survey(self, name: str, verb: str) -> dict[str, Any]:
        """Relax, pause, resume, finish or reduce all questions of a survey."""
        return self._ask("POST", f"{_SURVEYS}/{check_campaign_id(name)}/{verb}")

    def invite_to_survey(self, name: str, count: int) -> list[str]:
        """Return new invitations, each of which serves once in every question."""
        return self._invited(f"{_SURVEYS}/{check_campaign_id(name)}/invitations", count)

    def invite(self, campaign: str, count: int) -> list[str]:
        """Return new invitations, which the server shows this once."""
        return self._invited(self._path(campaign, "invitations"), count)

    def _invited(self, path: str, count: int) -> list[str]:
        found = self._ask("POST", path, {"count": count}).get("invitations")
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            _unexpected()
        return found

    def export(self, campaign: str, level: int, target: Path) -> None:
        """Write the reports at one level to a Parquet file, which appears when it is whole."""

        def receive(response: http.client.HTTPResponse) -> None:
            _save(response, place, target)

        path = _asking(self._path(campaign, "export"), {"level": level})
        with ExitStack() as opened:
            with _unless_written:
                place = opened.enter_context(make_unfinished_file(target))
            self._check(  # what the server refuses, it says itself
                self._client.ask(
                    self.server, "GET", path, headers=self._headers, again=False, receive=receive,
                    longest=_LONGEST_EXPORT,
                )
            )  # fmt: skip
            with _unless_written:
                move_to_target(place, target)

    def _path(self, campaign: str, *words: str) -> str:
        return "/".join((_CAMPAIGNS, check_campaign_id(campaign), *words))

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self._client.ask(self.server, method, path, body, headers=self._headers, again=method == "GET")
        found = self._check(answer)
        if not isinstance(found, dict):
            _unexpected()
        return found

    def _check(self, answer: Any) -> Any:
        if answer.status == 401:
            with add_consequence("Nothing was done."):
                raise TokenError("{server} does not accept the operator token.", server=self.server.host_and_port)
        return self._client.checked(answer, self.server) if answer.body or answer.status != 200 else {}

    def __repr__(self) -> str:
        return f"<Operator of {self.server}>"


def _asking(path: str, options: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(options)}" if options else path


@_unless_written
def _save(response: http.client.HTTPResponse, place: Path, target: Path) -> None:
    """Write an answer to a file, and see that it is whole: an answer without a stated length can break off unseen."""
    end = b""
    try:
        with place.open("wb") as file:
            while part := response.read(1 << 20):
                file.write(part)
                end = (end + part)[-4:]
            file.flush()
            os.fsync(file.fileno())
    except http.client.HTTPException:
        end = b""
    except OSError as problem:
        why = problem.strerror or "the connection was lost"
        raise TableFileError("{path!r} cannot be written: {why}.", path=str(target), why=why) from None
    if end != _PARQUET_ENDS:
        raise ServerAnswerError("the server broke off in the middle of the export.")


def operator_token(file: Path | None, environment: Mapping[str, str]) -> str:
    """Return a token, from a file that only its owner can read or from RELAXDP_TOKEN.

    Never from the command line, which every user of the machine can see.
    """
    if file is None:
        token = environment.get(VARIABLE, "")
        if not token:
            raise TokenError("a token is needed: set {variable}, or name the file that holds it.", variable=VARIABLE)
    else:
        try:
            content = read_private_file(file, _LONGEST_TOKEN + 1)
        except PrivateFileError as problem:
            raise TokenError("the token file {path!r} {why}.", path=str(file), why=problem) from None
        if content is None:
            raise TokenError("there is no token file {path!r}.", path=str(file))
        token = content.decode("ascii", "replace")
    token = token.strip()
    if not 0 < len(token) <= _LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError("that is no token: it is one word of plain letters and digits.")
    return token


def _unexpected() -> NoReturn:
    raise ServerAnswerError("the server's answer is not what a collector answers. Is the address right?")
