"""What a campaign may say of itself, and what is refused because a page would show it."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from relaxdp.collector import campaigns
from relaxdp.collector.introduction import (
    BACKGROUNDS,
    MIN_CONTRAST,
    MOST_LOGO,
    Introduction,
    compute_contrast,
    introduction_of,
)
from relaxdp.collector.rules import first_state
from relaxdp.collector.views import public_view
from relaxdp.collector.wire import CampaignRequest, LevelRequest, Publish
from relaxdp.errors import EpsilonError
from relaxdp.server_errors import CampaignError
from relaxdp.service.wire import EncodingRequest

WEB = Path(__file__).parents[3] / "src" / "relaxdp" / "web"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
CHOICES = [LevelRequest("0.5"), LevelRequest("1")]


def picture(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


def asked(**said: Any) -> CampaignRequest:
    return CampaignRequest("Which?", EncodingRequest("categorical", values=["a", "b"]), CHOICES, **said)


def stored(**said: Any) -> CampaignRequest:
    return campaigns.prepared(asked(**said)).definition


def test_a_campaign_needs_to_say_nothing() -> None:
    assert set(introduction_of(stored()).values()) == {None, False}


@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad \u200d", "\u2060\ufeff", "\U000e0041", "\u200f\u3164"])
def test_what_nobody_sees_says_nothing(unseen: str) -> None:
    """Or a page would leave out that nobody says who asks."""
    assert stored(asker=unseen).asker is None
    assert stored(asker=f"{unseen}a").asker == f"{unseen}a".strip()


def test_it_is_kept_in_one_spelling() -> None:
    found = stored(
        asker="  The city library\u00a0\n",
        about="How people come to the library",
        purpose="We plan opening hours.\r\nNothing else.",
        contact="",
        privacy_notice="https://example.org/privacy",
        colour="#1A5FB4",
        suggested="1.0",
        largest_epsilon="2",
    )
    assert (found.asker, found.contact, found.colour) == ("The city library", None, "#1a5fb4")
    assert found.purpose == "We plan opening hours.\nNothing else."
    assert found.suggested == "1"
    assert stored(suggested="2", largest_epsilon="2").suggested == "2"


@pytest.mark.parametrize(
    ("colour", "ratio"), [("#ffe600", "1.09"), ("#FFFFFF", "1.00"), ("#767676", "3.93"), ("#e00000", "4.36")]
)
def test_a_colour_that_cannot_be_read_is_rejected(colour: str, ratio: str) -> None:
    with pytest.raises(CampaignError) as problem:
        stored(colour=colour)
    assert problem.value.message.startswith(f"the colour '{colour.lower()}' has a contrast ratio of {ratio} with")
    assert "at least 4.5" in problem.value.message


@pytest.mark.parametrize("colour", ["#1a5fb4", "#000000", "#6b6b6b", "#dc0000"])
def test_a_colour_that_can_be_read_is_kept(colour: str) -> None:
    assert stored(colour=colour).colour == colour


def test_colours_are_compared_with_the_backgrounds_of_the_page() -> None:
    light = (WEB / "kit" / "style.css").read_text("utf-8").partition("@media")[0]
    named = [re.findall(rf"--{name}: (#[0-9a-f]{{6}});", light) for name in ("surface", "ground", "sunken")]
    assert named == [[each] for each in BACKGROUNDS]


def test_colours_that_follow_from_an_accepted_one_can_be_read() -> None:
    """The style mixes 18 % of the colour with white, and 75 % with black; text stands on both, and on the colour."""
    parts = range(0, 256, 15)
    for colour in (f"#{red:02x}{green:02x}{blue:02x}" for red in parts for green in parts for blue in parts):
        if min(compute_contrast(colour, each) for each in BACKGROUNDS) < MIN_CONTRAST:
            continue
        own = bytes.fromhex(colour[1:])
        soft = "#" + bytes(round(0.18 * part + 0.82 * 255) for part in own).hex()
        strong = "#" + bytes(round(0.75 * part) for part in own).hex()
        assert compute_contrast(colour, "#ffffff") >= MIN_CONTRAST
        assert compute_contrast(strong, "#ffffff") >= MIN_CONTRAST
        assert compute_contrast(strong, soft) >= MIN_CONTRAST
        assert compute_contrast("#16191d", soft) >= 7
        assert compute_contrast(colour, soft) >= 3  # a mark


def test_everybody_is_told() -> None:
    said: dict[str, Any] = {"asker": "Us", "logo": picture(PNG), "suggested": "0.5"}
    campaign = campaigns.prepared(asked(**said))
    shown = public_view(campaign, first_state(campaign))
    assert introduction_of(shown) == introduction_of(Introduction(**said))


@pytest.mark.parametrize(
    "text",
    [
        "We keep nothing: see the notice at the desk.",
        "Privacy: none of it leaves",
        "https://example.org/p?a=1#b",
        "a:b c",
    ],
)
def test_a_notice_is_text_or_an_address(text: str) -> None:
    assert stored(privacy_notice=text).privacy_notice == text


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org",
        "javascript:alert(1)",
        "data:text/html,x",
        "https:",
        "https://",
        "https://a@b.c/",
        "https://[a",
    ],
)
def test_an_address_is_one_that_is_safe_to_open(text: str) -> None:
    with pytest.raises(CampaignError, match="the privacy notice is text"):
        stored(privacy_notice=text)


@pytest.mark.parametrize("field", ["asker", "about", "purpose", "contact", "privacy_notice"])
@pytest.mark.parametrize("letter", ["\0", "\t", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ue000"])
def test_no_text_plays_tricks(field: str, letter: str) -> None:
    with pytest.raises(CampaignError, match="control characters"):
        stored(**{field: f"a{letter}b"})


def test_letters_that_words_need() -> None:
    for text in (
        "Stadtb\u00fccherei \U0001f468\u200d\U0001f467",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "10\u00a0%",
    ):
        assert stored(asker=text).asker == text


@pytest.mark.parametrize("field", ["asker", "about", "contact"])
def test_a_line_is_one_line(field: str) -> None:
    with pytest.raises(CampaignError, match="is one line"):
        stored(**{field: "a\nb"})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, "image/png"),
        (SVG, "image/svg+xml"),
        (b'<?xml version="1.0"?>\n' + SVG, "image/svg+xml"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (PNG + bytes(MOST_LOGO - len(PNG)), "image/png"),
    ],
)
def test_a_logo_is_a_picture(content: bytes, kind: str) -> None:
    assert stored(logo=picture(content, kind)).logo == picture(content, kind)


@pytest.mark.parametrize(
    "logo",
    [
        "https://example.org/logo.png",
        "data:image/png,abc",
        "data:text/html;base64,PHN2Zz4=",
        picture(PNG, "image/gif"),
        picture(SVG, "image/png"),
        picture(PNG, "image/svg+xml"),
        picture(b"<html>", "image/svg+xml"),
        picture(PNG) + "\n",
        picture(PNG)[:-1],
        picture(PNG).replace("base64", "BASE64"),
        picture(PNG + bytes(MOST_LOGO - len(PNG) + 1)),
    ],
)
def test_a_logo_is_nothing_else(logo: str) -> None:
    with pytest.raises(CampaignError, match="the logo"):
        stored(logo=logo)


def test_a_suggestion_is_one_of_the_choices() -> None:
    with pytest.raises(CampaignError) as refused:
        stored(suggested="0.7")
    assert refused.value.fields == {"suggested": "0.7", "choices": "0.5, 1"}
    with pytest.raises(EpsilonError):
        stored(suggested="much")


def test_what_participants_are_shown_is_what_is_published() -> None:
    with pytest.raises(CampaignError, match="is what is published"):
        stored(shows_results=True)
    ending = {"closes": "2030-01-01T00:00:00Z", "publish": Publish(1000)}
    assert stored(shows_results=True, **ending).shows_results
