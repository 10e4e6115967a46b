"""A wheel, built and installed in an environment of its own, has everything that it needs."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from tests.patience import PATIENCE

from relaxdp.sampling.kernel import build as kernel_build
from relaxdp.sampling.kernel.c_library import LIBRARY, SETTING

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.parametrize("compiler", ["cc", "no-such-compiler"])
def test_wheel(tmp_path: Path, compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a C compiler the wheel has the compiled path, without one it is a pure wheel that draws with NumPy."""
    monkeypatch.setenv("CC", compiler)
    monkeypatch.delenv(SETTING, raising=False)
    built = kernel_build.find_compiler() is not None
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, timeout=PATIENCE)
    (wheel,) = tmp_path.glob("relaxdp-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "relaxdp/__init__.pyi",
        "relaxdp/py.typed",
        "relaxdp/web/device/relaxdp.js",
        "relaxdp/ledger/ledger.py",
    } <= names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)
    assert not any(name.endswith((".c", ".h")) for name in names)
    assert (f"relaxdp/sampling/kernel/{LIBRARY.name}" in names) is built
    assert wheel.name.endswith("-py3-none-any.whl") is not built
    venv.create(tmp_path / "clean", with_pip=False)
    python = tmp_path / "clean" / "bin" / "python"
    (site,) = (tmp_path / "clean" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    # Dependencies are lent by the tests' environment; a path line does not bring its editable relaxdp along.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = "import relaxdp, relaxdp.cli.main; print(relaxdp.__file__)"
    shown = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert str(site) in shown.stdout
    shown = subprocess.run(
        [python, "-m", "relaxdp", "--version"], check=True, capture_output=True, text=True, timeout=PATIENCE
    )
    assert built or "drawn by numpy" in shown.stdout
    for words in (["init", "study.vault", "--budget", "2"], ["budget", "history", "--vault", "none"]):
        done = subprocess.run(
            [python, "-m", "relaxdp", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == (0 if words[0] == "init" else 2), done.stderr
        assert "Traceback" not in done.stderr
