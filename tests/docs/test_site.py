"""The documentation site: what can be said of it without Sphinx, and, among the long tests, that it is built."""

from __future__ import annotations

import ast
import fcntl
import inspect
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from operator import attrgetter
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from docs.site.checks import problems
from docs.site.error_pages import code_of, error_pages, kinds_of_errors
from docs.site.http_pages import curl, http_pages
from docs.site.javascript_pages import exported, javascript_pages, undocumented
from docs.site.markup import description, mended, named
from docs.site.pictures import PICTURES
from docs.site.python_pages import BEYOND, GIVEN, MADE_BY_PEOPLE, linked, listed, locate, python_pages, short
from docs.site.staging import DOCS, ROOT, for_site, shown_file, stage
from playwright.sync_api import expect
from tests.browser.browsers import chromium
from tests.conftest import missing
from tests.docs.api_page import GROUPS
from tests.patience import PATIENCE

import relaxdp as rx

ONE_OF_EACH_KIND = (
    "index", "ways", "explanation/index", "tutorials/three-years", "threat-model", "benchmarks-pages", "proofs/path",
    "reference/python/estimates", "reference/http/market",
)  # fmt: skip
TUTORIALS = sorted(DOCS.glob("tutorials/[!i]*.md"))
ROUTE = {
    "summary": "Do it.",
    "operationId": "do_it",
    "security": [{"operator": []}],
    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 9}}],
    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}},
    "responses": {"200": {"description": "done"}, "404": {"description": "unknown_route, unknown_campaign"}},
}
ORDER = {
    "description": "What is wanted.",
    "properties": {"most": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None}},
    "required": [],
}
DESCRIPTION: dict[str, Any] = {"paths": {"/v1/do/{id}": {"post": ROUTE}}, "components": {"schemas": {"Order": ORDER}}}


NAMES = {name: attrgetter(name)(rx) for names in GROUPS.values() for name in names}
PUBLIC = {name: each for name, each in NAMES.items() if not inspect.ismodule(each)}


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what a person can call or read of a class, where this package wrote it; fields have types and no words."""
    for name in dir(kind):
        own = any(name in vars(each) and each.__module__.startswith("relaxdp") for each in kind.__mro__)
        found = inspect.getattr_static(kind, name)
        spoken = isinstance(found, property | staticmethod | classmethod) or inspect.isfunction(found)
        if own and spoken and not name.startswith("_"):
            yield name, found


def test_every_public_python_name_is_on_a_page() -> None:
    text = "".join({**python_pages(), **error_pages()}.values())
    shown = set(re.findall(r"^\.\. auto\w+:: (\S+)$", text, flags=re.MULTILINE))
    assert {".".join(locate(name)) for name in PUBLIC} <= shown
    assert {f"{kind.__module__}.{name}" for name, kind in kinds_of_errors().items()} <= shown
    for modules in [*BEYOND.values(), *GIVEN.values()]:
        assert {f"{module}.{name}" for module, names in modules.items() for name in names} <= {
            each.removesuffix("()") for each in shown
        }
    door = linked((DOCS / "api.md").read_text("utf-8"))
    assert all(place.removesuffix(".md") in door for place in python_pages())


def test_no_public_python_name_is_undocumented() -> None:
    named = {f"rx.{name}": each for name, each in PUBLIC.items()}
    named |= kinds_of_errors()
    silent = [name for name, each in named.items() if not inspect.getdoc(each)]
    for name, each in named.items():
        if isinstance(each, type):
            silent += [f"{name}.{member}" for member, found in public_members(each) if not inspect.getdoc(found)]
    assert silent == []


def test_every_parameter_is_explained() -> None:
    """By its name, in the docstring of what takes it."""
    silent = []
    for name, found in PUBLIC.items():
        if not inspect.isfunction(found) and locate(name)[1] not in MADE_BY_PEOPLE:
            continue
        said = inspect.getdoc(found) or ""
        if isinstance(found, type):  # a field says what it is below its name
            said += inspect.getsource(found)
        for parameter in inspect.signature(found).parameters:
            if not re.search(rf"`{parameter}[`=]|^ +{parameter}: \S", said, flags=re.MULTILINE):
                silent.append(f"{name}({parameter})")
    assert silent == []


def test_signatures_and_arguments_are_readable() -> None:
    floats = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
    assert short(f"(a: ~decimal.Decimal | int | str | float | None, b: {floats})") == "(a: Epsilon | None, b: Floats)"
    lines = ["Do it.", "", "Args:", "    one: a thing:", "        and more.", "    two: more.", "", ">>> 1", "1"]
    assert listed(lines) == [
        "Do it.", "", "", ":param one: a thing:", "        and more.", ":param two: more.", "", ">>> 1", "1",
    ]  # fmt: skip
    assert listed(["Returns:", "    A thing", "    and more.", "", "Example:", "    >>> 1"]) == [
        "", ":returns: A thing", "    and more.", "", "Example:", "    >>> 1",
    ]  # fmt: skip


def test_every_error_has_its_code_and_what_is_said() -> None:
    page = error_pages()["reference/python/errors.md"]
    for name in kinds_of_errors():
        if name not in ("RelaxdpError", "StateFolderWarning", "DeterminedColumnWarning"):
            assert f"\n   ``{code_of(name)}``" in page
    assert "``report_differs_error``, status 409\n" in page
    hint = "*Check that ids are written as before. If the rows are really new, pass accept\\_new\\_rows=True"
    assert hint in next(line for line in page.splitlines() if "rows ever released as {name}" in line)
    assert "*Widen the range, or move numbers into it with rx.Numeric(0, 120, clip=True) (--clip NAME).*" in page


def test_no_public_javascript_name_is_undocumented() -> None:
    page = javascript_pages()["reference/javascript.md"]
    assert all(f"\n### {name}\n" in page for name, _ in exported())
    assert len(exported()) > 15
    assert "#### Device.open" in page
    assert undocumented() == []


def test_every_route_and_message_is_on_a_page() -> None:
    """From a description as the service gives it; the long test below asks a real service."""
    pages = http_pages(DESCRIPTION)
    assert "| [`POST /v1/do/{id}`](campaigns.md#do-it) | Do it. | the operator |" in pages["reference/http/index.md"]
    route = pages["reference/http/campaigns.md"]
    asked = curl("POST", "/v1/do/{id}", "@body.json", True)
    assert asked in route
    assert asked.split()[0] == "curl"
    assert "Bearer $TOKEN" in asked
    assert "| `id` | path | string. (at most 9 characters) |" in route
    assert "Takes [Order](messages.md#order) (`application/json`)." in route
    assert "| 404 | `unknown_route`, `unknown_campaign` |" in route
    assert "| `most` (optional) | integer or null | (at least 1) |" in pages["reference/http/messages.md"]


@pytest.mark.long
def test_pages_are_gathered(tmp_path: Path) -> None:
    stage(tmp_path / "sources", {"reference/made.md": "# Made\n"})
    found = {str(page.relative_to(tmp_path / "sources")) for page in (tmp_path / "sources").rglob("*.md")}
    kept = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert kept | {"reference/made.md", "project/changelog.md", "source/examples-market.py.md"} <= found
    assert not list((tmp_path / "sources").rglob("*.pyc"))
    market = (tmp_path / "sources" / "market.md").read_text("utf-8")
    assert "(source/examples-market.py.md)" in market
    contributing = (tmp_path / "sources" / "project" / "contributing.md").read_text("utf-8")
    assert "(../glossary.md)" in contributing


@pytest.mark.long
def test_every_page_is_listed_somewhere(tmp_path: Path) -> None:
    """A page that is in no list cannot be found on the site: see the indices of how-to, explanation and reference."""
    stage(tmp_path, {})
    listed = {tmp_path / "index.md"}
    for page in tmp_path.rglob("*.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                name = re.sub(r"^.*<(.*)>$", r"\1", line).removesuffix(".md")
                if name and not name.startswith(":"):
                    listed |= {found.resolve() for found in page.parent.glob(f"{name}.md")}
    assert sorted(set(tmp_path.rglob("*.md")) - listed) == []


def test_links_in_code_and_parts_that_are_absent(tmp_path: Path) -> None:
    page = DOCS / "no-such-page.md"
    page_text = "```text\n[no link](../README.md)\n```\n[home](../README.md) and [a folder](decisions)\n"
    page_text += "```{toctree}\n:glob:\n\nno-such-folder/*\n```\n"
    copy = tmp_path / page.name
    copy.write_text(page_text.replace("../README.md", str(ROOT / "README.md")), "utf-8")
    made = for_site(copy, page.name, {})
    assert f"[no link]({ROOT / 'README.md'})" in made
    assert "[home](index.md)" in made
    assert "toctree" not in made


def test_links_lead_to_the_line_that_they_name(tmp_path: Path) -> None:
    shown: dict[str, Path] = {}
    page = for_site(DOCS / "proofs" / "path.md", "proofs/path.md", shown)
    place, line = re.search(
        r'href="\.\./(source/[^"]*test_path\.py)\.html#L-(\d+)"><code[^>]*>modulo_bias<', page
    ).groups()  # type: ignore[union-attr]
    lines = shown[f"{place}.md"].read_text("utf-8").splitlines()
    assert lines[int(line) - 1].strip().startswith("def modulo_bias(")
    assert f'id="L-{line}"' in shown_file(shown[f"{place}.md"])
    assert "- if draw.position < threshold:\n+ if draw.position <= threshold:\n" in page  # a mutant, as a difference


def test_pictures_are_fresh() -> None:
    for name, draw in PICTURES.items():
        drawn = (DOCS / name).read_text("utf-8")
        assert drawn == draw(), "run: python -m docs.site.pictures"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_cells_are_python(page: Path) -> None:
    """They run when the site is built; here it is seen that they could, and that nothing of them is hidden magic."""
    text = page.read_text("utf-8")
    cells = re.findall(r"^```\{code-cell\} python\n(?::tags:[^\n]*\n)?(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(cells) >= 5
    assert len(cells) == text.count("{code-cell}")
    for cell in cells:
        ast.parse(cell)


def test_what_a_built_site_is_checked_for(tmp_path: Path) -> None:
    pages = {
        "index.html": '<a href="other.html#here">x</a><a href="other.html#gone">y</a><a href="none.html">z</a>'
        '<a href="https://example.org/">a link may lead out</a><script src="https://example.org/x.js"></script>',
        "other.html": '<p id="here"></p><img src="../elsewhere.png"><link rel="stylesheet" href="style.css">',
        "style.css": "@font-face { src: url(https://example.org/font.woff2) }",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert sorted(problems(tmp_path)) == [
        "index.html fetches https://example.org/x.js from elsewhere",
        "index.html leads to none.html, which is not there",
        "index.html leads to other.html#gone, and that page has no such place",
        "other.html leads to ../elsewhere.png, which is not there",
        "style.css fetches something from elsewhere",
    ]


def test_what_is_changed_in_the_pages_of_the_theme() -> None:
    table = '<tr><th class="head"><p></p></th><th>what</th><th></th></tr>'
    assert mended(table) == "<tr><td></td><th>what</th><td></td></tr>"
    signature = "<dl class='py'><dt>f(\n<dl>\n<dd>x,</dd>\n<dd>y,</dd>\n</dl>)</dt><dd>Do it.</dd></dl>"
    assert mended(signature) == (
        "<dl class='py'><dt>f(\n<ul class=\"signature\">\n<li>x,</li>\n<li>y,</li>\n</ul>)</dt><dd>Do it.</dd></dl>"
    )
    folded = '<a href="x.html">The <code>law</code></a><details><summary><span></span></summary></details>'
    assert '<summary aria-label="Pages of The law">' in named(folded)
    assert description("<h1>A</h1><p>Say <em>what</em>\n &quot;it&quot; is.</p><p>More.</p>") == (
        "Say what &quot;it&quot; is."
    )
    assert description(f"<p>{'word ' * 99}</p>").endswith("word ...")
    assert description("<h1>nothing</h1>") == ""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, as `make docs` builds it: once in a run, although several processes run the tests."""
    if shutil.which("make") is None:
        missing("there is no make")
    environment = {**os.environ, "MAKEFLAGS": ""}
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "docs.lock").open("a+") as built:
        fcntl.flock(built, fcntl.LOCK_EX)
        built.seek(0)
        if not run or built.read() != run:
            done = subprocess.run(
                ["make", "docs"], cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE, check=False,
                env=environment,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            built.truncate(0)
            built.write(run)
    return ROOT / "build" / "docs"


@pytest.mark.long
def test_the_site_is_built(site: Path) -> None:
    """Every tutorial runs, every warning is an error, every link inside leads somewhere, nothing is asked of others."""
    assert list(problems(site)) == []
    api = (site / "api.html").read_text("utf-8")
    for name in PUBLIC:
        assert f'#{".".join(locate(name))}"' in api, name
    assert (site / "searchindex.js").stat().st_size > 100_000
    assert "cell_output" in (site / "tutorials" / "first-steps.html").read_text("utf-8")


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder; who asks for what is not printed."""

    def log_message(self, *told: Any) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
@pytest.mark.parametrize("look", [(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def test_pages_of_the_site_can_be_read_by_everybody(site: Path, look: tuple[int, Literal["light", "dark"]]) -> None:
    """One page of each kind: nothing that axe finds, nothing beside the window, nothing asked of others."""
    width, scheme = look
    with serving(site) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ONE_OF_EACH_KIND:
            page.goto(f"{address}/{name}.html")
            found = Axe().run(page).response["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], name
            assert page.evaluate("document.documentElement.scrollWidth") == width, name
        page.goto(f"{address}/search.html?q=relax")
        expect(page.locator("#search-results li").first).to_be_visible()
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
