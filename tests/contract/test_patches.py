"""Every patch of the catalogue has its header, changes one file of the server, and is in the guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgdyno.builds.patching.patches import PATCHES, Patch, known_patches

GUIDE = Path(__file__).parents[2] / "docs/guides/build.md"
RESULTS = Path(__file__).parents[2] / "docs/results/patches.md"
MEASURED = re.compile(
    r"alone (not measured|not distinguishable \([^()]+\)|equivalent[^;]+|better[^;]+|worse[^;]+)"
    r"(; with (?P<others>[a-z, -]+): .+)?; \d+ clients?, [^;]+; docs/results/patches.md"
)
FIGURE = re.compile(r"[+−][\d.]+ % \([^()]+\)")
# Measured together with others, and taken out since (decision 39).
LEFT = {"clock-read-once", "prefetch-heap-rows", "text-send-in-place"}
LONGEST = 150  # lines of a diff: small enough to be read at once
patches = pytest.mark.parametrize("patch", known_patches(), ids=lambda patch: f"{patch.major}-{patch.name}")


@patches
def test_a_patch_is_small_and_of_one_file_of_the_server(patch: Patch) -> None:
    assert re.fullmatch("[a-z]+(-[a-z]+)*", patch.name)
    (change,) = patch.changes
    assert change.path.startswith(("src/backend/", "src/pl/plpgsql/src/"))
    assert change.path.endswith(".c")  # a header would be the ABI of extensions
    assert sum(len(hunk.old) + len(hunk.new) for hunk in change.hunks) < 2 * LONGEST


@patches
def test_a_patch_was_made_for_a_release_of_its_major_version(patch: Patch) -> None:
    assert re.fullmatch(rf"{patch.major}\.\d+", patch.release)
    for text in (patch.title, patch.idea, patch.verdict):
        assert text.strip() == text != ""


@patches
def test_a_verdict_names_its_company_its_figures_and_its_machine(patch: Patch) -> None:
    if patch.verdict.startswith("not measured yet"):
        return
    found = MEASURED.fullmatch(patch.verdict)
    assert found is not None, patch.verdict
    others = found["others"].split(", ") if found["others"] else []
    known = {one.name for one in known_patches() if one.major == patch.major}
    assert LEFT.isdisjoint(known)
    assert set(others) < (known | LEFT) - {patch.name}
    figures = FIGURE.findall(patch.verdict)
    assert figures
    results = " ".join(RESULTS.read_text().split())
    assert [figure for figure in figures if figure not in results] == []


@patches
def test_a_patch_is_in_the_guide(patch: Patch) -> None:
    (row,) = (line for line in GUIDE.read_text().splitlines() if line.startswith(f"| `{patch.name}` | "))
    assert row.startswith(f"| `{patch.name}` | *preview:* ") == patch.name.startswith("preview-")


def test_there_is_nothing_else_among_them() -> None:
    files = {path for path in PATCHES.rglob("*") if path.is_file()}
    assert files == {PATCHES / str(patch.major) / f"{patch.name}.patch" for patch in known_patches()}
    assert len(files) >= 4
