"""The package's build hook: what is made of sources, where the tools for it are, and left out where they are not.

With a C compiler the path is compiled; otherwise the wheel is a pure one, and NumPy draws the same reports. With node
and what `package-lock.json` names the pages are bundled; otherwise browsers load their modules.
"""

from __future__ import annotations

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNEL = Path("src", "relaxdp", "sampling", "kernel")
SERVICE = Path("src", "relaxdp", "service")


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Make both beside their sources, where an editable installation finds them as well."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what is in the wheel beyond what lies in the repository."""
        if self.target_name != "wheel":
            return
        made = [*self._kernel(build_data), *self._bundle()]
        if version != "editable":
            for file in made:
                build_data["force_include"][str(file)] = file.relative_to(Path(self.root, "src")).as_posix()

    def _kernel(self, build_data: dict[str, Any]) -> list[Path]:
        """Compile, and say for which platform the wheel is then."""
        if os.environ.get("RELAXDP_KERNEL") == "off":
            return []
        tools = runpy.run_path(str(Path(self.root, KERNEL, "build.py")))
        if not tools["build_library"]():
            return []
        build_data["pure_python"] = False
        # It knows nothing of Python, so one wheel serves every version of it.
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{os.environ.get(tools['PLATFORM'], here)}"
        return [tools["LIBRARY"]]

    def _bundle(self) -> list[Path]:
        """Bundle the pages."""
        tools = runpy.run_path(str(Path(self.root, SERVICE, "bundle.py")))
        esbuild = tools["tool"](Path(self.root))
        if esbuild is None or os.environ.get("RELAXDP_BUNDLE") == "off":
            return []
        tools["build"](esbuild)
        return sorted(file for file in tools["BUNDLE"].rglob("*") if file.is_file())
