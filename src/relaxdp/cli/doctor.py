"""`relaxdp doctor`: what is installed, and whether key, ledger, clock and disk are as they should be."""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaxdp import __version__
from relaxdp.cli.options import KEY_VARIABLE, LEDGER_VARIABLE, JsonOption, KeyCommand, KeyOption, key_of
from relaxdp.cli.render import show_json
from relaxdp.cli.talk import is_quiet
from relaxdp.draw.kernel.loaded import in_use
from relaxdp.errors import LedgerError, RelaxdpError

if TYPE_CHECKING:
    from relaxdp.draw.key import Key

_EXTRA = re.compile(r"(?P<package>[\w.-]+).*;.*extra == ['\"](?P<extra>[\w-]+)['\"]")
_LEAST_ROOM = 100 << 20
"""So many bytes are to be free where sorts spill and where the ledger lies."""
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""No clock that goes right is before it."""
_SLACK = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    is_well: bool
    says: str


def doctor(
    key: KeyOption = None,
    key_command: KeyCommand = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", envvar=LEDGER_VARIABLE, help="Ledger file or database URL to look at  [default: KEY.ledger]"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at what is installed, and whether key, ledger, clock and disk are as they should be.

    Nothing is changed, and nothing secret is shown. The exit status is 0 if all is well, and 1 otherwise.
    """
    parts, findings = (
        installed(),
        list(_findings(partial(key_of, key, key_command) if key or key_command else None, ledger)),
    )
    is_well = all(each.is_well for each in findings)
    if as_json:
        show_json({"well": is_well, "installed": parts, "findings": [asdict(each) for each in findings]})
    else:
        for each in findings:
            if not (each.is_well and is_quiet()):
                typer.echo(f"{'ok  ' if each.is_well else 'BAD '}  {each.what:<8}  {each.says}")
        if not is_quiet():
            for extra, packages in parts.items():
                shown = ", ".join(f"{name} {found or 'missing'}" for name, found in packages.items())
                command = "" if all(packages.values()) else f"; pip install 'relaxdp[{extra}]'"
                typer.echo(f"{'ok  ' if all(packages.values()) else '--  '}  {extra:<8}  {shown}{command}")
    raise typer.Exit(0 if is_well else 1)


def installed() -> dict[str, dict[str, str | None]]:
    """Return the optional parts: for each, the packages that it needs and which version of them is here."""
    found: dict[str, dict[str, str | None]] = {}
    for line in requires("relaxdp") or ():
        match = _EXTRA.match(line)
        if match is not None and match["package"] != "relaxdp":
            found.setdefault(match["extra"], {})[match["package"]] = _version(match["package"])
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _findings(key: Callable[[], Key] | None, ledger: str | None) -> Iterator[Finding]:
    yield Finding("relaxdp", True, f"{__version__}, Python {platform.python_version()}, {platform.system()}")
    yield _looked("kernel", lambda: f"drawn by {in_use()}")
    now = datetime.now(UTC)
    yield Finding("clock", now > _BEGINNING, f"{now:%Y-%m-%d %H:%M} UTC")
    yield from _key_and_ledger(key, ledger, now)
    yield from (_room(what, folder) for what, folder in (("disk", Path.cwd()), ("sorts", Path(tempfile.gettempdir()))))


def _looked(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, look())
    except RelaxdpError as problem:
        return Finding(what, False, problem.sentence)


def _key_and_ledger(key: Callable[[], Key] | None, ledger: str | None, now: datetime) -> Iterator[Finding]:
    secret: Key | None = None
    if key is None:
        yield Finding("key", True, f"none is named: --key or {KEY_VARIABLE} names its file")
    else:
        opened: list[Key] = []  # a command is run once: it may ask somebody
        found = _looked("key", lambda: _key_state(key, opened))
        yield found
        if ledger is None and not found.is_well:  # where a key itself was given, no file name is made of it
            return
        secret = opened[0] if opened else None
    if ledger is None and key is None:
        yield Finding("ledger", True, f"none is named: --ledger or {LEDGER_VARIABLE} names it, or --key does")
        return
    yield _looked("ledger", lambda: _ledger_state(secret, ledger, now))


def _key_state(key: Callable[[], Key], opened: list[Key]) -> str:
    opened.append(key())
    where = "which only you can read" if opened[0].source is not None else "from no file"
    return f"{opened[0].fingerprint}, {where}"


def _ledger_state(key: Key | None, ledger: str | None, now: datetime) -> str:
    # Databases are imported by whoever has a ledger.
    from relaxdp.ledger.ledger import Ledger  # noqa: PLC0415
    from relaxdp.ledger.payer import ledger_beside  # noqa: PLC0415
    from relaxdp.ledger.store import SCHEMA  # noqa: PLC0415

    # The one beside a key is begun by the first release, and may be missing until then; nothing is written here.
    place = ledger if ledger is not None or key is None else ledger_beside(key)
    with Ledger.open(str(place), create=ledger is None) as book:
        book.verify()
        events = book.history()
        if not events:
            return "nothing was released yet"
        last = max(event.time for event in events)
        if last > now + _SLACK:
            raise LedgerError("its last entry is from {last}, which the clock has not reached.", last=last.isoformat())
        return f"schema {SCHEMA.version}, {len(events):,} entries that add up, the last of {last:%Y-%m-%d}"


def _room(what: str, folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as problem:
        return Finding(what, False, f"the folder cannot be looked at: {problem.strerror}")
    return Finding(what, free >= _LEAST_ROOM, f"{free / 2**30:,.1f} GiB free in {str(folder)!r}")
