"""The sessions of a simulation: on a server that runs under callgrind, one after the other.

A session of N transactions is compared with a shorter one that has the first of them. A session before them
touches what they touch: caches of the server are filled, and pages that are changed have their full images in
WAL. Two sessions before that say how many transactions are enough.
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
from pgdyno.postgres.process.own_file import read_own_whole
from pgdyno.postgres.process.processes import is_alive
from pgdyno.profile.callgrind import CodeCounts, parse_callgrind
from pgdyno.profile.simulation import SimulatedRun

_SHORTER, _LONGER, _MOST = 20, 100, 3000  # transactions of a session
_ENOUGH_INSTRUCTIONS = 100_000_000  # what the server does once a second is then little of them
_END_LIMIT_S, _POLL_S = 600.0, 0.05  # it writes its counts: seconds, and minutes on a crowded host
_LIMIT_BYTES = 256 << 20  # of a session's counts; PostgreSQL's have three megabytes
# The load's session is the last one: the driver's first one holds its lock on the database, and rests.
# Views of sessions and locks would take as long to plan as hundreds of transactions.
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
    """Return the work of the sessions on a fresh server: of as many transactions as the run that it is like.

    Figures of sessions of different lengths are of other transactions, and differ by up to some percent.

    Raises: MeasurementError if one of them is not seen, and whatever starting it raises.
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
    """Return the work of one session, as callgrind counts it in a directory. Raises: MeasurementError."""
    return _read(output_of(directory, ended_session(arena, arm, workload, seed, transactions)))


def enough(instructions: float, like: SimulatedRun | None) -> int:
    """Return how many transactions a session is to have: by the instructions of one, or as another run's."""
    if like is not None:
        return like.transactions + _SHORTER
    hundreds = round(_ENOUGH_INSTRUCTIONS / instructions / 100)
    return max(_LONGER, min(_MOST, hundreds * 100))


def working_session(arm: Arm) -> int:
    """Return the process of the session that does the driver's transactions. Raises: MeasurementError."""
    [pid] = arm.query(_WORKING_SESSION)
    if pid is None:
        raise MeasurementError("the session to be simulated was not found")
    return int(pid)


def ended_session(arena: ScratchArena, arm: Arm, workload: Workload, seed: int, transactions: int) -> int:
    """Have one session execute transactions, and return its process, which has ended.

    Raises: MeasurementError if it is not seen, or does not end, and whatever issuing the load raises.
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
    """Read the file that callgrind has written for a session."""
    try:
        return parse_callgrind(read_own_whole(file, _LIMIT_BYTES).splitlines())
    except FileNotFoundError:
        raise MeasurementError("callgrind has written nothing for a session") from None
    finally:
        file.unlink(missing_ok=True)
