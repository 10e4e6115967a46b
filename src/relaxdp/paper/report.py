"""The results of a run: the report, as Markdown and as one HTML page that asks nobody for anything, in a folder.

The folder appears whole or not at all, and only takes the place of what an earlier run wrote.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import NoReturn

from relaxdp.errors import TableFileError
from relaxdp.paper.claims import Judged, Verdict
from relaxdp.paper.judge import RATE
from relaxdp.paper.runner import Run

TITLE = "Randomized Response with Gradual Release of Privacy Budget, reproduced"
_MARKS = {Verdict.HOLDS: "good", Verdict.CORRECTED: "good", Verdict.FAILS: "bad", Verdict.UNCHECKABLE: "open"}
_CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid #ddd; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1.2rem; font-size: 1.25rem; }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: 0.35rem 1rem; }
dt { color: #555; } dd { margin: 0; }
figure { margin: 1.2rem 0; } img { max-width: 100%; height: auto; } figcaption { color: #444; font-size: 0.92rem; }
.verdict { font-weight: 600; padding: 0.05rem 0.5rem; border-radius: 0.3rem; white-space: nowrap; }
.good { background: #dff0e4; color: #10522b; } .bad { background: #fbdcd7; color: #7d1407; }
.open { background: #ececec; color: #333; }
details { margin: 0.6rem 0; } summary { cursor: pointer; color: #333; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; } dt { margin-top: 0.4rem; } }
"""


def markdown(run: Run) -> str:
    """Return the report as Markdown; figures are links into the folder."""
    lines = [f"# {TITLE}", "", *_introduction(run), "", "| claim | place | verdict |", "|---|---|---|"]
    lines += [
        f"| [{each.claim.title}](#{each.claim.name}) | {each.claim.place} | {each.verdict} |" for each in run.judged
    ]
    for each in run.judged:
        lines += ["", f'<a id="{each.claim.name}"></a>', f"## {each.claim.title}: {each.verdict}", ""]
        lines += [f"- **{term}**: {text}" for term, text in _terms(each)]
        lines += [f"- **Failed**: {check.name} ({check.detail})" for check in each.outcome.checks if not check.passed]
        for name, picture in each.outcome.pictures.items():
            lines += ["", f"![{name}](figures/{name}.png)", "", f"*{picture.caption}*"]
        if each.outcome.data:
            links = ", ".join(f"[{name}.csv](data/{name}.csv)" for name in each.outcome.data)
            lines += ["", f"Data: {links}"]
    return "\n".join(lines) + "\n"


def html(run: Run, files: Mapping[str, bytes]) -> str:
    """Return the report as one page; the figures are inside of it."""
    parts = [
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(TITLE)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_CSS}</style>\n</head>\n<body>\n<h1>{escape(TITLE)}</h1>",
        *(f"<p>{escape(text)}</p>" for text in _introduction(run) if text),
        "<table>\n<thead><tr><th>claim</th><th>place</th><th>verdict</th></tr></thead>\n<tbody>",
        *(_row(each) for each in run.judged),
        "</tbody>\n</table>",
        *(_section(each, files) for each in run.judged),
        "</body>\n</html>",
    ]
    return "\n".join(parts) + "\n"


def _introduction(run: Run) -> list[str]:
    settings = run.settings
    counts = {verdict: sum(each.verdict is verdict for each in run.judged) for verdict in Verdict}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return [
        f"Seed {settings.seed}. {len(run.judged)} claims: {said}.",
        "",
        f"Figures show the paper's {settings.shown} runs; tests use {settings.runs:,}. Everything relaxed is drawn "
        "twice, on the keyed path and with Algorithm 1. Each of the "
        f"{run.random_checks} checks that chance enters fails correct code with a probability of at most {RATE:g}, so "
        f"that this whole report would wrongly find fault with a probability of at most {run.false_alarm:.1g}. All "
        "other checks compare exact numbers.",
    ]


def _terms(each: Judged) -> list[tuple[str, str]]:
    claim, outcome = each.claim, each.outcome
    random = sum(check.false_alarm > 0 for check in outcome.checks)
    rate = f"false-alarm rate at most {each.false_alarm:.1g}" if random else "no chance involved"
    checks = f"{len(outcome.checks)} check{'s' if len(outcome.checks) != 1 else ''}, {rate}."
    terms = [("The paper says", f"{claim.statement} ({claim.place})")]
    terms += [("Correction", claim.correction)] if claim.correction else []
    terms += [("Not checkable", claim.unchecked)] if claim.unchecked else []
    return [*terms, ("Measured", outcome.measured), ("Test", f"{outcome.test} {checks}")]


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {_MARKS[verdict]}">{verdict}</span>'


def _row(each: Judged) -> str:
    link = f'<a href="#{each.claim.name}">{escape(each.claim.title)}</a>'
    return f"<tr><td>{link}</td><td>{escape(each.claim.place)}</td><td>{_badge(each.verdict)}</td></tr>"


def _section(each: Judged, files: Mapping[str, bytes]) -> str:
    parts = [f'<h2 id="{each.claim.name}">{escape(each.claim.title)} {_badge(each.verdict)}</h2>\n<dl>']
    parts += [f"<dt>{term}</dt><dd>{escape(text)}</dd>" for term, text in _terms(each)]
    parts.append("</dl>")
    for name, picture in each.outcome.pictures.items():
        image = b64encode(files[f"figures/{name}.svg"]).decode("ascii")
        parts.append(
            f'<figure><img alt="{escape(picture.caption)}" src="data:image/svg+xml;base64,{image}">'
            f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
        )
    rows = "\n".join(
        f"<tr><td>{escape(check.name)}</td><td>{'passed' if check.passed else 'FAILED'}</td>"
        f"<td>{escape(check.detail)}</td></tr>"
        for check in each.outcome.checks
    )
    opened = "" if each.verdict is not Verdict.FAILS else " open"
    parts.append(f"<details{opened}><summary>Checks</summary>\n<table><tbody>{rows}</tbody></table></details>")
    return "\n".join(parts)


MANIFEST = "manifest.json"
_FORMAT = "relaxdp reproduce 1"


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds anything but the unchanged files of an earlier run. An empty one is fine."""
    if not folder.exists():
        return
    if not folder.is_dir():
        _refuse(folder, "is not a folder")
    present = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    if not present:
        return
    written = _written(folder / MANIFEST)
    if written is None:
        _refuse(folder, "holds files that no earlier run has written")
    for name, path in sorted(present.items()):
        if name != MANIFEST and written.get(name) != _digest(path.read_bytes()):
            _refuse(folder, f"holds {name!r}, which no earlier run has written or which was changed since")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files aside, then give the folder its name; an earlier run's folder goes away."""
    refuse_foreign(folder)
    manifest = {"format": _FORMAT, "files": {name: _digest(content) for name, content in sorted(files.items())}}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as aside:
            place = Path(aside) / "new"
            place.mkdir()
            for name, content in {**files, MANIFEST: json.dumps(manifest, indent=1).encode()}.items():
                target = place / name
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(content)
            _replace(place, folder, old=Path(aside) / "old")
    except OSError as problem:
        raise TableFileError(
            "the folder {path!r} cannot be written: {why}.", why=problem.strerror, path=str(folder)
        ) from None


def _replace(place: Path, folder: Path, *, old: Path) -> None:
    """Give the new folder its name; if that fails, the earlier one gets its name back."""
    if folder.exists():
        folder.rename(old)
    try:
        place.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise


def _written(manifest: Path) -> dict[str, str] | None:
    """Return the digests of what an earlier run wrote, or None where there was none."""
    try:
        content = json.loads(manifest.read_text("utf-8"))
        return dict(content["files"]) if content["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _refuse(folder: Path, reason: str) -> NoReturn:
    raise TableFileError("{path!r} {reason}. Name another folder.", reason=reason, path=str(folder))
