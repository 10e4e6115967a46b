"""`relaxdp key split|join`: a key is kept by several people."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.commands import Commands
from relaxdp.cli.options import KeyCommand, KeyOption, key_of
from relaxdp.cli.talk import closing
from relaxdp.draw.key import Key
from relaxdp.draw.private_file import PrivateFileError, read_private, write_private
from relaxdp.draw.shares import Share, how_many
from relaxdp.errors import SharesError, refusing

app = Commands(help="Keep a key with several people: split it into shares, and join them.")


@app.command("split")
@refusing("Nothing was written.")
def split(
    folder: Annotated[Path, typer.Argument(help="Where the files of the shares are written; it may be new.")],
    shares: Annotated[str, typer.Option(metavar="K-of-N", help="Any K of N shares make the key again, like 3-of-5.")],
    key: KeyOption = None,
    key_command: KeyCommand = None,
) -> None:
    """Split a key into shares of words, one file each: give each to another person.

    Fewer than are needed tell nothing of the key. The key itself stays as it is. The shares follow SLIP-0039.
    """
    needed, made = how_many(shares)
    secret = key_of(key, key_command)
    written = _write(folder, secret.split(needed, made))
    closing(f"wrote {made} shares of the key {secret.fingerprint} to {folder}, any {needed} of which make it again:")
    closing(f"{written[0].name} to {written[-1].name}; give each to another person, and remove them here")


@app.command("join")
@refusing("Nothing was written.")
def join(
    shares: Annotated[list[Path], typer.Argument(help="Files of shares, or a folder of them.")],
    key: Annotated[str, typer.Argument(help="File for the key, which must not exist; or keyring:NAME.")],
) -> None:
    """Make a key again from so many of its shares as are needed; what comes out is compared with its fingerprint."""
    made = Key.join([share for place in shares for share in _read(place)])
    made.save(key)
    closing(f"wrote the key {made.fingerprint} to {key}")


def _write(folder: Path, shares: list[Share]) -> list[Path]:
    """Write all files or none."""
    places = [folder / f"share-{share.number}-of-{share.made}.txt" for share in shares]
    written: list[Path] = []
    try:
        folder.mkdir(0o700, exist_ok=True)
        for place, share in zip(places, shares, strict=True):
            write_private(place, share.text().encode("ascii"), replace=False)
            written.append(place)
    except BaseException as problem:
        for place in written:
            with suppress(OSError):
                place.unlink()
        if isinstance(problem, FileExistsError):
            raise SharesError(
                "there are shares in {folder!r} already, which may be all that is left of a key.", folder=str(folder)
            ) from None
        if isinstance(problem, PrivateFileError | OSError):
            why = problem.strerror if isinstance(problem, OSError) else problem
            raise SharesError("no share can be written to {folder!r}: {why}.", folder=str(folder), why=why) from None
        raise
    return places


def _read(place: Path) -> list[Share]:
    files = sorted(place.glob("share-*.txt")) if place.is_dir() else [place]
    if not files:
        raise SharesError("there is no share in {folder!r}.", folder=str(place))
    found = []
    for file in files:
        try:
            content = read_private(file)
        except PrivateFileError as problem:
            raise SharesError("the share {path!r} {problem}.", path=str(file), problem=problem) from None
        if content is None:
            raise SharesError("there is no share {path!r}.", path=str(file))
        found.append(Share.parse(content.decode("utf-8", "replace"), file.name))
    return found
