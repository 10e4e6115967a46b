"""Keys: saved for the owner only, loaded with suspicion, never shown."""

from __future__ import annotations

import pickle
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE
from tests.refusals import refused

from relaxdp import Categorical, Key
from relaxdp.errors import KeyFileError, RelaxdpError
from relaxdp.sampling.keys import is_key_text
from relaxdp.sampling.private_file import read_private_file

SECRET = bytes(range(32))


def test_round_trip(tmp_path: Path) -> None:
    key = Key.generate()
    key.save(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert Key.load(tmp_path / "key") == key
    assert Key.generate() != key
    assert key != SECRET
    assert Key(bytearray(SECRET)) == Key.from_bytes(SECRET)  # type: ignore[arg-type]


def test_where_a_key_was_loaded_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Key.generate().save(tmp_path / "key")
    monkeypatch.chdir(tmp_path)
    assert Key.load("key").source == tmp_path / "key"
    assert Key.generate().source is None


def test_of_a_large_file_only_the_beginning_is_read(tmp_path: Path) -> None:
    (tmp_path / "large").touch(0o600)
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    assert read_private_file(tmp_path / "large") == bytes(1 << 20)


def test_the_secret_is_never_shown() -> None:
    key = Key.from_bytes(SECRET)
    shown = f"{key!r} {key} {key.fingerprint} {hash(key)} {key.__class__.__slots__}"
    assert SECRET.hex() not in shown
    assert repr(SECRET) not in shown
    assert not hasattr(key, "__dict__")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(key)


@pytest.mark.parametrize("wrong", [SECRET.hex(), SECRET.hex().upper(), SECRET.hex()[1:], f"keys/{SECRET.hex()}"])
def test_a_key_in_the_place_of_its_file_is_not_shown(wrong: str) -> None:
    with refused(KeyFileError, says="This looks like the key itself") as caught:
        Key.load(wrong)
    assert SECRET.hex()[2:20] not in f"{caught.value!r} {caught.value.fields}".lower()
    with refused(KeyFileError, type="bytes", says="Expected a path to a key file (str or Path), got"):
        Key.load(SECRET)  # type: ignore[arg-type]
    with refused(KeyFileError, says="half of a character"):
        Key.load("secret-\ud800")


def test_no_sentence_and_no_field_of_an_error_shows_a_key() -> None:
    """Long numbers are no keys, and neither are fingerprints and UUIDs."""
    problem = RelaxdpError(f"there is no {SECRET.hex()}.", path=f"a/{SECRET.hex()}.csv", row=7)
    assert str(problem) == problem.message == "Row 7: there is no (a key was removed)."
    assert problem.fields == {"path": "a/(a key was removed).csv", "row": 7}
    for harmless in ("0." + "3" * 60, "404702b4a9c7e559", "00112233445566778899aabbccddeeff"):
        assert RelaxdpError(harmless).message == harmless


def test_fingerprint_is_frozen() -> None:
    assert Key.from_bytes(SECRET).fingerprint == "404702b4a9c7e559"


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    Key.generate().save(tmp_path / "key")
    before = (tmp_path / "key").read_bytes()
    with refused(KeyFileError, says="exists already"):
        Key.generate().save(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o610])
def test_a_file_that_others_can_read(tmp_path: Path, mode: int) -> None:
    Key.generate().save(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(KeyFileError, match=r"can be read by others .* chmod 600"):
        Key.load(tmp_path / "key")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a key",
        SECRET,
        b"relaxdp key 1\n" + SECRET.hex().encode() + b"\n",
        b"relaxdp key 1\n" + SECRET[:31].hex().encode() + b"\n404702b4a9c7e559\n",
        b"relaxdp key 1\n" + SECRET[::-1].hex().encode() + b"\n404702b4a9c7e559\n",
        b"relaxdp key 2\n" + SECRET.hex().encode() + b"\n404702b4a9c7e559\n",
        b"relaxdp key 1\n" + SECRET.hex().encode() + b"\n\xff\xfe\n",
        b"relaxdp key 1\nzz\n404702b4a9c7e559\n",
        b"\xef\xbb\xbfrelaxdp key 1\n" + SECRET.hex().encode() + b"\n404702b4a9c7e559\n",
    ],
)
def test_not_a_key_file(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "key"
    place.touch(mode=0o600)
    place.write_bytes(content)
    with refused(KeyFileError, says="is not a relaxdp key file, or it is damaged") as caught:
        Key.load(place)
    assert SECRET.hex() not in str(caught.value)
    assert caught.value.__cause__ is None
    assert SECRET.hex() not in repr(caught.value.__context__)  # `from None` hides a context but keeps it
    assert caught.value.code == "key_file_error"


def test_another_file_gets_no_advice_about_its_mode(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("id,diagnosis\n")
    with refused(KeyFileError, says="is not a relaxdp key file") as caught:
        Key.load(tmp_path / "patients.csv")
    assert "chmod" not in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with refused(KeyFileError, says="There is no key file"):
        Key.load(tmp_path / "absent")
    with pytest.raises(KeyFileError, match="cannot be read"):
        Key.load(tmp_path)
    with pytest.raises(KeyFileError, match="cannot be written"):
        Key.generate().save(tmp_path / "absent" / "key")


def test_a_full_disk_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(KeyFileError, match="No space left"):
        Key.generate().save(tmp_path / "key")
    assert not (tmp_path / "key").exists()


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33), "0" * 32, None])
def test_wrong_length(raw: object) -> None:
    with refused(KeyFileError, key_bytes=32):
        Key.from_bytes(raw)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [SECRET, None, 7])
def test_every_door_says_that_it_needs_a_key_and_shows_only_what_kind_of_thing_it_got(given: Any) -> None:
    """It could be the secret itself."""
    answers = Categorical(["a", "b"])
    where: dict[str, Any] = {"name": "r", "column": "x"}
    doors: list[Callable[[], Any]] = [
        lambda: answers.path("a", key=given, id=1, **where),
        lambda: answers.release(["a"], [1], key=given, epsilon=1, **where),
    ]
    for door in doors:
        with pytest.raises(KeyFileError) as found:
            door()
        assert found.value.message == (
            f"The key must be a relaxdp.Key, not {type(given).__name__}. "
            'Pass rx.Key.load("study.key"), or rx.Key.generate() for a new key.'
            f"{'' if door is doors[0] else ' Nothing was released.'}"
        )
        assert found.value.__cause__ is found.value.__context__ is None
        assert found.value.fields == {"type": type(given).__name__}


def test_what_a_key_file_looks_like() -> None:
    """Of any version: a list of values that only begins like one is none."""
    for text in ("relaxdp key 1\n", "\ufeff \r\nrelaxdp key 2\n", "relaxdp key "):
        assert is_key_text(text)
    for text in ("", "red\ngreen\n", "r", "relaxdp key", "a relaxdp key 1"):
        assert not is_key_text(text)


def test_a_file_may_be_called_like_a_key(tmp_path: Path) -> None:
    place = tmp_path / ("ab" * 32)
    Key.from_bytes(SECRET).save(tmp_path / "key")
    (tmp_path / "key").rename(place)
    assert Key.load(place).fingerprint == Key.from_bytes(SECRET).fingerprint


# From a command.

FILE = f"relaxdp key 1\n{SECRET.hex()}\n404702b4a9c7e559\n"
PRINTED = f"print({SECRET.hex()[:30]!r} {SECRET.hex()[30:]!r})"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_key_that_a_command_prints(tmp_path: Path, end: str) -> None:
    """As a file holds it, or its digits alone; no shell reads the command."""
    place = tmp_path / "a key; touch *"
    place.write_text(SECRET.hex() + end)
    assert Key.from_command(f"cat {shlex.quote(str(place))}") == Key.from_bytes(SECRET)
    place.write_text(FILE.replace("\n", end))
    found = Key.from_command(["cat", str(place)])
    assert (found, found.source) == (Key.from_bytes(SECRET), None)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (f"print({SECRET.hex()[:30]!r} {SECRET.hex()[30:62]!r})", "printed no key"),
        (f"print('relaxdp key 1'); {PRINTED}; print('404702b4a9c7e558')", "printed no key"),
        ("print()", "printed no key"),
        (f"{PRINTED}; exit(3)", "failed with exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", "was stopped by signal 9"),
        ("while True: print('a' * 10000)", "printed more than a key"),
    ],
)
def test_a_command_that_gives_no_key_is_one_sentence_without_what_it_printed(code: str, says: str) -> None:
    with pytest.raises(KeyFileError) as caught:
        Key.from_command([sys.executable, "-c", code])
    assert says in caught.value.message
    assert caught.value.fields["program"] == Path(sys.executable).name
    shown = f"{caught.value!r}{caught.value.fields}{caught.value.__cause__}{caught.value.__context__!r}"
    assert SECRET.hex()[:16] not in shown


@pytest.mark.parametrize(
    ("command", "says"),
    [("", "is empty"), ("cat 'key", "unclosed"), ("no-such-command x", "cannot be run"), ("a\0b", "cannot be run")],
)
def test_no_command(command: str, says: str) -> None:
    with pytest.raises(KeyFileError, match=says):
        Key.from_command(command)


def test_a_key_in_a_command_is_refused_and_not_shown() -> None:
    with refused(KeyFileError, says="what looks like the key itself") as caught:
        Key.from_command(f"echo {SECRET.hex()}")
    assert SECRET.hex()[:16] not in f"{caught.value!r}{caught.value.fields}"


def test_what_a_command_complains_about_is_heard_and_standard_input_is_not_its_own() -> None:
    """A table may come from there."""
    asks = f"import sys; sys.stderr.write('unlock me' + sys.stdin.read()); {PRINTED}"
    code = f"import sys, relaxdp; print(relaxdp.Key.from_command([sys.executable, '-c', {asks!r}]), sys.stdin.read())"
    done = subprocess.run(
        [sys.executable, "-c", code], input="rows", capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert (done.stderr, done.stdout) == ("unlock me", "<relaxdp.Key 404702b4a9c7e559> rows\n")
