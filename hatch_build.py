"""The package's build hook: the compiled path is built where a C compiler is found, and left out where there is none.

Then the wheel is a pure one, and NumPy draws the same reports.
"""

from __future__ import annotations

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNEL = Path("src", "relaxdp", "draw", "kernel")


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compile, and say for which platform the wheel is then."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library beside its sources, where an editable installation finds it as well."""
        if self.target_name != "wheel" or os.environ.get("RELAXDP_KERNEL") == "off":
            return
        tools = runpy.run_path(str(Path(self.root, KERNEL, "build.py")))
        if not tools["build"]():
            return
        library = tools["LIBRARY"]
        build_data["pure_python"] = False
        # It knows nothing of Python, so one wheel serves every version of it.
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"relaxdp/draw/kernel/{library.name}"
