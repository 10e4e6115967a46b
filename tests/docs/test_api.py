"""The page of public names: every name, one line each, and nothing else is public."""

from __future__ import annotations

import subprocess
import sys
from operator import attrgetter

import pytest
from tests.docs.api_page import GROUPS, PAGE, api_page, first_line
from tests.patience import PATIENCE

import relaxdp as rx


def test_api_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == api_page(), "run: python -m tests.docs.api_page"


def test_every_public_name_is_on_the_page_and_says_what_it_is() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(name for name in listed if "." not in name) == sorted(rx.__all__) == dir(rx)
    for name in listed:
        assert len(first_line(attrgetter(name)(rx))) > 10, name


def test_nothing_else_is_public() -> None:
    """Beside the names on the page there are only the packages themselves."""
    import types  # noqa: PLC0415

    others = {
        name
        for name, each in vars(rx).items()
        if not name.startswith("_") and name not in rx.__all__ and not isinstance(each, types.ModuleType)
    }
    assert others == set()


@pytest.mark.parametrize("package", ["estimation.planning", "mechanisms.base", "estimation", "mechanisms", "tables"])
def test_no_function_hides_a_package(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import relaxdp.{package} as p; assert p.__name__ == 'relaxdp.{package}'"],
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
