"""Mistakes of ours in the log: where they happened and of which kind, but not their text, which may quote a request."""

from __future__ import annotations

import logging
import traceback

_logger = logging.getLogger("relaxdp.service")


def log_mistake(what: str, problem: BaseException) -> None:
    """Write down a mistake."""
    frames = "".join(traceback.format_tb(problem.__traceback__))
    _logger.error("%s: %s\n%s", what, type(problem).__name__, frames)
