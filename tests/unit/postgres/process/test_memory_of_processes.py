"""What processes have in memory: their own, and once what they share."""

from __future__ import annotations

import mmap
import os

from pgdyno.postgres.process.processes import memory_bytes

MB = 1 << 20


def test_shared_memory_that_a_process_has_touched_counts_once() -> None:
    pid = os.getpid()
    before, twice = memory_bytes([pid]), memory_bytes([pid, pid])
    with mmap.mmap(-1, 64 * MB) as shared:  # anonymous and shared, as shared_buffers are
        shared.write(b"x" * (64 * MB))
        grown = memory_bytes([pid]) - before
        assert 63 * MB <= grown < 200 * MB
        assert memory_bytes([pid, pid]) - twice < 2 * grown


def test_processes_that_have_ended_have_nothing() -> None:
    assert memory_bytes([]) == 0
    assert memory_bytes([1 << 22]) == 0  # above every pid_max
