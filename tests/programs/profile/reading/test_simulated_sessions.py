"""A valgrind without lackey: the profile says why data misses have no structures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from pgdyno.base.facts import Unknown
from pgdyno.host.tracing.valgrind import Valgrind
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.variants.variant import parse_variant
from pgdyno.profile.reading.session_traces import SessionToTrace
from pgdyno.profile.reading.simulate import traced_misses
from pgdyno.profile.simulated_caches import simulated_caches
from pgdyno.workload.bundled.pgbench_select import WORKLOAD

# The words of valgrind 3.19 for a tool that is not there.
PROGRAM = """#!/bin/sh
echo "valgrind: failed to start tool 'lackey' for platform 'amd64-linux': No such file or directory" >&2
exit 1
"""


def test_the_reason_is_told_before_any_server_is_started(tmp_path: Path) -> None:
    program = tmp_path / "valgrind"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    traced = SessionToTrace(WORKLOAD, 1, simulated_caches(()), 37_000, tmp_path / "postgres", {})
    nowhere = cast("ScratchArena", SimpleNamespace(loads=SimpleNamespace(scratch=tmp_path)))
    found = traced_misses(nowhere, parse_variant("default"), traced, Valgrind(str(program), "3.19.0"))
    assert found == Unknown(
        "simulated: no data misses by structure, because this valgrind has no lackey, the tracing tool"
    )
