"""The trace of a session's accesses to memory, cut where its client rests.

The server runs under valgrind's lackey, which writes a line for each access. Transactions count from where a
session rests after some of them, with plans and catalogs in its caches, to where it rests after some more.
A session before has done the same transactions, so that their pages are in shared buffers.
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
from pgdyno.postgres.process.own_file import own_size_bytes, read_own_pieces
from pgdyno.postgres.process.processes import is_alive
from pgdyno.profile.reading.simulated_sessions import ended_session, working_session
from pgdyno.profile.simulated_caches import SimulatedCaches

_FEWEST, _MOST = 6, 1000  # transactions that count
_LEAST_LEAD, _MOST_LEAD = 6, 20  # before them: callgrind's 20 where that does not take too long
_LEAD_INSTRUCTIONS = 15_000_000
_ENOUGH_INSTRUCTIONS = 2_000_000
_TRACE_BYTES = 20  # of an instruction, with its accesses to data
_OTHER_BYTES = 1 << 30  # other processes' traces, and data
_LEAST_LEFT_BYTES = 256 << 20  # on the disk, after the traces
_TURN_S = 0.3
_SLACK = 1.2  # turns have some transactions more than are wanted
_FILLING_BYTES = (
    64 << 20
)  # of a trace: three million instructions, which fill a second level with lines in use


@dataclass(frozen=True)
class SessionToTrace:
    """A session's workload, and callgrind's findings about it.

    These are the ``instructions`` of a transaction, and ``functions`` by address in the ``program``.
    """

    workload: Workload
    seed: int
    caches: SimulatedCaches
    instructions: float
    program: Path
    functions: Mapping[int, str]

    @property
    def transactions(self) -> tuple[int, int]:
        """How many are to pass before any counts, and how many count then."""
        lead = round(_LEAD_INSTRUCTIONS / self.instructions)
        wanted = round(_ENOUGH_INSTRUCTIONS / self.instructions)
        return max(_LEAST_LEAD, min(_MOST_LEAD, lead)), max(_FEWEST, min(_MOST, wanted))

    @property
    def needed_bytes(self) -> int:
        """The room on the disk for the trace; that of the session before it is removed."""
        bytes_of_one = _TRACE_BYTES * self.instructions * sum(self.transactions)
        return round(bytes_of_one * _SLACK) + _OTHER_BYTES


@dataclass(frozen=True)
class SessionTrace:
    """A session's trace: its transactions that count lie between two places of the file."""

    file: Path
    begin: int
    end: int
    transactions: int
    mappings: tuple[MemoryMapping, ...]

    def filling(self) -> Iterator[bytes]:
        """Yield the trace before the transactions that count: it fills caches."""
        return read_own_pieces(self.file, max(0, self.begin - _FILLING_BYTES), self.begin)

    def counted(self) -> Iterator[bytes]:
        """Yield the transactions that count."""
        return read_own_pieces(self.file, self.begin, self.end)


def session_trace(arena: ScratchArena, arm: Arm, traced: SessionToTrace, directory: Path) -> SessionTrace:
    """Let a session do its transactions.

    Raises: MeasurementError if its trace is not whole, or not readable.
    """
    lead, wanted = traced.transactions
    ended_session(arena, arm, traced.workload, traced.seed, round((lead + wanted) * _SLACK))
    remove_traces_of_ended(directory)
    with arena.loads.resting(arm, traced.workload, traced.seed) as run:
        pid = working_session(arm)
        session_mappings(Tree(), pid)  # without the right to, the trace would be for nothing
        return _trace(run, pid, trace_of(directory, pid), (lead, wanted))


def _trace(run: RestingRun, pid: int, file: Path, transactions: tuple[int, int]) -> SessionTrace:
    """Let a session do its transactions, and return their trace."""
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
            f"the session's mappings are not known: {found.reason}",
            detail="reading another account's process takes CAP_SYS_PTRACE: root in a container has it with "
            "docker run --cap-add SYS_PTRACE",
        )
    return found


def _size(file: Path) -> int:
    try:
        return own_size_bytes(file)
    except FileNotFoundError:
        raise MeasurementError("lackey writes no file for a session: it takes valgrind 3.16") from None


def remove_traces_of_ended(directory: Path) -> None:
    """Remove the traces of processes that have ended: the room is for those that count."""
    for pid, file in traces_in(directory):
        if not is_alive(pid):
            file.unlink(missing_ok=True)


def require_whole(room_bytes: int) -> None:
    """Check that the disk has not been full. Raises: MeasurementError if it may have been."""
    if room_bytes < _LEAST_LEFT_BYTES:
        raise MeasurementError(
            f"the disk has {numbers.size(room_bytes)} left, so that the trace may lack lines",
            detail="lackey leaves them out without a word when it is full: "
            f"{numbers.size(_LEAST_LEFT_BYTES)} have to be left",
        )


def _issue(run: RestingRun, transactions: int) -> int:
    """Issue at least a number of transactions; return how many there were."""
    done = 0
    while done < transactions:
        done += run.go_on(_TURN_S)
    return done
