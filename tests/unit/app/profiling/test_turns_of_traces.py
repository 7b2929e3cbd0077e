"""Which sessions take turns, and the limits that are said of a reading and of a writing workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.unit.app.profiling.test_data_misses import TRACED

from pgdyno.app.profiling.session_traces import SessionTrace
from pgdyno.app.profiling.turns_of_traces import TracedTurns, traced_turns
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.facts import Unknown
from pgdyno.model.profiles.code_segment import CodeSegment
from pgdyno.model.profiles.process_memory import MemoryMapping
from pgdyno.profiling.misses.loaded_program import LoadedProgram
from pgdyno.profiling.misses.lru import LruCache, SplitCaches
from pgdyno.profiling.misses.session_turns import TallyInTurns
from pgdyno.profiling.misses.tally import Tally
from pgdyno.workloads.pgbench_select import WORKLOAD as READS
from pgdyno.workloads.pgbench_tpcb import WORKLOAD as TPCB
from pgdyno.workloads.sysbench_read_write import WORKLOAD as READ_WRITE

CODE = MemoryMapping(0x1000, 0x2000, is_writable=False, is_shared=False, path="/bin/postgres")
TRACE = b"I  00001100,4\n L 00040000,8\nI  00001200,4\n L 00050000,8\nI  00001100,4\n"


def of_scale(workload: Workload, scale: int) -> Workload:
    return replace(workload, data_set=replace(workload.data_set, scale=scale))


def program(functions: Mapping[int, str]) -> LoadedProgram:
    return LoadedProgram("/bin/postgres", functions, (CodeSegment(0x1000, 0, 0x1000),), (CODE,))


def session(directory: Path) -> SessionTrace:
    file = directory / "trace.1"
    file.write_bytes(TRACE)
    return SessionTrace(file, 0, len(TRACE), 1, (CODE,))


def caches() -> SplitCaches:
    return SplitCaches(LruCache(1, 4), LruCache(1, 3), LruCache(1, 8), 64)


def test_sessions_that_would_wait_for_one_row_are_not_traced_in_turns() -> None:
    # TPC-B's branches: as many as the scale says, and each transaction changes one of them.
    assert [of_scale(TPCB, scale).hot_rows for scale in (1, 40)] == [1, 40]
    assert replace(TRACED, workload=of_scale(TPCB, 1)).sessions == 1
    assert replace(TRACED, workload=of_scale(TPCB, 2)).sessions == 2
    assert replace(TRACED, workload=of_scale(READ_WRITE, 1)).sessions == 2
    assert replace(TRACED, workload=of_scale(READS, 1)).sessions == 2


def test_why_a_session_has_no_turns_is_said(tmp_path: Path) -> None:
    one_row = traced_turns(program({0x1100: "secure_read"}), session(tmp_path), (), caches())
    assert one_row == Unknown(
        "simulated: two sessions that take turns are not told: all transactions change the same row, so that "
        "the second session would wait for the end of the first one's instead. A larger --scale has more of "
        "these rows"
    )
    nameless = traced_turns(program({0x1100: ""}), session(tmp_path), [session(tmp_path)], caches())
    assert isinstance(nameless, Unknown)
    assert "no name for where a session asks for its client's next message" in nameless.reason


def test_turns_end_at_the_client_and_at_the_disk(tmp_path: Path) -> None:
    functions = {0x1100: "secure_read", 0x1200: "pg_fdatasync"}
    found = traced_turns(program(functions), session(tmp_path), [session(tmp_path)], caches())
    assert isinstance(found, TracedTurns)
    assert found.found.turns == {0x1100: 2, 0x1200: 1}
    assert found.compared(Tally(), str, 1).flushes == 1


def test_a_writing_workload_is_told_who_would_have_waited() -> None:
    writing = TracedTurns(TallyInTurns(Tally(), Counter()), 0x1200)
    sessions, rows = writing.limits(of_scale(TPCB, 40))
    assert "one for each message from the client, and one more where WAL is written to the disk" in sessions
    assert (
        "no session waits for a row that the other one has changed; on a real server, one transaction in "
        in rows
    )
    assert "in 40 would." in rows
    assert "has changed. They have" in writing.limits(READ_WRITE)[1]
    [alone] = TracedTurns(TallyInTurns(Tally(), Counter()), None).limits(READS)
    assert "one for each message from the client. Shared memory" in alone
