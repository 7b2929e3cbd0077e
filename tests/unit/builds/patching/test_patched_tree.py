"""Patches change the plain files of a tree that they name, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.builds.patching.patches import Patch, apply_patches
from pgdyno.builds.patching.unified_diff import FileChange, Hunk


def patch(path: str = "src/port/main.c", old: str = "old", new: str = "new") -> Patch:
    change = FileChange(path, (Hunk(1, (old,), (new,)),))
    return Patch("a-patch", 18, "t", "i", "18.6", "v", "ab", (change,))


def put(tree: Path, text: bytes = b"old\nrest\n") -> Path:
    file = tree / "src/port/main.c"
    file.parent.mkdir(parents=True)
    file.write_bytes(text)
    return file


def refused(tree: Path, *patches: Patch) -> str:
    with pytest.raises(UsageError) as caught:
        apply_patches(patches or (patch(),), tree, "18.9")
    assert caught.value.message == 'the patch "a-patch" does not apply to PostgreSQL 18.9'
    assert caught.value.hint == "it was made for PostgreSQL 18.6: build that version, or omit the patch"
    return caught.value.detail or ""


def test_patches_are_applied_one_after_the_other(tmp_path: Path) -> None:
    file = put(tmp_path)
    apply_patches((patch(), patch(old="new", new="newer and longer")), tmp_path, "18.6")
    assert file.read_bytes() == b"newer and longer\nrest\n"


def test_all_other_bytes_are_kept(tmp_path: Path) -> None:
    rest = bytes(range(256)) + b"\r\n\x85\n"
    file = put(tmp_path, b"old\n" + rest)
    file.chmod(0o751)
    apply_patches((patch(),), tmp_path, "18.6")
    assert file.read_bytes() == b"new\n" + rest
    assert file.stat().st_mode & 0o777 == 0o751


def test_a_file_that_has_other_lines_is_named_and_left(tmp_path: Path) -> None:
    file = put(tmp_path, b"other\n")
    assert refused(tmp_path) == ('src/port/main.c, hunk 1 of 1: line 1 should be "old", but is "other"')
    assert file.read_bytes() == b"other\n"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path) == "src/port/main.c: no such file or directory"


@pytest.mark.parametrize("linked", ["src", "src/port", "src/port/main.c"])
def test_no_link_is_followed(tmp_path: Path, linked: str) -> None:
    elsewhere, tree = tmp_path / "elsewhere", tmp_path / "tree"
    file = put(elsewhere)
    (tree / linked).parent.mkdir(parents=True)
    (tree / linked).symlink_to(elsewhere / linked)
    assert refused(tree).startswith("src/port/main.c: ")
    assert file.read_bytes() == b"old\nrest\n"


def test_a_file_with_a_second_name_is_left(tmp_path: Path) -> None:
    file = put(tmp_path / "tree")
    os.link(file, tmp_path / "its other name")
    assert refused(tmp_path / "tree") == "src/port/main.c: not a regular file with one hard link"
    assert file.read_bytes() == b"old\nrest\n"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "src/port").mkdir(parents=True)
    os.mkfifo(tmp_path / "src/port/main.c")
    assert refused(tmp_path) == "src/port/main.c: not a regular file with one hard link"
