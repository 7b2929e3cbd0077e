"""The catalogue of patches, with files of a test's own."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.builds.patching import patches as catalogue
from pgdyno.builds.patching.patches import choose_patches, known_patches, require_known

DIFF = "--- a/main.c\n+++ b/main.c\n@@ -1 +1 @@\n-old\n+new\n"
HEAD = "Title: does it\nIdea: somewhere,\n on two lines\nRelease: 18.6\nVerdict: none\n\nMore.\n\n"


@pytest.fixture(autouse=True)
def patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a catalogue with three patches, one of another version."""
    for name in ("18/second", "18/first", "17/older"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.patch").write_text(HEAD + DIFF)
    monkeypatch.setattr(catalogue, "PATCHES", tmp_path)
    return tmp_path


def test_a_patch_has_a_header_and_a_diff() -> None:
    patch = known_patches()[1]
    assert (patch.name, patch.major, patch.title) == ("first", 18, "does it")
    assert (patch.idea, patch.release, patch.verdict) == ("somewhere, on two lines", "18.6", "none")
    assert [change.path for change in patch.changes] == ["main.c"]


def test_its_checksum_is_that_of_the_diff_alone(patches: Path) -> None:
    (patches / "18/first.patch").write_text(HEAD.replace("none", "better by 2 %") + DIFF)
    assert known_patches()[1].sha256 == sha256(DIFF.encode()).hexdigest()


def test_patches_are_applied_in_the_catalogues_order_however_they_are_named() -> None:
    for names in (("second", "first"), ("first", "second")):
        assert [patch.name for patch in choose_patches(names, 18)] == ["first", "second"]


def test_an_unknown_patch_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        require_known(["first", "third"])
    assert caught.value.message == 'patch "third" does not exist'
    assert caught.value.detail == "existing patches: older: does it; first: does it; second: does it"


def test_a_patch_of_another_version_is_refused_by_that_version() -> None:
    require_known(["older"])
    with pytest.raises(UsageError) as caught:
        choose_patches(["older"], 18)
    assert str(caught.value) == (
        'patch "older" does not exist for PostgreSQL 18\nDETAIL:  existing patches: first, second'
    )
    with pytest.raises(UsageError) as caught:
        choose_patches(["first"], 19)
    assert caught.value.detail == "existing patches: none"


def test_a_patch_is_named_once() -> None:
    with pytest.raises(UsageError, match="--patch first is given twice"):
        require_known(["first", "second", "first"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD.replace("Idea", "Source") + DIFF, "it has no line Idea:"),
        (HEAD, "it is empty, or has no newline at its end"),
        (HEAD + DIFF.replace("main.c", "../main.c"), '"../main.c" is not a path within a tree'),
    ],
)
def test_a_damaged_patch_is_named(patches: Path, text: str, said: str) -> None:
    (patches / "18/first.patch").write_text(text)
    with pytest.raises(InstallationError) as caught:
        known_patches()
    assert (caught.value.message, caught.value.detail) == (f"{patches}/18/first.patch is damaged", said)
