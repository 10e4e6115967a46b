"""The browser's package: unpacked, its own tests pass, its types are understood, and a page of five lines uses it."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect
from tests.browser.browsers import chromium
from tests.browser.survey_person import Collector, collector
from tests.conftest import missing
from tests.patience import PATIENCE

from packages import npm

ROOT = Path(__file__).parents[2]
TSC = ROOT / "node_modules" / ".bin" / "tsc"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of somebody's own, with the package in its node_modules."""
    if not TSC.exists():
        missing("tsc (make check)")
    folder = tmp_path_factory.mktemp("mine")
    made = npm.make(folder)
    with tarfile.open(made) as archive:
        archive.extractall(folder, filter="data")
    (folder / "node_modules").mkdir()
    return (folder / "package").rename(folder / "node_modules" / "relaxdp")


@pytest.mark.long
def test_made_twice_it_is_the_same(package: Path, tmp_path: Path) -> None:
    (made,) = package.parents[1].glob("*.tgz")
    assert npm.make(tmp_path).read_bytes() == made.read_bytes()


def test_its_contents(package: Path) -> None:
    names = {file.relative_to(package).as_posix() for file in package.rglob("*") if file.is_file()}
    modules = {file.relative_to(npm.DEVICE).as_posix() for file in npm.DEVICE.rglob("*.js")}
    about = json.loads((package / "package.json").read_text("utf-8"))
    assert all((package / name).read_bytes() == (npm.DEVICE / name).read_bytes() for name in modules)
    assert names >= modules | {"package.json", "README.md", "LICENSE", "types/relaxdp.d.ts"}
    assert {name for name in names if name.startswith("test/vectors/")} == {
        f"test/vectors/{name}-1.json" for name in ("stream", "encodings", "bloom-numeric", "wave")
    }
    assert {about["types"], about["exports"]["."]["default"]} == {"./types/relaxdp.d.ts", "./relaxdp.js"}
    assert not {"dependencies", "devDependencies", "private"} & set(about)
    imported = {
        (module.parent / target).resolve().relative_to(package.resolve()).as_posix()
        for module in package.rglob("*.js")
        for target in re.findall(r'from "(\.[^"]+)"', module.read_text("utf-8"))
    }
    assert imported <= modules  # it stands alone


@pytest.mark.parametrize(
    ("named", "least"), [("every case of (stream|encodings)-1", 2), pytest.param(".", 41, marks=pytest.mark.long)]
)
def test_its_own_tests_pass(package: Path, node: str, named: str, least: int) -> None:
    """They find modules and vectors where they lie here; what they say of the same modules is known already."""
    command = [node, "--test", f"--test-name-pattern={named}"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    passed = re.search(r"^# pass (\d+)$", done.stdout, flags=re.MULTILINE)
    assert passed
    assert int(passed[1]) >= least


@pytest.mark.long
def test_its_types_are_understood(package: Path) -> None:
    """A program that is right passes, and one that is not does not: the types say something."""
    mine = package.parents[1]
    right = """
        import { Device } from "relaxdp";
        const device: Device = await Device.open({ limit: "1" });
        export const spent: string = (await device.balance()).spent;
    """
    config = {
        "strict": True,
        "noEmit": True,
        "target": "es2022",
        "module": "es2022",
        "moduleResolution": "bundler",
        "types": [],
    }
    programs = {"right.mts": right, "wrong.mts": right.replace('"1"', "1")}
    (mine / "tsconfig.json").write_text(json.dumps({"compilerOptions": config, "files": list(programs)}), "utf-8")
    for name, program in programs.items():
        (mine / name).write_text(program, "utf-8")
    for resolution in ([], ["--module", "nodenext", "--moduleResolution", "nodenext"]):
        line = [str(TSC), *resolution]
        done = subprocess.run(line, cwd=mine, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert re.findall(r"^(\S+)\(\d+,\d+\): error", done.stdout, flags=re.MULTILINE) == ["wrong.mts"], done.stdout


@pytest.mark.long
def test_pages_of_one_s_own(package: Path, tmp_path: Path) -> None:
    """Five lines each, served beside a real collector: by path, and by a name that an import map explains."""
    (by_path,) = re.findall(r"```html\n(.*?)```", (package / "README.md").read_text("utf-8"), flags=re.DOTALL)
    embedding = (ROOT / "docs" / "embedding.md").read_text("utf-8")
    (by_name,) = (each for each in re.findall(r"```html\n(.*?)```", embedding, flags=re.DOTALL) if "importmap" in each)
    assert len(by_path.strip().splitlines()) == 2 + 5
    assert len(by_name.strip().splitlines()) == 2 + 2 + 5
    (tmp_path / "collector").mkdir()
    with collector(tmp_path / "collector") as service, chromium() as browser:
        campaign = service.create(
            id="commute",
            question="How do you travel?",
            encoding={"name": "categorical", "values": ["bus", "bike", "feet"]},
        )
        for people, page in enumerate([f"<!doctype html><title>Mine</title><body>{by_path}</body>", by_name], 1):
            shown = visit(browser, service, package, page)
            assert shown["epsilon"] == "0.5"
            assert shown["status"] == "sent"
            assert service.devices(campaign) == [people, 0, 0]


def visit(browser: Browser, service: Collector, package: Path, page: str) -> dict[str, str]:
    """Open the page below the service's own address, as behind a proxy, and return the report that it shows."""

    def serve(route: Route) -> None:
        name = route.request.url.partition("/mine/")[2]
        if name == "":
            route.fulfill(body=page, content_type="text/html")
        else:
            route.fulfill(path=package.parents[1] / name, content_type="text/javascript")

    tab = browser.new_page()
    tab.route(f"{service.url}/mine/**", serve)
    tab.goto(f"{service.url}/mine/")
    expect(tab.locator("body")).to_contain_text("epsilon")
    report: dict[str, str] = json.loads(tab.inner_text("body"))
    return report
