"""Shares of a key: any so many of them make it again, and fewer tell nothing. They are words, by SLIP-0039.

The arithmetic is that of the reference implementation (docs/decisions/0012-safekeeping.md); here is what stands around
the words: which key they are of, the number of a share, and one sentence for each mistake. No sentence shows a word.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relaxdp.errors import MissingPartError, SharesError

if TYPE_CHECKING:
    from relaxdp.draw.key import Key

LEAST, MOST = 2, 16
"""How few shares may be needed, and how many there may be: the standard knows no more."""
_HEADER = "relaxdp key share 1"
_SAID = re.compile(
    r"Share (?P<number>\d{1,2}) of (?P<made>\d{1,2}) of the key (?P<fingerprint>[0-9a-f]{16})\. "
    r"Any (?P<needed>\d{1,2}) of them make it again: relaxdp key join",
    re.ASCII,
)
_WORDS, _WORDS_A_LINE = 33, 11
_PLAIN = re.compile(r"(?P<needed>\d{1,2})-of-(?P<made>\d{1,2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Share:
    """One share: which one, of which key, how many make it again, and its words, which are not shown."""

    number: int
    made: int
    needed: int
    fingerprint: str
    words: tuple[str, ...]
    name: str = ""
    """What it is called in messages."""

    def __repr__(self) -> str:
        return f"<share {self.number} of {self.made} of the key {self.fingerprint}>"

    def text(self) -> str:
        """Return what a file of it holds: what it is, and the words."""
        said = (
            f"Share {self.number} of {self.made} of the key {self.fingerprint}. "
            f"Any {self.needed} of them make it again: relaxdp key join"
        )
        lines = [" ".join(self.words[start : start + _WORDS_A_LINE]) for start in range(0, _WORDS, _WORDS_A_LINE)]
        return "\n".join((_HEADER, said, *lines, ""))

    @classmethod
    def parse(cls, text: str, name: str) -> Share:
        """Read what a file of a share holds; the words may stand in any lines."""
        header, _, rest = text.lstrip("\ufeff \r\n").partition("\n")
        line, _, words = rest.partition("\n")
        said = _SAID.fullmatch(line.strip())
        if header.strip() != _HEADER or said is None:
            raise SharesError("{name!r} is not a share of a key, or its first lines were changed.", name=name)
        numbers = {each: int(said[each]) for each in ("number", "made", "needed")}
        return cls(**numbers, fingerprint=said["fingerprint"], words=tuple(words.lower().split()), name=name)


def how_many(text: str) -> tuple[int, int]:
    """Return the numbers of 3-of-5: how many shares make the key again, and how many there are.

    >>> how_many("3-of-5")
    (3, 5)
    """
    found = _PLAIN.fullmatch(text.strip())
    needed, made = (int(found["needed"]), int(found["made"])) if found else (0, 0)
    check_numbers(needed, made)
    return needed, made


def check_numbers(needed: int, made: int) -> None:
    """Refuse numbers that the standard does not know, and one share that would be the key."""
    if not LEAST <= needed <= made <= MOST:
        raise SharesError(
            "shares are written like 3-of-5: at least {least} are needed, and there are at most {most}.",
            least=LEAST,
            most=MOST,
        )


def split(key: Key, needed: int, made: int) -> list[Share]:
    """Return `made` shares of a key, any `needed` of which make it again."""
    check_numbers(needed, made)
    slip39 = _slip39()
    # No passphrase: the key is random, and a word that somebody forgot would lose it. So no rounds against guessing.
    ((*mnemonics,),) = slip39.generate_mnemonics(1, [(needed, made)], key.to_bytes(), iteration_exponent=0)
    return [
        Share(number, made, needed, key.fingerprint, tuple(each.split())) for number, each in enumerate(mnemonics, 1)
    ]


def joined(shares: Sequence[Share]) -> bytes:
    """Return the secret that shares make, or say what is wrong with them; whoever asks compares the fingerprint."""
    slip39 = _slip39()
    if not shares:
        raise SharesError("no share of a key is given.")
    first = shares[0]
    found: dict[int, Share] = {}
    splits = set()
    for share in shares:
        if share.fingerprint != first.fingerprint:
            raise SharesError(
                "{name!r} is a share of the key {fingerprint}, and {first!r} of the key {other}.",
                name=share.name, fingerprint=share.fingerprint, first=first.name, other=first.fingerprint,
            )  # fmt: skip
        splits.add(_checked(share, slip39))
        found[share.number] = share
    if len(splits) > 1:
        raise SharesError(
            "these are shares of the key {fingerprint}, but it was split more than once: shares of one time belong "
            "together.",
            fingerprint=first.fingerprint,
        )
    if len(found) < first.needed:
        raise SharesError(
            "{needed} different shares of the key {fingerprint} are needed, and these are {given}.",
            needed=first.needed, fingerprint=first.fingerprint, given=len(found),
        )  # fmt: skip
    chosen = [" ".join(found[number].words) for number in sorted(found)[: first.needed]]
    secret: bytes | None = None
    with contextlib.suppress(slip39.MnemonicError):
        secret = slip39.combine_mnemonics(chosen)
    if secret is None:  # raised outside: what is wrong may be said with words of a share
        raise not_the_key(first.fingerprint)
    return secret


def not_the_key(fingerprint: str) -> SharesError:
    """Return the refusal of shares that are whole and make something else."""
    return SharesError("these shares do not make the key {fingerprint}: one was changed.", fingerprint=fingerprint)


def _checked(share: Share, slip39: Any) -> tuple[Any, ...]:
    """Return what all shares of one split have in common, or refuse words that are no share."""
    if len(share.words) != _WORDS:
        raise SharesError(
            "{name!r} has {count} words, and a share has {words}.",
            name=share.name,
            count=len(share.words),
            words=_WORDS,
        )
    wrong = [place for place, word in enumerate(share.words, 1) if word not in slip39.wordlist.WORD_INDEX_MAP]
    if wrong:
        raise SharesError(
            "word {place} of {name!r} is none that shares have: it may be mistyped.", name=share.name, place=wrong[0]
        )
    parsed: Any = None
    with contextlib.suppress(slip39.MnemonicError):
        parsed = slip39.Share.from_mnemonic(" ".join(share.words))
    if parsed is None:
        raise SharesError("a word of {name!r} is mistyped: its checksum does not fit.", name=share.name)
    if (parsed.index + 1, parsed.member_threshold) != (share.number, share.needed):
        raise SharesError("the first lines of {name!r} do not belong to its words.", name=share.name)
    return tuple(parsed.group_parameters())


def _slip39() -> Any:
    try:
        import shamir_mnemonic  # noqa: PLC0415 (few keys are split)
    except ImportError:
        raise MissingPartError(
            "shares of a key need the package shamir-mnemonic: pip install 'relaxdp[shares]'."
        ) from None
    return shamir_mnemonic
