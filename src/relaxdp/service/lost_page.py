"""What a person sees at an address where nothing is. Programs, which do not ask for pages, get the error as JSON."""

from __future__ import annotations

from string import Template

from starlette.requests import Request
from starlette.responses import Response

_PROGRAMS = ("/v1/", "/static/")
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = Template("""<!doctype html>
<html lang="$lang">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>$title</title>
    <link rel="icon" href="${root}static/kit/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="${root}static/kit/style.css">
  </head>
  <body>
    <main class="narrow">
      <h1>$title</h1>
      <section class="card">
        <p>$first</p>
        <p>$second</p>
      </section>
    </main>
  </body>
</html>
""")
_WORDS = {
    "en": {
        "title": "There is nothing here",
        "first": "Perhaps a letter of the address is missing, or what was here is not shown any more.",
        "second": "If somebody sent you this link, please ask them for it again. Nothing was kept or sent.",
    },
    "de": {
        "title": "Hier ist nichts",
        "first": "Vielleicht fehlt ein Buchstabe der Adresse, oder was hier war, wird nicht mehr gezeigt.",
        "second": "Wenn Ihnen jemand diesen Link geschickt hat, fragen Sie bitte noch einmal danach. Es wurde nichts "
        "behalten oder gesendet.",
    },
}


def asks_for_page(request: Request) -> bool:
    """Tell whether a person in a browser looks at this address, and no program."""
    asked = request.headers.get("accept", "")
    return request.method == "GET" and "text/html" in asked and not request.url.path.startswith(_PROGRAMS)


def lost_page(request: Request) -> Response:
    """Return the page, in the first of its languages that the browser wants; styles are found below any prefix."""
    lang = language_of(request.headers.get("accept-language", ""))
    root = "../" * (request.url.path.count("/") - 1) or "./"
    content = _PAGE.substitute(_WORDS[lang], lang=lang, root=root)
    headers = {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    return Response(content, 404, headers=headers, media_type="text/html; charset=utf-8")


def language_of(accepted: str) -> str:
    """Return the first language that is wanted and known.

    >>> language_of("fr-CH, de-AT;q=0.8, en;q=0.5"), language_of("fr"), language_of("")
    ('de', 'en', 'en')
    """
    wanted = [each.split(";")[0].strip().lower().split("-")[0] for each in accepted[:200].split(",")]
    return next((each for each in wanted if each in _WORDS), "en")
