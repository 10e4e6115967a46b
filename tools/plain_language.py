"""Keep user-facing text in plain language: count marked words and long sentences in every file.

python -m tools.plain_language               fail where a file differs from its baseline in tools/plain_language.json
python -m tools.plain_language FILE...       list every finding of some files
python -m tools.plain_language --lower       lower every baseline to today's count; never raises one
python -m tools.plain_language --move A B    text moved from file or folder A to B: its baseline moves along

A baseline holds two numbers per file: marked words, and sentences of more than 30 words. A file without a baseline may
have neither.

It reads
- Markdown pages, without code blocks; a page that a program writes is read where its text comes from (`GENERATED`),
- in Python, the docstrings of public names and every other string of four words or more (errors, hints, help texts),
- in web pages, the text and the strings of four words or more, in English.
It does not read comments, docstrings of private names and docstrings of modules.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tools.prose import READERS, Block, keep_lines, read_program

ROOT = Path(__file__).parents[1]
BASELINE = Path("tools", "plain_language.json")
MAX_WORDS = 30

GENERATED = {
    "docs/api.md": "tests/docs/api_page.py",
    "docs/benchmarks.md": "benchmarks/report.py",
    "docs/benchmarks-pages.md": "benchmarks/pages.py",
    "docs/benchmarks-table.md": "benchmarks/table.py",
    "docs/commands.md": "tests/docs/help_page.py",
    "docs/consistent.md": "tests/statistical/estimation/consistent_shares.py",
    "docs/coverage.md": "tests/statistical/estimation/interval_coverage.py",
    "docs/gallery.md": "tests/docs/gallery_page.py",
    "docs/shape.md": "benchmarks/shape.py",
    "docs/numbers-measured.md": "benchmarks/waves_page.py",
    "docs/rappor-measured.md": "tests/statistical/rappor/rappor_runs.py",
    "docs/scale.md": "benchmarks/scale_page.py",
}
"""Pages that programs write, and the programs, whose strings are read instead. Pages of which a program writes only
tables (docs/audit.md, docs/market.md, docs/mutants.md, docs/versions.md) are read as they are."""
PROGRAMS = (*GENERATED.values(), "docs/site/*.py")
"""Programs that write pages: their strings are read, their docstrings are not."""
READ = (
    "*.md", "docs/**/*.md", "packages/**/*.md", ".github/**/*.md", *PROGRAMS,
    "src/**/*.py", "src/**/*.js", "src/**/*.ts", "src/**/*.tsx", "src/**/*.html",
)  # fmt: skip
"""Files with text for users."""
NOT_READ = (*GENERATED, "*/words/de.js", "*.d.ts", "src/*/bundled/*")
"""Pages that are read where their text comes from, other languages, declarations of types, and built files."""


class Marker(NamedTuple):
    """A word or phrase to avoid, and the advice of the style guide."""

    name: str
    pattern: re.Pattern[str]
    advice: str


def make_marker(name: str, pattern: str, advice: str) -> Marker:
    """Return a marker for a pattern of whole words."""
    return Marker(name, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), advice)


MARKERS = (
    make_marker("whoever", r"who(?:m|so)?ever", 'name the person: "you", "the analyst", "anyone who"'),
    make_marker("somebody", r"(?:some|no|every|any)body", 'name the person, or write "someone", "no one", "everyone"'),
    make_marker("anew", r"anew", 'write "again"'),
    make_marker("all the same", r"all the same", 'write "anyway" or "still"'),
    make_marker(
        "of its own", r"of (?:its|their|his|her|your|our|one's) own", 'write "its own ..." or "a separate ..."'
    ),
    make_marker("for good", r"for good(?! reasons?\b)", 'write "permanently"'),
    make_marker("is none", r"(?:is|are|was|were|has|have) (?-i:none)", 'write "is not a ..." or "does not exist"'),
    # "There is no file" and "is no longer" are plain English.
    make_marker("is no", r"(?<!there )(?:is|are|was|were) no(?! (?:longer|more|less|fewer|one)\b)", 'write "is not a"'),
    make_marker("so many", r"so many", 'write the number, or "this many"'),
    make_marker("refuse", r"refus(?:e[sd]?|als?|ing)", 'write "reject", "raise" or "fail"'),
    make_marker("beside", r"beside", 'write "next to" or "in the same folder"'),
    make_marker("lies", r"lies?(?! (?:about|to|between|within|above|below|outside)\b)", 'write "is in" or "is at"'),
    make_marker("stands", r"(?:stands?|stood)(?! (?:for|alone)\b|-)", 'write "is in" or "is at"'),
    make_marker(
        "says",
        r"(?:files?|pages?|numbers?|figures?|descriptions?|ledgers?|tables?|columns?|reports?|headers?|options?|CODE)"
        r"(?: that)? (?:says?|said|tells?|told|knows?|knew)",
        'files and numbers "state", "contain" or "show"',
    ),
    make_marker("law", r"laws?", 'write "distribution" or "probability"'),
    make_marker("truth", r"(?<!ground )truths?", 'write "true value" or "answer"'),
    make_marker("object", r"(?<!JSON )(?<!Python )objects?", 'write "user", "individual", "row" or "device"'),
    make_marker("encoding", r"(?<!character )(?<!UTF-8 )(?<!-)encodings?", 'write "mechanism" or "randomizer"'),
    make_marker("take the noise out", r"(?:take|takes|taking|took) the noise out", 'write "debias"'),
    make_marker("towards the public", r"towards the public", 'write "amplification by shuffling"'),
    make_marker("made-up reports", r"made[- ]up (?:reports?|answers?)", 'write "fabricated reports"'),
    make_marker("kept column", r"kept columns?", 'write "pass-through column"'),
    make_marker("counted together", r"counted together", 'write "crosstab"'),
    make_marker("to within", r"to within", 'write "with a margin of error of"'),
)
ANY_MARKER = re.compile("|".join(marker.pattern.pattern for marker in MARKERS), re.IGNORECASE)
ALLOWED = {
    "docs/proofs/*": {"law", "truth", "object"},
    "src/relaxdp/theory/*": {"law", "truth", "object"},
    "src/relaxdp/sampling/*": {"truth", "object"},
    "src/relaxdp/mechanisms/*": {"truth", "object"},
}
"""Where the style guide allows a marked word: inside of proofs and in the core."""
HEADLESS = re.compile(r"(?:^|[:;] )\W*(whom?|what)\b", re.IGNORECASE)
LONG = "long sentence"
WORDS, SENTENCES = "marked words", "long sentences"

_CODE = re.compile(
    r"(`+)[^`]+\1|(?<![-\w])--[a-z][-a-z]*|\b[a-z_]+=(?!=)|\$[^$\n]+\$|https?://\S+"
    r"|(?:[\w.-]*/)*[\w-]+\.(?:md|py|js|json|toml|csv|parquet|html)\b"
)
_FIELD = re.compile(r"\$?\{[^{}]*\}")
_MARKUP = re.compile(r"!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)\s]*\)|</?[a-zA-Z][^<>]*>|<!--.*?-->|[*\[\]]", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[^a-z\s])")
_WORD = re.compile(r"[A-Za-z][\w'’-]*")


class Finding(NamedTuple):
    """One marked word or long sentence: its line, the marker, the text, and what to write instead."""

    line: int
    name: str
    text: str
    advice: str

    @property
    def kind(self) -> str:
        """Return which of the two numbers of a file counts it."""
        return SENTENCES if self.name == LONG else WORDS


Counts = Counter[tuple[str, str]]
"""Findings by file and kind."""


def list_files(root: Path) -> dict[str, Path]:
    """Return the files to read by their names."""
    found = {file.relative_to(root).as_posix(): file for pattern in READ for file in root.glob(pattern)}
    return {name: found[name] for name in sorted(found) if not any(fnmatch(name, each) for each in NOT_READ)}


def read_file(name: str, text: str) -> list[Finding]:
    """Return every finding in the text of a file, line by line."""
    is_program = any(fnmatch(name, each) for each in PROGRAMS)
    blocks = read_program(text) if is_program else READERS[Path(name).suffix](text)
    allowed = {word for pattern, words in ALLOWED.items() if fnmatch(name, pattern) for word in words}
    return sorted(each for block in blocks for each in find_problems(block) if each.name not in allowed)


def find_problems(block: Block) -> Iterator[Finding]:
    """Yield marked words, headless sentences and long sentences of a block."""
    text = _MARKUP.sub(keep_lines, _FIELD.sub("X", _CODE.sub("CODE", block.text)))
    for marker in MARKERS if ANY_MARKER.search(text) else ():
        for found in marker.pattern.finditer(text):
            line = block.line + text.count("\n", 0, found.start())
            yield Finding(line, marker.name, " ".join(found[0].split()), marker.advice)
    start = 0
    for sentence in _SENTENCE_END.split(text):
        start = text.index(sentence, start)
        line = block.line + text.count("\n", 0, start)
        words = _WORD.findall(sentence)
        if len(words) >= 4 and not sentence.rstrip().endswith("?"):
            for found in HEADLESS.finditer(sentence):
                yield Finding(line, "headless", found[1], "start with the subject, not with What or Who")
        if len(words) > MAX_WORDS:
            advice = f"split the sentence: it has {len(words)} words, at most {MAX_WORDS} are allowed"
            yield Finding(line, LONG, " ".join([*words[:4], "..."]), advice)


def count_findings(findings: dict[str, list[Finding]]) -> Counts:
    """Count the findings of each kind in each file."""
    return Counter((name, each.kind) for name, found in findings.items() for each in found)


def load_baseline(root: Path) -> Counts:
    """Read the baseline."""
    read = json.loads((root / BASELINE).read_text("utf-8"))
    return Counter({(name, kind): number for name, numbers in read.items() for kind, number in numbers.items()})


def save_baseline(root: Path, baseline: Counts) -> None:
    """Write the baseline, one line per file that has findings."""
    lines = []
    for name in sorted({name for (name, _), number in baseline.items() if number}):
        numbers = {kind: baseline[name, kind] for kind in (WORDS, SENTENCES) if baseline[name, kind]}
        lines.append(f"  {json.dumps(name)}: {json.dumps(numbers)}")
    (root / BASELINE).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def move_baseline(baseline: Counts, counts: Counts, old: str, new: str) -> Counts:
    """Return the baseline where files at `new` got what files at `old` no longer need; the sum stays the same."""
    moved, spare, lacking = baseline.copy(), baseline - counts, counts - baseline
    for name, kind in spare:
        if name == old or name.startswith(f"{old}/"):
            target = new + name.removeprefix(old)
            number = min(spare[name, kind], lacking[target, kind])
            moved[name, kind] -= number
            moved[target, kind] += number
    return moved


def describe_differences(baseline: Counts, findings: dict[str, list[Finding]]) -> Iterator[str]:
    """Yield a line for everything that differs from the baseline."""
    counts = count_findings(findings)
    above, below = counts - baseline, baseline - counts
    for name, kind in sorted(above):
        yield from describe_findings(name, [each for each in findings[name] if each.kind == kind])
        yield f"{name}: {counts[name, kind]} {kind}, {above[name, kind]} more than the baseline."
    for name, kind in sorted(below):
        yield f"{name}: {counts[name, kind]} {kind}, {below[name, kind]} fewer than the baseline."
    if above:
        yield "Rewrite the text. If it only moved from another file: python -m tools.plain_language --move OLD NEW"
    if below:
        yield "Lower the baseline: python -m tools.plain_language --lower"


def describe_findings(name: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line per finding."""
    return (f'{name}:{each.line}: "{each.text}": {each.advice}' for each in findings)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print every difference; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.plain_language", description="Check user-facing text.")
    parser.add_argument("files", nargs="*", help="list every finding of these files")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--lower", action="store_true", help="lower every baseline to today's count; never raise one")
    mode.add_argument("--move", nargs=2, metavar=("OLD", "NEW"), help="move the baseline of text that moved")
    chosen = parser.parse_args(arguments)
    files = list_files(root)
    if unknown := [name for name in chosen.files if name not in files]:
        parser.error(f"not among the files that are read: {', '.join(unknown)}")
    findings = {name: read_file(name, files[name].read_text("utf-8")) for name in chosen.files or files}
    if chosen.files:
        print("\n".join(line for name in chosen.files for line in describe_findings(name, findings[name])))
        return 0
    counts, baseline = count_findings(findings), load_baseline(root)
    if chosen.lower:
        baseline &= counts
    elif chosen.move:
        baseline = move_baseline(baseline, counts, *chosen.move)
    if chosen.lower or chosen.move:
        save_baseline(root, baseline)
    problems = list(describe_differences(baseline, findings))
    for problem in problems:
        print(problem, file=sys.stderr)
    totals = [f"{sum(counts[name, kind] for name in files):,} {kind}" for kind in (WORDS, SENTENCES)]
    print(f"{' and '.join(totals)} in {len(files)} files with text for users")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
