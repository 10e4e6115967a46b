"""`relaxdp keygen`: a secret key file."""

from __future__ import annotations

from typing import Annotated

import typer

from relaxdp.cli.talk import closing
from relaxdp.draw.key import Key


def keygen(
    key: Annotated[str, typer.Argument(help="File for the key, which must not exist.")],
) -> None:
    """Make a secret key file that only you can read.

    Keep a copy in a safe place: without the key nothing can be relaxed, and with it released reports can be undone.
    """
    made = Key.generate()
    made.save(key)
    closing(f"wrote the key {made.fingerprint} to {key}")
