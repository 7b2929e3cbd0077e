"""The data cache misses of a session, by structure.

A trace of its memory accesses is replayed on simulated caches with this processor's geometry.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import MeasurementError
from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.elf import read_code_segments
from pgdyno.host.processes.memory_mapping import SharedArea, SharedMemory
from pgdyno.host.processes.process_memory import read_places
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.variants.variant import Variant
from pgdyno.profile.misses.structures import Structures, structures_in
from pgdyno.profile.misses.tally import (
    LoadedProgram,
    SplitCaches,
    Tally,
    by_structure,
    page_kind,
    split_caches,
    tally,
)
from pgdyno.profile.reading.session_traces import SessionToTrace, SessionTrace, session_trace
from pgdyno.profile.records.microarchitecture import DataMisses

DATA_MISSES_LIMITS = (
    "simulated: data misses are those of a single session. No other CPU invalidates its lines, as happens "
    "under load with locks and buffer descriptors; nothing is prefetched, and the kernel's accesses are not "
    "traced. Kinds of pages are those at the end of the trace. Work done once per second is overrepresented, "
    "because tracing slows transactions down. Rarely executed prepared statements may still be planned each "
    "time, because the warm-up is short"
)
_MOST_INSTRUCTIONS = 10_000_000  # per transaction
_AREAS = """
SELECT name, off, size, allocated_size FROM pg_catalog.pg_get_shmem_allocations()
WHERE name IS NOT NULL AND off IS NOT NULL
"""
_BLOCK_BYTES = "SELECT pg_catalog.current_setting('block_size')::pg_catalog.int4"
_FIRST_MAJOR = 13  # the first version with pg_shmem_allocations


def require_traceable(traced: SessionToTrace, *, has_tracer: bool, room_bytes: int) -> SplitCaches:
    """Return the caches to simulate. Raises: MeasurementError with the reason if tracing is impossible."""
    if not has_tracer:
        raise MeasurementError("this valgrind has no lackey, the tracing tool")
    caches = split_caches(traced.caches.known)
    if isinstance(caches, Unknown):
        raise MeasurementError(caches.reason)
    if traced.instructions > _MOST_INSTRUCTIONS:
        raise MeasurementError(
            f"a transaction has {traced.instructions / 1e6:,.0f} million instructions; at most "
            f"{_MOST_INSTRUCTIONS // 10**6} million are traced"
        )
    if room_bytes < traced.needed_bytes:
        raise MeasurementError(
            f"traces may take {numbers.size(traced.needed_bytes)}, but the disk has only "
            f"{numbers.size(room_bytes)} free"
        )
    return caches


def data_misses(
    arena: ScratchArena, variant: Variant, traced: SessionToTrace, caches: SplitCaches, directory: Path
) -> DataMisses:
    """Run a session's transactions on a fresh server, and return its misses.

    The arena's servers run under lackey, which writes to ``directory``. Raises: MeasurementError if lackey
    writes nothing; like starting servers and issuing loads.
    """
    data_set = traced.workload.data_set
    arena.restore((variant,), (0,), data_set)
    with arena.arms((variant,), (0,), data_set) as [arm]:
        shared = _shared_memory(arm, arena.installation_of(variant).major)
        one = session_trace(arena, arm, traced, directory)
        program = _program(traced, one)
        found = _tally_of(one, caches)
        structures = structures_in(one.mappings, shared, program.path)
        kinds = _kinds(arm, structures, found)
    arena.discard((variant,), (0,), data_set)
    structure_of = partial(structures.named, kinds={} if isinstance(kinds, Unknown) else kinds)
    transactions = one.transactions
    return DataMisses(
        source=f"simulated: a trace by valgrind's lackey, {traced.caches.text}",
        transactions=transactions,
        instructions=found.instructions / transactions,
        structures=by_structure(found, structure_of, program.function_at, transactions),
        remarks=(DATA_MISSES_LIMITS, *((kinds.reason,) if isinstance(kinds, Unknown) else ())),
    )


def _shared_memory(arm: Arm, major: int) -> SharedMemory:
    [(block_bytes,)] = arm.rows(_BLOCK_BYTES)
    areas = (SharedArea(*row) for row in (arm.rows(_AREAS) if major >= _FIRST_MAJOR else ()))
    return SharedMemory(tuple(areas), block_bytes)


def _program(traced: SessionToTrace, session: SessionTrace) -> LoadedProgram:
    path = str(traced.program)
    found = Tree().scan_plain(path, read_code_segments).value
    segments = () if isinstance(found, Unknown) else found
    return LoadedProgram(path, traced.functions, segments, session.mappings)


def _tally_of(session: SessionTrace, caches: SplitCaches) -> Tally:
    tally(session.filling(), caches)
    return tally(session.counted(), caches)


def _kinds(arm: Arm, structures: Structures, found: Tally) -> dict[int, str] | Unknown:
    """Return the kinds of the missed pages by address; Unknown if they cannot be read."""
    blocks = structures.blocks
    if isinstance(blocks, Unknown):
        return Unknown(f"simulated: {blocks.reason}")
    missed = {blocks.page_of(address) for address, _ in found.l1d}
    pages = [page for page in missed if page is not None]
    contents = read_places(Tree(), arm.postmaster_pid, pages, blocks.block_bytes).value
    if isinstance(contents, Unknown):
        return Unknown(f"simulated: kinds of pages are unknown: the server's memory: {contents.reason}")
    return {page: page_kind(content) for page, content in contents.items()}
