"""Whole files: written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from pgdyno.model.errors import StorageError
from pgdyno.store.files import write_whole


def test_file_is_written_with_ordinary_permissions(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write_whole(tmp_path / "report.html", b"<p>")
    finally:
        os.umask(previous)
    assert (tmp_path / "report.html").read_bytes() == b"<p>"
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o640


def test_former_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    write_whole(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_missing_directory_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        write_whole(tmp_path / "nowhere" / "f", b"")
    assert str(caught.value) == (
        f'could not write "{tmp_path}/nowhere/f"\nDETAIL:  No such file or directory'
    )


def test_full_disk_leaves_the_former_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "f").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write_whole(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
