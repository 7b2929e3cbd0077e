"""Why a session is not traced, and which traces are removed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import MeasurementError
from pgdyno.host.files.tree import Tree
from pgdyno.host.host import Cache
from pgdyno.profile.misses.tally import SplitCaches
from pgdyno.profile.reading.data_miss_tracing import require_traceable
from pgdyno.profile.reading.session_traces import (
    SessionToTrace,
    remove_traces_of_ended,
    require_whole,
    session_mappings,
)
from pgdyno.profile.simulated_caches import simulated_caches
from pgdyno.workload.bundled.pgbench_select import WORKLOAD

GB = 1 << 30
NO_PROCESS = 4_194_305  # above the kernel's largest number
CACHES = simulated_caches(
    (
        Cache(1, "Data", 48 << 10, 12, 64),
        Cache(1, "Instruction", 32 << 10, 8, 64),
        Cache(2, "Unified", 2 << 20, 16, 64),
    )
)
TRACED = SessionToTrace(WORKLOAD, 1, CACHES, 37_000, Path("/usr/bin/postgres"), {})


def test_transactions_follow_from_the_instructions_of_one() -> None:
    # Two million instructions count, of 37,000 each: 54 transactions; never fewer than six. Before them go
    # 20, unless these have more than 15 million instructions; never fewer than six either.
    assert TRACED.transactions == (20, 54)
    assert replace(TRACED, instructions=1_664_045).transactions == (9, 6)
    assert replace(TRACED, instructions=300_000).transactions == (20, 7)
    assert replace(TRACED, instructions=9_000_000).transactions == (6, 6)
    assert replace(TRACED, instructions=100).transactions == (20, 1000)


def test_room_follows_from_the_instructions_of_all_transactions() -> None:
    # 74 transactions of 37,000 instructions, of 20 bytes each, and a fifth more; and 1 GB.
    assert TRACED.needed_bytes == 65_712_000 + GB
    # 12 transactions of nine million: 2,592,000,000 bytes.
    assert replace(TRACED, instructions=9_000_000).needed_bytes == 2_592_000_000 + GB


def test_a_session_that_can_be_traced_has_caches() -> None:
    assert isinstance(require_traceable(TRACED, has_tracer=True, room_bytes=2 * GB), SplitCaches)


@pytest.mark.parametrize(
    ("traced", "room_bytes", "words"),
    [
        (replace(TRACED, caches=simulated_caches(())), 100 * GB, "does not report the geometry of its cache"),
        (
            replace(TRACED, instructions=35e6),
            100 * GB,
            "35 million instructions; at most 10 million are traced",
        ),
        (replace(TRACED, instructions=9e6), 3 * GB, "traces may take 3.41 GB, but the disk has only 3 GB"),
    ],
)
def test_why_not_is_said(traced: SessionToTrace, room_bytes: int, words: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        require_traceable(traced, has_tracer=True, room_bytes=room_bytes)
    assert words in str(caught.value).replace("\xa0", " ")


def test_a_process_that_cannot_be_read_is_said_with_what_it_takes(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError) as caught:
        session_mappings(Tree(tmp_path), 4711)
    assert caught.value.message == "could not read the session's mappings: no such file"
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("reading another account's process needs CAP_SYS_PTRACE: ")


def test_traces_of_processes_that_go_on_are_kept(tmp_path: Path) -> None:
    for name in (f"trace.{NO_PROCESS}", f"trace.{os.getpid()}", "trace.of.somebody", "postmaster.log"):
        (tmp_path / name).touch()
    remove_traces_of_ended(tmp_path)
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {f"trace.{os.getpid()}", "trace.of.somebody", "postmaster.log"}


def test_a_trace_on_a_disk_that_may_have_been_full_does_not_count() -> None:
    require_whole(256 << 20)
    with pytest.raises(MeasurementError) as caught:
        require_whole(200 << 20)
    assert caught.value.message == "the trace may be incomplete: the disk has only 200\xa0MB free"
