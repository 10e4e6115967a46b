"""Shares of a key: every so many make it, fewer do not, and each mistake is one sentence that shows no word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from tests.commands import printed
from tests.refusals import refused

from relaxdp import Key
from relaxdp.draw.shares import Share, how_many
from relaxdp.errors import MissingPartError, RelaxdpError, SharesError

SECRET = bytes(range(32))
KEY = Key.from_bytes(SECRET)

# Of KEY, 2 of 3; made once with the reference implementation and kept.
FROZEN = [
    "august response academic acid adjust olympic change prune firm focus premium "
    "payment shelter penalty priest umbrella violence grant glasses visual listen very "
    "island revenue harvest anatomy invasion dwarf lyrics slap execute regret boring",
    "august response academic agency armed educate suitable anatomy miracle unfold unfair "
    "snapshot fact fiber math decent device ranked preach emperor award midst "
    "advocate luck airport cluster lips trial dwarf sweater clay entrance human",
]


@pytest.fixture(scope="module")
def shares() -> list[Share]:
    return [replace(share, name=f"s{share.number}") for share in KEY.split(3, 5)]


def test_every_three_of_five_make_the_key_and_no_two(shares: list[Share]) -> None:
    assert [(share.number, share.made, share.needed, len(share.words)) for share in shares] == [
        (number, 5, 3, 33) for number in range(1, 6)
    ]
    for three in combinations(shares, 3):
        assert Key.join(three) == KEY
    assert Key.join(shares) == Key.join(shares[::-1]) == KEY
    for two in combinations(shares, 2):
        with refused(SharesError, needed=3, given=2, fingerprint="404702b4a9c7e559"):
            Key.join([*two, two[0]])


def test_two_shares_do_not_even_make_it_where_they_say_that_they_are_enough(shares: list[Share]) -> None:
    forged = [replace(share, needed=2) for share in shares[:2]]
    with refused(SharesError, says="do not belong to its words"):
        Key.join(forged)


def test_a_vector() -> None:
    """What was split by an earlier version, or elsewhere by the same standard, is joined."""
    assert Key.join([Share(number, 3, 2, KEY.fingerprint, tuple(words.split())) for number, words in
                     enumerate(FROZEN, 1)]) == KEY  # fmt: skip


def test_a_share_as_text(shares: list[Share]) -> None:
    text = shares[1].text()
    assert text.startswith(
        "relaxdp key share 1\nShare 2 of 5 of the key 404702b4a9c7e559. Any 3 of them make it again: relaxdp key join\n"
    )
    assert max(map(len, text.splitlines())) <= 110
    assert Share.parse(text, "s2") == shares[1]
    typed = text.replace("\n", "\r\n").upper().replace("RELAXDP KEY SHARE", "relaxdp key share")
    lines = [*text.splitlines()[:2], *typed.splitlines()[2:]]
    assert Share.parse("\r\n\r\n" + "\r\n\r\n".join(lines).replace("\r\n\r\n", "\r\n"), "s2") == shares[1]
    assert not set(shares[1].words) & set(re.findall(r"\w+", repr(shares[1]).replace("share", "").replace("key", "")))
    for wrong in ("", "words", text.replace("404702b4a9c7e559", "404702b4a9c7e55"), text.partition("\n")[2]):
        with refused(SharesError, name="x", says="is not a share of a key"):
            Share.parse(wrong, "x")


def mistakes(shares: list[Share]) -> Iterator[tuple[str, list[Share], str]]:
    one, two, three, *_ = shares
    other = [replace(share, name=f"o{share.number}") for share in Key.generate().split(3, 5)]
    again = [replace(share, name=f"a{share.number}") for share in KEY.split(3, 5)]
    yield "none", [], "no share of a key is given."
    yield "other key", [one, other[1], three], f"'o2' is a share of the key {other[0].fingerprint}, and 's1' of the key"
    yield "split twice", [one, again[1], three], "it was split more than once: shares of one time belong together."
    yield "short", [one, replace(two, words=two.words[:-1]), three], "'s2' has 32 words, and a share has 33."
    odd = (*two.words[:6], "axademic", *two.words[7:])
    yield (
        "no word",
        [one, replace(two, words=odd), three],
        "word 7 of 's2' is none that shares have: it may be mistyped.",
    )
    swapped = (*two.words[:10], *reversed(two.words[10:12]), *two.words[12:])
    if swapped == two.words:
        swapped = (*two.words[:12], *reversed(two.words[12:14]), *two.words[14:])
    yield "swapped", [one, replace(two, words=swapped), three], "a word of 's2' is mistyped: its checksum does not fit."
    yield "number", [one, replace(two, number=4), three], "the first lines of 's2' do not belong to its words."
    lying = [replace(share, fingerprint="0" * 16) for share in (one, two, three)]
    yield "fingerprint", lying, "these shares do not make the key 0000000000000000: one was changed."


def test_each_mistake_is_one_sentence_without_a_word(shares: list[Share]) -> None:
    words = {word for share in shares for word in share.words} - {"share", "change", "words"}
    for what, given, sentence in mistakes(shares):
        with pytest.raises(SharesError) as caught:
            Key.join(given)
        assert sentence in caught.value.message, what
        assert not words & set(re.findall(r"[a-z]{5,}", f"{caught.value.fields}")), what
        assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("text", ["", "3", "3 of 5", "1-of-1", "1-of-3", "4-of-3", "2-of-17", "-3-of-5", "3-of-5-of-7"])
def test_how_many_shares(text: str) -> None:
    assert how_many("3-of-5") == (3, 5)
    with refused(SharesError, least=2, most=16):
        how_many(text)


def test_split_and_join_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    KEY.save("key")
    said = printed("key", "split", "shares", "--shares", "3-of-5", "--key", "key")
    files = sorted(Path("shares").iterdir())
    assert [file.name for file in files] == [f"share-{number}-of-5.txt" for number in range(1, 6)]
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert not any(SECRET.hex()[:16] in text for text in (said, *(file.read_text() for file in files)))
    Path("key").rename("lost")
    printed("key", "join", *map(str, files[1:4]), "key")
    assert Path("key").read_bytes() == Path("lost").read_bytes()
    with pytest.raises(RelaxdpError, match="exists already.* Nothing was written"):
        printed("key", "join", "shares", "key")
    printed("key", "join", "shares", "from-folder")
    with refused(SharesError, folder="shares", says="already, which may be all that is left of a key"):
        printed("key", "split", "shares", "--shares", "2-of-5", "--key", "key")
    with refused(SharesError, needed=3, given=2):
        printed("key", "join", str(files[0]), str(files[1]), "again")
    files[0].chmod(0o644)
    for words, says in (
        (("shares", "again"), "can be read by others"),
        (("none", "again"), "there is no share 'none'"),
        (("key", "again"), "is not a share of a key"),
    ):
        with pytest.raises(SharesError, match=says):
            printed("key", "join", *words)
    assert not Path("again").exists()


def test_a_full_disk_leaves_no_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    KEY.save("key")
    Path("shares").mkdir()
    Path("shares/share-4-of-5.txt").touch()
    with refused(SharesError, folder="shares"):
        printed("key", "split", "shares", "--shares", "3-of-5", "--key", "key")
    assert [file.name for file in Path("shares").iterdir()] == ["share-4-of-5.txt"]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shamir_mnemonic", None)
    with refused(MissingPartError, says="relaxdp[shares]"):
        KEY.split(2, 3)
