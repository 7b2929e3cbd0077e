"""The trace of one session's accesses to memory, and its data cache misses by structure.

One server runs under valgrind's lackey, which writes a line for each access. The session's trace goes through
simulated caches of this processor's geometry. Misses count from where the session rests after some
transactions, with plans and catalogs in its caches, to where it rests after some more. A session before it
has done the same transactions, so that their pages are in shared buffers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.app.arenas.arm import Arm
from pgdyno.app.arenas.scratch_arena import ScratchArena
from pgdyno.app.profiling.simulated_sessions import ended_session, working_session
from pgdyno.generators.timed_run import RestingRun
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.code_segments import read_code_segments
from pgdyno.host.processes.process_memory import read_mappings, read_places
from pgdyno.host.tracing.valgrind import trace_of, traces_in
from pgdyno.model import numbers
from pgdyno.model.errors import MeasurementError
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.facts import Unknown
from pgdyno.model.profiles.data_misses import DataMisses
from pgdyno.model.profiles.process_memory import MemoryMapping, SharedArea, SharedMemory
from pgdyno.model.variants.variant import Variant
from pgdyno.profiling.misses.lru import SplitCaches, split_caches
from pgdyno.profiling.misses.pages import page_kind
from pgdyno.profiling.misses.structures import Structures, structures_in
from pgdyno.profiling.misses.tally import Tally, by_structure, tally
from pgdyno.profiling.simulated_caches import SimulatedCaches
from pgdyno.server.process.own_file import own_size_bytes, read_own_pieces
from pgdyno.server.process.processes import is_alive

DATA_MISSES_LIMITS = (
    "simulated: data misses are of one session alone. No other CPU takes its lines away, as under load they "
    "do with locks and buffer descriptors; nothing is prefetched, and the kernel's accesses are not seen. "
    "Pages have the kind that they had at the end. Work that is done once a second weighs more than it "
    "should, since transactions are slow while they are traced; and prepared statements that run rarely may "
    "still be planned each time: few transactions precede those that count"
)
_FEWEST, _MOST = 6, 1000  # transactions that count
_LEAST_LEAD, _MOST_LEAD = 6, 20  # before them: callgrind's 20 where that does not take too long
_LEAD_INSTRUCTIONS = 15_000_000
_ENOUGH_INSTRUCTIONS = 2_000_000
_MOST_INSTRUCTIONS = 10_000_000  # of a transaction
_TRACE_BYTES = 20  # of an instruction, with its accesses to data
_OTHER_BYTES = 1 << 30  # other processes' traces, and data
_LEAST_LEFT_BYTES = 256 << 20  # on the disk, after the trace
_TURN_S = 0.3
_SLACK = 1.2  # turns have some transactions more than are wanted
_FILLING_BYTES = (
    64 << 20
)  # of a trace: three million instructions, which fill a second level with lines in use
_AREAS = """
SELECT name, off, size, allocated_size FROM pg_catalog.pg_get_shmem_allocations()
WHERE name IS NOT NULL AND off IS NOT NULL
"""
_BLOCK_BYTES = "SELECT pg_catalog.current_setting('block_size')::int"
_FIRST_MAJOR = 13  # that has an index of shared memory


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
        """The room on the disk for the traces of two sessions: one goes before, and has some more."""
        bytes_of_one = _TRACE_BYTES * self.instructions * sum(self.transactions)
        return round(bytes_of_one * (1 + _SLACK)) + _OTHER_BYTES


@dataclass(frozen=True)
class _Trace:
    """The misses of some transactions, and the memory that they were in."""

    misses: Tally
    transactions: int
    structures: Structures
    mappings: Sequence[MemoryMapping]


def require_traceable(traced: SessionToTrace, *, has_tracer: bool, room_bytes: int) -> SplitCaches:
    """Return the caches. Raises: MeasurementError with the reason for which there will be no trace."""
    if not has_tracer:
        raise MeasurementError("this valgrind has no lackey, the tool that traces")
    caches = split_caches(traced.caches.known)
    if isinstance(caches, Unknown):
        raise MeasurementError(caches.reason)
    if traced.instructions > _MOST_INSTRUCTIONS:
        raise MeasurementError(
            f"a transaction has {traced.instructions / 1e6:,.0f} million instructions, and up to "
            f"{_MOST_INSTRUCTIONS // 10**6} million are traced"
        )
    if room_bytes < traced.needed_bytes:
        raise MeasurementError(
            f"a trace may take {numbers.size(traced.needed_bytes)}, and the disk has "
            f"{numbers.size(room_bytes)} left"
        )
    return caches


def data_misses(
    arena: ScratchArena, variant: Variant, traced: SessionToTrace, caches: SplitCaches, directory: Path
) -> DataMisses:
    """Let a session do its transactions on a fresh server, and return its misses.

    The arena's servers run under lackey, which writes into a directory. Raises: MeasurementError if it has
    written nothing, and whatever starting servers and issuing loads raises.
    """
    data_set = traced.workload.data_set
    arena.restore((variant,), (0,), data_set)
    with arena.arms((variant,), (0,), data_set) as [arm]:
        lead, wanted = traced.transactions
        touched = round((lead + wanted) * _SLACK)
        ended_session(arena, arm, traced.workload, traced.seed, touched)
        remove_traces_of_ended(directory)
        shared = _shared_memory(arm, arena.installation_of(variant).major)
        trace = _trace(arena, arm, traced, caches, shared, directory)
        kinds = _kinds(arm, trace)
    arena.discard((variant,), (0,), data_set)
    function_of = _function_of(traced, trace.mappings)
    known = {} if isinstance(kinds, Unknown) else kinds
    unknown = (kinds.reason,) if isinstance(kinds, Unknown) else ()
    return DataMisses(
        source=f"simulated: a trace by valgrind's lackey, {traced.caches.text}",
        transactions=trace.transactions,
        instructions=trace.misses.instructions / trace.transactions,
        structures=by_structure(trace.misses, trace.structures, known, function_of, trace.transactions),
        remarks=(DATA_MISSES_LIMITS, *unknown),
    )


def _shared_memory(arm: Arm, major: int) -> SharedMemory:
    [(block_bytes,)] = arm.rows(_BLOCK_BYTES)
    areas = (SharedArea(*row) for row in (arm.rows(_AREAS) if major >= _FIRST_MAJOR else ()))
    return SharedMemory(tuple(areas), block_bytes)


def _trace(
    arena: ScratchArena,
    arm: Arm,
    traced: SessionToTrace,
    caches: SplitCaches,
    shared: SharedMemory,
    directory: Path,
) -> _Trace:
    """Let a session do its transactions, and return the misses of those that count."""
    lead, wanted = traced.transactions
    with arena.loads.resting(arm, traced.workload, traced.seed) as run:
        pid = working_session(arm)
        session_mappings(Tree(), pid)  # without the right to read them, the trace would be for nothing
        file = trace_of(directory, pid)
        _issue(run, lead)
        begin = _size(file)
        transactions = _issue(run, wanted)
        end = _size(file)
        require_whole(shutil.disk_usage(directory).free)
        mappings = session_mappings(Tree(), pid)
    tally(read_own_pieces(file, max(0, begin - _FILLING_BYTES), begin), caches)
    misses = tally(read_own_pieces(file, begin, end), caches)
    structures = structures_in(mappings, shared, str(traced.program))
    return _Trace(misses, transactions, structures, mappings)


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


def _kinds(arm: Arm, trace: _Trace) -> dict[int, str] | Unknown:
    """Return the kinds of the pages that were missed, by address; or why they are not told."""
    blocks = trace.structures.blocks
    if isinstance(blocks, Unknown):
        return Unknown(f"simulated: {blocks.reason}")
    found = {blocks.page_of(address) for address, _ in trace.misses.l1d}
    pages = [page for page in found if page is not None]
    contents = read_places(Tree(), arm.postmaster_pid, pages, blocks.block_bytes).value
    if isinstance(contents, Unknown):
        return Unknown(f"simulated: kinds of pages are not told: the server's memory: {contents.reason}")
    return {page: page_kind(content) for page, content in contents.items()}


def _size(file: Path) -> int:
    try:
        return own_size_bytes(file)
    except FileNotFoundError:
        raise MeasurementError("lackey writes no file for a session: it takes valgrind 3.16") from None


def remove_traces_of_ended(directory: Path) -> None:
    """Remove the traces of processes that have ended: the room is for the one that counts."""
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


def _function_of(traced: SessionToTrace, mappings: Sequence[MemoryMapping]) -> Callable[[int], str]:
    """Return how to name an instruction's function; one of a library by the library."""
    found = Tree().scan_plain(str(traced.program), read_code_segments).value
    segments = () if isinstance(found, Unknown) else found

    def function_of(address: int) -> str:
        mapping = next((one for one in mappings if one.has(address) and one.path), None)
        if mapping is None:
            return ""
        if mapping.path != str(traced.program):
            return Path(mapping.path).name
        offset = address - mapping.begin + mapping.offset
        places = (one.address_of(offset) for one in segments)
        return next((traced.functions.get(place, "") for place in places if place is not None), "")

    return function_of
