"""The sessions of a simulation, one after the other on a server under callgrind.

A session of N transactions is compared with a shorter one that has the first of them. An earlier session runs
the same transactions, to fill the server's caches and to write the full-page images of changed pages to WAL.
Two sessions before that determine the number of transactions.
"""

from __future__ import annotations

import time
from pathlib import Path

from pgdyno.base.errors import MeasurementError
from pgdyno.host.tracing.valgrind import output_of
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.processes import is_alive
from pgdyno.postgres.process.untrusted_file import read_own_whole
from pgdyno.profile.callgrind import CodeCounts, SimulatedRun, parse_callgrind

_SHORTER, _LONGER, _MOST = 20, 100, 3000  # transactions of a session
_ENOUGH_INSTRUCTIONS = 100_000_000  # the server's once-per-second work is then a small part
_END_LIMIT_S, _POLL_S = 600.0, 0.05  # writing the counts takes seconds, or minutes on a busy host
_LIMIT_BYTES = 256 << 20  # of a session's counts; those of PostgreSQL take three megabytes
# The load's session is the newest one: the driver's first session is idle and holds its lock on the database.
# Planning a query on views of sessions and locks would take as long as hundreds of transactions.
_WORKING_SESSION = """
SELECT (
    SELECT a.pid FROM pg_catalog.pg_stat_get_activity(NULL) a
    WHERE a.backend_type OPERATOR(pg_catalog.=) 'client backend'
      AND a.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
    ORDER BY a.backend_start DESC LIMIT 1
)
"""


def simulated_run(
    arena: ScratchArena,
    variant: Variant,
    workload: Workload,
    seed: int,
    directory: Path,
    like: SimulatedRun | None = None,
) -> SimulatedRun:
    """Return the work of sessions on a fresh server; the run ``like`` sets the number of transactions.

    Sessions of different lengths run different transactions; their figures differ by up to some percent.

    Raises: MeasurementError if a session is not found; like starting sessions.
    """
    arena.restore((variant,), (0,), workload.data_set)
    with arena.arms((variant,), (0,), workload.data_set) as [arm]:

        def session(count: int) -> CodeCounts:
            return session_counts(arena, arm, workload, seed, count, directory)

        few, some = session(_SHORTER), session(_LONGER)
        transactions = enough(some.since(few).totals["Ir"] / (_LONGER - _SHORTER), like)
        session(transactions)
        shorter, longer = session(_SHORTER), session(transactions)
    arena.discard((variant,), (0,), workload.data_set)
    return SimulatedRun(longer.since(shorter), transactions - _SHORTER)


def session_counts(
    arena: ScratchArena, arm: Arm, workload: Workload, seed: int, transactions: int, directory: Path
) -> CodeCounts:
    """Return one session's work; callgrind writes its counts to ``directory``. Raises: MeasurementError."""
    return _read(output_of(directory, ended_session(arena, arm, workload, seed, transactions)))


def enough(instructions: float, like: SimulatedRun | None) -> int:
    """Return a session's number of transactions: from the instructions of one, or as in the run ``like``."""
    if like is not None:
        return like.transactions + _SHORTER
    hundreds = round(_ENOUGH_INSTRUCTIONS / instructions / 100)
    return max(_LONGER, min(_MOST, hundreds * 100))


def working_session(arm: Arm) -> int:
    """Return the process of the session that runs the driver's transactions. Raises: MeasurementError."""
    [pid] = arm.query(_WORKING_SESSION)
    if pid is None:
        raise MeasurementError("could not find the session to simulate")
    return int(pid)


def ended_session(arena: ScratchArena, arm: Arm, workload: Workload, seed: int, transactions: int) -> int:
    """Run transactions in one session, and return its process once it has exited.

    Raises: MeasurementError if the session is not found or does not end; like issuing the load.
    """
    pids: list[int] = []

    def note_session() -> None:
        pids.append(working_session(arm))

    arena.loads.run_counted(arm, workload, seed, transactions, note_session)
    [pid] = pids
    deadline_s = time.monotonic() + _END_LIMIT_S
    while is_alive(pid):
        if time.monotonic() > deadline_s:
            raise MeasurementError(f"a simulated session did not end within {_END_LIMIT_S:.0f} s")
        time.sleep(_POLL_S)
    return pid


def _read(file: Path) -> CodeCounts:
    """Return a session's counts from callgrind's file, and remove the file."""
    try:
        return parse_callgrind(read_own_whole(file, _LIMIT_BYTES).splitlines())
    except FileNotFoundError:
        raise MeasurementError("callgrind wrote no file for a session") from None
    finally:
        file.unlink(missing_ok=True)
