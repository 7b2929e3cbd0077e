"""The lock of a journal: one holder, named by its process, until it ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pgdyno.base.errors import LockHeldError
from pgdyno.host.files.lock import exclusive_lock


def test_a_second_holder_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "journal.lock"
    with exclusive_lock(path):
        with pytest.raises(LockHeldError) as caught, exclusive_lock(path):
            pass
        assert str(caught.value) == (
            "another pgdyno process is making changes on this host\n"
            f"DETAIL:  process {os.getpid()} holds {path}\n"
            "HINT:  wait until it has ended, then see pgdyno status"
        )
    with exclusive_lock(path):
        assert path.read_text() == f"{os.getpid()}\n".ljust(32)


def test_a_longer_process_id_of_an_earlier_holder_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal.lock"
    path.write_text("12345678901234567890\n")
    with exclusive_lock(path):
        assert path.read_text().split() == [str(os.getpid())]


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "journal.lock"
    path.symlink_to(elsewhere)
    with pytest.raises(OSError) as caught, exclusive_lock(path):  # noqa: PT011 — the number is compared
        pass
    assert caught.value.errno == errno.ELOOP
    assert not elsewhere.exists()
