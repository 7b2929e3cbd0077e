"""The lock file covers what pyproject.toml asks for, and the bill of materials lists what is locked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from chores.sbom import document
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKED = (ROOT / "requirements.txt").read_text(encoding="utf-8")
LOCKED_FOR_DEVELOPMENT = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
CRATES = (ROOT / "driver/Cargo.lock").read_text(encoding="utf-8")


def pinned(lock: str) -> dict[str, set[str]]:
    """Return the locked versions of each Python package, read as pip reads them."""
    found: dict[str, set[str]] = {}
    for text in lock.replace("\\\n", " ").splitlines():
        if text and not text.lstrip().startswith("#"):
            requirement = Requirement(text.partition("--hash")[0])
            found.setdefault(canonicalize_name(requirement.name), set()).add(
                str(requirement.specifier).removeprefix("==")
            )
    return found


def test_every_dependency_is_locked_to_a_version_that_it_accepts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        *project["dependencies"],
        *(one for some in project["optional-dependencies"].values() for one in some),
    ]
    locked = pinned(LOCKED_FOR_DEVELOPMENT)
    for requirement in map(Requirement, asked):
        versions = locked[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_users_get_what_pgdyno_needs_in_the_versions_that_are_tested_and_no_tools() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    users, all_of_them = pinned(LOCKED), pinned(LOCKED_FOR_DEVELOPMENT)
    tools = {canonicalize_name(Requirement(one).name) for one in extras.pop("dev")}
    needed = [*project["dependencies"], *(one for some in extras.values() for one in some)]
    assert {canonicalize_name(Requirement(one).name) for one in needed} <= users.keys()
    assert all(all_of_them[name] == versions for name, versions in users.items())
    assert tools & users.keys() == {"pyyaml"}  # Dask reads its settings with it


@pytest.mark.parametrize("lock", [LOCKED, LOCKED_FOR_DEVELOPMENT])
def test_every_locked_package_has_checksums_and_no_address(lock: str) -> None:
    packages = lock.replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in text for text in packages if text and not text.lstrip().startswith("#"))
    assert "://" not in lock


def test_the_bill_of_materials_has_what_is_locked() -> None:
    components = document(LOCKED, CRATES)["components"]
    listed = {
        (one["purl"].partition("/")[0], canonicalize_name(one["name"]), one["version"]) for one in components
    }
    python = {
        ("pkg:pypi", name, version) for name, versions in pinned(LOCKED).items() for version in versions
    }
    crates = re.findall(r'name = "(\S+)"\nversion = "(\S+)"\nsource = "registry', CRATES)
    assert listed == python | {("pkg:cargo", canonicalize_name(name), version) for name, version in crates}
    sums = {one["content"] for component in components for one in component["hashes"]}
    assert sums == set(re.findall(r"[0-9a-f]{64}", LOCKED + CRATES))


def test_the_bill_says_what_it_is_and_names_no_place() -> None:
    bill = document("a==1 \\\n    --hash=sha256:" + "0" * 64, '[[package]]\nname = "own"\nversion = "1"\n')
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["components"] == [
        {
            "type": "library",
            "name": "a",
            "version": "1",
            "purl": "pkg:pypi/a@1",
            "hashes": [{"alg": "SHA-256", "content": "0" * 64}],
        }
    ]
