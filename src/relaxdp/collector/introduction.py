"""How a campaign introduces itself: who asks, about what and why, how it looks, and what it suggests.

All of it is the operator's word, in the operator's language, and is shown before the question. A page shows it as
text, a link to an https address, or a picture that cannot run anything, so that nothing else is let in here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from base64 import b64decode
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from relaxdp.server_errors import CampaignError
from relaxdp.service.wire import WHOLE_TEXT, EpsilonText
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

MOST_LOGO = 16_384
"""Bytes of a picture: it travels with the campaign's description."""

LOGO_KINDS = ("image/png", "image/svg+xml", "image/webp", "image/jpeg")

MIN_CONTRAST = 4.5
BACKGROUNDS = ("#ffffff", "#f4f5f7", "#eceff3")
"""Those of the light page, as in web/kit/style.css. No colour has this contrast with both a light and a dark page."""

_LOGO = re.compile(rf"data:({'|'.join(map(re.escape, LOGO_KINDS))});base64,([A-Za-z0-9+/]*={{0,2}})")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*")
_LONG = ("purpose", "privacy_notice")
_UNSEEN = {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}
_TURNING = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
"""Marks by which text is shown in another order than it is written."""
_BLANK = {"Cc", "Cf", "Mn", "Zs"}
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters by their kind, of which nothing is seen."""


_Line = Annotated[str, Meta(max_length=200)]
_Prose = Annotated[str, Meta(max_length=4000)]


class Introduction(Struct, frozen=True, kw_only=True):
    """What a campaign says of itself. Everything may be left out."""

    asker: _Line | None = None
    """Who asks."""
    about: _Line | None = None
    """What it is about, in one line; not the question."""
    purpose: _Prose | None = None
    """What the answers are for."""
    contact: _Line | None = None
    """Whom to ask: a mail address, a name, a telephone number."""
    privacy_notice: _Prose | None = None
    """The notice itself, or its https address."""
    colour: Annotated[str, Meta(pattern=f"^#[0-9A-Fa-f]{{6}}{WHOLE_TEXT}")] | None = None
    """Like #1a5fb4, for links, buttons and marks of the light page."""
    logo: Annotated[str, Meta(max_length=22_000)] | None = None
    """A small PNG, SVG, WebP or JPEG as a data: address in base 64."""
    suggested: EpsilonText | None = None
    """Which of its limits the operator suggests."""
    shows_results: bool = False
    """Whether the survey shows what is published when the campaign has ended."""


class Learning(Struct, frozen=True):
    """How many people it takes to learn something, whatever the answer is: for whoever chooses a limit."""

    half_width: float
    """How near the answer is to be known: the campaign's target, or a tenth of all there is."""
    devices: list[int | None]
    """For each level, how many devices that stand there suffice; None where no number does."""


def completed(asked: Introduction, choices: Sequence[Decimal]) -> dict[str, Any]:
    """Return the fields in their one spelling, or refuse them; limits are chosen among these epsilons."""
    fields: dict[str, Any] = {}
    for name in ("asker", "about", "contact", *_LONG):
        fields[name] = _plain(name, getattr(asked, name))
    fields["privacy_notice"] = _notice(fields["privacy_notice"])
    fields["colour"] = None if asked.colour is None else _check_colour(asked.colour.lower())
    fields["logo"] = _logo(asked.logo)
    fields["suggested"] = _suggested(asked.suggested, choices)
    return fields


def introduction_of(asked: Introduction) -> dict[str, Any]:
    """Return the fields of an introduction, for whoever shows it.

    >>> introduction_of(Introduction(asker="The city library"))["asker"]
    'The city library'
    """
    return {name: getattr(asked, name) for name in Introduction.__struct_fields__}


def _plain(name: str, text: str | None) -> str | None:
    """Return a text without space around it, and none for one of which nothing is seen."""
    tidy = (text or "").replace("\r\n", "\n").strip()
    lines = tidy.split("\n")
    if len(lines) > 1 and name not in _LONG:
        raise CampaignError("{field} is one line.", field=name)
    if any(unicodedata.category(letter) in _UNSEEN or letter in _TURNING for line in lines for letter in line):
        raise CampaignError("{field} holds control characters, or marks that turn text around.", field=name)
    seen = (each for each in tidy if each not in _BLANK_LETTERS and unicodedata.category(each) not in _BLANK)
    return tidy if any(seen) else None


def _notice(text: str | None) -> str | None:
    """Return a privacy notice; what is an address and not text must be one that a browser opens safely."""
    if text is None or _ADDRESS.fullmatch(text) is None:
        return text
    try:
        address = urlsplit(text)
        fine = address.scheme == "https" and bool(address.hostname) and "@" not in address.netloc
    except ValueError:
        fine = False
    if not fine:
        raise CampaignError("the privacy notice is text, or an address like https://example.org/privacy.")
    return text


def _check_colour(colour: str) -> str:
    """Return a colour in which text on every background of the light page can be read."""
    ratio = min(compute_contrast(colour, background) for background in BACKGROUNDS)
    if ratio < MIN_CONTRAST:
        raise CampaignError(
            "the colour {colour!r} has a contrast ratio of {ratio:.2f} with the page's background. Text needs at least "
            "{least:g} to be readable. Choose a darker colour, such as '#1a5fb4'.",
            colour=colour,
            ratio=math.floor(100 * ratio) / 100,
            least=MIN_CONTRAST,
        )
    return colour


def compute_contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours as WCAG 2 defines it, from 1 to 21.

    >>> compute_contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted(map(_compute_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _compute_luminance(colour: str) -> float:
    shares = [part / 255 for part in bytes.fromhex(colour[1:])]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _logo(text: str | None) -> str | None:
    if not text:
        return None
    found = _LOGO.fullmatch(text)
    try:
        content = b"" if found is None else b64decode(found[2], validate=True)
    except ValueError:
        content = b""
    if found is None or not _is_picture(found[1], content):
        raise CampaignError("the logo is a PNG, SVG, WebP or JPEG picture as a data: address in base 64.")
    if len(content) > MOST_LOGO:
        raise CampaignError(
            "the logo has {size:,} bytes, and at most {most:,} may be.", size=len(content), most=MOST_LOGO
        )
    return text


def _is_picture(kind: str, content: bytes) -> bool:
    """Tell whether a picture begins as its kind does; browsers show it as a picture and as nothing else."""
    if kind == "image/png":
        return content.startswith(b"\x89PNG\r\n\x1a\n")
    if kind == "image/jpeg":
        return content.startswith(b"\xff\xd8\xff")
    if kind == "image/webp":
        return content.startswith(b"RIFF") and content[8:12] == b"WEBP"
    return re.match(rb"(\xef\xbb\xbf)?\s*<(\?xml\s|!--|svg[\s>])", content) is not None


def _suggested(text: str | None, choices: Sequence[Decimal]) -> str | None:
    if not text:
        return None
    epsilon = as_epsilon(text)
    if epsilon not in choices:
        raise CampaignError(
            "the suggested limit, {suggested}, is none that the campaign offers: {choices}.",
            suggested=format_epsilon(epsilon),
            choices=", ".join(map(format_epsilon, choices)),
        )
    return format_epsilon(epsilon)
