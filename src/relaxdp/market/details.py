"""What a listing says of itself in plain text, for whoever thinks of buying: what, who, when, how, which terms."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from relaxdp.server_errors import MarketError

# Something to read in it, and no null character: PostgreSQL keeps none in a text.
SAID_PATTERN = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"
MOST_SAID = 2000
Said = Annotated[str, Meta(max_length=MOST_SAID, pattern=SAID_PATTERN)]
SaidInShort = Annotated[str, Meta(max_length=200, pattern=SAID_PATTERN)]


class Details(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What a listing says of itself: all of it plain text that nobody checks, and everybody reads."""

    description: Said | None = None
    source: SaidInShort | None = None
    """Who collected it."""
    collected: SaidInShort | None = None
    """When, or of which time it tells."""
    method: Said | None = None
    """How it was collected, and from whom."""
    licence: SaidInShort | None = None
    """What a buyer may do with it: its name, or an https address."""


NOTHING_SAID = Details()
_DECODER = msgspec.json.Decoder(Details)


def details_text(details: Details) -> str:
    """Return details as they are kept; what is no text, or too long, is refused.

    >>> details_text(Details(licence=" CC BY 4.0 "))
    '{"licence":"CC BY 4.0"}'
    """
    said = {name: _stripped(text) for name, text in msgspec.structs.asdict(details).items() if text is not None}
    try:
        return msgspec.json.encode(msgspec.convert(said, Details)).decode()
    except (msgspec.ValidationError, UnicodeEncodeError):
        raise MarketError(
            "details of a listing are plain text: description and method of at most {most} letters, the others of "
            "at most {few}.",
            most=MOST_SAID,
            few=200,
        ) from None


def read_details(text: str) -> Details:
    """Return details that `details_text` wrote."""
    return _DECODER.decode(text)


def _stripped(text: Any) -> Any:
    return text.strip() if isinstance(text, str) else text
