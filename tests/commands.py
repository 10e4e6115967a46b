"""Commands that run in this process: what they print, or what they refuse with."""

from __future__ import annotations

from typer.testing import CliRunner

from relaxdp.cli.main import app
from relaxdp.errors import RelaxdpError


def status_and_words(*words: str) -> tuple[int, str]:
    """Return the status of a command and what it prints; of a refusal 2, as `main` gives it, and its sentence."""
    result = CliRunner().invoke(app, [*words])
    if isinstance(result.exception, RelaxdpError):
        return 2, result.exception.message
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def printed(*words: str, status: int = 0) -> str:
    """Return what a command prints that ends with this status; a refusal is raised."""
    result = CliRunner().invoke(app, [*words])
    if isinstance(result.exception, RelaxdpError):
        raise result.exception
    assert result.exit_code == status, result.output
    return result.output
