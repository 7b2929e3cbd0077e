"""Recordings of a real perf as root, which leave the machine as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.host.tracing.perf import find_perf
from pgdyno.profile.reading.recordings import open_recordings


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root traces the scheduler")
@pytest.mark.skipif(find_perf() is None, reason="perf is not installed: apt-get install linux-perf")
def test_what_perf_mounts_for_the_trace_is_gone_with_it(tmp_path: Path) -> None:
    mounts = Path("/proc/self/mounts")
    before = mounts.read_text()
    if " tracefs " in before:
        pytest.skip("tracefs is mounted already: perf mounts nothing")
    with open_recordings(tmp_path, (), 100, is_traced=True) as recordings:
        if not recordings.has_trace:
            pytest.skip(f"the scheduler is not traced here: {recordings.remarks}")
        with recordings.tracing():
            assert mounts.read_text() == before
        recordings.end()
        assert recordings.of_schedule is not None
        assert recordings.of_schedule.file.stat().st_size > 0
    assert mounts.read_text() == before
