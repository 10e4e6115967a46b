"""`relaxdp backup` and `relaxdp restore`: the key and its ledger in one file, and back."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaxdp.cli.options import (
    KEY_VARIABLE,
    LEDGER_VARIABLE,
    KeyCommand,
    KeyOption,
    LedgerOption,
    key_of,
    ledger_place,
)
from relaxdp.cli.streams import say
from relaxdp.cli.talk import closing
from relaxdp.errors import BackupError, OptionError, refusing

if TYPE_CHECKING:
    from relaxdp.safekeeping.archive import Contents

_LONGEST = 1 << 12
PassphraseFile = Annotated[
    Path | None,
    typer.Option("--passphrase-file", help="Private file with the passphrase  [default: you are asked for it]"),
]
PassphraseCommand = Annotated[
    str | None,
    typer.Option("--passphrase-command", metavar="COMMAND", help="Command that prints the passphrase instead."),
]


@refusing("Nothing was written.")
def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="File for the backup; it must not exist.")],
    key: KeyOption = None,
    key_command: KeyCommand = None,
    ledger: LedgerOption = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Leave the key out; no passphrase is needed then.")
    ] = False,
    passphrase_file: PassphraseFile = None,
    passphrase_command: PassphraseCommand = None,
) -> None:
    """Write one file with the key, sealed under a passphrase, its ledger, and what lies beside the ledger.

    It can be made while others release. Make one after each release: an older one forgets what was spent since.
    """
    from relaxdp.safekeeping.backup import back_up  # noqa: PLC0415

    if without_key and (passphrase_file or passphrase_command):
        raise OptionError("without the key nothing is sealed, so that there is no passphrase.")
    place = ledger_place(ledger, key, key_command)
    if target.exists():
        raise BackupError("{path!r} exists already.", path=str(target))
    secret = None if without_key else key_of(key, key_command)
    passphrase = None if without_key else _passphrase(passphrase_file, passphrase_command, is_new=True)
    made = back_up(target, place, key=secret, passphrase=passphrase)
    what = "the ledger" if secret is None else f"the key {secret.fingerprint} and the ledger"
    closing(f"wrote {what} to {target}: {_described(made)}")


@refusing("Nothing was restored.")
def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A backup that `relaxdp backup` wrote.")],
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            envvar=KEY_VARIABLE,
            metavar="KEY",
            show_default=False,
            help="Where the key comes back to: a file that must not exist.",
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            envvar=LEDGER_VARIABLE, metavar="FILE", help="Where the ledger comes back to  [default: KEY.ledger]"
        ),
    ] = None,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Restore the ledger alone: the key is there, or comes from elsewhere.")
    ] = False,
    released: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Released file, or folder of them, that the ledger must know; may be given several times.",
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    passphrase_command: PassphraseCommand = None,
) -> None:
    """Put a backup back: the key, its ledger, and what lies beside the ledger. Nothing is overwritten.

    An old backup forgets what was spent after it. Name the released files, and a ledger that does not know one of them
    is refused: look for a newer backup, or restore without naming them and charge what is missing (docs/ledger.md).
    """
    from relaxdp.safekeeping.backup import restore as put_back  # noqa: PLC0415

    if key is None and not without_key:
        raise OptionError("say where the key comes back to, with --key, or that it does not: --without-key.")
    place = ledger_place(ledger, key, None)
    done = put_back(
        source, place, key=None if without_key else key, released=released or (),
        passphrase=None if without_key else lambda: _passphrase(passphrase_file, passphrase_command, is_new=False),
    )  # fmt: skip
    what = "the ledger" if without_key else f"the key {done.contents.key} to {key} and the ledger"
    closing(f"restored {what} to {place}: {_described(done.contents)}")
    if done.elsewhere:
        listed = " and ".join(map(repr, done.elsewhere))
        closing(f"it was at {done.contents.ledger!r}; the key has spent in {listed}, and goes on here")
    if done.forgotten:
        say(
            f"this backup is old: entries that the ledger had and are not in it: {done.forgotten:,}. Look for a newer "
            "one, or charge what left since before anything else (docs/ledger.md)."
        )
        raise typer.Exit(1)
    if done.compared:
        closing(f"compared with released columns: {done.compared:,}; it knows them all")
    else:
        closing(f"what left after it was made is not in it: `relaxdp budget check FILES --ledger {place}` compares")


def _described(contents: Contents) -> str:
    beside = len(contents.parts) - 1
    last = "" if contents.last is None else f", the last of {contents.last[:16].replace('T', ' ')} UTC"
    return f"{contents.events:,} entries{last}" + (f", and {beside:,} files beside it" if beside else "")


def _passphrase(file: Path | None, command: str | None, *, is_new: bool) -> str:
    """Return the passphrase, from where it is said to be, or from a person; a new one is asked for twice."""
    from relaxdp.draw.key_sources import SourceError, printed_by, program_of, words_of  # noqa: PLC0415
    from relaxdp.draw.private_file import PrivateFileError, read_private  # noqa: PLC0415

    if file is not None and command is not None:
        raise OptionError("--passphrase-file and --passphrase-command exclude each other.")
    if command is not None:
        try:
            return _text(printed_by(words_of(command)))
        except SourceError as problem:
            raise BackupError(
                "the passphrase command {program!r} {problem}.", program=program_of(command), problem=problem
            ) from None
    if file is not None:
        try:
            content = read_private(file, _LONGEST)
        except PrivateFileError as problem:
            raise BackupError("the passphrase file {path!r} {problem}.", path=str(file), problem=problem) from None
        if content is None:
            raise BackupError("there is no passphrase file {path!r}.", path=str(file))
        return _text(content)
    if not sys.stdin.isatty():
        raise OptionError(
            "there is no terminal to ask for the passphrase: name a private file with --passphrase-file, or a command "
            "with --passphrase-command."
        )
    typed = getpass.getpass("passphrase, which is not shown: ")
    if is_new and getpass.getpass("the same again: ") != typed:
        raise BackupError("the two passphrases differ.")
    return typed


def _text(content: bytes) -> str:
    """Return the first line: editors and commands end it, and a passphrase has no end of a line in it."""
    return content.decode("utf-8", "replace").partition("\n")[0].rstrip("\r")
