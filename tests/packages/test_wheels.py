"""What `make dist` makes: the same bytes each time, and in each wheel what its platform needs and nothing else."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packages.wheels import PLATFORMS
from tests.conftest import missing
from tests.patience import PATIENCE

import relaxdp
from relaxdp.sampling.kernel import build
from relaxdp.service.bundle import INDEX

ROOT = Path(__file__).parents[2]
MAKER = ROOT / ".venv-dist" / "bin" / "python"
KERNEL = f"relaxdp/sampling/kernel/{build.LIBRARY.name}"
pytestmark = pytest.mark.long


def tracked(*folders: str) -> set[str]:
    """Return the files that belong to the project; in unpacked sources all of them do."""
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        missing("a working copy of git")
    return {name for name in listed.stdout.split("\0") if name}


def made(folder: Path) -> list[Path]:
    """Make everything; nothing of the user's settings may matter."""
    zig = {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig")}
    line = [str(MAKER), "-m", "packages.wheels", "--target", str(folder)]
    subprocess.run(line, cwd=ROOT, env={**os.environ, **zig}, capture_output=True, timeout=PATIENCE * 10, check=True)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if not MAKER.exists():
        missing("what makes the packages (make dist)")
    return made(tmp_path_factory.mktemp("dist"))


def wheels(dist: list[Path]) -> dict[str, Path]:
    return {re.sub(r".*-py3-none-|\.whl", "", file.name): file for file in dist if file.suffix == ".whl"}


def test_made_twice_they_are_the_same(dist: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("RELAXDP_BUNDLE", "off")
    digests = [
        {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in all_} for all_ in (dist, made(tmp_path))
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2 + len(PLATFORMS)


def test_a_wheel_holds_the_package_and_nothing_else(dist: list[Path]) -> None:
    version = relaxdp.__version__
    sources = {name.removeprefix("src/") for name in tracked("src") if not re.search(r"/kernel/\w+\.[ch]$", name)}
    about = {f"relaxdp-{version}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    found = wheels(dist)
    assert set(found) == {"any", *PLATFORMS}
    for platform, wheel in found.items():
        with zipfile.ZipFile(wheel) as opened:
            names = set(opened.namelist())
            assert opened.testzip() is None
            assert opened.read(f"relaxdp-{version}.dist-info/METADATA").startswith(b"Metadata-Version: 2.4\n")
            assert (
                f"Tag: py3-none-{platform.split('.')[0]}" in opened.read(f"relaxdp-{version}.dist-info/WHEEL").decode()
            )
        ours = sources | about | {f"relaxdp-{version}.dist-info/licenses/LICENSE"}
        assert names >= ours
        bundled = {name for name in names if name.startswith("relaxdp/service/bundled/")}
        assert {f"relaxdp/service/bundled/{INDEX}"} < bundled
        extra = names - ours - bundled
        assert extra == (set() if platform == "any" else {KERNEL})
        assert {
            "relaxdp/__init__.pyi",
            "relaxdp/py.typed",
            "relaxdp/web/survey/page.html",
            "relaxdp/web/device/relaxdp.js",
        } <= names
        assert wheel.stat().st_size < 2_000_000


def test_each_library_is_for_its_platform(dist: list[Path]) -> None:
    for platform, wheel in wheels(dist).items():
        if platform == "any":
            continue
        library = zipfile.ZipFile(wheel).read(KERNEL)
        for private in (str(ROOT), str(Path.home()), "/tmp/"):
            assert private.encode() not in library
        for name in ("relaxdp_version", "relaxdp_draw", "relaxdp_tags", "relaxdp_step", "relaxdp_histogram"):
            assert name.encode() in library
        arm = "aarch64" in platform or "arm64" in platform
        if "linux" in platform:
            assert library[:4] == b"\x7fELF"
            assert struct.unpack_from("<H", library, 18)[0] == (183 if arm else 62)
            asked = [tuple(map(int, each)) for each in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)]
            assert max(asked) <= (2, 17)
        elif "macos" in platform:
            assert struct.unpack_from("<II", library) == (0xFEEDFACF, 0x0100000C if arm else 0x01000007)
            assert oldest_macos(library) == (11, 0)
        else:
            assert library[:2] == b"MZ"
            header = struct.unpack_from("<I", library, 60)[0]
            assert struct.unpack_from("<H", library, header + 4)[0] == 0x8664


def oldest_macos(library: bytes) -> tuple[int, int]:
    """Return what LC_BUILD_VERSION says of the oldest system."""
    at = 32
    for _ in range(struct.unpack_from("<I", library, 16)[0]):
        command, size = struct.unpack_from("<II", library, at)
        if command == 0x32:
            oldest = struct.unpack_from("<I", library, at + 12)[0]
            return oldest >> 16, oldest >> 8 & 255
        at += size
    raise AssertionError("there is no LC_BUILD_VERSION")


def test_the_sources_are_all_there(dist: list[Path]) -> None:
    (sources,) = [file for file in dist if file.name.endswith(".tar.gz")]
    with tarfile.open(sources) as opened:
        members = opened.getmembers()
    names = {member.name.split("/", 1)[1] for member in members}
    kept = {name for name in tracked() if not name.startswith((".ci/", ".github/", ".pre-commit"))}
    assert names == kept | {"PKG-INFO"}
    assert {(member.uid, member.uname) for member in members} == {(0, "")}


@pytest.mark.parametrize("compiled", [False, True])
def test_pip_installs_it_and_it_runs(dist: list[Path], compiled: bool, tmp_path: Path) -> None:
    here = sysconfig.get_platform()
    (fits,) = [
        platform for platform in PLATFORMS if here == "linux-x86_64" and "linux" in platform and "x86_64" in platform
    ] or [""]
    if compiled and not fits:
        pytest.skip("no wheel is made for this platform")
    venv.create(tmp_path / "bare", with_pip=True)
    (site,) = (tmp_path / "bare" / "lib").glob("python*/site-packages")
    pip = [str(tmp_path / "bare" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    wheel = wheels(dist)[fits if compiled else "any"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=PATIENCE)
    # Dependencies are lent by the tests' environment; a path line does not bring its editable relaxdp along.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command, clean = tmp_path / "bare" / "bin" / "relaxdp", {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    shown = {}
    for words in (["--version"], ["demo"]):
        done = subprocess.run(
            [command, *words],
            cwd=tmp_path,
            env=clean,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 4,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        shown[words[0]] = done.stdout
    assert relaxdp.__version__ in shown["--version"]
    assert compiled or "drawn by numpy" in shown["--version"]
    if compiled and sys.platform == "linux" and " aes " in Path("/proc/cpuinfo").read_text("utf-8"):
        assert "drawn by numpy" not in shown["--version"]
