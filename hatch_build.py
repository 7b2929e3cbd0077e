"""Builds pgdyno-driver with cargo and puts it into the wheel, beside the command ``pgdyno``.

The sources of the extension pgdyno_loop go with it: they are compiled for the server that is measured.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NAME = "pgdyno-driver"
_EXTENSION = "extension/pgdyno_loop"


class DriverHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the driver to wheels, editable ones included."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the driver and register it as a script; the wheel is then one for this platform."""
        if version != "editable":  # which runs from the checkout, and finds them there
            build_data["force_include"][str(Path(self.root) / _EXTENSION)] = f"pgdyno/{_EXTENSION}"
        cargo = shutil.which("cargo")
        if cargo is None:
            raise SystemExit(
                "pgdyno's load generator is written in Rust, and cargo was not found: install Rust 1.88 or "
                "newer (https://rustup.rs), or install pgdyno from a wheel"
            )
        crate = Path(self.root) / "driver"
        target = crate / "target"
        built = subprocess.run(
            [cargo, "build", "--release", "--locked", "--quiet", f"--target-dir={target}"],
            cwd=crate,
            check=False,
        )
        if built.returncode != 0:
            raise SystemExit(
                "cargo could not build pgdyno's load generator; its own words stand above. It takes Rust "
                "1.88 or newer (rustup default stable; https://rustup.rs), and a C compiler that links (cc)"
            )
        build_data["shared_scripts"][str(target / "release" / _NAME)] = _NAME
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
