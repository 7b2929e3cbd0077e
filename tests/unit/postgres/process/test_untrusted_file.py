"""Files of the servers' user that root reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.errors import DataDirectoryError
from pgdyno.postgres.process.untrusted_file import own_size_bytes, read_own, read_own_end, read_own_pieces


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


def test_a_part_of_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_bytes(b"before" + b"x" * (9 << 20) + b"after")
    assert own_size_bytes(trace) == 11 + (9 << 20)
    pieces = [*read_own_pieces(trace, 4, 6 + (9 << 20) + 2)]
    assert [len(piece) for piece in pieces] == [8 << 20, (1 << 20) + 4]
    whole = b"".join(pieces)
    assert (whole[:3], whole[-3:]) == (b"rex", b"xaf")
    assert b"".join(read_own_pieces(trace, 11 + (9 << 20) - 2, 1 << 40)) == b"er"  # to its end


def test_a_link_or_a_fifo_is_not(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root's own")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(DataDirectoryError) as caught:
            read_own(tmp_path / name)
        assert caught.value.message == f'could not read "{tmp_path / name}"'
