"""RAPPOR's files: read as Google's tools write them, written as they read them, refused in one sentence."""

from __future__ import annotations

from decimal import Decimal
from hashlib import md5
from pathlib import Path

import numpy as np
import pytest

from relaxdp.errors import RapporError
from relaxdp.mechanisms.bloom import BloomShape
from relaxdp.rappor.candidate_map import CandidateMap, format_map_rows, read_candidate_map
from relaxdp.rappor.parameters import RapporParameters

SHAPE = BloomShape(bits=16, hashes=2, cohorts=3)
PARAMETERS = RapporParameters(SHAPE, Decimal("0.3"))
CSV = "k,h,m,f\n16,2,3,0.3\n"


def written(folder: Path, text: str, name: str = "params.csv") -> Path:
    place = folder / name
    place.write_text(text, "utf-8")
    return place


def refusal(call: object, *arguments: object) -> str:
    with pytest.raises(RapporError) as refused:
        call(*arguments)  # type: ignore[operator]
    assert refused.value.message.count("\n") == 0
    return refused.value.sentence


def test_parameters_come_and_go_exactly(tmp_path: Path) -> None:
    assert RapporParameters.read(written(tmp_path, CSV)) == PARAMETERS
    assert RapporParameters.read(written(tmp_path, '"k","h","m","f"\r\n"16","2","3","0.3"\r\n')) == PARAMETERS
    assert PARAMETERS.to_csv() == CSV


QUIRKS = {
    "lines end as on Windows": lambda text: text.replace("\n", "\r\n"),
    "lines end as on old Macs": lambda text: text.replace("\n", "\r"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "empty fields at the end": lambda text: text.replace("\n", ",,\n"),
    "quotes": lambda text: '"' + text.replace(",", '","').replace("\n", '"\n"')[:-1],
    "blank lines": lambda text: "\n" + text.replace("\n", "\n\n") + "  \n,,,\n",
    "spaces": lambda text: text.replace(",", ", "),
    "no end of the last line": lambda text: text.rstrip("\n"),
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_files_that_spreadsheets_wrote(tmp_path: Path, quirk: str) -> None:
    def changed(text: str) -> Path:
        return written(tmp_path, QUIRKS[quirk](text), "file.csv")

    assert RapporParameters.read(changed(CSV)) == PARAMETERS
    lines = "".join(format_map_rows(["v1", "v2"], SHAPE))
    found = read_candidate_map(changed(lines), SHAPE)
    assert (found.words, found.bits.tolist()) == (
        ["v1", "v2"],
        CandidateMap(["v1", "v2"], SHAPE).bits.tolist(),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("k,h,m\n16,2,3\n", "must have two rows: k,h,m,f, then a number for each of them."),
        ("k,h,m,p,q,f\n16,2,3,0.5,0.75,0.3\n", "must have two rows: k,h,m,f, then a number for each of them."),
        ("k,h,m,f,f\n16,2,3,0.3,1\n", "must have two rows: k,h,m,f, then a number for each of them."),
        (CSV + "16,2,3,0.3\n", "must have two rows: k,h,m,f, then a number for each of them."),
        ("", "must have two rows: k,h,m,f, then a number for each of them."),
        ("k,h,m,f\n16,2,3\n", "must have two rows: k,h,m,f, then a number for each of them."),
        ("k,h,m,f\n16,2,x,0.3\n", "k, h and m must be whole numbers, and f must be from 0 to 1."),
        ("k,h,m,f\n16,2,3,1.3\n", "k, h and m must be whole numbers, and f must be from 0 to 1."),
        ("k,h,m,f\n16,2,3,nan\n", "k, h and m must be whole numbers, and f must be from 0 to 1."),
        ("k,h,m,f\n32,17,3,0.3\n", "The number of hashes (h) must be a whole number from 1 to 16, not 17."),
    ],
)
def test_parameter_files_that_are_none(tmp_path: Path, text: str, sentence: str) -> None:
    assert refusal(RapporParameters.read, written(tmp_path, text)).endswith(sentence)


def test_a_parameter_file_that_is_missing(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(RapporParameters.read, tmp_path / "none.csv")


def test_a_map_is_googles_line_by_line(tmp_path: Path) -> None:
    """Word, then for every cohort its bits: cohort * k + bit + 1; computed here with hashlib."""
    lines = list(format_map_rows(["v1", "with, comma"], SHAPE))
    expected = []
    for cohort in range(3):
        digest = md5(cohort.to_bytes(4, "big") + b"v1", usedforsecurity=False).digest()
        expected += [cohort * 16 + digest[0] % 16 + 1, cohort * 16 + digest[1] % 16 + 1]
    assert lines[0] == ",".join(["v1", *map(str, expected)]) + "\n"
    assert lines[1].startswith('"with, comma",')
    found = read_candidate_map(written(tmp_path, "".join(lines), "map.csv"), SHAPE)
    assert list(found.words) == ["v1", "with, comma"]
    assert refusal(list, format_map_rows(["a", "a"], SHAPE)) == "The candidate word 'a' is listed twice."
    assert (
        refusal(list, format_map_rows(["a"], BloomShape(1, 1, 1)))
        == "The parameters have one bit (k = 1), so reports are booleans, which need no candidate map."
    )


def test_two_hashes_that_met_are_one_bit(tmp_path: Path) -> None:
    """Google's published map has the bits of each cohort in order, once each, and empty fields at the end of a row."""
    shape = BloomShape(bits=4, hashes=2, cohorts=3)
    words = [f"V_{number}" for number in range(1, 41)]
    lines, met = [], 0
    for word in words:
        bits = [sorted({4 * cohort + bit + 1 for bit in shape.compute_bits(word, cohort)}) for cohort in range(3)]
        flat = [str(bit) for each in bits for bit in each]
        met += len(flat) < 6
        lines.append(f'"{word}",' + ",".join(flat) + "," * (6 - len(flat)) + "\r\n")
    assert met > 10
    found = read_candidate_map(written(tmp_path, "".join(lines), "map.csv"), shape)
    assert list(found.words) == words
    everywhere = np.arange(3)
    wanted = CandidateMap(words, shape).make_design_matrix(everywhere).toarray()
    assert np.array_equal(found.make_design_matrix(everywhere).toarray(), wanted)
    # Rows may also just be shorter, if others say how long they are.
    shorter = "".join(lines).replace(",\r\n", "\r\n")
    assert read_candidate_map(written(tmp_path, shorter, "map.csv"), shape).bits.tolist() == found.bits.tolist()


def test_maps_for_other_parameters(tmp_path: Path) -> None:
    def message(text: str, shape: BloomShape = SHAPE) -> str:
        return refusal(read_candidate_map, written(tmp_path, text, "map.csv"), shape)

    wrong = "the numbers after 'a' are not the bits of this word with k = 16, h = 2, m = 3."
    for shape in (BloomShape(32, 2, 3), BloomShape(16, 1, 3), BloomShape(16, 2, 2)):
        assert wrong in message("".join(format_map_rows(["a", "b"], shape)))
    good = "".join(format_map_rows(["a"], SHAPE))
    other = "".join(format_map_rows(["b"], SHAPE))
    assert wrong in message(other + good.replace("a,", "a,1,"))
    assert message(other + other.replace("b,", "a,")).startswith("Line 2 of ")
    assert wrong in message("a,1,2,x,4,5,6\n")
    assert "There are 0 candidate words" in message("")
    assert message(good + good) == "The candidate word 'a' is listed twice."
    for text in (good.replace(",", ";"), "a" * 200_000 + good):
        assert "is not a CSV file in UTF-8 whose fields are separated by commas." in message(text)
