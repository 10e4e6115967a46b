"""The reference of the browser device: every name that relaxdp.js exports, from the comments beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from docs.site.staging import ROOT

DOOR = ROOT / "src" / "relaxdp" / "web" / "device" / "relaxdp.js"
_EXPORT = re.compile(r'export \{ (?P<names>[^}]+) \} from "\./(?P<file>[^"]+)"')
_COMMENT = r"(?:/\*\*(?P<doc>(?:(?!\*/)[\s\S])*)\*/\s*)?"
_MEMBER = re.compile(
    r"^  " + _COMMENT + r"(?P<head>(?:static )?(?:async )?(?:get )?\*?(?!(?:if|for|constructor)\b)[A-Za-z]\w*)(?=\()",
    re.MULTILINE,
)
_TYPEDEF = re.compile(r"/\*\*(?P<doc>(?:(?!\*/)[\s\S])*@typedef \{object\} (?P<name>\w+)(?:(?!\*/)[\s\S])*)\*/")


@dataclass
class Comment:
    """What a JSDoc comment says: words, and tags."""

    text: str = ""
    params: list[tuple[str, str, str]] = field(default_factory=list)
    fields: list[tuple[str, str, str]] = field(default_factory=list)
    returns: tuple[str, str] | None = None


def comment(doc: str | None) -> Comment:
    """Read one comment."""
    lines = [re.sub(r"^\s*\* ?", "", line) for line in (doc or "").strip().splitlines()]
    words, _, tags = "\n".join(lines).partition("@")
    found = Comment(words.strip())
    for tag in re.split(r"^@", tags, flags=re.MULTILINE) if tags else []:
        name, _, rest = tag.partition(" ")
        if name in ("param", "property", "returns"):
            type_, rest = braces(" ".join(rest.split()))
            if name == "returns":
                found.returns = (type_, rest)
            else:
                what, _, told = rest.partition(" ")
                listed = found.params if name == "param" else found.fields
                listed.append((what.strip("[]"), type_, told))
    return found


def braces(text: str) -> tuple[str, str]:
    """Split `{type} rest`, where the type may hold braces itself."""
    if not text.startswith("{"):
        return "", text
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return plain(text[1:at]), text[at + 1 :].strip()
    return "", text


def plain(type_: str) -> str:
    """Return a type without where it was imported from."""
    return re.sub(r'import\("[^"]*"\)\.', "", type_).strip()


def exported() -> list[tuple[str, Path]]:
    """Return every public name and the file that it comes from, in the order of `relaxdp.js`."""
    text = DOOR.read_text("utf-8")
    return [
        (name.strip(), DOOR.parent / found["file"])
        for found in _EXPORT.finditer(text)
        for name in found["names"].split(",")
    ]


def undocumented() -> list[str]:
    """Return the public names and members that no comment explains."""
    found = []
    for name, file in exported():
        doc, members = parts(name, file.read_text("utf-8"))
        found += [] if doc.text else [name]
        for head, _, said in members:
            if not said.text:
                found.append(f"{name}.{head}")
    return found


def parts(name: str, text: str) -> tuple[Comment, list[tuple[str, str, Comment]]]:
    """Return what is said of a name, and of its members where it is a class."""
    start = re.search(_COMMENT + rf"export (?:async )?(?:class|function\*?|const) {name}\b(?P<rest>[^\n]*)", text)
    if start is None:
        raise LookupError(f"{name} is exported, and its file does not have it")
    members = []
    if f"class {name}" in start[0]:
        body = text[start.end() :]
        body = body[: re.search(r"^\}", body, re.MULTILINE).start()]  # type: ignore[union-attr]
        for found in _MEMBER.finditer(body):
            said_of_it = comment(found["doc"])
            members.append((found["head"], arguments(body[found.end() :]), said_of_it))
    return comment(start["doc"]), members


def arguments(text: str) -> str:
    """Return what stands in the parentheses with which a text begins."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return " ".join(text[1:at].split())
    raise LookupError("a parenthesis is not closed")


GROUPS = {
    "A device": (
        "Device", "Participation", "BrowserStorage", "MemoryStorage", "missingParts", "RelaxdpError", "Amount",
        "Client",
    ),
    "Encodings": (
        "Categorical", "Unary", "LocalHash", "Numeric", "Wave", "Bloom", "encodingOf", "categoricalParams",
    ),
    "The stream": ("encode", "derive", "cmac", "threshold", "accept"),
}  # fmt: skip


def javascript_pages() -> dict[str, str]:
    """Return the page, by its place: an overview, then every name in its group, then what they take and give."""
    about = comment(re.search(r"/\*\*(.*?)\*/", DOOR.read_text("utf-8"), re.DOTALL)[1])  # type: ignore[index]
    files = dict(exported())
    found = {name: parts(name, file.read_text("utf-8")) for name, file in files.items()}
    lines = ["# JavaScript", "", about.text, "", _HEAD]
    for group, names in GROUPS.items():
        rows = [f"| [`{name}`](#{name.lower()}) | {first_sentence(found[name][0].text)} |" for name in names]
        lines += [f"**{group}**", "", "| name | what it is |", "|---|---|", *rows, ""]
    for group, names in GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names:
            doc, members = found[name]
            lines += [f"### {name}", "", *said(doc), ""]
            for head, args, each in members:
                call = head if "get " in head else f"{head}({args})"
                lines += [f"#### {name}.{head.split()[-1].lstrip('*')}", "", f"```js\n{call}\n```", "", *said(each), ""]
    lines += ["## Objects", "", "What the names above take and give.", ""]
    for file in [*dict.fromkeys(files.values()), DOOR.parent / "state.js", DOOR.parent / "offer.js"]:
        for typedef in _TYPEDEF.finditer(file.read_text("utf-8")):
            lines += [f"### {typedef['name']}", "", *said(comment(typedef["doc"])), ""]
    return {"reference/javascript.md": "\n".join(lines)}


def first_sentence(text: str) -> str:
    """Return how a comment begins."""
    return re.split(r"(?<=[.]) (?=[A-Z])|\n\n", text, maxsplit=1)[0].replace("\n", " ").replace("|", "\\|")


_HEAD = """The file is `static/device/relaxdp.js` of a service, and the npm package has the same. All of it,
with what to ask a person and when: [A survey in your own site](../embedding.md).

```js
import { Device } from "/private/static/device/relaxdp.js";

const device = await Device.open({ limit: "2" }); // all that this person's reports may ever cost
const campaign = await device.join(`${location.origin}/private/v1/campaigns/commute`, { upto: "1" });
await campaign.answer("bike"); // kept in this browser, and never sent
await device.sync(); // sends the report at the level that is open
```
"""


def said(doc: Comment) -> list[str]:
    """Return a comment as lines of a page."""
    lines = [doc.text]
    rows = [*doc.params, *doc.fields]
    if rows and any(told for _, _, told in rows):
        lines += ["", "| name | type | what it is |", "|---|---|---|"]
        lines += [f"| `{name}` | {code(type_)} | {told} |" for name, type_, told in rows]
    elif rows:
        lines += ["", "Takes " + ", ".join(f"`{name}` ({code(type_)})" for name, type_, _ in rows) + "."]
    if doc.returns is not None:
        type_, told = doc.returns
        lines += ["", f"Returns {code(type_)}{': ' + told if told else ''}."]
    return lines


def code(type_: str) -> str:
    """Return a type as code within a table."""
    return f"`{type_}`".replace("|", "\\|") if type_ else ""
