"""The language check counts what the style guide names, and its baseline can only fall."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tools.plain_language import LONG, SENTENCES, WORDS, find_problems
from tools.prose import Block

from tools import plain_language

LONG_SENTENCE = " ".join(["word"] * (plain_language.MAX_WORDS + 1))


def find(text: str) -> list[str]:
    return [each.name for each in find_problems(Block(1, text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Give it to whoever asks, and nobody else.", ["whoever", "somebody"]),
        ("It is drawn anew, all the same.", ["anew", "all the same"]),
        ("A key of its own is kept for good.", ["of its own", "for good"]),
        ("There is none, and this is no number.", ["is none", "is no"]),
        ("With so many rows it is refused: a refusal.", ["so many", "refuse", "refuse"]),
        ("The key lies beside the ledger and stands there.", ["beside", "lies", "stands"]),
        ("The file says its level, and `--level` tells more.", ["says", "says"]),
        ("The law of an object's truth has an encoding.", ["law", "truth", "object", "encoding"]),
        ("Kept columns are counted together, to within 1 %.", ["kept column", "counted together", "to within"]),
        ("No made-up reports were found.", ["made-up reports"]),
        ("What is released is random.", ["headless"]),
        ("One rule holds: who asks must pay.", ["headless"]),
        ("**Who decides** in the end: the board.", ["headless"]),
        (f"{LONG_SENTENCE}.", [LONG]),
        (f"Short. {LONG_SENTENCE}. Short.", [LONG]),
    ],
)
def test_markers_are_found(text: str, expected: list[str]) -> None:
    assert sorted(find(text)) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    [
        "There is no file 'a.csv', and it is no longer needed.",
        "The default is None.",
        "Besides, the outside, the understanding and the standard.",
        "The estimate lies between 0 and 1, and e stands for epsilon.",
        "What is local differential privacy?",
        "What it is",
        "Return what was released.",
        "`nobody` is code, as are nobody=1, --refuse, docs/encodings/law.md and {refused}.",
        "[The mechanisms](encodings.md) take JSON objects and UTF-8 encodings.",
        " ".join(["word"] * plain_language.MAX_WORDS) + ". Word.",
        f"{' '.join(['word'] * 20)}. {' '.join(['Word'] * 20)}.",
    ],
)
def test_plain_text_has_no_findings(text: str) -> None:
    assert find(text) == []


def test_a_finding_names_its_line_and_the_replacement(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plain_language.main(["docs/page.md"], project) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown == ['docs/page.md:4: "beside": write "next to" or "in the same folder"']


def test_words_of_the_mathematics_are_fine_in_proofs() -> None:
    text = "The law of a truth is beside the point.\n"
    assert [each.name for each in plain_language.read_file("docs/proofs/a.md", text)] == ["beside"]
    assert [each.name for each in plain_language.read_file("docs/a.md", text)] == ["beside", "law", "truth"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose page has one marked word and whose module has one of each kind."""
    for folder in ("docs", "tools", "src/relaxdp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text("# Files\n\nThe key is\nbeside the ledger.\n")
    (tmp_path / "src" / "relaxdp" / "a.py").write_text(f'ERROR = "the table is refused."\nLONG = "{LONG_SENTENCE}."\n')
    baseline = {"docs/page.md": {WORDS: 1}, "src/relaxdp/a.py": {WORDS: 1, SENTENCES: 1}}
    (tmp_path / plain_language.BASELINE).write_text(json.dumps(baseline))
    return tmp_path


def read_baseline(project: Path) -> dict[str, dict[str, int]]:
    read: dict[str, dict[str, int]] = json.loads((project / plain_language.BASELINE).read_text())
    return read


def test_text_at_its_baseline_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plain_language.main([], project) == 0
    assert capsys.readouterr() == ("2 marked words and 1 long sentences in 2 files with text for users\n", "")


def test_one_marked_word_more_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = project / "docs" / "page.md"
    page.write_text(page.read_text() + "\nNobody knows.\n")
    assert plain_language.main([], project) == 1
    assert capsys.readouterr().err.splitlines()[:3] == [
        'docs/page.md:4: "beside": write "next to" or "in the same folder"',
        'docs/page.md:6: "Nobody": name the person, or write "someone", "no one", "everyone"',
        "docs/page.md: 2 marked words, 1 more than the baseline.",
    ]


def test_a_new_file_may_have_no_findings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "docs" / "new.md").write_text("A plain sentence.\n")
    assert plain_language.main([], project) == 0
    (project / "docs" / "new.md").write_text(f"{LONG_SENTENCE}.\n")
    assert plain_language.main([], project) == 1
    shown = capsys.readouterr().err
    assert "docs/new.md:1:" in shown
    assert "docs/new.md: 1 long sentences, 1 more than the baseline." in shown


def test_better_text_fails_until_the_baseline_is_lowered(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "docs" / "page.md").write_text("The key is next to the ledger.\n")
    before = read_baseline(project)
    assert plain_language.main([], project) == 1
    assert read_baseline(project) == before
    assert "docs/page.md: 0 marked words, 1 fewer than the baseline." in capsys.readouterr().err
    assert plain_language.main(["--lower"], project) == 0
    assert read_baseline(project) == {"src/relaxdp/a.py": {WORDS: 1, SENTENCES: 1}}


def test_lower_never_raises(project: Path) -> None:
    (project / "docs" / "page.md").write_text("Nobody knows, and somebody asks.\n")
    (project / "docs" / "new.md").write_text("Nobody knows.\n")
    (project / "src" / "relaxdp" / "a.py").write_text('ERROR = "the table is refused."\n')
    assert plain_language.main(["--lower"], project) == 1
    assert read_baseline(project) == {"docs/page.md": {WORDS: 1}, "src/relaxdp/a.py": {WORDS: 1}}


def test_moved_text_takes_its_baseline_along(project: Path) -> None:
    (project / "src" / "relaxdp").rename(project / "src" / "other")
    assert plain_language.main([], project) == 1
    assert plain_language.main(["--move", "src/relaxdp", "src/other"], project) == 0
    assert read_baseline(project) == {"docs/page.md": {WORDS: 1}, "src/other/a.py": {WORDS: 1, SENTENCES: 1}}


def test_a_split_file_shares_its_baseline_and_the_sum_stays(project: Path) -> None:
    lines = (project / "src" / "relaxdp" / "a.py").read_text().splitlines()
    (project / "src" / "relaxdp" / "a.py").write_text(lines[0] + "\n")
    (project / "src" / "relaxdp" / "b.py").write_text(f'{lines[1]}\nMORE = "one more table is refused."\n')
    before = sum(sum(numbers.values()) for numbers in read_baseline(project).values())
    assert plain_language.main(["--move", "src/relaxdp/a.py", "src/relaxdp/b.py"], project) == 1  # One word is new.
    assert sum(sum(numbers.values()) for numbers in read_baseline(project).values()) == before
    assert read_baseline(project)["src/relaxdp/b.py"] == {SENTENCES: 1}


def test_an_unknown_file_is_an_error(project: Path) -> None:
    with pytest.raises(SystemExit):
        plain_language.main(["docs/other.md"], project)


def test_generated_pages_and_their_programs_exist() -> None:
    for page, program in plain_language.GENERATED.items():
        assert (plain_language.ROOT / page).exists()
        assert (plain_language.ROOT / program).exists()
    files = plain_language.list_files(plain_language.ROOT)
    assert not set(plain_language.GENERATED) & set(files)
    assert {"README.md", "docs/idea.md", "src/relaxdp/errors.py", "src/relaxdp/web/survey/words/en.js"} <= set(files)
    assert "src/relaxdp/web/survey/words/de.js" not in files


def test_the_baseline_is_sorted_with_one_line_per_file() -> None:
    baseline = plain_language.load_baseline(plain_language.ROOT)
    names = {name for name, _ in baseline}
    lines = (plain_language.ROOT / plain_language.BASELINE).read_text("utf-8").splitlines()
    assert [line.split('"')[1] for line in lines[1:-1]] == sorted(names)
    assert baseline == Counter({key: number for key, number in baseline.items() if number > 0})
