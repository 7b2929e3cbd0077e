"""Write dist/sbom.cdx.json: every package that ``make setup`` installs.

Python packages come from requirements.txt, crates of the load generator from driver/Cargo.lock; both lock
versions and checksums. Source of the format: CycloneDX 1.5, ECMA-424.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "dist" / "sbom.cdx.json"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def document(requirements: str, cargo_lock: str) -> dict[str, Any]:
    """Return the document for the texts of the two lock files."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "pgdyno"}},
        "components": [*_python_packages(requirements), *_crates(cargo_lock)],
    }


def _python_packages(requirements: str) -> Iterator[dict[str, Any]]:
    """Yield a component per requirement, with the checksums of all files that it may be installed from."""
    for text in requirements.replace("\\\n", " ").splitlines():
        if found := _REQUIREMENT.match(text):
            yield _component("pypi", found["name"], found["version"], _HASH.findall(text))


def _crates(cargo_lock: str) -> Iterator[dict[str, Any]]:
    for package in tomllib.loads(cargo_lock)["package"]:
        if "checksum" in package:  # our own has none
            yield _component("cargo", package["name"], package["version"], [package["checksum"]])


def _component(kind: str, name: str, version: str, checksums: list[str]) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{kind}/{name}@{version}",
        "hashes": [{"alg": "SHA-256", "content": one} for one in checksums],
    }


def main() -> None:
    """Write the file, and say where it is."""
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    cargo_lock = (ROOT / "driver/Cargo.lock").read_text(encoding="utf-8")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(document(requirements, cargo_lock), indent=2) + "\n", encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
