"""The trace of a session's memory accesses, delimited by pauses of its client.

The server runs under valgrind's lackey, which writes a line per access. The counted transactions lie between
two pauses of the session. Before the first pause, warm-up transactions load plans and catalogs into the
session's caches. An earlier session runs the same transactions, to load their pages into shared buffers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import MeasurementError
from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.memory_mapping import MemoryMapping
from pgdyno.host.processes.process_memory import read_mappings
from pgdyno.host.tracing.valgrind import trace_of, traces_in
from pgdyno.load.timed_run import RestingRun
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.process.processes import is_alive
from pgdyno.postgres.process.untrusted_file import own_size_bytes, read_own_pieces
from pgdyno.profile.reading.simulated_sessions import ended_session, working_session
from pgdyno.profile.simulated_caches import SimulatedCaches

_FEWEST, _MOST = 6, 1000  # counted transactions
_LEAST_LEAD, _MOST_LEAD = 6, 20  # warm-up transactions: 20 as with callgrind, unless that takes too long
_LEAD_INSTRUCTIONS = 15_000_000
_ENOUGH_INSTRUCTIONS = 2_000_000
_TRACE_BYTES = 20  # per instruction, with its data accesses
_OTHER_BYTES = 1 << 30  # other processes' traces, and data
_LEAST_LEFT_BYTES = 256 << 20  # free on the disk after the traces
_TURN_S = 0.3
_SLACK = 1.2  # turns run some transactions more than wanted
_FILLING_BYTES = (
    64 << 20
)  # of a trace: three million instructions, enough to fill a second-level cache with lines in use


@dataclass(frozen=True)
class SessionToTrace:
    """A session's workload, with callgrind's results for it.

    ``instructions`` is the number per transaction; ``functions`` are by address in ``program``.
    """

    workload: Workload
    seed: int
    caches: SimulatedCaches
    instructions: float
    program: Path
    functions: Mapping[int, str]

    @property
    def transactions(self) -> tuple[int, int]:
        """The number of warm-up transactions, and the number of counted ones."""
        lead = round(_LEAD_INSTRUCTIONS / self.instructions)
        wanted = round(_ENOUGH_INSTRUCTIONS / self.instructions)
        return max(_LEAST_LEAD, min(_MOST_LEAD, lead)), max(_FEWEST, min(_MOST, wanted))

    @property
    def needed_bytes(self) -> int:
        """Disk space for the trace; the trace of the earlier session is removed."""
        bytes_of_one = _TRACE_BYTES * self.instructions * sum(self.transactions)
        return round(bytes_of_one * _SLACK) + _OTHER_BYTES


@dataclass(frozen=True)
class SessionTrace:
    """A session's trace: the counted transactions lie between offsets ``begin`` and ``end`` of the file."""

    file: Path
    begin: int
    end: int
    transactions: int
    mappings: tuple[MemoryMapping, ...]

    def filling(self) -> Iterator[bytes]:
        """Yield the trace before the counted transactions; it fills the caches."""
        return read_own_pieces(self.file, max(0, self.begin - _FILLING_BYTES), self.begin)

    def counted(self) -> Iterator[bytes]:
        """Yield the trace of the counted transactions."""
        return read_own_pieces(self.file, self.begin, self.end)


def session_trace(arena: ScratchArena, arm: Arm, traced: SessionToTrace, directory: Path) -> SessionTrace:
    """Run a session's transactions and return their trace.

    Raises: MeasurementError if the trace is incomplete or unreadable.
    """
    lead, wanted = traced.transactions
    ended_session(arena, arm, traced.workload, traced.seed, round((lead + wanted) * _SLACK))
    remove_traces_of_ended(directory)
    with arena.loads.resting(arm, traced.workload, traced.seed) as run:
        pid = working_session(arm)
        session_mappings(Tree(), pid)  # raises early: without this privilege the trace is useless
        return _trace(run, pid, trace_of(directory, pid), (lead, wanted))


def _trace(run: RestingRun, pid: int, file: Path, transactions: tuple[int, int]) -> SessionTrace:
    lead, wanted = transactions
    _issue(run, lead)
    begin = _size(file)
    done = _issue(run, wanted)
    end = _size(file)
    require_whole(shutil.disk_usage(file.parent).free)
    return SessionTrace(file, begin, end, done, session_mappings(Tree(), pid))


def session_mappings(tree: Tree, pid: int) -> tuple[MemoryMapping, ...]:
    """Return the mappings of a session's process. Raises: MeasurementError if they cannot be read."""
    found = read_mappings(tree, pid).value
    if isinstance(found, Unknown):
        raise MeasurementError(
            f"could not read the session's mappings: {found.reason}",
            detail="reading another account's process needs CAP_SYS_PTRACE: root in a container has it with "
            "docker run --cap-add SYS_PTRACE",
        )
    return found


def _size(file: Path) -> int:
    try:
        return own_size_bytes(file)
    except FileNotFoundError:
        raise MeasurementError("lackey writes no file for a session: this needs valgrind 3.16") from None


def remove_traces_of_ended(directory: Path) -> None:
    """Remove the traces of exited processes, to free disk space for the counted ones."""
    for pid, file in traces_in(directory):
        if not is_alive(pid):
            file.unlink(missing_ok=True)


def require_whole(room_bytes: int) -> None:
    """Check that the disk did not fill up. Raises: MeasurementError if it may have."""
    if room_bytes < _LEAST_LEFT_BYTES:
        raise MeasurementError(
            f"the trace may be incomplete: the disk has only {numbers.size(room_bytes)} free",
            detail="lackey drops lines without an error when the disk is full: "
            f"at least {numbers.size(_LEAST_LEFT_BYTES)} must be free",
        )


def _issue(run: RestingRun, transactions: int) -> int:
    """Issue at least ``transactions``; return the actual number."""
    done = 0
    while done < transactions:
        done += run.go_on(_TURN_S)
    return done
