"""Files of the servers' user that root reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.model.errors import DataDirectoryError
from pgdyno.server.process.own_file import read_own, read_own_end


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("18\n")
    assert read_own(tmp_path / "PG_VERSION") == "18\n"
    with pytest.raises(FileNotFoundError):
        read_own(tmp_path / "postmaster.pid")


def test_of_a_log_the_end_is_read_however_large_it_is(tmp_path: Path) -> None:
    log = tmp_path / "data.log"
    log.write_text("whole\n")
    assert read_own_end(log) == "whole\n"
    with log.open("r+b") as file:
        file.truncate(1 << 40)  # takes no space
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast words\n")
    end = read_own_end(log)
    assert end.endswith("\nlast words\n")
    assert len(end) == 1 << 20


def test_a_link_or_a_fifo_is_not(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root's own")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(DataDirectoryError) as caught:
            read_own(tmp_path / name)
        assert caught.value.message == f'could not read "{tmp_path / name}"'
