"""Whole files: written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from pgdyno.base.errors import StorageError
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


def test_a_link_in_place_of_the_temporary_file_leads_to_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, reports = tmp_path / "secret", tmp_path / "reports"
    reports.mkdir()
    secret.write_text("root's")
    secret.chmod(0o600)

    def plant(_descriptor: int) -> None:
        (temporary,) = reports.iterdir()
        temporary.unlink()
        temporary.symlink_to(secret)

    monkeypatch.setattr(os, "fsync", plant)
    write_whole(reports / "f", b"new")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.read_text() == "root's"


def test_a_link_in_place_of_the_directory_leads_to_no_other_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports, moved, others = tmp_path / "reports", tmp_path / "moved", tmp_path / "others"
    reports.mkdir()
    others.mkdir()
    (others / "f").write_text("theirs")

    def plant(_descriptor: int) -> None:
        reports.rename(moved)
        reports.symlink_to(others)
        (temporary,) = moved.iterdir()
        (others / temporary.name).write_text("planted")

    monkeypatch.setattr(os, "fsync", plant)
    write_whole(reports / "f", b"new")
    assert (moved / "f").read_bytes() == b"new"
    assert (others / "f").read_text() == "theirs"
