"""Build the site into a folder and check it: python -m docs.site [build/docs]."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from docs.site.checks import problems
from docs.site.error_pages import error_pages
from docs.site.http_pages import described, http_pages
from docs.site.javascript_pages import javascript_pages
from docs.site.python_pages import linked, python_pages
from docs.site.staging import DOCS, ROOT, stage


def made() -> dict[str, str]:
    """Return every page that is made from code, by its place."""
    api = linked((DOCS / "api.md").read_text("utf-8"))
    return {**python_pages(), **error_pages(), **http_pages(*described()), **javascript_pages(), "api.md": api}


def main() -> None:
    """Gather, build with warnings as errors, and check."""
    from sphinx.cmd.build import main as sphinx  # noqa: PLC0415 (gathering needs none)

    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()
    sources = target.with_name(f"{target.name}-sources")
    stage(sources, made())
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # no page says when it was built
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state  # the tutorials' keys are nobody's, and have spent nothing elsewhere
        built = sphinx(_words(sources, target))
    if built != 0:
        sys.exit("the site was not built: every warning above is an error.")
    found = list(problems(target))
    if found:
        sys.exit("\n".join(found))
    print(f"{sum(1 for _ in target.rglob('*.html'))} pages in {target}; all links inside lead somewhere")


def _words(sources: Path, target: Path) -> list[str]:
    doctrees = str(target.with_name(f"{target.name}-doctrees"))
    words = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", "--jobs", "2"]
    return [*words, "--conf-dir", str(DOCS / "site"), "--doctree-dir", doctrees, str(sources), str(target)]


if __name__ == "__main__":
    main()
